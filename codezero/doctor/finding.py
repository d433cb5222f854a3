"""The findings of checks, and how severe they are."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum


class Severity(str, Enum):
    OK = "ok"
    INFO = "info"
    """A useful fact; nothing is wrong."""
    WARNING = "warning"
    """A node runs, but worse than it could, or something that it sends does not arrive."""
    ERROR = "error"
    """A node does not start, or stops."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One result of a check."""

    name: str
    """The subject, in a word or two."""
    severity: Severity
    found: str
    """The fact, with its value. May hold untrusted text."""
    means: str = ""
    """The consequence for the node."""
    do: str = ""
    """The remedy; empty where nothing is to be done."""


def ok(name: str, found: str) -> Finding:
    return Finding(name=name, severity=Severity.OK, found=found)


def info(name: str, found: str, means: str = "", do: str = "") -> Finding:
    return Finding(name=name, severity=Severity.INFO, found=found, means=means, do=do)


def warning(name: str, found: str, means: str, do: str) -> Finding:
    return Finding(name=name, severity=Severity.WARNING, found=found, means=means, do=do)


def error(name: str, found: str, means: str, do: str) -> Finding:
    return Finding(name=name, severity=Severity.ERROR, found=found, means=means, do=do)


def exit_code(findings: Iterable[Finding]) -> int:
    """Returns the exit code of `codezero doctor`: 2 with an error, 1 with a warning, else 0."""
    found = {finding.severity for finding in findings}
    return 2 if Severity.ERROR in found else 1 if Severity.WARNING in found else 0

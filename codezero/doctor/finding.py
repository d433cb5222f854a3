"""What a check has found."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum


class Severity(str, Enum):
    OK = "ok"
    INFO = "info"
    """Nothing is wrong; good to know."""
    WARNING = "warning"
    """A node runs, but worse than it could, or something of its does not arrive."""
    ERROR = "error"
    """A node does not start, or stops."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    name: str
    """What was looked at, in a word or two."""
    severity: Severity
    found: str
    """What is the case, with the value. May hold untrusted text."""
    means: str = ""
    """What follows from it for the node."""
    do: str = ""
    """What to do about it; empty where nothing is to be done."""


def ok(name: str, found: str) -> Finding:
    return Finding(name=name, severity=Severity.OK, found=found)


def info(name: str, found: str, means: str = "", do: str = "") -> Finding:
    return Finding(name=name, severity=Severity.INFO, found=found, means=means, do=do)


def warning(name: str, found: str, means: str, do: str) -> Finding:
    return Finding(name=name, severity=Severity.WARNING, found=found, means=means, do=do)


def error(name: str, found: str, means: str, do: str) -> Finding:
    return Finding(name=name, severity=Severity.ERROR, found=found, means=means, do=do)


def exit_code(findings: Iterable[Finding]) -> int:
    """2 with an error, 1 with a warning, else 0."""
    found = {finding.severity for finding in findings}
    return 2 if Severity.ERROR in found else 1 if Severity.WARNING in found else 0

"""The findings of checks, how severe they are, and their form for people and for programs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any

from codezero.errors import CodezeroError
from codezero.runtime.amounts import counted
from codezero.runtime.console import printable


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


def refusal(name: str, fault: CodezeroError | str, means: str = "no node can start") -> Finding:
    """Returns the finding of an error of codezero's own, whose text also says what to do."""
    return Finding(name=name, severity=Severity.ERROR, found=str(fault), means=means)


def exit_code(findings: Iterable[Finding]) -> int:
    """Returns the exit code of `codezero doctor`: 2 with an error, 1 with a warning, else 0."""
    found = {finding.severity for finding in findings}
    return 2 if Severity.ERROR in found else 1 if Severity.WARNING in found else 0


_MARKS = {Severity.OK: "ok", Severity.INFO: "info", Severity.WARNING: "warn", Severity.ERROR: "ERROR"}
_COLOURS = {Severity.OK: "32", Severity.INFO: "36", Severity.WARNING: "33", Severity.ERROR: "1;31"}
"""ANSI colour codes. No package is used for them, since this command must work where packages are broken."""


def lines(findings: Sequence[Finding], coloured: bool = False) -> list[str]:
    """Returns a line for each finding, with its consequence and remedy below; the last line counts them by kind."""
    width = max((len(finding.name) for finding in findings), default=0)
    shown: list[str] = []
    for finding in findings:
        mark = f"{_MARKS[finding.severity]:<5}"
        if coloured:
            mark = f"\x1b[{_COLOURS[finding.severity]}m{mark}\x1b[0m"
        shown.append(f"{mark}  {printable(finding.name):<{width}}  {printable(finding.found)}")
        below = [text for text in (finding.means, f"do: {finding.do}" if finding.do else "") if text]
        shown += [" " * (9 + width) + printable(text) for text in below]
    return [*shown, summary(findings)]


def summary(findings: Sequence[Finding]) -> str:
    """Returns the counts of errors and warnings, with names, since on a small terminal the findings scroll away."""
    parts = []
    for severity, word in ((Severity.ERROR, "error"), (Severity.WARNING, "warning")):
        names = [finding.name for finding in findings if finding.severity is severity]
        if names:
            parts.append(f"{counted(len(names), word)} ({printable(', '.join(dict.fromkeys(names)))})")
    return " and ".join(parts) or "nothing is wrong"


def as_json(findings: Sequence[Finding], **more: Any) -> str:
    listed = [{**asdict(finding), "severity": finding.severity.value} for finding in findings]
    document = {**more, "exit_code": exit_code(findings), "findings": listed}
    return json.dumps(document, indent=2).replace("\x7f", "\\u007f")

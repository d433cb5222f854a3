"""Formats findings: lines for people, JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from codezero.doctor.finding import Finding, Severity, exit_code
from codezero.runtime.console import printable

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
        shown.append(f"{mark}  {_line(finding.name):<{width}}  {_line(finding.found)}")
        below = [text for text in (finding.means, f"do: {finding.do}" if finding.do else "") if text]
        shown += [" " * (9 + width) + _line(text) for text in below]
    return [*shown, summary(findings)]


def summary(findings: Sequence[Finding]) -> str:
    """Returns the counts of errors and warnings, with names, since on a small terminal the findings scroll away."""
    parts = []
    for severity, word in ((Severity.ERROR, "error"), (Severity.WARNING, "warning")):
        names = [finding.name for finding in findings if finding.severity is severity]
        if names:
            parts.append(f"{len(names)} {word}{'s' * (len(names) != 1)} ({_line(', '.join(dict.fromkeys(names)))})")
    return " and ".join(parts) or "nothing is wrong"


def as_json(findings: Sequence[Finding], **more: Any) -> str:
    listed = [{**asdict(finding), "severity": finding.severity.value} for finding in findings]
    return json.dumps({**more, "exit_code": exit_code(findings), "findings": listed}, indent=2)


def _line(text: str) -> str:
    return printable(text).replace("\n", "\\n")

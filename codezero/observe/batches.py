"""Records of the batches of a node that is no solver: one line of JSON each, a line on the console, a summary."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from codezero.observe.monitor import time_spent
from codezero.observe.report_file import ReportFile
from codezero.observe.status import StatusFile
from codezero.proposals import BatchReport, WriterReport, level_name
from codezero.runtime.amounts import brief
from codezero.runtime.console import Console


class Batch(Protocol):
    """A finished batch of any role."""

    @property
    def batch(self) -> int: ...

    @property
    def seconds(self) -> Mapping[str, float]: ...


R = TypeVar("R", bound=Batch)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchKind(Generic[R]):
    """The batches of one role: their file, and their texts."""

    file: str
    """The name of the file in the folder of logs."""
    line: Callable[[R], str]
    """A function that returns a batch in one line."""
    totals: Callable[[Sequence[R]], str]
    """A function that returns what a run's batches add up to, in a few words."""


class BatchMonitor(Generic[R]):
    """Shows and stores finished batches, like RoundMonitor."""

    def __init__(self, kind: BatchKind[R], log_dir: Path, console: Console, status: StatusFile) -> None:
        self._kind, self._file = kind, ReportFile(log_dir / kind.file, "batch")
        self._console, self._status = console, status
        self._seen: list[R] = []

    def resume(self, last: R | None) -> None:
        """Continues the file after the last saved batch; None starts a new one."""
        self._file.resume(last)
        if last is not None:
            self._status.took(last.seconds)

    def report(self, report: R) -> None:
        self._file.append(report)
        self._seen.append(report)
        self._status.took(report.seconds)
        self._console.line(self._kind.line(report))

    def progress(self, stage: str, done: int, total: int) -> None:
        """Shows the progress of a stage, as a `ports.Progress`."""
        self._console.progress(stage, done, total)
        self._status.progress(stage, done, total)

    def summary(self) -> str:
        """Returns a summary of this run's batches in one line."""
        if not self._seen:
            return "stopped before a batch was finished; nothing was lost"
        seconds = sum(sum(one.seconds.values()) for one in self._seen)
        many = "es" * (len(self._seen) > 1)
        return f"done: {len(self._seen)} batch{many} in {brief(seconds)}, {self._kind.totals(self._seen)}"


def batch_line(report: BatchReport) -> str:
    """Returns a batch in one line: level and its reason, problems, the solvers' results, update and time."""
    parts = [
        f"batch {report.batch}",
        f"level {level_name(report.level)} ({report.reason})",
        f"valid {report.num_valid} of {report.num_written}",
    ]
    if report.rejected:
        parts.append("rejected " + ", ".join(f"{count} {reason}" for reason, count in report.rejected.items()))
    if report.writer is not None:
        parts.append(f"cases {writer_text(report.writer)}")
    judged = f"judged {report.num_judged}"
    if report.signal_share is not None:
        judged += f", {report.signal_share:.0%} with signal"
    parts.append(judged)
    if report.success:
        parts.append("success " + " ".join(f"{level}:{rate:.2f}" for level, rate in report.success.items()))
    if report.skipped is not None:
        parts.append(f"no update: {report.skipped}")
    elif report.loss is not None:
        parts.append(f"reward {report.reward_mean:+.2f} loss {report.loss:.4f}")
    if report.dropped:
        parts.append("dropped " + ", ".join(f"{count} {reason}" for reason, count in report.dropped.items()))
    if report.network:
        parts.append(report.network)
    parts.append(time_spent(report.seconds))
    return " | ".join(parts)


def writer_text(report: WriterReport) -> str:
    """Returns the test writer's part of a batch as text such as `31 by batch 5 of the test writer, 12 valid;
    discriminating: 3 or more in 1 of 2 problems, none in 0`."""
    none = report.num_problems - report.num_with_one
    by = f" by batch {report.batch} of the test writer" if report.batch else ""
    return (
        f"{report.num_cases}{by}, {report.num_valid} valid; discriminating: 3 or more in {report.num_with_three} of "
        f"{report.num_problems} problems, none in {none}"
    )


def writer_total(batches: Sequence[BatchReport]) -> WriterReport | None:
    """Returns the sum of the test writer's parts; None if there are none."""
    parts = [one.writer for one in batches if one.writer is not None]
    sums = {field.name: sum(getattr(part, field.name) for part in parts) for field in fields(WriterReport)}
    return WriterReport(**sums | {"batch": 0}) if parts else None


def _totals(batches: Sequence[BatchReport]) -> str:
    written, valid = sum(one.num_written for one in batches), sum(one.num_valid for one in batches)
    tests = writer_total(batches)
    cases = f"; cases {writer_text(tests)}" if tests is not None else ""
    return f"{valid} of {written} problems valid, {sum(one.num_judged for one in batches)} judged by solvers{cases}"


PROPOSED = BatchKind(file="proposals.jsonl", line=batch_line, totals=_totals)
"""A proposer's batches."""

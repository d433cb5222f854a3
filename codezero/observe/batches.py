"""Records of the batches of a node that is no solver: one line of JSON each, a line on the console, a summary."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
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
R_contra = TypeVar("R_contra", bound=Batch, contravariant=True)


class Totals(Protocol[R_contra]):
    """Sums over the batches of a run, so that it need not remember them."""

    def add(self, report: R_contra) -> None: ...

    def text(self) -> str:
        """Returns what the batches add up to, in a few words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchKind(Generic[R]):
    """The batches of one role: their file, and their texts."""

    file: str
    """The name of the file in the folder of logs."""
    line: Callable[[R], str]
    """A function that returns a batch in one line."""
    totals: Callable[[], Totals[R]]
    """A function that returns sums over no batches yet."""


class BatchMonitor(Generic[R]):
    """Shows and stores finished batches, like RoundMonitor."""

    def __init__(self, kind: BatchKind[R], log_dir: Path, console: Console, status: StatusFile) -> None:
        self._kind, self._file = kind, ReportFile(log_dir / kind.file, "batch")
        self._console, self._status = console, status
        self._totals = kind.totals()
        self._num_batches, self._seconds = 0, 0.0

    def resume(self, last: R | None) -> None:
        """Continues the file after the last saved batch; None starts a new one."""
        self._file.resume(last)
        if last is not None:
            self._status.took(last.seconds)

    def report(self, report: R) -> None:
        self._file.append(report)
        self._totals.add(report)
        self._num_batches += 1
        self._seconds += sum(report.seconds.values())
        self._status.took(report.seconds)
        self._console.line(self._kind.line(report))

    def progress(self, stage: str, done: int, total: int) -> None:
        """Shows the progress of a stage, as a `ports.Progress`."""
        self._console.progress(stage, done, total)
        self._status.progress(stage, done, total)

    def summary(self) -> str:
        """Returns a summary of this run's batches in one line."""
        if not self._num_batches:
            return "stopped before a batch was finished; nothing was lost"
        many = "es" * (self._num_batches > 1)
        return f"done: {self._num_batches} batch{many} in {brief(self._seconds)}, {self._totals.text()}"


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


def writer_total(parts: Iterable[WriterReport | None]) -> WriterReport | None:
    """Returns the sum of the test writer's parts of batches; None if there are none."""
    known = [part for part in parts if part is not None]
    sums = {field.name: sum(getattr(part, field.name) for part in known) for field in fields(WriterReport)}
    return WriterReport(**sums | {"batch": 0}) if known else None


@dataclass(slots=True)
class _Proposed:
    """Sums over a proposer's batches."""

    written: int = 0
    valid: int = 0
    judged: int = 0
    writer: WriterReport | None = None

    def add(self, report: BatchReport) -> None:
        self.written += report.num_written
        self.valid += report.num_valid
        self.judged += report.num_judged
        self.writer = writer_total([self.writer, report.writer])

    def text(self) -> str:
        cases = f"; cases {writer_text(self.writer)}" if self.writer is not None else ""
        return f"{self.valid} of {self.written} problems valid, {self.judged} judged by solvers{cases}"


PROPOSED = BatchKind(file="proposals.jsonl", line=batch_line, totals=_Proposed)
"""A proposer's batches."""

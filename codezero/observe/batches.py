"""Records of finished batches, or rounds: one line of JSON each, a line on the console, a summary; and the texts of a
proposer's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Generic, TypeVar

from codezero.observe.report_file import ReportFile
from codezero.observe.status import StatusFile
from codezero.proposals import BatchReport, WriterReport, level_name
from codezero.reports import CasesReport, RoundReport
from codezero.runtime.amounts import brief, tallied
from codezero.runtime.console import Console

R = TypeVar("R", RoundReport, BatchReport, CasesReport)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchKind(Generic[R]):
    """The batches of one role, or its rounds: their file, and their texts."""

    file: str
    """The name of the file in the folder of logs."""
    line: Callable[[R], str]
    """A function that returns a batch in one line."""
    sums: Callable[[R], Mapping[str, float]]
    """A function that returns the numbers of a batch that the summary adds up, so that no run remembers its batches."""
    summary: Callable[[Mapping[str, float]], str]
    """A function that returns these sums over one or more batches in a few words."""
    noun: str = "batch"
    """The word for one of them, which is also the field with its number."""


class BatchMonitor(Generic[R]):
    """Shows and stores finished batches: exactly one line each in their file, also after kills."""

    def __init__(self, kind: BatchKind[R], log_dir: Path, console: Console, status: StatusFile) -> None:
        self._kind: BatchKind[R] = kind
        self._file = ReportFile(log_dir / kind.file, kind.noun)
        self._console, self._status = console, status
        self._num_done, self._seconds = 0, 0.0
        self._sums: dict[str, float] = {}

    def resume(self, last: R | None) -> None:
        """Continues the file after the last saved batch; None starts a new one."""
        self._file.resume(last)
        if last is not None:
            self._status.took(last.seconds)

    def report(self, report: R) -> None:
        """Shows and stores a finished batch. Raises StateError if its report cannot be written."""
        self._file.append(report)
        self._num_done += 1
        self._seconds += sum(report.seconds.values())
        for name, value in self._kind.sums(report).items():
            self._sums[name] = self._sums.get(name, 0) + value
        self._status.took(report.seconds)
        self._stored(report)
        self._console.line(self._kind.line(report))

    def _stored(self, report: R) -> None:
        """Is called with a report that is stored, before it is shown."""

    def progress(self, stage: str, done: int, total: int) -> None:
        """Shows the progress of a stage, as a `ports.Progress`."""
        self._console.progress(stage, done, total)
        self._status.progress(stage, done, total)

    def summary(self) -> str:
        """Returns a summary of this run's batches in one line."""
        noun = self._kind.noun
        if not self._num_done:
            return f"stopped before a {noun} was finished; nothing was lost"
        many = ("es" if noun == "batch" else "s") * (self._num_done > 1)
        return f"done: {self._num_done} {noun}{many} in {brief(self._seconds)}, {self._kind.summary(self._sums)}"


def time_spent(seconds: Mapping[str, float]) -> str:
    """Returns the total and the stages of at least 0.5 s, such as `8s: solve 6 train 2`."""
    stages = "".join(f" {name} {spent:.0f}" for name, spent in seconds.items() if spent >= 0.5)
    return brief(sum(seconds.values())) + (f":{stages}" if stages else "")


def batch_line(report: BatchReport) -> str:
    """Returns a batch in one line: level and its reason, problems, the solvers' results, update and time."""
    parts = [
        f"batch {report.batch}",
        f"level {level_name(report.level)} ({report.reason})",
        f"valid {report.num_valid} of {report.num_written}",
    ]
    if report.rejected:
        parts.append(f"rejected {tallied(report.rejected)}")
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
        parts.append(f"dropped {tallied(report.dropped)}")
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


def _sums(report: BatchReport) -> dict[str, float]:
    sums = {"written": report.num_written, "valid": report.num_valid, "judged": report.num_judged}
    return {**sums, **(asdict(report.writer) if report.writer is not None else {})}


def _summary(sums: Mapping[str, float]) -> str:
    found = f"{sums['valid']} of {sums['written']} problems valid, {sums['judged']} judged by solvers"
    names = [field.name for field in fields(WriterReport) if field.name in sums]
    if not names:
        return found
    writer = WriterReport(**{name: int(sums[name]) for name in names} | {"batch": 0})
    return f"{found}; cases {writer_text(writer)}"


PROPOSED = BatchKind(file="proposals.jsonl", line=batch_line, sums=_sums, summary=_summary)
"""A proposer's batches."""

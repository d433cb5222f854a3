"""Records of a proposer's batches: one line of JSON each in `proposals.jsonl`, a line on the console, a summary."""

from __future__ import annotations

from pathlib import Path

from codezero.observe.monitor import time_spent
from codezero.observe.report_file import ReportFile
from codezero.observe.status import StatusFile
from codezero.proposals import BatchReport, level_name
from codezero.runtime.amounts import brief
from codezero.runtime.console import Console


class BatchMonitor:
    """Shows and stores finished batches, like RoundMonitor."""

    def __init__(self, log_dir: Path, console: Console, status: StatusFile) -> None:
        self._file = ReportFile(log_dir / "proposals.jsonl", "batch")
        self._console, self._status = console, status
        self._seen: list[BatchReport] = []

    def resume(self, last: BatchReport | None) -> None:
        """Continues the file after the last saved batch; None starts a new one."""
        self._file.resume(last)
        if last is not None:
            self._note(last)

    def report(self, report: BatchReport) -> None:
        self._file.append(report)
        self._seen.append(report)
        self._note(report)
        self._console.line(batch_line(report))

    def progress(self, stage: str, done: int, total: int) -> None:
        """Shows the progress of a stage, as a `ports.Progress`."""
        self._console.progress(stage, done, total)
        self._status.progress(stage, done, total)

    def _note(self, report: BatchReport) -> None:
        self._status.took(report.seconds)
        self._status.update(network=report.network)

    def summary(self) -> str:
        """Returns a summary of this run's batches in one line."""
        if not self._seen:
            return "stopped before a batch was finished; nothing was lost"
        written, valid = sum(one.num_written for one in self._seen), sum(one.num_valid for one in self._seen)
        judged = sum(one.num_judged for one in self._seen)
        seconds = sum(sum(one.seconds.values()) for one in self._seen)
        return (
            f"done: {len(self._seen)} batch{'es' * (len(self._seen) > 1)} in {brief(seconds)}, {valid} of {written} "
            f"problems valid, {judged} judged by solvers"
        )


def batch_line(report: BatchReport) -> str:
    """Returns a batch in one line: level and its reason, problems, the solvers' results, update and time."""
    parts = [
        f"batch {report.batch}",
        f"level {level_name(report.level)} ({report.reason})",
        f"valid {report.num_valid} of {report.num_written}",
    ]
    if report.rejected:
        parts.append("rejected " + ", ".join(f"{count} {reason}" for reason, count in report.rejected.items()))
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

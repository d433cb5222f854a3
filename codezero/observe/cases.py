"""The texts of a test writer's batches for `BatchMonitor`."""

from __future__ import annotations

from collections.abc import Mapping

from codezero.observe.batches import BatchKind, time_spent
from codezero.reports import CasesReport, SolverReport
from codezero.runtime.amounts import counted, tallied


def cases_line(report: CasesReport) -> str:
    """Returns a batch in one line: answers, what they are worth, the base rate, update and time."""
    parts = [f"batch {report.batch}", f"answers {report.num_answers} on {report.num_groups}"]
    if report.num_masked:
        parts.append(f"masked {report.num_masked}")
    if report.reward_mean is not None:
        parts += [
            f"valid {report.valid:.0%} diagnosis {report.right:.0%} approved {report.approved:.0%}",
            f"reward {report.reward_mean:.2f}, approving always {report.reward_approving:.2f}",
        ]
    if report.skipped is not None:
        parts.append(f"no update: {report.skipped}")
    elif report.loss is not None:
        parts.append(f"loss {report.loss:.4f} grad {report.grad_norm:.2f}")
    if report.solver is not None:
        parts.append(_solver(report.solver))
    if report.dropped:
        parts.append(f"dropped {tallied(report.dropped)}")
    parts.append(time_spent(report.seconds))
    return " | ".join(parts)


def _solver(report: SolverReport) -> str:
    text = f"solver {share(report.right)} right of {report.num_attempts}"
    if report.num_second:
        text += f", then {share(report.second_right)} of {report.num_second}"
    if report.skipped is not None:
        return f"{text}, no update: {report.skipped}"
    return f"{text}, loss {report.loss:.4f}"


def share(value: float | None) -> str:
    """Returns a share as text such as `24%`."""
    return "unknown" if value is None else f"{value:.0%}"


def _sums(report: CasesReport) -> dict[str, float]:
    judged = report.num_answers - report.num_masked
    valid, right = judged * (report.valid or 0.0), judged * (report.right or 0.0)
    return {"answers": report.num_answers, "judged": judged, "valid": valid, "right": right}


def _summary(sums: Mapping[str, float]) -> str:
    judged, shares = sums["judged"], "none judged"
    if judged:
        shares = f"{sums['valid'] / judged:.0%} valid, {sums['right'] / judged:.0%} with the right diagnosis"
    return f"{counted(sums['answers'], 'answer')} of test cases, {shares}"


CASES = BatchKind(file="cases.jsonl", line=cases_line, sums=_sums, summary=_summary)
"""A test writer's batches."""

"""The page of a test writer: its cases, what they earn beside the base rate, time and memory."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from codezero.observe.cases import share
from codezero.reports import SolverReport
from codezero.runtime.amounts import brief
from codezero.views.terminal import header
from codezero.views.terminal.node import curve, learns, memory
from codezero.views.terminal.snapshot import Snapshot
from codezero.views.terminal.text import BAD, DIM, counts, row, safe


def verifier_page(snapshot: Snapshot, width: int) -> list[Text]:
    """Returns the page's lines. Blank lines separate groups, and are left out first if there is no room."""
    lines = learns(snapshot, width)
    lines += _numbers(snapshot, width) if snapshot.cases else [row("", "no batch is finished yet")]
    return [*header.top(snapshot, width), *lines, *memory(snapshot)]


def _numbers(snapshot: Snapshot, width: int) -> list[Text]:
    cases, last = snapshot.cases, snapshot.cases[-1]
    base = []
    if last.reward_approving is not None:
        base = [row("", (f"approving always would earn {last.reward_approving:.2f}", DIM))]
    masked = f", {last.num_masked} that nothing could judge" if last.num_masked else ""
    learned = f"no update: {safe(last.skipped)}" if last.skipped is not None else f"loss {last.loss:.4g}"
    right = "" if last.candidates_right is None else f"{share(last.candidates_right)} were right"
    lines = [
        curve("Reward", [one.reward_mean for one in cases], "{:.2f}".format, "of 1", width),
        *base,
        curve("Valid", [one.valid for one in cases], "{:.0%}".format, "pass the reference", width),
        curve("Diagnosis", [one.right for one in cases], "{:.0%}".format, "right verdict", width),
        curve("Approved", [one.approved for one in cases], "{:.0%}".format, right, width),
        Text(""),
        row("Written", f"{last.num_answers} answers on {last.num_groups} candidates{masked}"),
        row("Learned", f"policy version {last.policy_version}  {learned}"),
    ]
    if last.solver is not None:
        lines += _solver(last.solver, [one.solver.right for one in cases if one.solver is not None], width)
    if last.dropped:
        lines.append(row("", (f"dropped {counts(last.dropped)}", BAD)))
    lines.append(row("Speed", f"batch {last.batch} took {brief(sum(last.seconds.values()))}"))
    return lines


def _solver(last: SolverReport, right: Sequence[float | None], width: int) -> list[Text]:
    learned = f"no update: {safe(last.skipped)}" if last.skipped is not None else f"loss {last.loss:.4g}"
    second = f"second attempts {share(last.second_right)} right of {last.num_second}  " if last.num_second else ""
    return [
        curve("Solver", right, "{:.0%}".format, f"right of {last.num_attempts}", width),
        row("", f"{second}policy version {last.policy_version}  {learned}"),
    ]

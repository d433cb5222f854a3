"""A proposer's page: the level, solvers' success at each level, and the problems written, valid and judged."""

from __future__ import annotations

from rich.text import Text

from codezero.proposals import LEVELS, BatchReport, level_name
from codezero.runtime.amounts import brief
from codezero.views.terminal import header, solver
from codezero.views.terminal.snapshot import Snapshot
from codezero.views.terminal.text import BAD, BOLD, DIM, bar, counts, fit, flow, row, safe


def page(snapshot: Snapshot, width: int) -> list[Text]:
    """Returns the page's lines. Blank lines separate groups, and are left out first if there is no room."""
    top = [*header.identity(snapshot, width), Text(""), *header.progress(snapshot, width), Text("")]
    lines = _numbers(snapshot, width) if snapshot.batches else [row("", "no batch is finished yet")]
    return [fit(line, width) for line in [*top, *lines, *solver.memory(snapshot)]]


def _numbers(snapshot: Snapshot, width: int) -> list[Text]:
    batches, last = snapshot.batches, snapshot.batches[-1]
    lines = [
        row("Level", (f"{level_name(last.level)}  ", BOLD), safe(last.reason)),
        *(_level(last, number, width) for number in range(1, len(LEVELS) + 1)),
        row("", ("share of right attempts; problems teach most at about one half", DIM)),
        Text(""),
        solver.curve(
            "Valid",
            [one.num_valid / one.num_written if one.num_written else None for one in batches],
            "{:.0%}".format,
            "of what was written",
            width,
        ),
    ]
    if last.rejected:
        lines += flow("", [f"rejected {counts(dict(last.rejected))}"], width)
    signal = "" if last.signal_share is None else f", {last.signal_share:.0%} with right and wrong attempts"
    lines.append(row("Judged", f"{last.num_judged} in the last batch{signal}"))
    if last.loss is not None or last.skipped is not None:
        reward = "-" if last.reward_mean is None else f"{last.reward_mean:+.2f}"
        learned = f"no update: {safe(last.skipped)}" if last.skipped is not None else f"reward {reward}"
        lines.append(row("Learned", learned))
    lines.append(row("Swarm", safe(last.network) if last.network else "alone: nobody answers"))
    if last.dropped:
        lines.append(row("", (f"dropped {counts(dict(last.dropped))}", BAD)))
    lines.append(row("Speed", f"batch {last.batch} took {brief(sum(last.seconds.values()))}"))
    return lines


def _level(last: BatchReport, number: int, width: int) -> Text:
    """Returns the line of a level with its estimated success; the level in use is marked."""
    rate, here = last.success.get(str(number)), number == last.level
    shown = "not known" if rate is None else f"{rate:.2f} {bar(rate, min(width - 36, 30)) if width >= 50 else ''}"
    text = f"{'▸' if here else ' '}{number} {LEVELS[number - 1]:<9} {shown}"
    return row("", (text, BOLD if here else "" if rate is not None else DIM))

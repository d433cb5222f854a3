"""A swarm folder's page: a row for each node, the chosen one marked."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from codezero.observe.roles import PROPOSER, VERIFIER
from codezero.proposals import level_name
from codezero.runtime.amounts import brief
from codezero.views.terminal.snapshot import Snapshot
from codezero.views.terminal.text import BAD, BOLD, DIM, fit, padded, safe, sparkline

_COLUMNS = (("node", 12, 0), ("round", 6, 0), ("doing", 16, 0), ("left", 7, 70), ("earns", 20, 0), ("who", 30, 110))
"""Heading, width in cells, and the width of a terminal from which a column is shown."""


def table(snapshots: Sequence[Snapshot], chosen: int, width: int, height: int) -> list[Text]:
    """Returns at most `height` lines; the chosen row is always among them."""
    columns = [column for column in _COLUMNS if width >= column[2]]
    lines = [fit(Text("  " + " ".join(padded(name, cells) for name, cells, _ in columns), DIM), width)]
    room = max(height - 1, 1)
    first = min(max(0, chosen - room // 2), max(0, len(snapshots) - room))
    for number, snapshot in list(enumerate(snapshots))[first : first + room]:
        cells = _cells(snapshot)
        text = " ".join(padded(cells[name], room) for name, room, _ in columns)
        style = BOLD if number == chosen else "" if snapshot.presence().state == "running" else BAD
        lines.append(fit(Text(f"{'▸' if number == chosen else ' '} {text}", style), width))
    return lines


def _cells(snapshot: Snapshot) -> dict[str, str]:
    status = snapshot.status
    cells = {"node": safe(snapshot.name or snapshot.role), "round": "-", "doing": "-", "left": "", "who": ""}
    cells["earns"] = _earns(snapshot)
    if status is None:
        return cells
    if status.round is not None:
        cells["round"] = str(status.round)
    cells["who"] = status.animal
    presence = snapshot.presence()
    if presence.state != "running" or not snapshot.is_current:
        cells["doing"] = safe(presence.text)
        return cells
    count = f" {status.done}/{status.total}" if status.total else ""
    cells["doing"] = f"{safe(status.stage)}{count}"
    left_s = status.left_s(snapshot.now_s)
    cells["left"] = "" if left_s is None else brief(left_s)
    return cells


def _earns(snapshot: Snapshot) -> str:
    if snapshot.role == VERIFIER:
        valid = snapshot.cases[-1].valid if snapshot.cases else None
        return "-" if valid is None else f"{valid:.0%} of cases valid"
    if snapshot.role == PROPOSER:
        return f"level {level_name(snapshot.batches[-1].level)}" if snapshot.batches else "-"
    rewards = [report.reward_mean for report in snapshot.reports]
    if not rewards:
        return "-"
    newest = "-" if rewards[-1] is None else f"{rewards[-1]:+.2f}"
    return f"{newest} {sparkline(rewards, 14).rstrip()}"

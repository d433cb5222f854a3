"""A solver's page: its rewards, the share of right solutions, the groups it learned from, and time and memory."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence

from rich.text import Text

from codezero.evaluate.gain import Direction
from codezero.identity.names import animal_name
from codezero.observe.monitor import mixed
from codezero.runtime.amounts import brief, gib
from codezero.types import RoundReport
from codezero.views.terminal import header
from codezero.views.terminal.snapshot import Snapshot
from codezero.views.terminal.text import (
    BAD,
    BOLD,
    DIM,
    GOOD,
    LABEL,
    counts,
    fit,
    flow,
    row,
    safe,
    sparkline,
)

_VALUE, _NOTE = 7, 22
"""Cells of a value, and of the note behind its sparkline."""
_STYLES = {Direction.RISING: GOOD, Direction.FALLING: BAD}


def page(snapshot: Snapshot, width: int) -> list[Text]:
    """Returns the page's lines. Blank lines separate groups, and are left out first if there is no room."""
    top = [*header.identity(snapshot, width), Text(""), *header.progress(snapshot, width), Text("")]
    lines = [*_learns(snapshot, width)]
    lines += _numbers(snapshot, width) if snapshot.reports else [row("", "no round is finished yet")]
    return [fit(line, width) for line in [*top, *lines, *memory(snapshot), *ledger(snapshot), *_push(snapshot)]]


def _numbers(snapshot: Snapshot, width: int) -> list[Text]:
    reports, last = snapshot.reports, snapshot.reports[-1]
    k = (snapshot.status.group_size if snapshot.status is not None else 0) or "k"
    better, took = "higher is better", f"round {brief(sum(last.seconds.values()))}"
    rewards = [report.reward_mean for report in reports]
    return [
        curve("Reward", rewards, "{:+.2f}".format, better, width),
        *flow("", [f"{safe(name)} {value:+.2f}" for name, value in last.reward_parts.items()], width),
        curve(f"pass@{k}", [report.pass_at_k for report in reports], "{:.2f}".format, "predicted", width),
        curve(f"average@{k}", [report.average_at_k for report in reports], "{:.2f}".format, "predicted", width),
        row("Learned", *_learned(last)),
        Text(""),
        *flow("Swarm", _swarm(last, width), width),
        *_proposals(reports),
        *_services(last),
        Text(""),
        curve("tokens/s", [report.tokens_per_s for report in reports], "{:.0f}".format, took, width),
    ]


def _learns(snapshot: Snapshot, width: int) -> list[Text]:
    if snapshot.learning is None:
        return []
    lines = textwrap.wrap(snapshot.learning.text, max(width - LABEL, 10))
    style = _STYLES.get(snapshot.learning.direction, "")
    return [row("" if number else "Learns", (line, style)) for number, line in enumerate(lines)]


def curve(label: str, values: Sequence[float | None], show: Callable[[float], str], note: str, width: int) -> Text:
    """Returns a line with the newest value and a sparkline of the values."""
    newest = values[-1]
    line = row(label, (("-" if newest is None else show(newest)).ljust(_VALUE), BOLD))
    room = min(width - LABEL - _VALUE - _NOTE, 60)
    if room >= 8:
        line.append(sparkline(values, room) + "  ")
    line.append(note, DIM)
    return line


def _learned(last: RoundReport) -> list[str | tuple[str, str]]:
    version = f"policy version {last.policy_version}" + ("" if last.mixed is None else f"  {mixed(last.mixed)}")
    if last.skipped is not None:
        return [version, f"  no update: {safe(last.skipped)}"]
    pull = "".join(
        f"  {name} {value:.4g}"
        for name, value in (("loss", last.loss), ("grad", last.grad_norm), ("kl", last.kl))
        if value is not None
    )
    return [version, pull]


def _swarm(last: RoundReport, width: int) -> list[str]:
    """Returns the peers present, the numbers of local and external groups (I and J) with the sources of the latter, and
    the dropped groups by reason."""
    proposed = f" ({last.num_proposed_groups} proposed)" if last.num_proposed_groups else ""
    pooled = f" of {last.num_pooled_groups}" if last.num_pooled_groups else ""
    external, peers = f"external {last.num_external_groups}{pooled}", list(last.external_groups)
    if peers:
        named = len(peers) == 1 or (len(peers) == 2 and width >= 110)
        external += " from " + (" and ".join(map(animal_name, peers)) if named else f"{len(peers)} peers")
    return [
        safe(last.network) if last.network else "trains alone",
        f"local {last.num_local_groups}{proposed}",
        external,
        f"dropped {counts(dict(last.dropped)) or 0}",
        *([f"unverified {unverified}"] if (unverified := last.fresh_tests.get("unverified")) else []),
    ]


def _proposals(reports: Sequence[RoundReport]) -> list[Text]:
    late = reports[-10:]
    used = sum(report.num_proposed_groups for report in late)
    if not used:
        return []
    drawn = sum(report.num_local_groups for report in late)
    return [row("Proposals", f"{used} of {drawn} tasks in {len(late)} round{'s' * (len(late) > 1)} were proposers'")]


def _services(last: RoundReport) -> list[Text]:
    lines = []
    if last.judge_score is not None:
        lines.append(row("Judge", f"score {last.judge_score:g}"))
    if last.judge:
        lines.append(row("Judge", (f"! {safe(last.judge)}", BAD)))
    if last.market and last.market != last.judge:
        lines.append(row("Market", (f"! {safe(last.market)}", BAD)))
    return lines


def memory(snapshot: Snapshot) -> list[Text]:
    """Returns a line with the memory used and the memory planned."""
    status = snapshot.status
    if status is None or not status.rss_bytes:
        return []
    plan = f" of {gib(status.planned_bytes)} planned" if status.planned_bytes else ""
    return [row("Memory", f"{gib(status.rss_bytes)}{plan}")]


def ledger(snapshot: Snapshot) -> list[Text]:
    """Returns the lines of the ledger, and of what keeps rewards from it."""
    rows = [(safe(label), safe(text)) for label, text in snapshot.ledger]
    if snapshot.status is not None and snapshot.status.ledger and not any(label == "trouble" for label, _ in rows):
        rows.append(("trouble", safe(snapshot.status.ledger)))
    return [
        row("" if number else "Ledger", (f"{label} ", DIM), (text, BAD if label == "trouble" else ""))
        for number, (label, text) in enumerate(rows)
    ]


def _push(snapshot: Snapshot) -> list[Text]:
    """Returns a line with the latest push to the hub, or with what prevents it."""
    status = snapshot.status
    if status is None or not (status.pushed or status.push_trouble):
        return []
    if status.push_trouble:
        return [row("Push", (f"! {safe(status.push_trouble)}", BAD))]
    return [row("Push", safe(status.pushed))]

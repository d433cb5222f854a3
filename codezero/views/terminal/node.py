"""The pages of a solver and a proposer: rewards, right solutions, groups, levels, problems, time, memory and ledger."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.text import Text

from codezero.evaluate.gain import Direction
from codezero.observe.batches import writer_text
from codezero.observe.monitor import external, mixed
from codezero.proposals import LEVELS, BatchReport, level_name
from codezero.reports import RoundReport
from codezero.runtime.amounts import brief, counted, gib
from codezero.views.accounts import account_rows
from codezero.views.terminal import header
from codezero.views.terminal.snapshot import Snapshot
from codezero.views.terminal.text import BAD, BOLD, DIM, GOOD, LABEL, bar, counts, flow, paragraph, row, safe, sparkline

_VALUE, _NOTE = 7, 22
"""Cells of a value, and of the note behind its sparkline."""
_STYLES = {Direction.RISING: GOOD, Direction.FALLING: BAD, "trouble": BAD, "problem": BAD}


def solver_page(snapshot: Snapshot, width: int) -> list[Text]:
    """Returns the page's lines. Blank lines separate groups, and are left out first if there is no room."""
    lines = learns(snapshot, width)
    lines += _numbers(snapshot, width) if snapshot.reports else [row("", "no round is finished yet")]
    return [*header.top(snapshot, width), *lines, *memory(snapshot), *accounts(snapshot), *_push(snapshot)]


def _numbers(snapshot: Snapshot, width: int) -> list[Text]:
    status, reports, last = snapshot.status, snapshot.reports, snapshot.reports[-1]
    k = (status.group_size if status is not None else 0) or "k"
    better, took = "higher is better", f"round {brief(sum(last.seconds.values()))}"
    rewards = [report.reward_mean for report in reports]
    return [
        curve("Reward", rewards, "{:+.2f}".format, better, width),
        *flow("", [f"{safe(name)} {value:+.2f}" for name, value in last.reward_parts.items()], width),
        curve(f"pass@{k}", [report.pass_at_k for report in reports], "{:.2f}".format, "predicted", width),
        curve(f"average@{k}", [report.average_at_k for report in reports], "{:.2f}".format, "predicted", width),
        row("Learned", *_learned(last)),
        Text(""),
        *flow("Swarm", _swarm(last), width),
        *paragraph("Peer tasks", safe(status.peer_tasks) if status is not None else "", width),
        *_proposals(reports),
        *_services(last),
        Text(""),
        curve("tokens/s", [report.tokens_per_s for report in reports], "{:.0f}".format, took, width),
    ]


def learns(snapshot: Snapshot, width: int) -> list[Text]:
    """Returns lines with the result of a solver's probes."""
    if snapshot.learning is None:
        return []
    return paragraph("Learns", snapshot.learning.text, width, _STYLES.get(snapshot.learning.direction, ""))


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


def _swarm(last: RoundReport) -> list[str]:
    """Returns the peers present, the numbers of local and external groups (I and J) with the sources of the latter, and
    the dropped groups by reason."""
    proposed = f" ({last.num_proposed_groups} proposed)" if last.num_proposed_groups else ""
    return [
        safe(last.network) if last.network else "trains alone",
        f"local {last.num_local_groups}{proposed}",
        *([f"replayed {last.num_replayed_groups}"] if last.num_replayed_groups else []),
        f"external {external(last)}",
        f"dropped {counts(last.dropped) or 0}",
        *([f"unverified {unverified}"] if (unverified := last.fresh_tests.get("unverified")) else []),
    ]


def _proposals(reports: Sequence[RoundReport]) -> list[Text]:
    late = reports[-10:]
    used = sum(report.num_proposed_groups for report in late)
    if not used:
        return []
    drawn = sum(report.num_local_groups for report in late)
    return [row("Proposals", f"{used} of {drawn} tasks in {counted(len(late), 'round')} were proposers'")]


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


def accounts(snapshot: Snapshot) -> list[Text]:
    """Returns the lines of ledger and markets, and of what keeps rewards from the ledger."""
    rows = list(account_rows(snapshot.accounts, snapshot.now_s))
    if snapshot.status is not None and snapshot.status.ledger and not any(label == "trouble" for label, _ in rows):
        rows.append(("trouble", snapshot.status.ledger))
    return [
        row("" if number else "Ledger", (f"{label} ", DIM), (safe(text), _STYLES.get(label, "")))
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


def proposer_page(snapshot: Snapshot, width: int) -> list[Text]:
    """Returns the page's lines. Blank lines separate groups, and are left out first if there is no room."""
    lines = _batch_numbers(snapshot, width) if snapshot.batches else [row("", "no batch is finished yet")]
    return [*header.top(snapshot, width), *lines, *memory(snapshot)]


def _batch_numbers(snapshot: Snapshot, width: int) -> list[Text]:
    batches, last = snapshot.batches, snapshot.batches[-1]
    lines = [
        row("Level", (f"{level_name(last.level)}  ", BOLD), safe(last.reason)),
        *(_level(last, number, width) for number in range(1, len(LEVELS) + 1)),
        row("", ("share of right attempts; problems teach most at about one half", DIM)),
        Text(""),
        curve(
            "Valid",
            [one.num_valid / one.num_written if one.num_written else None for one in batches],
            "{:.0%}".format,
            "of what was written",
            width,
        ),
    ]
    if last.rejected:
        lines += flow("", [f"rejected {counts(last.rejected)}"], width)
    if last.writer is not None:
        lines += flow("Cases", writer_text(last.writer).split("; "), width)
    signal = "" if last.signal_share is None else f", {last.signal_share:.0%} with right and wrong attempts"
    lines.append(row("Judged", f"{last.num_judged} in the last batch{signal}"))
    if last.loss is not None or last.skipped is not None:
        reward = "-" if last.reward_mean is None else f"{last.reward_mean:+.2f}"
        learned = f"no update: {safe(last.skipped)}" if last.skipped is not None else f"reward {reward}"
        lines.append(row("Learned", learned))
    lines.append(row("Swarm", safe(last.network) if last.network else "alone: nobody answers"))
    if last.dropped:
        lines.append(row("", (f"dropped {counts(last.dropped)}", BAD)))
    lines.append(row("Speed", f"batch {last.batch} took {brief(sum(last.seconds.values()))}"))
    return lines


def _level(last: BatchReport, number: int, width: int) -> Text:
    """Returns the line of a level with its estimated success; the level in use is marked."""
    rate, here = last.success.get(str(number)), number == last.level
    shown = "not known" if rate is None else f"{rate:.2f} {bar(rate, min(width - 36, 30)) if width >= 50 else ''}"
    text = f"{'▸' if here else ' '}{number} {LEVELS[number - 1]:<9} {shown}"
    return row("", (text, BOLD if here else "" if rate is not None else DIM))

"""Formats the lines of `codezero status`; text of peers in them is made safe to print."""

from __future__ import annotations

import time
from collections.abc import Iterator

from codezero.ledger.rows import submitted
from codezero.ledger.view import LedgerView, PendingItem
from codezero.observe.status import SILENT_S, Status
from codezero.proposals import level_name
from codezero.runtime.amounts import brief, gib
from codezero.views.summary import RunSummary
from codezero.views.terminal.header import stage_words
from codezero.views.terminal.text import counts, safe


def lines(summary: RunSummary, heading: bool) -> Iterator[str]:
    """Yields the lines about one run; `heading` puts its name first, for a list of several."""
    if heading:
        yield f"{safe(summary.name)}:"
    for label, text in _rows(summary):
        yield f"{label:<8} {safe(text)}"


def _rows(summary: RunSummary) -> Iterator[tuple[str, str]]:
    yield from _node(summary)
    if summary.learning is not None:
        yield "learns", summary.learning.text
    if summary.rounds:
        yield from _rounds(summary)
    if summary.batches:
        yield from _batches(summary)
    if summary.status is not None and summary.status.rss_bytes and summary.running:
        plan = summary.status.planned_bytes
        yield "memory", gib(summary.status.rss_bytes) + (f" of {gib(plan)} planned" if plan else "")
    if summary.status is not None and (push := summary.status.push_trouble or summary.status.pushed):
        yield "push", push
    if summary.last_warning is not None:
        at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(summary.last_warning.at_s))
        yield "warning", f"{at} {summary.last_warning.text}"
    if summary.ledger is not None:
        yield from _ledger(summary.ledger)
    for book in summary.markets:
        yield (
            "market",
            f"{book.num_bets} bet{'s' * (book.num_bets != 1)} of peer {book.peer_id} at {book.contract} on chain "
            f"{book.chain_id}; {book.num_open} not confirmed, {book.num_unclaimed} "
            f"game{'s' * (book.num_unclaimed != 1)} to be claimed",
        )
        if book.trouble is not None:
            yield "trouble", book.trouble.text
    for problem in summary.problems:
        yield "problem", problem


def _node(summary: RunSummary) -> Iterator[tuple[str, str]]:
    status, now_s = summary.status, time.time()
    if status is None:
        yield summary.role, f"{_process(summary)}; it has noted no status"
        return
    who = f"{status.animal} ({status.peer_id})" if status.animal else "alone"
    up = f" for {brief(now_s - status.started_at_s)}" if summary.running else _ended(status, now_s)
    yield summary.role, f"{who}, {_process(summary)}{up}; codezero {status.version}"
    version = "" if status.policy_version is None else f", version {status.policy_version}"
    method = f", {status.method}" if status.method else ""
    if status.model:
        yield "model", f"{status.model}{method}{version}"
    if summary.running:
        word = "batch" if summary.role == "proposer" else "round"
        number = "none yet" if status.round is None else str(status.round)
        count = f" {status.done}/{status.total}" if status.total else ""
        silent_s = now_s - status.updated_at_s
        is_silent = silent_s > SILENT_S and status.pid == summary.pid
        left = "" if summary.left_s is None or is_silent else f", about {brief(summary.left_s)} left"
        yield word, f"{number}, {stage_words(status)}{count}{left}"
        if is_silent:
            yield (
                "trouble",
                f"no sign of life for {brief(silent_s)}: it hangs, is suspended, or this machine is out of memory or "
                f"very busy; see the end of its log, or end it with kill -9 {summary.pid} and start it again",
            )


def _process(summary: RunSummary) -> str:
    return f"running as process {summary.pid}" if summary.running else "not running"


def _ended(status: Status, now_s: float) -> str:
    how = status.ended or "ended without a word, by a kill or a power cut"
    return f" ({how}, {brief(now_s - status.updated_at_s)} ago)"


def _rounds(summary: RunSummary) -> Iterator[tuple[str, str]]:
    last = summary.rounds[-1]
    k = summary.status.group_size if summary.status is not None and summary.status.group_size else "k"
    reward = "not scored" if last.reward_mean is None else f"{last.reward_mean:+.2f} in round {last.round}"
    yield "reward", f"{reward} (higher is better)"
    if last.pass_at_k is not None and last.average_at_k is not None:
        yield "solved", f"pass@{k} {last.pass_at_k:.2f}, average@{k} {last.average_at_k:.2f}, as predicted"
    learned = f"no update: {last.skipped}" if last.skipped else f"version {last.policy_version}"
    yield "learned", f"{learned}; {last.tokens_per_s:.0f} tokens/s, a round takes {brief(sum(last.seconds.values()))}"
    proposed = f" ({last.num_proposed_groups} proposed)" if last.num_proposed_groups else ""
    pooled = f" of {last.num_pooled_groups}" if last.num_pooled_groups else ""
    network = f"; {last.network}" if last.network else ""
    yield (
        "swarm",
        f"local {last.num_local_groups}{proposed}, external {last.num_external_groups}{pooled}, dropped "
        f"{counts(dict(last.dropped)) or 0}{network}",
    )
    for text in filter(None, (last.judge, last.market)):
        yield "trouble", text


def _batches(summary: RunSummary) -> Iterator[tuple[str, str]]:
    last = summary.batches[-1]
    yield "level", f"{level_name(last.level)} ({last.reason})"
    if last.success:
        yield "success", ", ".join(f"level {level}: {rate:.2f}" for level, rate in last.success.items())
    network = f"; {last.network}" if last.network else ""
    yield "written", f"{last.num_valid} of {last.num_written} valid, {last.num_judged} judged by solvers{network}"


def _ledger(ledger: LedgerView) -> Iterator[tuple[str, str]]:
    if ledger.num_rounds or not ledger.problems:  # a ledger that cannot be read says nothing of earnings
        yield "earned", f"{ledger.earned:+.2f} in {ledger.num_rounds} round{'s' * (ledger.num_rounds != 1)}"
    if ledger.last_accepted is not None:
        yield "accepted", submitted(ledger.last_accepted)
    if ledger.last_refused is not None:
        yield "refused", f"{submitted(ledger.last_refused)}: {ledger.last_refused.reason}"
    if ledger.kind == "local":
        return
    if ledger.unsent_points:
        yield (
            "unsent",
            f"{ledger.unsent_points:+.2f} of peer {ledger.peer_id} for {ledger.contract} on chain {ledger.chain_id}",
        )
    if ledger.trouble is not None:
        yield "trouble", ledger.trouble.text
    for item in ledger.pending:
        yield "pending", _waiting(item)
    if not ledger.pending:
        yield "pending", "nothing"


def _waiting(item: PendingItem) -> str:
    since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(item.since_s))
    tries = f" after {item.tries} tr{'ies' if item.tries != 1 else 'y'}" if item.tries else ""
    wait_s = item.next_try_s - time.time()
    again = f", tried again in {wait_s:.0f} s" if wait_s >= 1 else ""
    return f"{item.what}, since {since}, {item.state}{again}{tries}: {item.why}"

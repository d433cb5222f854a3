"""Checks of a node's records: the last failure in its log, its last rounds, and what waits to be sent to the chain."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

from codezero.config import LedgerKind, Network
from codezero.doctor.case import Case
from codezero.doctor.files import Unusable, text_of
from codezero.doctor.finding import Finding, info, ok, warning
from codezero.runtime.amounts import span
from codezero.runtime.entries import entries

_LOG_BYTES = 1 << 20
_ROUNDS = 20
"""The number of rounds' reports that are examined, the newest."""
_SHOWN = 300


def check_log(case: Case) -> Iterator[Finding]:
    path = case.log_dir / "swarm.log"
    try:
        found = entries(text_of(path, _LOG_BYTES))
    except Unusable as reason:
        yield info("log", f"{path}: {reason}")
        return
    failures = [entry for entry in found if entry.fails]
    warnings = [entry for entry in found if entry.warns and not entry.fails]
    if failures:
        last = failures[-1]
        yield warning(
            "log",
            f"last failure at {_utc(last.at_s)}: {(last.raised or last.text)[:_SHOWN]}",
            "it ended the node, or a part of it",
            f"see the lines before it in {path}, and docs/troubleshooting.md",
        )
    if warnings:
        last = warnings[-1]
        count = f"{len(warnings)} warning{'s' * (len(warnings) != 1)}"
        yield info("log", f"{count} of late in {path}; the last at {_utc(last.at_s)}: {last.text[:_SHOWN]}")
    elif not failures:
        yield ok("log", f"no failure and no warning of late in {path}")


def _utc(at_s: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(at_s))


def check_rounds(case: Case) -> Iterator[Finding]:
    path = case.log_dir / "rounds.jsonl"
    try:
        reports = list(_reports(text_of(path, _LOG_BYTES)))[-_ROUNDS:]
    except Unusable as reason:
        means = "no round has been finished with this log folder" if not path.exists() else "its rounds are not known"
        yield info("rounds", f"{path}: {reason}", means)
        return
    if not reports:
        yield info("rounds", f"{path} has no report", "no round has been finished with this log folder")
        return
    last, count = reports[-1], len(reports)
    yield info("rounds", f"the last one is {last['round']}, finished {span(time.time() - path.stat().st_mtime)} ago")
    if all(report.get("skipped") for report in reports) and count >= 5:
        yield warning(
            "learning",
            f"none of the last {count} rounds made an update: {str(last['skipped'])[:_SHOWN]}",
            "the model does not learn: its attempts at a task are all equally good, or could not be judged",
            "more attempts (rollout.num_generations=8) or easier tasks (tasks.builtin.max_difficulty=2) differ more",
        )
    joins = case.config.swarm.network is not Network.none and case.config.swarm.num_external > 0
    if joins and count >= 5 and not any(report.get("num_external_groups") for report in reports):
        why = str(last.get("network") or "nobody's groups could be used")
        dropped = ", ".join(f"{number} {reason}" for reason, number in _items(last.get("dropped")))
        yield warning(
            "swarm",
            f"none of the last {count} rounds learnt from another node: {why[:_SHOWN]}; dropped: {dropped or 0}",
            "the node trains alone",
            "see `bootnode` and `clock` here; with `group_size` all nodes of a swarm need one rollout.num_generations",
        )
    for part in ("ledger", "judge", "market"):
        if last.get(part):
            yield warning(
                part, f"in the last round: {str(last[part])[:_SHOWN]}", "it waits; training goes on", "see above"
            )
    yield from _growth([report["peak_rss_bytes"] for report in reports if _is_count(report.get("peak_rss_bytes"))])


def _growth(peaks: list[int]) -> Iterator[Finding]:
    """Warns where the peak memory has grown by a fifth over the last half of the rounds; a peak itself never falls."""
    if len(peaks) >= 10 and peaks[-1] > 1.2 * peaks[len(peaks) // 2] > 0:
        yield warning(
            "memory",
            f"the node's peak grew from {peaks[len(peaks) // 2] / 2**30:.1f} to {peaks[-1] / 2**30:.1f} GiB "
            f"in {len(peaks) // 2} rounds",
            "it may run out of memory",
            "start it again, it goes on where it was; and tell whoever maintains codezero, with a --bundle",
        )


def _reports(text: str) -> Iterator[dict[str, Any]]:
    """Yields the lines that are reports; torn lines are left out."""
    for line in text.splitlines():
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict) and _is_count(found.get("round")):
            yield found


def _is_count(value: object) -> bool:
    return type(value) is int and value >= 0


def _items(value: object) -> list[tuple[object, object]]:
    return list(value.items())[:8] if isinstance(value, dict) else []


def check_outbox(case: Case) -> Iterator[Finding]:
    """Reports what waits in the outbox, since when, and why: users see it as "failed to submit" in the log."""
    config, path = case.config.ledger, case.state_dir / "outbox.sqlite"
    if not path.exists():
        if config.kind is not LedgerKind.local:
            yield info("rewards", "nothing was submitted from this state folder yet")
        return
    from codezero.errors import LedgerError
    from codezero.ledger.items import OPEN, SUBMISSIONS, in_words
    from codezero.ledger.reading import read_pending

    try:
        pending = read_pending(path)
    except LedgerError as fault:
        yield warning("rewards", str(fault), "what it holds is not submitted", "restore it from a backup")
        return
    waiting = [item for item in pending.items if item.state in OPEN and item.kind in SUBMISSIONS]
    owed = sum(points for _, points in pending.owed)
    trouble = f"; what keeps them: {pending.trouble[:_SHOWN]}" if pending.trouble else ""
    if not waiting:
        yield ok("rewards", f"nothing waits; {owed:+.2f} points are summed up for the next submission{trouble}")
        return
    oldest = min(waiting, key=lambda item: item.created_at_s)
    oldest_s = time.time() - oldest.created_at_s
    found = f"{len(waiting)} wait, the oldest for {span(oldest_s)}: {in_words(oldest)}, {oldest.state.value}"
    note = oldest.note or oldest.reference
    found += f" ({note[:_SHOWN]})" if note else ""
    if oldest_s > 600 or pending.trouble:
        yield warning(
            "rewards",
            found + trouble,
            "nothing is lost: they are sent while the node runs, once what keeps them is gone",
            "see `chain`, `account` and `sign-in app` here; `codezero status` lists them all",
        )
    else:
        yield info("rewards", found)

"""A node's ledger as a few rows of text for a terminal: what it earned, what was accepted last, what waits and why."""

from __future__ import annotations

import time

from codezero.ledger.view import LedgerView, PendingItem, SubmissionView


def ledger_rows(view: LedgerView, now_s: float) -> list[tuple[str, str]]:
    """Returns rows of (label, text), with untrusted text in part; none if there is no ledger."""
    if not view.kind:
        return []
    rows = [("earned", f"{view.earned:+.2f} in {view.num_rounds} round{'s' * (view.num_rounds != 1)}")]
    if view.last_accepted is not None:
        rows.append(("accepted", _short(view.last_accepted)))
    refused = view.last_refused
    if refused is not None and (view.last_accepted is None or refused.at_s > view.last_accepted.at_s):
        rows.append(("refused", f"{_short(refused)}: {refused.reason}"))
    if view.kind == "local":
        return rows
    if view.pending:
        first, more = view.pending[0], f" and {len(view.pending) - 1} more" * (len(view.pending) > 1)
        wait_s = first.next_try_s - now_s
        again = f", again in {wait_s:.0f} s" if wait_s >= 1 else ""
        rows.append(("pending", f"{_short(first)}{more}: {first.why}{again}"))
    else:
        unsent = f", {view.unsent_points:+.2f} to be submitted later" if view.unsent_points else ""
        rows.append(("pending", f"nothing{unsent}"))
    if view.trouble is not None:
        rows.append(("trouble", view.trouble.text))
    return rows


def _short(one: SubmissionView | PendingItem) -> str:
    """Returns kind, points and round, without the peer ids, which are long."""
    points = "" if one.points is None else f" {one.points:+g}" if one.kind == "reward" else f" {one.points:+.2f}"
    number = "" if one.round is None else f" {one.round}" if one.kind == "round" else f" of round {one.round}"
    return f"{one.kind}{number}{points}" if one.kind == "round" else f"{one.kind}{points}{number}"


def submitted(one: SubmissionView) -> str:
    """Returns what the ledger took or refused, and when."""
    return f"{one.what}, {time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(one.at_s))}"

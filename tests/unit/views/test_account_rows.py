import pytest

from codezero.identity.names import animal_name
from codezero.ledger.view import LedgerView, PendingItem, SubmissionView, Trouble
from codezero.runtime.amounts import local
from codezero.views.accounts import Accounts, account_rows

ROUND = SubmissionView(kind="round", what="", round=12, points=0.58, winners=(), reference="row 1", at_s=100.0)
REWARD = SubmissionView(kind="reward", what="", round=12, points=2, winners=(), reference="0xab", at_s=100.0)
REFUSED = SubmissionView(
    kind="vote", what="", round=13, points=None, winners=("a",), reference="", at_s=200.0, reason="late"
)
WAITS = PendingItem(
    kind="registration",
    what="",
    round=None,
    points=None,
    winners=(),
    state="waiting",
    since_s=0.0,
    tries=3,
    next_try_s=130.0,
    why="no funds",
    last_error="",
    reference="",
)


@pytest.mark.parametrize(
    ("view", "rows"),
    [
        (LedgerView(kind="local"), [("earned", "+0.00 in 0 rounds")]),
        (LedgerView(kind="local", problems=("it is damaged",)), [("problem", "it is damaged")]),
        (
            LedgerView(kind="local", earned=6.3, num_rounds=12, last_accepted=ROUND),
            [("earned", "+6.30 in 12 rounds"), ("accepted", f"round 12 +0.58, {local(100.0)}")],
        ),
        (
            LedgerView(kind="wallet", last_accepted=REWARD, last_refused=REFUSED, unsent_points=0.5, contract="0xab"),
            [
                *(("earned", "+0.00 in 0 rounds"), ("accepted", f"reward +2 of round 12, {local(100.0)}")),
                ("refused", f"vote for {animal_name('a')} of round 13, {local(200.0)}: late"),
                *(("unsent", "+0.50 for 0xab on chain None"), ("pending", "nothing")),
            ],
        ),
        (
            LedgerView(kind="modal", pending=(WAITS,), trouble=Trouble(text="away", since_s=0.0, seen_s=0.0)),
            [
                ("earned", "+0.00 in 0 rounds"),
                ("trouble", "away"),
                (
                    "pending",
                    f"registration: no funds; waiting, tried again in 30 s after 3 tries, since {local(0.0)}",
                ),
            ],
        ),
    ],
)
def test_a_ledger_in_rows(view, rows):
    assert list(account_rows(Accounts(ledger=view), now_s=100.0)) == rows

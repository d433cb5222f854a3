import pytest

from codezero.ledger.rows import ledger_rows
from codezero.ledger.view import LedgerView, PendingItem, SubmissionView, Trouble

ROUND = SubmissionView(kind="round", what="", round=12, points=0.58, winners=(), reference="row 1", at_s=100.0)
REWARD = SubmissionView(kind="reward", what="", round=12, points=2, winners=(), reference="0xab", at_s=100.0)
REFUSED = SubmissionView(
    kind="vote", what="", round=13, points=None, winners=(), reference="", at_s=200.0, reason="late"
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
        (LedgerView(), []),
        (LedgerView(kind="local"), [("earned", "+0.00 in 0 rounds")]),
        (
            LedgerView(kind="local", earned=6.3, num_rounds=12, last_accepted=ROUND),
            [("earned", "+6.30 in 12 rounds"), ("accepted", "round 12 +0.58")],
        ),
        (
            LedgerView(kind="wallet", last_accepted=REWARD, last_refused=REFUSED, unsent_points=0.5),
            [
                *(("earned", "+0.00 in 0 rounds"), ("accepted", "reward +2 of round 12")),
                *(("refused", "vote of round 13: late"), ("pending", "nothing, +0.50 to be submitted later")),
            ],
        ),
        (
            LedgerView(kind="modal", pending=(WAITS, WAITS), trouble=Trouble(text="away", since_s=None, seen_s=None)),
            [
                ("earned", "+0.00 in 0 rounds"),
                ("pending", "registration and 1 more: no funds, again in 30 s"),
                ("trouble", "away"),
            ],
        ),
    ],
)
def test_a_ledger_in_a_few_rows(view, rows):
    assert ledger_rows(view, now_s=100.0) == rows

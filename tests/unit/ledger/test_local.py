import json
import sqlite3
from dataclasses import replace

import pytest

from codezero.errors import LedgerError
from codezero.ledger import ballot
from codezero.ledger.local import LocalLedger
from codezero.types import RoundId
from tests.builders import rollout, scored

ROUND_1 = RoundId(number=1)


def own(*rewards):
    return scored([rollout()] * len(rewards), rewards)


def peer(name, *rewards):
    return scored([rollout()] * len(rewards), rewards, external=True, peer_id=name)


def test_rounds_count_up_from_one(tmp_path):
    ledger = LocalLedger(tmp_path / "ledger.sqlite", "local")
    assert ledger.next_round(None) == ROUND_1
    assert ledger.next_round(RoundId(number=41)) == RoundId(number=42)


def test_settling_a_round_again_changes_nothing(tmp_path):
    ledger = LocalLedger(tmp_path / "ledger.sqlite", "local")
    first = ledger.settle(ROUND_1, [own(1.0, 0.5), peer("a", 9.0)])
    assert (first.reward, first.winners) == (1.5, ("a",))
    assert ledger.settle(ROUND_1, [own(7.0, 7.0)]) == first
    ledger.settle(RoundId(number=2), [own(0.25, 0.25)])
    assert ledger.total_reward() == 2.0


def test_settled_rounds_survive_reopening(tmp_path):
    ledger = LocalLedger(tmp_path / "ledger.sqlite", "local")
    receipt = ledger.settle(ROUND_1, [own(1.0, 0.0)])
    ledger.close()
    assert LocalLedger(tmp_path / "ledger.sqlite", "local").settle(ROUND_1, []) == receipt


def test_a_file_that_is_no_database_is_named(tmp_path):
    (tmp_path / "ledger.sqlite").write_text("hello " * 100)
    with pytest.raises(LedgerError, match=r"cannot open the ledger .*ledger\.sqlite"):
        LocalLedger(tmp_path / "ledger.sqlite", "local")


def test_a_hostile_peer_id_is_stored_as_data(tmp_path):
    name = "'); DROP TABLE settlement; --"
    LocalLedger(tmp_path / "ledger.sqlite", name).settle(ROUND_1, [])
    rows = sqlite3.connect(tmp_path / "ledger.sqlite").execute("SELECT peer_id, winners FROM settlement").fetchall()
    assert rows == [(name, json.dumps([name]))]


@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        ([], "local"),
        ([own(0.9, 0.9)], "local"),
        ([own(0.9, 0.9), peer("b", 0.1, -0.2)], "b"),  # itself only if it saw nobody
        ([own(0.5), peer("b", 0.6, 0.6), peer("c", 1.0)], "b"),  # the total counts
        ([peer("b", 0.5), peer("c", 0.3), peer("c", 0.3)], "c"),  # of all its groups
        ([peer("b", 0.5), peer("a", 0.5)], "a"),  # ties go to the lower id
        ([peer("b", 0.5), peer("a", 0.4), peer("evil", 9.0)], "b"),
        ([own(0.5), peer("evil", 9.0)], "local"),
    ],
)
def test_the_vote_goes_to_the_other_peer_with_the_highest_total_reward_that_is_not_banned(groups, expected):
    assert ballot.winners(groups, "local", banned=["evil"]) == (expected,)


def test_a_group_without_a_score_is_nobody_seen():
    unscored = replace(peer("b", 0.5), rewards=())
    assert ballot.winners([unscored], "local") == ("local",)


def test_own_reward_leaves_peers_out():
    assert ballot.own_reward([own(1.0, 2.0), peer("a", 5.0)]) == 3.0

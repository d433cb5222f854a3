import contextlib
import sqlite3

import pytest

from codezero.errors import LedgerError, is_outage
from codezero.ledger import outbox as outbox_module
from codezero.ledger.faults import OutboxError
from codezero.ledger.items import ItemState, Kind, LedgerScope, in_words
from codezero.ledger.outbox import TROUBLE, TROUBLE_SINCE, Outbox
from codezero.ledger.reading import read_pending
from codezero.ledger.transactions import Transaction
from codezero.types import RoundId

SCOPE = LedgerScope(chain_id=7, contract="0xC0", peer_id="peer")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "outbox.sqlite"


@pytest.fixture
def outbox(path):
    outbox = Outbox(path, SCOPE)
    yield outbox
    outbox.close()


def at(number, stage=0):
    return RoundId(number=number, stage=stage)


def transaction(hash_="0xaa", nonce=3):
    return Transaction(
        hash=hash_, raw=b"\x02\x00", nonce=nonce, max_fee_wei=9, tip_wei=1, signed_at_s=5.0, sent_at_s=0.0
    )


def shown(outbox):
    return [(item.kind.value, item.round_id.number, item.reward, item.winners) for item in outbox.open_items()]


def test_rewards_add_up_and_become_whole_points_and_a_vote(outbox, monkeypatch):
    monkeypatch.setattr("time.time", lambda: 10.0)
    outbox.credit(at(4), 1.2, ["a"])
    monkeypatch.setattr("time.time", lambda: 20.0)
    outbox.credit(at(5), 1.4, ["b", "b", "c"])
    assert (outbox.owed().points, outbox.owed().since_s) == (2.6, 10.0)
    outbox.fold()
    assert shown(outbox) == [("reward", 5, 2, ()), ("vote", 5, 0, ("b", "c"))]
    assert (outbox.owed().points, outbox.owed().since_s) == (0.6, None)


def test_a_negative_sum_is_cut_towards_zero(outbox):
    outbox.credit(at(1), -2.4, ["a"])
    outbox.fold()
    assert shown(outbox)[0] == ("reward", 1, -2, ())
    assert outbox.owed().points == -0.4


def test_less_than_a_point_is_kept_and_only_voted(outbox):
    outbox.credit(at(1), 0.4, ["a"])
    outbox.fold()
    assert shown(outbox) == [("vote", 1, 0, ("a",))]
    assert outbox.owed().points == 0.4


def test_a_round_counts_once_however_often_and_at_whatever_stage_it_is_credited(path, outbox):
    outbox.credit(at(1), 3.0, ["a"])
    outbox.credit(at(1), 3.0, ["a"])
    outbox.fold()
    outbox.close()
    again = Outbox(path, SCOPE)
    again.credit(at(1, 1), 3.0, ["a"])
    again.fold()
    assert shown(again) == [("reward", 1, 3, ()), ("vote", 1, 0, ("a",))]
    again.close()


def test_a_round_that_has_its_reward_takes_no_more_and_the_sum_waits(outbox, monkeypatch):
    outbox.credit(at(1, 0), 3.0, ["a"])
    outbox.fold()
    # the same round and stage again after it was forgotten, as nothing but a chain started anew can bring about
    outbox._run("DELETE FROM credit")
    monkeypatch.setattr("time.time", lambda: 3.0)
    outbox.credit(at(1, 0), 5.0, ["a"])
    outbox.fold()
    assert len(shown(outbox)) == 2
    assert (outbox.owed().points, outbox.owed().since_s) == (5.0, 3.0)
    outbox.credit(at(2), 1.0, ["a"])
    outbox.fold()
    assert shown(outbox)[2:] == [("reward", 2, 6, ()), ("vote", 2, 0, ("a",))]


def test_rounds_that_the_chain_has_not_reached_count_for_the_one_that_it_has(outbox):
    for number, points in ((12, 1.0), (300, 2.0), (301, 3.0)):
        outbox.credit(at(number), points, ["a"])
    outbox.fold(seen=at(12, 1))
    assert shown(outbox) == [("reward", 12, 6, ()), ("vote", 12, 0, ("a",))]
    for points in (0.5, 3.5):  # the round has its reward and its vote: these wait for the next one
        outbox.credit(at(302 + int(points)), points, ["b"])
        outbox.fold(seen=at(12, 2))
    assert outbox.owed().points == 4.0
    outbox.fold(seen=at(13))
    assert shown(outbox)[2:] == [("reward", 13, 4, ()), ("vote", 13, 0, ("b",))]


def test_folding_nothing_makes_nothing(outbox):
    outbox.fold()
    outbox.credit(at(1), 1.0, [])
    outbox.fold()
    outbox.fold()
    assert shown(outbox) == [("reward", 1, 1, ())]


def test_words_of_peers_that_are_no_peer_ids_get_no_vote(outbox):
    outbox.credit(at(1), 0.0, ["\udc80", "x" * 200, "", "a\x1b[2J", "übel", "good"])
    outbox.fold()
    assert shown(outbox) == [("vote", 1, 0, ("good",))]


def test_registration_comes_first_once_and_can_be_opened_again(outbox):
    outbox.credit(at(1), 1.0, ["a"])
    outbox.fold()
    outbox.ensure_registration()
    outbox.ensure_registration()
    first, *_ = outbox.open_items()
    assert [item.kind for item in outbox.open_items()] == [Kind.REGISTRATION, Kind.REWARD, Kind.VOTE]
    outbox.finish(first, ItemState.DONE, "", "0xaa")
    assert [item.kind for item in outbox.open_items()] == [Kind.REWARD, Kind.VOTE]
    outbox.ensure_registration()
    assert outbox.open_items()[0].state is ItemState.WAITING


def test_transactions_are_kept_with_their_item_in_order(outbox, monkeypatch):
    outbox.ensure_registration()
    (item,) = outbox.open_items()
    outbox.store(item, transaction("0xaa", 3))
    outbox.store(item, transaction("0xbb", 4))
    outbox.store(item, transaction("0xbb", 4))  # signed again, with the same nonce and fees
    monkeypatch.setattr("time.time", lambda: 8.0)
    outbox.taken(transaction("0xbb"))
    assert [(t.hash, t.nonce, t.sent_at_s) for t in outbox.sent(item)] == [("0xaa", 3, 0.0), ("0xbb", 4, 8.0)]
    assert outbox.open_items()[0].state is ItemState.SENT


def test_another_chain_contract_or_peer_has_its_own_items(path, outbox):
    outbox.credit(at(1), 2.0, ["a"])
    outbox.fold()
    for other in (
        LedgerScope(chain_id=8, contract="0xC0", peer_id="peer"),
        LedgerScope(chain_id=7, contract="0xC1", peer_id="peer"),
        LedgerScope(chain_id=7, contract="0xC0", peer_id="other"),
    ):
        elsewhere = Outbox(path, other)
        assert elsewhere.open_items() == []
        elsewhere.credit(at(1), 7.0, [])
        assert elsewhere.owed().points == 7.0
        elsewhere.close()
    assert outbox.owed().points == 0.0
    assert len(read_pending(path).items) == 2


def test_open_items_in_words(outbox, path):
    outbox.credit(at(3), -2.0, ["a"])
    outbox.fold()
    outbox.ensure_registration()
    registration, reward, _ = outbox.open_items()
    outbox.store(registration, transaction())
    outbox.postpone(reward, 100.0, "the RPC is away")
    items = read_pending(path).items
    assert [(in_words(item), item.state, item.tries, item.note) for item in items] == [
        ("reward -2 of peer peer in round 3 stage 0", ItemState.WAITING, 1, "the RPC is away"),
        ("vote of peer peer for a in round 3", ItemState.WAITING, 0, ""),
        ("registration of peer peer", ItemState.SENT, 0, ""),
    ]
    outbox.hand_over(reward, 100.0)
    assert read_pending(path).items[0].state is ItemState.HANDED_OVER


def test_a_full_disk_changes_nothing_and_is_said(outbox):
    outbox.credit(at(1), 1.0, ["a"])
    outbox._db.execute(f"PRAGMA max_page_count = {outbox._db.execute('PRAGMA page_count').fetchone()[0]}")
    number = 1

    def fill_the_disk():
        nonlocal number
        for number in range(2, 1000):
            outbox.credit(at(number), 1.0, ["winner" * 20])

    with pytest.raises(OutboxError, match=r"cannot use the outbox .*full.*free some disk"):
        fill_the_disk()
    owed = outbox.owed().points
    assert owed == number - 1  # each of those before, none of those that failed
    outbox._db.execute("PRAGMA max_page_count = 100000")
    outbox.credit(at(number), 1.0, ["a"])
    assert outbox.owed().points == number


def test_a_file_that_another_program_writes_to_is_waited_for_and_then_an_outage(path, monkeypatch):
    monkeypatch.setattr(outbox_module, "BUSY_S", 0.05)
    outbox = Outbox(path, SCOPE)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(OutboxError, match="database is locked") as found:
            outbox.credit(at(4), 1.0, [])
    assert is_outage(found.value)
    outbox.credit(at(4), 1.0, [])
    assert outbox.owed().points == 1.0
    outbox.close()


def test_a_damaged_file_is_named(path):
    path.write_text("no database " * 1000)
    with pytest.raises(OutboxError, match=r"cannot open the outbox .*outbox\.sqlite"):
        Outbox(path, SCOPE)
    with pytest.raises(LedgerError, match="cannot read the outbox"):
        read_pending(path)


def test_a_closed_outbox_says_so(path):
    outbox = Outbox(path, SCOPE)
    outbox.close()
    with pytest.raises(OutboxError):
        outbox.fold()


def test_what_is_remembered_outlives_the_process(path, outbox):
    assert outbox.recall("view") == ""
    outbox.remember("view", "1")
    outbox.remember("view", "2")
    outbox.close()
    again = Outbox(path, SCOPE)
    assert again.recall("view") == "2"
    again.close()


def test_trouble_lasts_since_it_began_whatever_its_numbers(outbox, clock):
    def since_s():
        return float(outbox.recall(TROUBLE_SINCE))

    outbox.note_trouble("the account holds 0.5 ETH", "InsufficientFunds")
    began_s = since_s()
    clock.skip(60.0)
    outbox.note_trouble("the account holds 0.4 ETH", "InsufficientFunds")
    assert (outbox.recall(TROUBLE), since_s()) == ("the account holds 0.4 ETH", began_s)
    outbox.note_trouble("the RPC is away", "RpcTimeout")
    assert began_s + 60.0 <= since_s() < began_s + 120.0
    outbox.note_trouble("")
    clock.skip(60.0)
    outbox.note_trouble("the RPC is away", "RpcTimeout")
    assert since_s() >= began_s + 120.0


def test_old_credits_are_forgotten_but_not_young_ones(outbox):
    for number in (1, 2, 1001, 1002):
        outbox.credit(at(number), 1.0, [])
    rounds = outbox._db.execute("SELECT round FROM credit ORDER BY round").fetchall()
    assert rounds == [(2,), (1001,), (1002,)]


def test_sqlite_keeps_what_was_committed_when_power_fails(outbox):
    assert outbox._db.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL
    assert outbox._db.execute("PRAGMA journal_mode").fetchone() == ("wal",)

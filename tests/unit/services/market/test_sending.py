"""Bets and claims that this node signs, against faults of the chain, the account and the process."""

import logging
import time

import pytest

from codezero.devchain.client import ChainClient
from codezero.ledger.faults import NonceRace, Reverted
from codezero.ledger.outbox import Outbox
from codezero.ledger.rpc import Rpc
from codezero.ledger.transactions import Journal, Transaction
from codezero.services.market import bets
from codezero.services.market.book import Bet
from codezero.services.market.contract import Market, MarketStanding
from tests.chains import CHAIN_ID
from tests.unit.ledger.fake_chain import Killed
from tests.unit.services.market.arena import COIN, claim_now, raises, states, tick

BET = 100 * COIN // 12


@pytest.mark.parametrize("method", ["guess", "claim"])
@pytest.mark.parametrize("when", ["before it is stored", "before it is sent", "after it was sent"])
def test_a_kill_anywhere_leaves_one_bet_and_one_reward(market, peer, judge, monkeypatch, method, when):
    if method == "claim":
        tick(peer.player(judge))
        market.reveal(0)
        judge.close_game()
        claim_now(peer)

    def broadcast(self, raw, real=Rpc.broadcast):
        if when == "after it was sent":
            real(self, raw)
        raise Killed

    def store(*_):
        raise Killed

    with monkeypatch.context() as patch:
        if when == "before it is stored":
            patch.setattr(Outbox, "store", store)
        else:
            patch.setattr(Rpc, "broadcast", broadcast)
        with pytest.raises(Killed):
            tick(peer.player(judge), 1)
    tick(peer.player(judge), 4)
    assert states(peer) == ["placed"]
    assert market.read("totalBets", 0) == BET
    assert peer.nonce == (2 if method == "guess" else 3)
    if method == "claim":
        assert peer.balance == 100 * COIN
        assert peer.unclaimed == []


def test_a_bet_that_was_not_sent_in_its_round_is_missed_and_the_next_clue_is_played(market, peer, judge, rpc):
    rpc.mode, rpc.for_methods = "answers", ["eth_estimateGas"]
    rpc.answers = {"eth_estimateGas": {"error": {"code": -32000, "message": "busy"}}}
    player = peer.player(judge, contract=peer.connect(rpc.url))
    tick(player)
    assert states(peer) == ["open"]
    market.next_round(0)
    judge.show(0, clue=1, rounds_remaining=2)
    rpc.mode = "ok"
    tick(player)
    assert states(peer) == ["its round was over before it was sent", "placed"]
    assert peer.lines[0].startswith("Game 0 Round 1: ")


def test_a_bet_that_was_signed_but_not_sent_in_its_round_is_not_sent_later(market, peer, judge, rpc):
    rpc.mode, rpc.for_methods = "drop", ["eth_sendRawTransaction"]
    player = peer.player(judge, contract=peer.connect(rpc.url))
    tick(player, 1)
    market.next_round(0)
    rpc.mode = "ok"
    tick(player)
    assert states(peer) == ["open"]  # it could still be mined
    elsewhere = peer.connect()
    elsewhere.guess(0, 1, 0, 1, Journal(store=lambda _: None))  # until its nonce is another's
    tick(player)
    assert states(peer) == ["its round was over before it was mined"]
    assert market.read("totalBets", 0) == 1


def test_a_bet_that_nobody_mines_keeps_the_next_clue_waiting_for_a_while_only(market, peer, judge, rpc, monkeypatch):
    rpc.mode, rpc.for_methods = "drop", ["eth_sendRawTransaction"]
    player = peer.player(judge, contract=peer.connect(rpc.url))
    tick(player, 1)
    market.next_round(0)
    judge.show(0, clue=1, rounds_remaining=2)
    rpc.mode = "ok"
    tick(player)
    assert states(peer) == ["open"]
    monkeypatch.setattr(bets, "LATE_S", 0.0)
    tick(player, 4)
    assert states(peer) == ["unknown", "placed"]
    assert market.read("totalBets", 0) == peer.amounts()[1]


def test_a_bet_that_can_never_be_learnt_of_stands_in_the_way_for_a_day_only(peer, judge, monkeypatch, clock):
    monkeypatch.setattr(Market, "guess", raises(NonceRace("taken")))
    tick(peer.player(judge), 2)
    assert states(peer) == ["open"]
    clock.skip(bets.ABANDON_S + 1)
    tick(peer.player(judge), 1)
    assert states(peer) == ["unknown"]
    assert peer.unclaimed == [0]


def test_a_clock_that_is_set_back_costs_no_bet(peer, judge, monkeypatch):
    player, now_s = peer.player(judge), time.time
    player.tick()
    monkeypatch.setattr(time, "time", lambda: now_s() - 3600.0)
    player.delivery.deliver()
    tick(player)
    assert states(peer) == ["placed"]


def test_a_bet_that_cannot_be_looked_up_holds_up_no_claim_and_ends_after_a_day(market, peer, judge, monkeypatch, clock):
    tick(peer.player(judge))
    judge.show(market.new_game())
    monkeypatch.setattr(Market, "guess", raises(NonceRace("taken")))
    tick(peer.player(judge))
    market.reveal(0)
    monkeypatch.setattr(Market, "bet", raises(Reverted("reverted without a reason", "")))
    peer.change("UPDATE item SET due_at_s = 0")
    player = peer.player(judge)
    tick(player)
    assert peer.unclaimed == []
    assert (states(peer), str(player.delivery.trouble)) == (["placed", "open"], "reverted without a reason")
    clock.skip(bets.ABANDON_S + 1)
    tick(peer.player(judge), 1)
    assert states(peer) == ["placed", "unknown"]


def test_fees_that_are_too_high_are_told_and_the_clue_played_once_they_are_not(peer, judge, caplog):
    with caplog.at_level(logging.WARNING):
        player = peer.player(judge, contract=peer.connect(max_fee_gwei=1e-9))
        tick(player)
    assert len([record for record in caplog.records if "max_fee_gwei" in record.message]) == 1
    assert states(peer) == ["open"]
    tick(peer.player(judge))
    assert states(peer) == ["placed"]


def test_an_account_that_cannot_pay_is_told_and_its_clue_played_once_it_can(market, tmp_path, judge):
    peer = market.peer(tmp_path)
    chain = market.arena.chain
    ChainClient(chain.url, CHAIN_ID, peer.sender._signer).transfer(chain.owner, peer.wei - 9 * 10**13)
    judge.show(market.new_game())
    player = peer.player(judge)
    tick(player)
    assert "send it some ETH" in player.trouble
    assert states(peer) == ["open"]
    chain.fund(peer.address)
    tick(player)
    assert player.trouble == ""
    assert states(peer) == ["placed"]


def test_a_bet_that_is_mined_after_its_round_fails_and_is_not_claimed(market, peer, judge, monkeypatch):

    def late(self, raw, real=Rpc.broadcast):
        patch.setattr(Rpc, "broadcast", real)  # with which the market's owner sends, too
        market.next_round(0)
        real(self, raw)

    with monkeypatch.context() as patch:
        patch.setattr(Rpc, "broadcast", late)
        tick(peer.player(judge), 1)
    tick(peer.player(judge))
    assert states(peer) == ["its transaction failed"]
    assert market.read("totalBets", 0) == 0
    assert peer.nonce == 2
    assert peer.lines == []
    assert peer.unclaimed == []


def test_a_bet_that_nobody_mines_is_replaced_under_the_same_nonce(market, peer, judge, rpc):
    rpc.mode, rpc.for_methods = "drop", ["eth_sendRawTransaction"]
    tick(peer.player(judge, contract=peer.connect(rpc.url)), 1)
    peer.change("UPDATE sent SET signed_at_s = signed_at_s - 1000")
    tick(peer.player(judge, contract=peer.connect()))
    assert states(peer) == ["placed"]
    first, second = peer.book().sent(peer.bets[0])
    assert (first.nonce, second.nonce) == (1, 1)
    assert second.max_fee_wei > first.max_fee_wei * 1.1
    assert market.read("totalBets", 0) == BET


def test_a_bet_under_way_that_the_contract_then_refuses_may_have_been_placed(peer, judge, rpc, monkeypatch):
    rpc.mode, rpc.for_methods = "drop", ["eth_sendRawTransaction"]
    tick(peer.player(judge, contract=peer.connect(rpc.url)), 1)
    peer.change("UPDATE sent SET signed_at_s = signed_at_s - 1000")
    monkeypatch.setattr(Rpc, "simulate", raises(Reverted("refused", "no reason given")))
    tick(peer.player(judge, contract=peer.connect()), 1)
    assert states(peer) == ["unknown"]
    assert peer.unclaimed == [0]


@pytest.mark.parametrize("failed", [2, 3])
def test_a_bet_and_a_claim_whose_transactions_fail_are_given_up_before_they_cost_more(market, tmp_path, judge, failed):
    class Failing:
        broadcast = None  # nothing is sent again

        def bet(self, game, choice, held, hashes):
            receipts = dict.fromkeys(hashes, False)
            return MarketStanding(recorded=False, receipts=receipts, nonce=9, status=1, round=0)

        def claimed(self, game, hashes, taken):
            return self.bet(game, 0, 0, hashes)

    peer = market.peer(tmp_path, registered=False, wei=0)
    book, now_s = peer.book(), time.time()
    book.add_bet(0, 0, Bet(choice=0, text="a", amount=1, held=0))
    book.add_claim(1)
    for item in book.open_items():
        for nonce in range(failed):
            where = f"{item.kind.value}{nonce}"
            at = {"max_fee_wei": 1, "tip_wei": 1, "signed_at_s": now_s, "sent_at_s": now_s}
            book.store(item, Transaction(hash=where, raw=b"", nonce=nonce, **at))
    peer.player(judge, contract=Failing()).delivery.deliver()
    assert states(peer) == ["3 transactions failed" if failed == 3 else "open"]
    assert peer.unclaimed == ([] if failed == 3 else [1])

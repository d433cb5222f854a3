"""Bets and claims that this node signs, against faults of the chain, the account and the process."""

import logging
import time

import pytest
from msgspec.structs import replace

from codezero.devchain.client import ChainClient
from codezero.ledger.faults import NonceRace
from codezero.services.market import betting, book, wallet
from codezero.services.market.backend import GameView, Mined
from codezero.services.market.book import Bet, BetState, Claim, Sent
from codezero.services.market.player import MAX_POLL_S
from tests.chains import CHAIN_ID
from tests.unit.services.market.arena import COIN, claim_now, states, tick

BET = 100 * COIN // 12


class Killed(BaseException):
    """No handler of errors catches it, as none catches kill -9."""


@pytest.mark.parametrize("method", ["guess", "claim"])
@pytest.mark.parametrize("when", ["before it is stored", "before it is sent", "after it was sent"])
def test_a_kill_anywhere_leaves_one_bet_and_one_reward(market, tmp_path, judge, monkeypatch, method, when):
    peer = market.peer(tmp_path)
    judge.show(market.new_game())
    if method == "claim":
        tick(peer.player(judge))
        market.reveal(0)
        judge.close_game()
        claim_now(peer)

    def broadcast(self, raw, real=wallet.Rpc.broadcast):
        if when == "after it was sent":
            real(self, raw)
        raise Killed

    def store(*_):
        raise Killed

    with monkeypatch.context() as patch:
        if when == "before it is stored":
            patch.setattr(book.Sent, "of", store)
        else:
            patch.setattr(wallet.Rpc, "broadcast", broadcast)
        with pytest.raises(Killed):
            peer.player(judge).tick()
    tick(peer.player(judge), 4)
    assert states(peer) == [BetState.PLACED]
    assert market.read("totalBets", 0) == BET
    assert peer.nonce == (2 if method == "guess" else 3)
    if method == "claim":
        assert peer.balance == 100 * COIN
        assert peer.book().unclaimed == []


def test_a_bet_that_was_not_sent_in_its_round_is_missed_and_the_next_clue_is_played(market, tmp_path, judge, rpc):
    peer = market.peer(tmp_path)
    judge.show(market.new_game())
    rpc.mode, rpc.for_methods = "answers", ["eth_estimateGas"]
    rpc.answers = {"eth_estimateGas": {"error": {"code": -32000, "message": "busy"}}}
    player = peer.player(judge, backend=peer.connect(rpc.url))
    tick(player)
    assert states(peer) == [BetState.OPEN]
    market.next_round(0)
    judge.show(0, clue=1, rounds_remaining=2)
    rpc.mode = "ok"
    tick(player)
    assert states(peer) == [BetState.MISSED, BetState.PLACED]
    assert peer.lines[0].startswith("Game 0 Round 1: ")


def test_a_bet_that_was_signed_but_not_sent_in_its_round_is_not_sent_later(market, tmp_path, judge, rpc):
    peer = market.peer(tmp_path)
    judge.show(market.new_game())
    rpc.mode, rpc.for_methods = "drop", ["eth_sendRawTransaction"]
    player = peer.player(judge, backend=peer.connect(rpc.url))
    tick(player, 1)
    market.next_round(0)
    rpc.mode = "ok"
    tick(player)
    assert states(peer) == [BetState.OPEN]  # it could still be mined
    peer.backend._account.send(  # until its nonce is another's
        peer.backend._contract.guess(0, 1, 0, 1),
        wallet.Journal(store=lambda _: None),
    )
    tick(player)
    assert states(peer) == [BetState.MISSED]
    assert market.read("totalBets", 0) == 1


def test_a_bet_that_nobody_mines_keeps_the_next_clue_waiting_for_a_while_only(
    market, tmp_path, judge, rpc, monkeypatch
):
    peer = market.peer(tmp_path)
    judge.show(market.new_game())
    rpc.mode, rpc.for_methods = "drop", ["eth_sendRawTransaction"]
    player = peer.player(judge, backend=peer.connect(rpc.url))
    tick(player, 1)
    market.next_round(0)
    judge.show(0, clue=1, rounds_remaining=2)
    rpc.mode = "ok"
    tick(player)
    assert states(peer) == [BetState.OPEN]
    monkeypatch.setattr(betting, "LATE_S", 0.0)
    tick(player, 4)
    assert states(peer) == [BetState.UNKNOWN, BetState.PLACED]
    assert market.read("totalBets", 0) == int(peer.book().bets[1].amount)


def test_a_bet_that_can_never_be_learnt_of_stands_in_the_way_for_a_day_only(market, tmp_path, judge, monkeypatch):
    peer = market.peer(tmp_path)
    judge.show(market.new_game())
    monkeypatch.setattr(wallet.WalletMarket, "guess", _raises(NonceRace("taken")))
    tick(peer.player(judge), 2)
    assert states(peer) == [BetState.OPEN]
    now_s = time.time
    monkeypatch.setattr(betting.time, "time", lambda: now_s() + betting.ABANDON_S + 1)
    tick(peer.player(judge), 1)
    assert states(peer) == [BetState.UNKNOWN]
    assert [claim.game for claim in peer.book().unclaimed] == [0]


def _raises(error):
    def raises(*_):
        raise error

    return raises


def test_fees_that_are_too_high_are_told_and_the_clue_played_once_they_are_not(market, tmp_path, judge, caplog):
    peer = market.peer(tmp_path)
    judge.show(market.new_game())
    with caplog.at_level(logging.WARNING):
        player = peer.player(judge, backend=peer.connect(max_fee_gwei=1e-9))
        assert tick(player) == MAX_POLL_S
    assert len([record for record in caplog.records if "max_fee_gwei" in record.message]) == 1
    assert states(peer) == [BetState.OPEN]
    tick(peer.player(judge))
    assert states(peer) == [BetState.PLACED]


def test_an_account_that_cannot_pay_is_told_and_its_clue_played_once_it_can(market, tmp_path, judge):
    peer = market.peer(tmp_path)
    chain = market.arena.chain
    ChainClient(chain.url, CHAIN_ID, peer.backend._account._signer).transfer(chain.owner, peer.wei - 6 * 10**13)
    judge.show(market.new_game())
    player = peer.player(judge)
    assert tick(player) == MAX_POLL_S
    assert "send it some ETH" in player.trouble
    assert states(peer) == [BetState.OPEN]
    chain.fund(peer.address)
    tick(player)
    assert player.trouble == ""
    assert states(peer) == [BetState.PLACED]


def test_a_bet_that_is_mined_after_its_round_fails_and_is_not_claimed(market, tmp_path, judge, monkeypatch):
    peer = market.peer(tmp_path)
    judge.show(market.new_game())

    def late(self, raw, real=wallet.Rpc.broadcast):
        market.next_round(0)
        real(self, raw)

    with monkeypatch.context() as patch:
        patch.setattr(wallet.Rpc, "broadcast", late)
        tick(peer.player(judge), 1)
    tick(peer.player(judge))
    assert states(peer) == [BetState.FAILED]
    assert market.read("totalBets", 0) == 0
    assert peer.nonce == 2
    assert peer.lines == []
    assert peer.book().unclaimed == []


def test_a_bet_that_nobody_mines_is_replaced_under_the_same_nonce(market, tmp_path, judge, rpc):
    peer = market.peer(tmp_path)
    judge.show(market.new_game())
    rpc.mode, rpc.for_methods = "drop", ["eth_sendRawTransaction"]
    tick(peer.player(judge, backend=peer.connect(rpc.url)), 1)
    kept = peer.book()
    (bet,) = kept.bets
    old = replace(bet.sent[0], signed_at_s=bet.sent[0].signed_at_s - 1000)
    kept.put_bet(replace(bet, sent=(old,)))
    tick(peer.player(judge))
    (bet,) = peer.book().bets
    assert bet.state is BetState.PLACED
    assert [sent.nonce for sent in bet.sent] == [1, 1]
    assert bet.sent[1].max_fee_wei > bet.sent[0].max_fee_wei * 1.1
    assert market.read("totalBets", 0) == BET


@pytest.mark.parametrize("failed", [2, 3])
def test_a_bet_and_a_claim_whose_transactions_fail_are_given_up_before_they_cost_more(market, tmp_path, judge, failed):
    class Failing:
        signs = True

        def game(self, game):
            return GameView(status=1, round=0, num_choices=2, balance=100)

        def tokens(self, game, num_choices):
            return (0,) * num_choices

        def mined(self, hashes):
            return Mined(receipts=dict.fromkeys(hashes, False), nonce=9)

    peer = market.peer(tmp_path, registered=False, wei=0)
    now_s = time.time()
    sent = tuple(Sent(f"0x{nonce}", "00", nonce, 1, 1, now_s, now_s) for nonce in range(failed))
    kept = peer.book()
    kept.put_bet(Bet(game=0, clue=0, choice=0, text="a", amount="1", tokens_before="0", made_at_s=now_s, sent=sent))
    kept.put_bet(
        Bet(
            game=1,
            clue=0,
            choice=0,
            text="a",
            amount="1",
            tokens_before="0",
            made_at_s=now_s,
            state=BetState.PLACED,
        )
    )
    kept.put_claim(Claim(game=1, sent=sent))
    player = peer.player(judge, backend=Failing())
    player.tick()
    assert states(peer)[0] is (BetState.FAILED if failed == 3 else BetState.OPEN)
    if failed == 3:
        assert peer.book().unclaimed == []

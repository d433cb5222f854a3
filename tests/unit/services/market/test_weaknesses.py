"""Every known weakness of today's player, by name, against the real contract and a real judge on loopback: how it bets
and what it believes. The rest is in test_weaknesses_claims.py."""

import threading
import time
from contextlib import ExitStack
from fractions import Fraction
from functools import partial

import pytest

from codezero.ledger.faults import Reverted
from codezero.services.judge.client import JudgeService
from codezero.services.market import player as module
from codezero.services.market.stakes import Stakes
from tests.processes import wait_until
from tests.unit.evaluate.loopback import never
from tests.unit.services.market.arena import BOTH, COIN, Policy, claim_now, states, tick

ALL = Stakes(fraction=Fraction(1))


# 1. amounts


@pytest.mark.parametrize("balance", [14285714285714285714, 57142857142857142858, 99999999999999999999])
@pytest.mark.parametrize("through_app", [False, True], ids=["wallet", "modal"])
def test_1_a_bet_that_no_double_holds_arrives_to_the_last_unit(arena, tmp_path, judge, balance, through_app):
    with ExitStack() as apps:
        market = arena.market(stake=balance, apps=apps if through_app else None)
        peer = market.peer(tmp_path)
        judge.show(market.new_game(), rounds_remaining=1)
        tick(peer.player(judge, stakes=ALL))
    wait_until(lambda: market.read("totalBets", 0) == balance)  # anvil answers before it has mined
    assert peer.balance == 0
    assert peer.amounts() == [balance]


# 2. an unknown balance


@BOTH
def test_2_a_balance_that_cannot_be_read_is_no_bet_of_0_and_the_clue_is_played_later(peer, judge, rpc):
    player = peer.player(judge, contract=peer.connect(rpc.url))
    rpc.mode = "http 500"
    tick(player)
    assert "HTTP 500" in player.trouble
    assert peer.bets == []
    assert peer.lines == []
    rpc.mode = "ok"
    tick(player)
    assert player.trouble == ""
    assert states(peer) == ["placed"]


@BOTH
def test_2_a_peer_without_tokens_bets_nothing_notes_nothing_and_bets_when_it_has_some(market, tmp_path, judge):
    peer = market.peer(tmp_path, registered=False)
    judge.show(market.new_game())
    policy = Policy()
    player = peer.player(judge, policy)
    tick(player)
    assert peer.bets == []
    assert peer.lines == []
    assert policy.asked == []
    peer.register()
    tick(player)
    assert states(peer) == ["placed"]


# 3. a bet whose answer is lost


def test_3_a_bet_that_arrived_though_the_answer_was_lost_is_not_made_twice(market, peer, judge, rpc):
    rpc.mode, rpc.for_methods = "accept then drop", ["eth_sendRawTransaction"]
    player = peer.player(judge, contract=peer.connect(rpc.url))
    tick(player, 4)
    assert rpc.methods.count("eth_sendRawTransaction") == 1
    assert market.read("totalBets", 0) == 100 * COIN // 12
    assert peer.lines == [
        f"Game 0 Round 0: Peer {peer.peer_id} placed bet of 8.333333333333333333 tokens on choice - a dog"
    ]


def test_3_a_bet_that_did_not_arrive_is_sent_again_in_the_same_bytes(peer, judge, rpc):
    player = peer.player(judge, contract=peer.connect(rpc.url))
    rpc.mode, rpc.for_methods = "drop", ["eth_sendRawTransaction"]
    tick(player, 1)
    before = peer.book().sent(peer.bets[0])
    peer.change("UPDATE item SET due_at_s = 0")
    assert states(peer) == ["open"]
    rpc.mode = "ok"
    tick(player)
    assert states(peer) == ["placed"]
    assert [sent.hash for sent in peer.book().sent(peer.bets[0])] == [sent.hash for sent in before]


# 4. games never bet on


@BOTH
def test_4_a_game_that_took_no_bet_is_never_claimed(market, peer, judge, monkeypatch):

    def refused(*_):
        raise Reverted("the contract refuses guessAnswer", "no reason given")

    monkeypatch.setattr(peer.contract, "guess", refused)
    tick(peer.player(judge))
    assert states(peer) == ["the contract refuses guessAnswer"]
    market.reveal(0)
    judge.close_game()
    tick(peer.player(judge))
    assert peer.unclaimed == []
    assert peer.nonce == 1
    assert peer.lines == []


# 9. a judge that is slow


def test_9_a_judge_that_never_answers_holds_up_nobody(market, tmp_path, judge, monkeypatch):
    monkeypatch.setattr(judge, "service", lambda: JudgeService(judge.server.url, timeout_s=120.0))
    peer = market.peer(tmp_path)
    judge.clue = never
    player = peer.player(judge)
    started = time.monotonic()
    monkeypatch.setattr(module, "STOP_S", 0.1)
    player.start()
    player.stop()
    assert time.monotonic() - started < 60


def test_9_short_rounds_are_played_in_a_thread_whatever_the_training_does(market, tmp_path, judge, monkeypatch):
    monkeypatch.setattr(module, "BUSY_POLL_S", 0.05)
    monkeypatch.setattr(module, "POLL_S", 0.1)
    peer = market.peer(tmp_path)
    game = market.new_game()
    asked_by = set()

    class Here(Policy):
        def token_logprobs(self, *asked):
            asked_by.add(threading.current_thread().name)
            return super().token_logprobs(*asked)

    def is_placed(clue):
        player.delivery.deliver()
        return len(peer.lines) > clue

    player = peer.player(judge, Here())
    player.start()
    for clue in range(3):
        judge.show(game, clue=clue, rounds_remaining=3 - clue)
        wait_until(partial(is_placed, clue))
        if clue < 2:
            market.next_round(game)
    player.stop()
    assert asked_by == {"market"}


@BOTH
def test_9_a_judge_that_is_away_keeps_no_reward_from_being_claimed(market, peer, judge):
    tick(peer.player(judge))
    market.reveal(0)
    judge.clue = lambda handler, count: None  # hangs up
    claim_now(peer)
    player = peer.player(judge)
    tick(player)
    assert "cannot be asked" in player.trouble
    assert peer.balance == 100 * COIN


# 10. a judge alone steers nothing


def test_10_a_game_that_the_contract_does_not_have_open_takes_no_bet(market, tmp_path, judge):
    peer = market.peer(tmp_path)
    over = market.new_game()
    market.reveal(over)
    policy = Policy()
    player = peer.player(judge, policy)
    for game in (over, over + 1, (1 << 53)):
        judge.show(game)
        tick(player, 2)
    assert peer.bets == []
    assert policy.asked == []


@pytest.mark.parametrize("shown", [{"clue": 1}, {"clue": 1 << 53}, {"choices": ("a dog", "a cat", "a cow")}])
def test_10_a_clue_that_does_not_fit_the_contract_takes_no_bet(market, tmp_path, judge, shown):
    peer = market.peer(tmp_path)
    judge.show(market.new_game(), **shown)
    player = peer.player(judge)
    tick(player, 2)
    assert peer.bets == []
    judge.show(0)  # nor does it keep the true one from being played
    tick(player)
    assert states(peer) == ["placed"]


def test_10_a_clue_that_goes_back_takes_no_second_bet(market, tmp_path, judge):
    peer = market.peer(tmp_path)
    game = market.new_game()
    market.next_round(game)
    judge.show(game, clue=1, rounds_remaining=2)
    player = peer.player(judge)
    tick(player)
    for clue in (0, 1):
        judge.show(game, clue=clue, rounds_remaining=3)
        tick(player, 2)
    assert [bet.round_id.stage for bet in peer.bets] == [1]
    assert peer.nonce == 2


def test_10_the_judge_cannot_make_the_node_bet_more_than_its_share_and_cap(market, tmp_path, judge):
    peer = market.peer(tmp_path)
    judge.show(market.new_game(), rounds_remaining=0)
    tick(peer.player(judge, stakes=Stakes(fraction=Fraction(1, 4), most=7 * COIN)))
    judge.show(market.new_game(), rounds_remaining=1)
    tick(peer.player(judge, stakes=Stakes(fraction=Fraction(1, 4))))
    assert peer.amounts() == [7 * COIN, 93 * COIN // 4]


def test_10_long_choices_are_not_at_a_disadvantage(market, tmp_path, judge):
    class Tokens(Policy):
        def token_logprobs(self, messages, opening, completions):
            return [[-1.0], [-0.5] * 4]

    peer = market.peer(tmp_path)
    judge.show(market.new_game(), choices=("no", "yes, and by a long way"))
    tick(peer.player(judge, Tokens()))
    assert peer.book().bet(peer.bets[0]).choice == 1

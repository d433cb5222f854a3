"""Every known weakness of today's player, by name, against the real contract and a real judge on loopback."""

import json
import threading
import time
from fractions import Fraction

import pytest

from codezero.ledger.faults import Reverted, RpcServerError
from codezero.market import claiming
from codezero.market.backend import Mined
from codezero.market.book import BetState
from codezero.market.player import POLL_S
from codezero.market.stakes import Stakes
from tests.unit.evaluate.loopback import never
from tests.unit.ledger.hostile_rpc import HostileRpc
from tests.unit.market.arena import COIN, Policy, judging

ALL = Stakes(fraction=Fraction(1))


@pytest.fixture
def judge():
    with judging() as judge:
        yield judge


@pytest.fixture
def rpc(arena):
    with HostileRpc(behind=arena.chain.url).serving() as rpc:
        yield rpc


def tick(player, times=3):
    for _ in range(times):
        player.tick()


def claim_now(peer):
    """Has every claim that is waiting be due."""
    book = peer.book()
    for claim in book.unclaimed:
        book.put_claim(type(claim)(game=claim.game, tries=claim.tries, sent=claim.sent))


class Proxy:
    """A backend that has others send and tells nothing but a reference: the shape of the sign-in app's."""

    signs = False

    def __init__(self, wallet):
        self._wallet, self.fault, self.lost, self.guesses = wallet, None, False, 0
        self.game, self.tokens = wallet.game, wallet.tokens

    def mined(self, hashes):
        return Mined(receipts={}, nonce=0)

    def guess(self, game, clue, choice, amount, journal):
        self.guesses += 1
        return self._answer(lambda kept: self._wallet.guess(game, clue, choice, amount, kept))

    def claim(self, game, journal):
        return self._answer(lambda kept: self._wallet.claim(game, kept))

    def _answer(self, write):
        from codezero.ledger.transactions import Journal

        reference = None if self.lost else write(Journal(store=lambda _: None))
        if self.fault:
            raise self.fault
        return reference


# 1. amounts


@pytest.mark.parametrize("balance", [14285714285714285714, 57142857142857142858, 99999999999999999999])
def test_1_a_bet_that_no_double_holds_arrives_to_the_last_unit(arena, tmp_path, judge, balance):
    market = arena.market(stake=balance)
    peer = market.peer(tmp_path)
    judge.show(market.new_game(), rounds_remaining=1)
    tick(peer.player(judge, stakes=ALL))
    assert market.read("totalBets", 0) == balance
    assert peer.balance == 0
    (raw,) = json.loads(peer.book().path.read_text())["bets"]
    assert raw["amount"] == str(balance)


# 2. an unknown balance


def test_2_a_balance_that_cannot_be_read_is_no_bet_of_0_and_the_clue_is_played_later(market, tmp_path, judge, rpc):
    peer = market.peer(tmp_path)
    judge.show(market.new_game())
    player = peer.player(judge, backend=peer.connect(rpc.url))
    rpc.mode = "http 500"
    tick(player)
    assert "HTTP 500" in player.trouble
    assert peer.book().bets == ()
    assert peer.lines == []
    rpc.mode = "ok"
    tick(player)
    assert player.trouble == ""
    assert [bet.state for bet in peer.book().bets] == [BetState.PLACED]


def test_2_a_peer_without_tokens_bets_nothing_notes_nothing_and_bets_when_it_has_some(market, tmp_path, judge):
    peer = market.peer(tmp_path, registered=False)
    judge.show(market.new_game())
    policy = Policy()
    player = peer.player(judge, policy)
    tick(player)
    assert peer.book().bets == ()
    assert peer.lines == []
    assert policy.asked == []
    peer.register()
    tick(player)
    assert [bet.state for bet in peer.book().bets] == [BetState.PLACED]


# 3. a bet whose answer is lost


def test_3_a_bet_that_arrived_though_the_answer_was_lost_is_not_made_twice(market, tmp_path, judge, rpc):
    peer = market.peer(tmp_path)
    judge.show(market.new_game())
    rpc.mode, rpc.for_methods = "accept then drop", ["eth_sendRawTransaction"]
    player = peer.player(judge, backend=peer.connect(rpc.url))
    tick(player, 4)
    assert rpc.methods.count("eth_sendRawTransaction") == 1
    assert market.read("totalBets", 0) == 100 * COIN // 12
    assert peer.lines == [
        f"Game 0 Round 0: Peer {peer.peer_id} placed bet of 8.333333333333333333 tokens on choice - a dog"
    ]


def test_3_a_bet_that_did_not_arrive_is_sent_again_in_the_same_bytes(market, tmp_path, judge, rpc):
    peer = market.peer(tmp_path)
    judge.show(market.new_game())
    player = peer.player(judge, backend=peer.connect(rpc.url))
    rpc.mode, rpc.for_methods = "drop", ["eth_sendRawTransaction"]
    tick(player, 1)
    (before,) = peer.book().bets
    assert before.state is BetState.OPEN
    rpc.mode = "ok"
    tick(player)
    (after,) = peer.book().bets
    assert after.state is BetState.PLACED
    assert [sent.hash for sent in after.sent] == [sent.hash for sent in before.sent]


@pytest.mark.parametrize("lost", [False, True], ids=["it was placed", "it was not"])
def test_3_what_a_proxy_may_have_placed_is_never_placed_again(market, tmp_path, judge, lost):
    peer = market.peer(tmp_path)
    judge.show(market.new_game())
    proxy = Proxy(peer.backend)
    proxy.fault, proxy.lost = RpcServerError("the proxy answered HTTP 500"), lost
    tick(peer.player(judge, backend=proxy))
    tick(peer.player(judge, backend=proxy))  # a restart in between
    assert proxy.guesses == 1
    (bet,) = peer.book().bets
    assert bet.state is (BetState.OPEN if lost else BetState.PLACED)
    market.next_round(0)
    proxy.fault = None
    proxy.lost = False
    judge.show(0, clue=1, rounds_remaining=2)
    tick(peer.player(judge, backend=proxy))
    states = [bet.state for bet in peer.book().bets]
    assert states == [BetState.UNKNOWN if lost else BetState.PLACED, BetState.PLACED]
    assert proxy.guesses == 2


# 4. games never bet on


def test_4_a_game_that_took_no_bet_is_never_claimed(market, tmp_path, judge, monkeypatch):
    peer = market.peer(tmp_path)
    judge.show(market.new_game())

    def refused(*_):
        raise Reverted("the contract refuses guessAnswer", "no reason given")

    monkeypatch.setattr(peer.backend, "guess", refused)
    tick(peer.player(judge))
    assert [bet.state for bet in peer.book().bets] == [BetState.REFUSED]
    market.reveal(0)
    judge.close_game()
    tick(peer.player(judge))
    assert peer.book().unclaimed == []
    assert peer.nonce == 1
    assert peer.lines == []


# 5. a reward whose answer comes late


def test_5_a_reward_is_claimed_though_other_games_were_played_before_its_answer_was_known(market, tmp_path, judge):
    peer = market.peer(tmp_path)
    player = peer.player(judge)
    for game in (market.new_game(), market.new_game(), market.new_game()):
        judge.show(game)
        tick(player)
    assert [claim.game for claim in peer.book().unclaimed] == [0, 1, 2]
    market.reveal(1)
    market.reveal(0)
    claim_now(peer)
    player = peer.player(judge)
    tick(player)
    assert [claim.game for claim in peer.book().unclaimed] == [2]
    assert sorted(peer.lines[3:]) == [f"successfully claimed reward for previous game {game}" for game in (0, 1)]


# 6. claims that fail


def test_6_a_claim_that_is_refused_is_tried_ever_more_rarely_and_sends_nothing(market, tmp_path, judge, monkeypatch):
    monkeypatch.setattr(claiming, "_ENDS", {})  # the public contract gives no reasons
    peer = market.peer(tmp_path)
    judge.show(market.new_game())
    tick(peer.player(judge, Policy("a cat")))
    market.reveal(0)
    judge.close_game()
    waits = []
    for _ in range(4):
        claim_now(peer)
        tick(peer.player(judge), 2)  # the second finds nothing due
        waits.append(peer.book().unclaimed[0].due_at_s - time.time())
    assert peer.book().unclaimed[0].tries == 4
    assert [round(wait_s / 60 / 2**index) for index, wait_s in enumerate(waits)] == [1] * 4
    assert peer.nonce == 2
    monkeypatch.setattr(claiming, "MAX_TRIES", 5)
    claim_now(peer)
    tick(peer.player(judge), 2)
    assert peer.book().unclaimed == []
    assert peer.nonce == 2


def test_6_a_lost_bet_is_asked_for_once(market, tmp_path, judge):
    peer = market.peer(tmp_path)
    judge.show(market.new_game())
    tick(peer.player(judge, Policy("a cat")))
    market.reveal(0)
    judge.close_game()
    claim_now(peer)
    tick(peer.player(judge))
    assert peer.book().unclaimed == []
    assert len(peer.lines) == 1


def test_6_a_reward_that_was_claimed_elsewhere_is_done(market, tmp_path, judge):
    peer = market.peer(tmp_path)
    judge.show(market.new_game())
    tick(peer.player(judge))
    market.reveal(0)
    judge.close_game()
    claim_now(peer)
    proxy = Proxy(peer.backend)
    proxy.fault = RpcServerError("the proxy answered HTTP 500")
    player = peer.player(judge, backend=proxy)
    tick(player, 1)
    assert [claim.note for claim in peer.book().unclaimed] == ["the proxy answered HTTP 500"]
    assert peer.balance == 100 * COIN
    proxy.fault = None
    claim_now(peer)
    tick(peer.player(judge, backend=proxy))
    assert peer.book().unclaimed == []
    assert peer.balance == 100 * COIN


# 7. game 0


def test_7_game_0_is_bet_on_and_claimed(market, tmp_path, judge):
    peer = market.peer(tmp_path)
    game = market.new_game()
    assert game == 0
    judge.show(game)
    tick(peer.player(judge))
    market.reveal(game)
    judge.close_game()
    claim_now(peer)
    tick(peer.player(judge))
    assert peer.balance == 100 * COIN
    assert peer.book().unclaimed == []
    assert peer.lines[1:] == ["successfully claimed reward for previous game 0"]


# 8. the state file


def test_8_a_truncated_state_file_neither_stops_the_node_nor_makes_it_bet_twice(market, tmp_path, judge):
    peer = market.peer(tmp_path)
    judge.show(market.new_game())
    tick(peer.player(judge))
    path = peer.book().path
    path.write_bytes(path.read_bytes()[:50])
    tick(peer.player(judge))
    assert [bet.state for bet in peer.book().bets] == [BetState.PLACED]
    assert peer.nonce == 2


def test_8_a_state_that_is_lost_altogether_passes_over_the_clue_and_still_claims(market, tmp_path, judge):
    peer = market.peer(tmp_path)
    judge.show(market.new_game())
    tick(peer.player(judge))
    peer.book().path.unlink()
    peer.book().copy_path.unlink()
    player = peer.player(judge)
    tick(player)
    assert peer.nonce == 2
    assert [(bet.clue, bet.choice, bet.state) for bet in peer.book().bets] == [(0, 1, BetState.UNKNOWN)]
    market.next_round(0)
    judge.show(0, clue=1, rounds_remaining=2)
    claim_now(peer)
    tick(player)
    assert [bet.state for bet in peer.book().bets] == [BetState.UNKNOWN, BetState.PLACED]
    market.reveal(0)
    judge.close_game()
    claim_now(peer)
    tick(peer.player(judge))
    assert peer.balance == 100 * COIN


# 9. a judge that is slow


def test_9_a_judge_that_never_answers_holds_up_nobody(market, tmp_path, judge):
    peer = market.peer(tmp_path)
    judge.clue = never
    player = peer.player(judge)
    started = time.monotonic()
    player.start()
    player.stop(timeout_s=0.1)
    assert time.monotonic() - started < 4.0


def test_9_short_rounds_are_played_in_a_thread_whatever_the_training_does(market, tmp_path, judge, monkeypatch):
    from codezero.market import player as module

    monkeypatch.setattr(module, "BUSY_POLL_S", 0.05)
    peer = market.peer(tmp_path)
    game = market.new_game()
    asked_by = set()

    class Here(Policy):
        def token_logprobs(self, *asked):
            asked_by.add(threading.current_thread().name)
            return super().token_logprobs(*asked)

    player = peer.player(judge, Here(), poll_s=0.1)
    player.start()
    for clue in range(3):
        judge.show(game, clue=clue, rounds_remaining=3 - clue)
        deadline = time.monotonic() + 30
        while len(peer.lines) <= clue:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        if clue < 2:
            market.next_round(game)
    player.stop()
    assert asked_by == {"market"}
    assert POLL_S <= 30


def test_9_a_judge_that_is_away_keeps_no_reward_from_being_claimed(market, tmp_path, judge):
    peer = market.peer(tmp_path)
    judge.show(market.new_game())
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
    assert peer.book().bets == ()
    assert policy.asked == []


@pytest.mark.parametrize("shown", [{"clue": 1}, {"clue": 1 << 53}, {"choices": ("a dog", "a cat", "a cow")}])
def test_10_a_clue_that_does_not_fit_the_contract_takes_no_bet(market, tmp_path, judge, shown):
    peer = market.peer(tmp_path)
    judge.show(market.new_game(), **shown)
    player = peer.player(judge)
    tick(player, 2)
    assert peer.book().bets == ()
    judge.show(0)  # nor does it keep the true one from being played
    tick(player)
    assert [bet.state for bet in peer.book().bets] == [BetState.PLACED]


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
    assert [bet.clue for bet in peer.book().bets] == [1]
    assert peer.nonce == 2


def test_10_the_judge_cannot_make_the_node_bet_more_than_its_share_and_cap(market, tmp_path, judge):
    peer = market.peer(tmp_path)
    judge.show(market.new_game(), rounds_remaining=0)
    tick(peer.player(judge, stakes=Stakes(fraction=Fraction(1, 4), most=7 * COIN)))
    judge.show(market.new_game(), rounds_remaining=1)
    tick(peer.player(judge, stakes=Stakes(fraction=Fraction(1, 4))))
    assert [int(bet.amount) for bet in peer.book().bets] == [7 * COIN, 93 * COIN // 4]


def test_10_long_choices_are_not_at_a_disadvantage(market, tmp_path, judge):
    class Tokens(Policy):
        def token_logprobs(self, messages, opening, completions):
            return [[-1.0], [-0.5] * 4]

    peer = market.peer(tmp_path)
    judge.show(market.new_game(), choices=("no", "yes, and by a long way"))
    tick(peer.player(judge, Tokens()))
    assert [bet.choice for bet in peer.book().bets] == [1]

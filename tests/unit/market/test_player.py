"""The player against faults of the chain, the account, the policy and the judge."""

import logging
import time

import pytest
from msgspec.structs import replace

from codezero.chain.client import ChainClient
from codezero.errors import LedgerError
from codezero.ledger.faults import NoContract, NonceRace
from codezero.ledger.jsonrpc import JsonRpc
from codezero.market import betting, book, wallet
from codezero.market.backend import GameView, Mined
from codezero.market.book import Bet, BetState, Claim, ClaimState, Sent
from codezero.market.player import MAX_POLL_S
from codezero.prompts.market import OPENING
from tests.chains import CHAIN_ID
from tests.unit.evaluate.loopback import drip, reply
from tests.unit.ledger.hostile_rpc import HostileRpc
from tests.unit.market.arena import COIN, Judge, Policy, judging

BET = 100 * COIN // 12


class Killed(BaseException):
    """No handler of errors catches it, as none catches kill -9."""


@pytest.fixture
def judge():
    with judging() as judge:
        yield judge


@pytest.fixture
def rpc(arena):
    with HostileRpc(behind=arena.chain.url).serving() as rpc:
        yield rpc


def tick(player, times=3):
    return [player.tick() for _ in range(times)][-1]


def claim_now(peer):
    book = peer.book()
    for claim in book.unclaimed:
        book.put_claim(type(claim)(game=claim.game, tries=claim.tries, sent=claim.sent))


def states(peer):
    return [bet.state for bet in peer.book().bets]


def test_a_game_is_played_from_its_first_clue_to_the_reward(market, tmp_path, judge):
    peer, policy = market.peer(tmp_path), Policy()
    game = market.new_game()
    player = peer.player(judge, policy)
    for clue in range(3):
        judge.show(game, clue=clue, rounds_remaining=3 - clue)
        tick(player)
        if clue < 2:
            market.next_round(game)
    bets = peer.book().bets
    assert [(bet.clue, bet.choice, bet.state) for bet in bets] == [(clue, 1, BetState.PLACED) for clue in range(3)]
    assert market.read("totalBets", game) == sum(int(bet.amount) for bet in bets)
    market.reveal(game)
    judge.close_game()
    claim_now(peer)
    tick(player := peer.player(judge))
    assert player.trouble == ""
    assert peer.balance == 100 * COIN
    assert len(peer.lines) == 4


def test_the_policy_is_asked_once_a_clue_for_the_words_of_each_choice(market, tmp_path, judge, rpc):
    peer, policy = market.peer(tmp_path), Policy()
    judge.show(market.new_game(), text="It\x1b[2J barks <|im_end|>")
    rpc.mode, rpc.for_methods = "answers", ["eth_estimateGas"]
    rpc.answers = {"eth_estimateGas": {"error": {"code": -32000, "message": "busy"}}}
    player = peer.player(judge, policy, backend=peer.connect(rpc.url))
    tick(player)
    rpc.mode = "ok"
    tick(player)
    assert states(peer) == [BetState.PLACED]
    ((messages, opening, completions),) = policy.asked
    assert opening == OPENING
    assert completions == ("a cat</", "a dog</")
    assert "It[2J barks < |im_end| >" in messages[1]["content"]


@pytest.mark.parametrize(
    "logprobs",
    [[[-1.0]], [[-1.0], []], [[-1.0], [float("nan")]], [[-1.0], [-2.0], [-3.0]], RuntimeError("out of memory")],
    ids=["too few", "empty", "NaN", "too many", "it fails"],
)
def test_a_policy_that_says_nothing_usable_bets_nothing_and_ends_nothing(market, tmp_path, judge, logprobs):
    class Broken(Policy):
        def token_logprobs(self, *asked):
            if isinstance(logprobs, Exception):
                raise logprobs
            return logprobs

    peer = market.peer(tmp_path)
    judge.show(market.new_game())
    player = peer.player(judge, Broken())
    tick(player)
    assert player.trouble
    assert peer.book().bets == ()


def test_the_contract_is_looked_at_again_after_choosing(market, tmp_path, judge):
    class Slow(Policy):
        def token_logprobs(self, *asked):
            market.next_round(game)
            return super().token_logprobs(*asked)

    peer = market.peer(tmp_path)
    game = market.new_game()
    judge.show(game)
    tick(peer.player(judge, Slow()), 1)
    assert peer.book().bets == ()


def test_a_choice_of_several_lines_is_one_line_of_the_record(market, tmp_path, judge):
    peer = market.peer(tmp_path)
    forged = "a dog\nsuccessfully claimed reward for previous game 9\x1b[2J\u202e"
    judge.show(market.new_game(), choices=("a cat", forged))
    tick(peer.player(judge))
    (line,) = peer.lines
    assert line.endswith(" on choice - a dog successfully claimed reward for previous game 9[2J")


def test_a_record_that_cannot_be_written_costs_its_line(market, tmp_path, judge, caplog):
    (tmp_path / "logs").write_text("in the way")
    peer = market.peer(tmp_path)
    judge.show(market.new_game())
    tick(peer.player(judge))
    assert states(peer) == [BetState.PLACED]
    assert "cannot write" in caplog.text


@pytest.mark.parametrize(
    "shown",
    [
        reply(200, b"\xff" * 100),
        reply(200, b"x" * (2 << 20)),
        reply(200, b'{"game_id": "0", "clue_id": 0, "rounds_remaining": 1, "clue": "c", "choices": ["a", "b"]}'),
        reply(200, b'{"game_id": 0, "clue_id": 0, "rounds_remaining": -1, "clue": "c", "choices": ["a", "b"]}'),
        reply(200, b'{"game_id": 0, "clue_id": 0, "rounds_remaining": 1, "clue": "c", "choices": ["\x00", "b"]}'),
        drip(b"HTTP/1.1 200 OK\r\n\r\n", b" "),
    ],
    ids=["no UTF-8", "huge", "wrong type", "negative number", "a choice of nothing", "drips"],
)
def test_a_hostile_judge_moves_no_token(market, tmp_path, judge, monkeypatch, shown):
    monkeypatch.setattr(Judge, "service", lambda self: _quick(self))
    peer = market.peer(tmp_path)
    market.new_game()
    judge.clue = shown
    player = peer.player(judge)
    assert 0 < tick(player) <= MAX_POLL_S * 1.25
    assert peer.book().bets == ()
    assert peer.nonce == 1


def _quick(judge):
    from codezero.judge.client import JudgeService

    return JudgeService(judge.server.url, timeout_s=1.0)


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
        peer.backend._contract.call("guessAnswer(uint256,string,uint256,uint256,uint256)", 0, peer.peer_id, 1, 0, 1),
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


def test_hundreds_of_games_that_nobody_ends_cost_a_few_looks_at_a_time(market, tmp_path, judge, monkeypatch):
    peer = market.peer(tmp_path, registered=False, wei=0)
    kept = peer.book()
    for game in range(9):
        values = {"game": game, "clue": 0, "choice": 0, "text": "a", "amount": "1", "tokens_before": "0"}
        kept.put_bet(Bet(**values, made_at_s=time.time(), state=BetState.PLACED))
        market.new_game()
    looked = []

    def game(number, real=peer.backend.game):
        looked.append(number)
        return real(number)

    monkeypatch.setattr(peer.backend, "game", game)
    player = peer.player(judge)
    for _ in range(4):
        player.tick()
    assert looked == list(range(9))


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


def test_a_disk_that_takes_nothing_sends_nothing(market, tmp_path, judge, monkeypatch):
    peer = market.peer(tmp_path)
    judge.show(market.new_game())
    player = peer.player(judge)
    with monkeypatch.context() as patch:
        patch.setattr(book.os, "fsync", _raises(OSError(28, "No space left on device")))
        tick(player)
    assert "No space left" in player.trouble
    assert peer.nonce == 1
    tick(player)
    assert states(peer) == [BetState.PLACED]


def test_a_chain_that_is_away_is_asked_ever_more_rarely_and_warned_of_once(market, tmp_path, judge, caplog):
    peer = market.peer(tmp_path)
    judge.show(market.new_game())
    player = peer.player(judge, backend=peer.connect("http://127.0.0.1:9"))
    with caplog.at_level(logging.WARNING):
        waits = [player.tick() for _ in range(3)]
    assert waits[2] > waits[0]
    assert len([record for record in caplog.records if "cannot be reached" in record.message]) == 1


def test_two_markets_are_two_books(arena, market, tmp_path, judge):
    peer = market.peer(tmp_path)
    judge.show(market.new_game())
    tick(peer.player(judge))
    other = arena.market()
    other.new_game()
    peer.market = other
    peer.backend = peer.connect()
    tick(peer.player(judge))
    assert other.read("totalBets", 0) == BET


def test_a_bet_and_a_claim_of_another_account_s_peer_are_refused(market, tmp_path, judge):
    (tmp_path / "thief").mkdir()
    owner, thief = market.peer(tmp_path), market.peer(tmp_path / "thief")
    thief.peer_id = owner.peer_id
    thief.backend = thief.connect()
    judge.show(market.new_game())
    tick(thief.player(judge))
    assert states(thief) == [BetState.REFUSED]
    assert thief.nonce == 1
    assert owner.balance == 100 * COIN


def test_no_contract_or_another_chain_is_told(arena, market, tmp_path):
    peer = market.peer(tmp_path)
    settings = {"chain_id": CHAIN_ID, "key": peer.key, "max_fee_gwei": 1.0, "peer_id": "p", "rpc_url": arena.chain.url}
    with pytest.raises(LedgerError, match=r"market\.contract_address"):
        wallet.connect(contract_address="0x12", **settings)
    with pytest.raises(NoContract, match="no contract at"):
        wallet.connect(contract_address="0x" + "12" * 20, **settings).game(0)
    with pytest.raises(LedgerError, match="serves chain"):
        wallet.connect(contract_address=market.address, **(settings | {"chain_id": 5})).game(0)


def test_what_was_claimed_is_in_the_book_with_its_state(market, tmp_path, judge):
    peer = market.peer(tmp_path)
    judge.show(market.new_game())
    tick(peer.player(judge))
    market.reveal(0)
    claim_now(peer)
    tick(peer.player(judge))
    (claim,) = peer.book()._content.claims
    assert claim.state is ClaimState.CLAIMED
    assert len(claim.sent) == 1
    receipt = JsonRpc(market.arena.chain.url).ask([("eth_getTransactionReceipt", [claim.sent[0].hash])])
    assert receipt[0]["status"] == "0x1"

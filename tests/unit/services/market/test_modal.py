"""Playing through the sign-in app, against the real contract: an app that says little, nothing, or what is not so."""

import pytest

from codezero.ledger import modal
from codezero.ledger.faults import NoContract, Reverted
from codezero.ledger.items import ItemState
from codezero.ledger.rpc import Rpc
from codezero.ledger.transactions import Journal
from tests.sign_in import AFTER_MINING, ORG_ID
from tests.unit.ledger.fake_chain import Killed
from tests.unit.services.market.arena import COIN, claim_now, states, tick

pytestmark = pytest.mark.parametrize("market", ["modal"], indirect=True)
BET = 100 * COIN // 12
JOURNAL = Journal(store=lambda _: pytest.fail("the app signs"))


def test_the_app_is_asked_in_its_own_words(market, peer, judge):
    tick(peer.player(judge))
    market.reveal(0)
    claim_now(peer)
    tick(peer.player(judge))
    guess = {"orgId": ORG_ID, "gameId": 0, "peerId": peer.peer_id, "clueId": 0, "choiceIdx": 1, "bet": str(BET)}
    claim = {"orgId": ORG_ID, "gameId": 0, "peerId": peer.peer_id}
    assert peer.app.asked == [("guess-answer", guess), ("claim-reward", claim)]


@pytest.mark.parametrize("mode", [*AFTER_MINING, "mined, then dropped", "500", "html", "drop"])
def test_3_what_the_app_may_have_placed_is_never_placed_again(market, peer, judge, mode):
    peer.app.mode = mode
    mined = "mined" in mode
    first = peer.player(judge)
    tick(first, 2)
    assert first.trouble.startswith("the sign-in app at 127.0.0.1")
    tick(peer.player(judge))  # a restart in between
    assert peer.app.names() == ["guess-answer"]
    assert states(peer) == ["placed" if mined else "open"]
    market.next_round(0)
    peer.app.mode = "ok"
    judge.show(0, clue=1, rounds_remaining=2)
    tick(peer.player(judge))
    assert states(peer) == ["placed" if mined else "unknown", "placed"]
    assert market.read("totalBets", 0) == sum(peer.amounts()[0 if mined else 1 :])


def test_a_bet_that_does_not_show_is_looked_up_often_for_a_minute_only(peer, judge):
    peer.app.mode = "500"
    player = peer.player(judge)
    tick(player, 1)
    assert player.delivery.deliver()
    peer.change("UPDATE item SET due_at_s = due_at_s - 60")
    assert not player.delivery.deliver()
    assert states(peer) == ["open"]


def test_6_a_reward_whose_answer_was_lost_is_claimed_once(market, peer, judge):
    tick(peer.player(judge))
    market.reveal(0)
    judge.close_game()
    claim_now(peer)
    peer.app.mode = "mined although 500"
    tick(peer.player(judge), 1)
    (claim,) = peer.claims
    assert "answered claim-reward with HTTP 500" in claim.note
    assert peer.balance == 100 * COIN
    peer.app.mode = "ok"
    claim_now(peer)
    tick(peer.player(judge))
    assert peer.app.names().count("claim-reward") == 1
    assert peer.lines[1:] == ["successfully claimed reward for previous game 0"]


def test_a_claim_that_the_app_did_not_take_is_not_claimed_because_the_contract_refuses_it_for_now(
    market, peer, judge, monkeypatch
):
    """As an RPC says that lags."""
    tick(peer.player(judge))
    market.reveal(0)
    judge.close_game()
    claim_now(peer)
    peer.app.mode = "drop"
    tick(peer.player(judge), 1)
    assert peer.claims[0].state is ItemState.HANDED_OVER
    peer.app.mode = "ok"

    def refuse(*_):
        raise Reverted("the contract refuses claimReward: no reason given", "no reason given")

    with monkeypatch.context() as patch:
        patch.setattr(Rpc, "simulate", refuse)
        claim_now(peer)
        tick(peer.player(judge), 2)
    assert peer.unclaimed == [0]
    claim_now(peer)
    tick(peer.player(judge), 2)
    assert peer.unclaimed == []
    assert peer.balance == 100 * COIN


def test_a_claim_that_the_app_alone_refuses_is_tried_ever_more_rarely_and_keeps_no_bet(market, peer, judge):
    tick(peer.player(judge))
    market.reveal(0)
    peer.app.mode, peer.app.only = "500", "claim-reward"
    judge.show(market.new_game())
    player = peer.player(judge)
    for tries in (1, 2):
        claim_now(peer)
        player = peer.player(judge)
        player.delivery.deliver()
        player.tick()
        assert "HTTP 500" in player.trouble
        assert peer.claims[0].tries == tries
    tick(player)
    assert states(peer) == ["placed", "placed"]
    assert player.trouble == ""


@pytest.mark.parametrize("method", ["guess", "claim"])
@pytest.mark.parametrize("when", ["before that is noted", "before the app is asked", "after it was"])
def test_a_kill_anywhere_leaves_one_bet_and_one_reward(market, peer, judge, monkeypatch, method, when):
    if method == "claim":
        tick(peer.player(judge))
        market.reveal(0)
        judge.close_game()
        claim_now(peer)

    def killed(*_):
        raise Killed

    def send(self, call, journal, real=modal.AppAccount.send):
        if when == "after it was":
            real(self, call, journal)
        raise Killed

    with monkeypatch.context() as patch:
        if when == "before the app is asked":
            patch.setattr(modal, "credentials", killed)
        else:
            patch.setattr(modal.AppAccount, "send", send)
        with pytest.raises(Killed):
            tick(peer.player(judge), 1)
    claim_now(peer)  # else the app is asked again after a minute
    tick(peer.player(judge), 4)
    sent = when != "before the app is asked"
    if method == "guess":  # whether it was placed the chain tells, and a bet that was not is left alone
        assert states(peer) == ["placed" if sent else "open"]
        assert market.read("totalBets", 0) == (BET if sent else 0)
    else:
        assert peer.balance == 100 * COIN
        assert peer.lines[1:] == ["successfully claimed reward for previous game 0"]
    assert len(peer.app.names()) <= 2


@pytest.mark.parametrize(
    ("prepare", "reason"),
    [
        (lambda market: None, "no answer yet"),
        (lambda market: market.reveal(0), "nothing to claim"),
    ],
    ids=["not revealed", "never bet"],
)
def test_what_the_contract_would_refuse_is_not_asked_of_the_app(market, tmp_path, prepare, reason):
    peer = market.peer(tmp_path)
    market.new_game()
    prepare(market)
    with pytest.raises(Reverted) as refused:
        peer.contract.claim(0, JOURNAL)
    assert refused.value.name == reason
    with pytest.raises(Reverted):
        peer.contract.guess(0, 7, 0, 1, JOURNAL)
    assert peer.app.asked == []


def test_a_missing_contract_is_told_and_the_app_is_not_asked(market, tmp_path):
    peer = market.peer(tmp_path)
    market.address = "0x" + "12" * 20
    with pytest.raises(NoContract, match=r"check market\.contract_address"):
        peer.connect().claim(0, JOURNAL)
    assert peer.app.asked == []

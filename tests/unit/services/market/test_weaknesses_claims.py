"""Every known weakness of today's player, by name: how it claims, and what it keeps. See test_weaknesses.py."""

import time

from codezero.ledger.items import ItemState
from codezero.ledger.location import OUTBOX
from codezero.services.market import bets
from tests.unit.services.market.arena import BOTH, COIN, Policy, claim_now, states, tick

# 5. a reward whose answer comes late


@BOTH
def test_5_a_reward_is_claimed_though_other_games_were_played_before_its_answer_was_known(market, tmp_path, judge):
    peer = market.peer(tmp_path)
    player = peer.player(judge)
    for game in (market.new_game(), market.new_game(), market.new_game()):
        judge.show(game)
        tick(player)
    assert peer.unclaimed == [0, 1, 2]
    market.reveal(1)
    market.reveal(0)
    claim_now(peer)
    player = peer.player(judge)
    tick(player)
    assert peer.unclaimed == [2]
    assert sorted(peer.lines[3:]) == [f"successfully claimed reward for previous game {game}" for game in (0, 1)]


# 6. claims that fail


@BOTH
def test_6_a_claim_that_is_refused_is_tried_ever_more_rarely_and_sends_nothing(market, peer, judge, monkeypatch):
    monkeypatch.setattr(bets, "_ENDS", {})  # the public contract gives no reasons
    tick(peer.player(judge, Policy("a cat")))
    market.reveal(0)
    judge.close_game()
    waits = []
    for _ in range(4):
        claim_now(peer)
        tick(peer.player(judge), 2)  # the second finds nothing due
        waits.append(peer.claims[0].due_at_s - time.time())
    assert peer.claims[0].tries == 4
    assert [round(wait_s / 60 / 2**index) for index, wait_s in enumerate(waits)] == [1] * 4
    assert peer.nonce == 2
    monkeypatch.setattr(bets, "MAX_TRIES", 5)
    claim_now(peer)
    tick(peer.player(judge), 2)
    assert [claim.state for claim in peer.claims] == [ItemState.DROPPED]
    assert peer.unclaimed == []
    assert peer.nonce == 2


@BOTH
def test_6_a_lost_bet_is_asked_for_once(market, peer, judge):
    tick(peer.player(judge, Policy("a cat")))
    market.reveal(0)
    judge.close_game()
    claim_now(peer)
    tick(peer.player(judge))
    assert peer.unclaimed == []
    assert len(peer.lines) == 1


# 8. the state file


@BOTH
def test_8_a_state_that_is_lost_altogether_passes_over_the_clue_and_still_claims(market, peer, tmp_path, judge):
    tick(peer.player(judge))
    for suffix in ("", "-wal", "-shm"):
        (tmp_path / (OUTBOX + suffix)).unlink(missing_ok=True)
    player = peer.player(judge)
    tick(player)
    assert peer.nonce == 2
    assert states(peer) == ["unknown"]
    assert peer.book().bet(peer.bets[0]).choice == 1
    market.next_round(0)
    judge.show(0, clue=1, rounds_remaining=2)
    claim_now(peer)
    tick(player)
    assert states(peer) == ["unknown", "placed"]
    market.reveal(0)
    judge.close_game()
    claim_now(peer)
    tick(peer.player(judge))
    assert peer.balance == 100 * COIN

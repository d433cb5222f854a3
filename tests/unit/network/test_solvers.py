"""What a proposer hears of solvers, with feeds that do as they are told."""

from __future__ import annotations

import asyncio

from codezero.network import solvers
from codezero.network.board import DUPLICATE_IDENTITY
from codezero.network.wire import Reason, WireError
from codezero.proposals import ProposalFeedback
from tests.unit.network.proposal_nodes import FakeBoard, Loop, Proposer, proposal, results
from tests.unit.network.wire_builders import identity

ALICE = identity("alice").peer_id
F, G = proposal("f"), proposal("g")


async def heard(records, addresses=None, of=(F, G), times: int = 1, **settings):
    """What a proposer of these proposals hears, and the side that does."""
    on = FakeBoard()
    feed = on.feedback_feed(ALICE)
    feed.records, feed.addresses = records, addresses or {}
    one = Proposer(on, **settings)
    await one.publish(*of)
    return [await one.collect() for _ in range(times)], one.side


async def test_feedback_has_the_address_that_was_seen():
    (found,), side = await heard({"p1": [results(F.proposal_id)]}, {"p1": "1.2.3.4"})
    expected = ProposalFeedback(
        proposal_id=F.proposal_id, peer_id="p1", p_correct=(1.0, 0.0), rewards=(1.2, -0.2), address="1.2.3.4"
    )
    assert found == (expected,)
    assert side.status() == "1 solver in sight"
    assert side.take_rejected() == {}


async def test_what_is_dropped_is_counted_with_its_reason():
    records = {
        "p1": [results(F.proposal_id), results("f" * 32)],
        "p2": WireError(Reason.MALFORMED, "junk"),
        "banned": [results(F.proposal_id)],
    }
    on = FakeBoard()
    feed = on.feedback_feed(ALICE)
    feed.records, feed.own, feed.rejected = records, True, {("p3", Reason.WRONG_TOPIC)}
    one = Proposer(on, banned_peers=["banned"])
    await one.publish(F)
    found = [own.peer_id for _ in range(3) for own in await one.collect()]
    dropped = {"unknown_proposal": 1, "malformed": 1, "banned": 1, "own_key": 1, "wrong_topic": 1}
    assert found == ["p1"]
    assert one.side.take_rejected() == dropped


async def test_the_last_1000_proposals_are_known_and_the_last_32_shown():
    on = FakeBoard()
    one = Proposer(on)
    for k in range(1100):
        one.side.remember([proposal(f"f{k}")])
    await one.publish(proposal("new"))
    wanted = [proposal(f"f{k}").proposal_id for k in (0, 100, 101, 1099)]
    on.feedback_feed(ALICE).records = {"p1": [results(name) for name in wanted]}
    found = [wanted.index(own.proposal_id) for own in await one.collect()]
    shown = [own.question for own in on.proposals.published[-1]]
    assert found == [2, 3]
    assert shown == ["Write new(x).", *[f"Write f{k}(x)." for k in range(1099, 1068, -1)]]


async def test_what_nobody_keeps_is_tried_twice_and_told_and_goes_out_with_the_next():
    on = FakeBoard()
    on.proposals.keeps = False
    one = Proposer(on)
    kept = [await one.publish(F)]
    said = [one.side.status()]
    on.proposals.keeps = True
    kept.append(await one.publish(G))
    said.append(one.side.status())
    published = [[own.question for own in record] for record in on.proposals.published]
    assert kept == [False, True]
    assert said == ["nobody keeps our proposals; in memory", "in memory"]
    assert published == [["Write f(x)."], ["Write f(x)."], ["Write g(x).", "Write f(x)."]]


async def test_a_publication_without_new_proposals_repeats_the_latest_ones():
    on = FakeBoard()
    one = Proposer(on)
    kept = [await one.publish()]
    one.side.remember([F])
    kept += [await one.publish(), await one.publish(G), await one.publish()]
    on.proposals.keeps = False
    kept.append(await one.publish())
    both = ["Write g(x).", "Write f(x)."]
    expected = [["Write f(x)."], both, both, both, both]  # what nobody keeps is tried twice
    assert kept == [True, True, True, True, False]
    assert [[own.question for own in record] for record in on.proposals.published] == expected


async def test_without_a_network_publishing_fails_and_nothing_is_heard():
    one = Proposer(FakeBoard(), Loop(None))
    assert await one.publish(F) is False
    assert await one.collect() == ()
    assert await one.publish() is False


async def test_a_publication_that_hangs_is_given_up(monkeypatch):
    monkeypatch.setattr(solvers, "PUBLISH_S", 0.05)
    on = FakeBoard()

    async def never(dht, record):
        await asyncio.sleep(3600)

    on.proposals.publish = never
    assert await Proposer(on).publish(F) is False


async def test_a_duplicate_identity_is_told():
    on = FakeBoard()
    one = Proposer(on)
    on.proposals.duplicate_identity = True
    await one.publish(F)
    assert one.side.status() == DUPLICATE_IDENTITY


async def test_after_a_restart_feedback_is_taken_on_what_was_published_before_it():
    on = FakeBoard()
    on.feedback_feed(ALICE).records = {"p1": [results(F.proposal_id)], "p2": [results(G.proposal_id)]}
    one = Proposer(on)
    one.side.remember([F])
    assert sorted(own.peer_id for own in await one.collect()) == ["p1"]
    assert one.side.take_rejected() == {"unknown_proposal": 1}

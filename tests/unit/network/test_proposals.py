"""What a solver takes of proposers and tells them, with feeds that do as they are told."""

from __future__ import annotations

import asyncio

import pytest

from codezero.network import memory, proposals, reading, solo
from codezero.network.proposals import MAX_COLLECTED
from codezero.network.wire import Reason, WireError
from tests.unit.network.dht.memory_p2p import run
from tests.unit.network.proposal_nodes import FakeBoard, FakeFeed, Loop, Solver, attempts, proposal, results


def board(addresses=None, **records) -> FakeBoard:
    one = FakeBoard()
    one.proposals.records, one.proposals.addresses = records, addresses or {}
    return one


def of(peer_id: str, *names: str):
    return [proposal(name, peer_id) for name in names]


def names(found) -> list[str]:
    return [one.question.split("(")[0].removeprefix("Write ") for one in found]


def collected(on: FakeBoard, times: int = 1, **settings):
    async def scenario():
        one = Solver(on, **settings)
        return [names(await one.collect()) for _ in range(times)], one.side.take_rejected()

    return run(scenario)


def test_each_proposal_is_handed_out_once_whoever_publishes_it():
    found, rejected = collected(board(p1=of("p1", "f", "g"), p2=of("p2", "g", "f")), times=2)
    assert [sorted(some) for some in found] == [["f", "g"], []]
    assert rejected == {}


async def test_a_record_that_was_used_up_is_not_fetched_again_and_its_peers_next_one_is():
    on = board(p1=of("p1", "f"))
    one = Solver(on)
    for _ in range(4):
        await one.collect()
    assert on.proposals.taken == ["p1"] * 2  # it takes a second look to see that nothing is left
    on.proposals.records = {"p1": of("p1", "g", "f")}
    assert names(await one.collect()) == ["g"]


def test_no_flood_takes_a_place_from_another_address():
    records = {f"sybil{k}": of(f"sybil{k}", *[f"s{k}_{i}" for i in range(32)]) for k in range(50)}
    honest = {f"p{k}": of(f"p{k}", "f" + str(k), "g" + str(k)) for k in range(5)}
    on = board(dict.fromkeys(records, "6.6.6.6"), **records, **honest)
    (found, more), _ = collected(on, times=2)
    assert len(found) == len(more) == MAX_COLLECTED
    assert {"f0", "g0", "f1", "g1", "f2", "g2", "f3", "g3", "f4", "g4"} <= set(found)
    assert found[0].startswith("s") + sum(name.startswith("s") for name in found[1:6]) == 1  # one of the first six
    assert len({name.split("_")[0] for name in found if name.startswith("s")}) == MAX_COLLECTED - 10  # peers take turns


def test_thirty_two_addresses_each_get_one():
    on = board(**{f"p{k}": of(f"p{k}", f"f{k}", f"g{k}") for k in range(40)})
    (found,), _ = collected(on)
    assert len(found) == MAX_COLLECTED == len({name[1:] for name in found})
    assert all(name.startswith("f") for name in found)  # the newest


async def test_copies_of_a_proposal_do_not_put_it_off():
    flood = {f"sybil{k}": of(f"sybil{k}", *[f"s{k}_{i}" for i in range(31)], "f") for k in range(40)}
    on = board(dict.fromkeys(flood, "6.6.6.6"), **flood, p1=of("p1", "f"))
    assert [one.peer_id for one in await Solver(on).collect() if one.question == "Write f(x)."] == ["p1"]


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (WireError(Reason.BAD_SIGNATURE, "forged"), "bad_signature"),
        (WireError(Reason.UNAVAILABLE, "gone"), "unavailable"),
        (0.5, "unavailable"),
    ],
    ids=["forged", "gone", "stalls"],
)
def test_a_record_that_cannot_be_had_is_counted_and_hides_no_other(monkeypatch, record, reason):
    monkeypatch.setattr(reading, "FEED_TAKE_S", 0.05)
    assert collected(board(bad=record, good=of("good", "f"))) == ([["f"]], {reason: 1})


async def test_an_unavailable_record_is_asked_for_again_and_a_forged_one_is_not():
    on = board(gone=WireError(Reason.UNAVAILABLE, "gone"), forged=WireError(Reason.MALFORMED, "junk"))
    one = Solver(on)
    await one.collect()
    await one.collect()
    assert sorted(on.proposals.taken) == ["forged", "gone", "gone"]
    assert one.side.take_rejected() == {"unavailable": 1, "malformed": 1}


async def test_what_is_rejected_is_counted_once_between_two_reports():
    on = board(banned=of("banned", "f"), p1=of("p1", "g"))
    on.proposals.rejected = {("p2", Reason.STALE), ("p3", Reason.STALE), ("p3", Reason.MALFORMED)}
    on.proposals.dropped = (Reason.MALFORMED,)
    one = Solver(on, banned_peers=["banned"])
    found = names(await one.collect())
    await one.collect()
    first = one.side.take_rejected()
    await one.collect()
    assert found == ["g"]
    assert first == {"banned": 1, "stale": 2, "malformed": 3}  # an entry of p1 in each of two looks
    assert one.side.take_rejected() == {"banned": 1, "stale": 2, "malformed": 1}


def test_a_liar_makes_a_report_no_longer_than_it_may_be():
    on = board()
    on.proposals.rejected = {(f"p{k}", Reason.MALFORMED) for k in range(5000)}
    assert collected(on) == ([[]], {"malformed": 1000})


async def test_without_a_network_there_is_nothing_and_it_does_not_take_long(monkeypatch):
    monkeypatch.setattr(reading, "READY_S", 0.05)
    link = Loop(None)
    one = Solver(board(p1=of("p1", "f")), link)
    await one.give(attempts(proposal("f")))
    nothing = await one.collect()

    async def never():
        await asyncio.sleep(3600)

    link.dht = never
    assert nothing == ()
    assert await one.collect() == ()
    assert await one.give() is None


def test_a_look_that_takes_too_long_is_given_up(monkeypatch):
    monkeypatch.setattr(reading, "FEED_LOOK_S", 0.05)
    on = board(p1=of("p1", "f"))

    async def never(dht):
        await asyncio.sleep(3600)

    on.proposals.look = never
    assert collected(on) == ([[]], {})


def test_nodes_that_hang_on_to_us_cost_seconds_and_no_more(monkeypatch):
    monkeypatch.setattr(reading, "FEED_TAKE_S", 0.05)
    monkeypatch.setattr(reading, "FEED_GATHER_S", 0.1)
    on = board(**{f"p{k}": 3600.0 + k for k in range(500)})
    collected(on)
    assert 8 <= len(on.proposals.taken) <= 8 * 8


async def test_memory_of_what_was_handed_out_is_bounded(monkeypatch):
    monkeypatch.setattr(memory, "MAX_REMEMBERED", 10)
    on = board(p1=of("p1", *[f"f{k}" for k in range(30)]))
    one = Solver(on)
    await one.collect()
    assert len(one.side._handed_out) == 10


async def given(*rounds, keeps=True):
    """The feeds of p1 and p2 after these groups were given, a tuple a round."""
    on = FakeBoard()
    for topic in ("p1", "p2"):
        on.topics[topic] = FakeFeed()
        on.topics[topic].keeps = keeps
    one = Solver(on)
    for groups in rounds:
        await one.give(*groups)
    return on.topics["p1"].published, on.topics["p2"].published


def test_each_proposer_is_told_of_its_own_proposals():
    f, g = proposal("f", "p1"), proposal("g", "p2")
    of_g = attempts(g, (1.0, 0.6, 1.0), masked=[1])
    one, two = run(lambda: given([attempts(f, (0.25, None)), of_g, attempts(None)]))
    assert one == [[results(f.proposal_id, (0.25, 0.0), (0.25, -1.0))]]
    assert two == [[results(g.proposal_id, (1.0, 1.0), (1.0, 1.0))]]


@pytest.mark.parametrize(
    "groups",
    [
        [],
        [attempts(None)],
        [attempts(proposal("f", "p1"), external=True)],
        [attempts(proposal("f", "p1"), scored=False)],
        [attempts(proposal("f", "p1"), masked=[1])],
        [attempts(proposal("f", "p1", question=""))],
    ],
    ids=["none", "another task", "a peer's", "an outage", "masked but for one", "without a name"],
)
def test_of_other_groups_nobody_is_told(groups):
    assert run(lambda: given(groups)) == ([], [])


def test_feedback_goes_on_in_every_later_record_and_the_first_word_stays():
    f, g = proposal("f", "p1"), proposal("g", "p1")
    rounds = [[attempts(f, (1.0, 0.0))], [attempts(g), attempts(f, (0.0, 0.0))], [attempts(f, (0.5, 0.5))]]
    first, second = run(lambda: given(*rounds))[0]  # the third round has nothing new
    assert [one.name for one in first] == [f.proposal_id]
    assert [one.name for one in second] == [g.proposal_id, f.proposal_id]
    assert second[1].p_correct == (1.0, 0.0)


def test_a_record_has_the_last_64_and_the_newest_first():
    rounds = [[attempts(proposal(f"f{k}", "p1")) for k in range(100)]]
    ((record,), _) = run(lambda: given(*rounds))
    assert [one.name for one in record] == [proposal(f"f{k}").proposal_id for k in range(99, 35, -1)]


async def test_feedback_that_nobody_keeps_is_kept_here_and_published_with_the_next(caplog):
    on = FakeBoard()
    feed = on.feedback_feed("p1")
    feed.keeps = False
    one = Solver(on)
    await one.give(attempts(proposal("f", "p1")))
    feed.keeps = True
    await one.give()
    await one.give()
    assert len(feed.published) == 2
    assert "no node keeps 1 of 1" in caplog.text


async def test_a_publication_that_hangs_is_given_up_and_tried_again(monkeypatch):
    monkeypatch.setattr(proposals, "GIVE_S", 0.05)
    on = FakeBoard()
    feed = on.feedback_feed("p1")
    keep = feed.publish

    async def never(dht, record):
        await asyncio.sleep(3600)

    feed.publish = never
    one = Solver(on)
    await one.give(attempts(proposal("f", "p1")))
    feed.publish = keep
    monkeypatch.undo()
    await one.give()
    assert len(feed.published) == 1


async def test_what_cannot_be_sent_costs_itself_only(caplog):
    on = FakeBoard()
    feed = on.feedback_feed("p1")
    bad = proposal("bad", "p1").proposal_id

    def pack(items):
        if len(items) > 2 or any(item.name == bad for item in items):
            raise WireError(Reason.OVERSIZED, "too large")
        return list(items)

    feed.pack = pack
    await Solver(on).give(*[attempts(proposal(name, "p1")) for name in ("f", "g", "bad", "h")])
    assert [[one.name for one in record] for record in feed.published] == [
        [proposal("h").proposal_id, proposal("g").proposal_id]
    ]
    assert "not published: oversized" in caplog.text


async def test_proposers_that_we_have_answered_are_forgotten_in_the_end():
    one = Solver(FakeBoard())
    for k in range(200):
        await one.give(attempts(proposal("f", f"p{k}")))
    assert list(one.side._feedback) == [f"p{k}" for k in range(136, 200)]


def test_a_node_without_a_network_has_no_proposals_and_tells_nobody():
    alone, proposer = solo.Solo(), solo.Solo()
    assert (alone.collect(), alone.give([attempts(proposal("f"))]), alone.take_rejected()) == ((), None, {})
    proposer.remember([proposal("f")])
    assert (proposer.publish([proposal("f")]), proposer.collect()) == (None, ())
    assert (proposer.take_rejected(), proposer.status()) == ({}, "")

"""What a hostile group costs its author: an address that is surely the author's loses its turns, and nobody else's."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from codezero.network.genrl import GenrlBoard
from codezero.network.gossip import ROUNDS_OUT
from codezero.network.native import NativeBoard
from codezero.types import Refusal, RoundId, ScoredGroup
from tests.unit.network.dht.memory_p2p import MemoryNetwork, exchange, publish
from tests.unit.network.fake_board import Board, gossip, of
from tests.unit.network.test_genrl_board import shows as shows_genrl
from tests.unit.network.test_genrl_board import swarm as genrl_swarm
from tests.unit.network.test_genrl_board import unsigned
from tests.unit.network.test_native_board import shows as shows_native
from tests.unit.network.test_native_board import signed
from tests.unit.network.wire_builders import SWARM, bin_, group, identity

ALICE, BOB = (identity(name).peer_id for name in ("alice", "bob"))
ROUND = RoundId(number=7)


def refused(group, refusal=Refusal.HOSTILE, external=True):
    return ScoredGroup(group=group, verdicts=(), rewards=(), external=external, refused=refusal)


def two_rounds(board, refusal=Refusal.HOSTILE, external=True, between=1):
    """What is handed out after a first group of `mallory` was refused so many rounds before."""

    async def scenario():
        one = gossip(board)
        first = await exchange(one, 1)
        one.note([refused(found, refusal, external) for found in first.external if found.peer_id == "mallory"])
        for number in range(2, 2 + between):
            board.publications = {name: of(name, f"{name} {number}") for name in board.publications}
            found = await exchange(one, number)
        return sorted(one.peer_id for one in found.external), found.rejected

    return asyncio.run(scenario())


def test_the_address_of_a_hostile_group_loses_its_turns_for_a_number_of_rounds():
    board = Board(mallory=of("mallory", "bad"), twin=of("twin", "one"), honest=of("honest", "two"))
    board.addresses = {"mallory": "6.6.6.6", "twin": "6.6.6.6"}
    assert two_rounds(board) == (["honest"], (("mallory", "hostile_address"), ("twin", "hostile_address")))


def test_and_has_them_again_afterwards():
    assert two_rounds(Board(mallory=of("mallory", "bad")), between=ROUNDS_OUT)[0] == []
    assert two_rounds(Board(mallory=of("mallory", "bad")), between=ROUNDS_OUT + 1)[0] == ["mallory"]


@pytest.mark.parametrize(
    "case", ["an address that others tell of", "an unsigned group", "an unread group", "an unscored group", "our own"]
)
def test_nobody_is_silenced_by(case):
    board = Board(mallory=of("mallory", "bad"))
    if case == "an address that others tell of":
        board.told_of = {"mallory"}
    if case == "an unsigned group":
        board.publications = {"mallory": [replace(one, signed=False) for one in of("mallory", "bad")]}
    refusals = {"an unread group": Refusal.UNREAD, "an unscored group": None}
    found, rejected = two_rounds(board, refusals.get(case, Refusal.HOSTILE), external=case != "our own")
    assert (found, rejected) == (["mallory"], ())


@pytest.mark.parametrize(
    ("address", "is_direct"),
    [("10.0.0.9", True), ("10.0.0.9/tcp/1/p2p/QmRelay/p2p-circuit", False)],
    ids=["direct", "through a relay"],
)
async def test_whoever_is_behind_a_relay_has_no_certain_address(address, is_direct):
    network = MemoryNetwork()
    reader, alice = await network.dht("reader"), await network.dht("alice", address=address)
    await reader.meet(alice.p2p.peer_id)
    board = NativeBoard(SWARM, identity("alice"), "0" * 16, 2)
    assert await publish(board, alice, ROUND, [group(ALICE)], 60.0)
    (notice,) = (await NativeBoard(SWARM, identity("reader"), "0" * 16, 2).look(reader, ROUND)).notices
    assert notice.is_direct is is_direct


async def test_an_address_that_replicas_agree_upon_is_not_for_sure_the_authors():
    reader, *liars = await MemoryNetwork().swarm("reader", "one", "two")
    for liar in liars:
        shows_native(liar, [(BOB, signed("bob"))], {BOB: "10.0.0.1"})
    (notice,) = (await NativeBoard(SWARM, identity("reader"), "0" * 16, 2).look(reader, ROUND)).notices
    assert not notice.is_direct


async def test_what_genrls_nodes_publish_unsigned_counts_as_unsigned():
    reader, replica, _ = await genrl_swarm("reader", "replica", "bob")
    shows_genrl(replica, [(BOB, bin_(unsigned("one")))])
    board = GenrlBoard(SWARM, identity("reader"), "0" * 16, 2)
    (notice,) = (await board.look(reader, ROUND)).notices
    (found,), _ = await board.take(reader, notice)
    assert notice.is_direct
    assert not found.signed

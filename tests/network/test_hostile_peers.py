"""Two honest nodes among hostile ones, by name, over real daemons: the round goes on and every drop has its reason."""

from __future__ import annotations

import itertools

import pytest

from codezero.network import directory, wire
from codezero.types import RoundId
from tests.network.hostile import answers, shows, signed
from tests.network.nodes import exchange_all, live_swarm
from tests.processes import wait_until
from tests.unit.network.dht.memory_p2p import publish
from tests.unit.network.wire_builders import group

ROUNDS = itertools.count(1)


class Trio:
    """Alice and bob are honest. Mallory is a node like any other, so a third of all is kept by her."""

    def __init__(self, swarm) -> None:
        self.mallory = swarm.node("mallory")
        self.alice = swarm.node("alice", self.mallory)
        self.bob = swarm.node("bob", self.mallory)
        nodes = (self.mallory, self.alice, self.bob)
        for node in nodes:
            node.wait_for(*[other for other in nodes if other is not node])
        self._find = self.mallory.dht.p2p._client.control.unary_handlers["DHTProtocol.rpc_find"]

    def behave(self) -> None:
        """Mallory answers as others do, and is their neighbour again."""
        self.mallory.dht.p2p._client.control.unary_handlers["DHTProtocol.rpc_find"] = self._find

        def is_back() -> bool:
            self.mallory.link.run(self.mallory.dht.look_around())
            return all(self.mallory.peer_id in node.dht.neighbours() for node in (self.alice, self.bob))

        wait_until(is_back)

    def play(self) -> set[str]:
        """A round in which the honest ones must get each other's groups; why they dropped others'."""
        number = next(ROUNDS)
        for one, other in ((self.alice, self.bob), (self.bob, self.alice)):
            one.gossip._awaited = {other.peer_id: ""}  # what the others have published once they do not publish again
        rounds = exchange_all([self.alice, self.bob], number, elapsed_s=60.0)
        for one, other in ((self.alice, self.bob), (self.bob, self.alice)):
            found = [group for group in rounds[one.name].external if group.peer_id == other.peer_id]
            assert [group.task.question for group in found] == [f"task of {other.name} in round {number}"]
        return {reason for found in rounds.values() for _, reason in found.rejected}


@pytest.fixture(scope="module")
def module_trio(tmp_path_factory):
    with live_swarm(tmp_path_factory.mktemp("hostile")) as swarm:
        yield Trio(swarm)


@pytest.fixture
def trio(module_trio):
    yield module_trio
    module_trio.behave()


def test_honest_nodes_drop_nothing_of_each_other(trio):
    assert trio.play() == set()


def test_a_forged_signature_that_a_replica_makes_up_is_dropped(trio):
    """`tests/unit/network/test_native_board.py` has more that it may make up."""
    shows(trio.mallory, [(trio.alice.peer_id, signed(trio.alice)[:-1] + b"\0")])
    assert "bad_signature" in trio.play()


def test_a_group_of_the_wrong_size_is_dropped(trio):
    mallory = trio.mallory
    seven = group(mallory.peer_id, "seven", texts=[str(k) for k in range(7)])
    assert mallory.link.run(publish(mallory.board, mallory.dht, RoundId(number=0), [seven], 600.0))
    assert trio.play() == {"group_size"}


def test_a_replica_that_sends_junk_is_passed_over(trio):
    for raw in (b"", b"\xff" * 1000, b"\xff" * (3 << 20)):
        answers(trio.mallory, "find", raw)
        trio.play()


def test_a_replica_that_never_answers_is_passed_over(trio):
    answers(trio.mallory, "find", None)
    trio.play()
    trio.play()


def test_the_swarm_has_survived_all_that(trio):
    assert trio.play() == set()
    key = directory.directory_key("swarm-a", wire.ROLLOUTS, "")
    assert len(trio.alice.link.run(trio.alice.dht.read(key))) >= 2

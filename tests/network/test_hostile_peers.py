"""Two honest nodes among hostile ones, by name, over real daemons: the round goes on and every drop has its reason."""

from __future__ import annotations

import itertools

import pytest
import zstandard

from codezero.network import directory, wire
from codezero.types import RoundId
from tests.network.hostile import answers, publishes_body, shows, signed
from tests.network.nodes import Node, exchange_all, live_swarm, sources
from tests.processes import wait_until
from tests.unit.network.dht.memory_p2p import publish
from tests.unit.network.wire_builders import group

ROUNDS = itertools.count(1)


class Trio:
    """Alice and bob are honest. Mallory is a node like any other, so a third of all is kept by her."""

    def __init__(self, swarm) -> None:
        self.mallory = swarm.node("mallory")
        self.banned = swarm.node("banned", self.mallory)
        banned = {"banned_peers": [self.banned.peer_id], "num_external": 16}
        self.alice = swarm.node("alice", self.mallory, **banned)
        self.bob = swarm.node("bob", self.mallory, **banned)
        nodes = (self.mallory, self.banned, self.alice, self.bob)
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
        assert not any(self.banned.peer_id in sources(found) for found in rounds.values())
        self.last = rounds
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


@pytest.mark.parametrize(
    ("content", "reason"),
    [(lambda t: signed(t.alice)[:-1] + b"\0", "bad_signature"), (lambda t: b"\x02" + b"x" * 200_000, "oversized")],
    ids=["forged signature", "giant"],
)
def test_what_a_replica_makes_up_is_dropped(trio, content, reason):
    """`tests/unit/network/test_native_board.py` has more that it may make up."""
    shows(trio.mallory, [(trio.alice.peer_id, content(trio))])
    assert reason in trio.play()


def publishes(node: Node, *groups) -> None:
    """As a codezero node does, with groups that one would not publish."""
    assert node.link.run(publish(node.board, node.dht, RoundId(number=0), groups, 600.0))


def test_a_group_of_the_wrong_size_is_dropped(trio):
    publishes(trio.mallory, group(trio.mallory.peer_id, "seven", texts=[str(k) for k in range(7)]))
    assert trio.play() == {"group_size"}


def test_a_group_sent_twice_is_dropped_once(trio):
    publishes(trio.mallory, *[group(trio.mallory.peer_id, "twice")] * 2)
    assert trio.play() == {"duplicate"}
    assert [one.task.question for one in trio.last["alice"].external].count("twice") == 1


def test_own_groups_that_come_back_under_another_name_are_dropped(trio):
    trio.play()
    publishes(trio.mallory, *trio.last["alice"].local)
    assert "duplicate" in trio.play()
    assert trio.mallory.peer_id not in sources(trio.last["alice"])


def test_a_copy_of_another_peers_group_is_used_once(trio):
    trio.play()
    publishes(trio.mallory, *trio.last["bob"].local)
    assert "duplicate" in trio.play()
    assert trio.mallory.peer_id not in sources(trio.last["alice"])


def test_a_banned_peer_is_dropped_and_counted(trio):
    publishes(trio.banned, group(trio.banned.peer_id, "good otherwise"))
    assert trio.play() == {"banned"}


def test_a_publication_older_than_the_window_is_stale(trio):
    late = signed(trio.mallory, body=b"nobody has this")
    for _ in range(2):
        trio.play()
    shows(trio.mallory, [(trio.mallory.peer_id, late)])
    assert "stale" in trio.play()
    trio.behave()
    assert "stale" not in trio.play()  # counted once


def test_a_body_that_is_nowhere_is_unavailable(trio):
    shows(trio.mallory, [(trio.mallory.peer_id, signed(trio.mallory, body=b"nobody has this either"))])
    assert "unavailable" in trio.play()


@pytest.mark.parametrize(
    ("body", "reason"),
    [(zstandard.compress(b"\x91" * 100_000), "malformed"), (zstandard.compress(b"\0" * (64 << 20)), "oversized")],
    ids=["deep nesting", "zip bomb"],
)
def test_a_signed_body_that_cannot_be_read_is_dropped(trio, body, reason):
    """`tests/unit/network/test_native_bodies.py` has more of them."""
    publishes_body(trio.mallory, body)
    assert reason in trio.play()


def test_a_replica_that_sends_junk_is_passed_over(trio):
    for raw in (b"", b"\xff" * 1000, b"\xff" * (3 << 20)):
        answers(trio.mallory, "find", raw)
        trio.play()


def test_a_replica_that_never_answers_is_passed_over(trio):
    answers(trio.mallory, "find", None)
    trio.play()
    trio.play()


def test_a_replica_that_shows_thousands_of_forged_entries_hides_nobody(trio):
    forged = [(f"Qm{number}", signed(trio.mallory)) for number in range(3000)]
    shows(trio.mallory, [*forged, (trio.bob.peer_id, b"forged")])
    assert trio.play() >= {"wrong_peer"}
    assert len(trio.last["alice"].rejected) <= 1000


def test_false_owners_do_not_move_an_honest_peer_to_another_address(trio):
    trio.play()
    replicas = trio.alice.link.run(trio.alice.dht.read(directory.directory_key("swarm-a", wire.ROLLOUTS, "")))
    entries = {place: entry.value for shown in replicas for place, entry in shown.items()}
    shows(trio.mallory, [*entries.items()], dict.fromkeys(entries, "6.6.6.6"))
    trio.play()
    assert {one.address for found in trio.last.values() for one in found.external} == {"127.0.0.1"}


def test_the_swarm_has_survived_all_that(trio):
    assert trio.play() <= {"banned", "stale", "unavailable"}
    key = directory.directory_key("swarm-a", wire.ROLLOUTS, "")
    assert len(trio.alice.link.run(trio.alice.dht.read(key))) >= 2

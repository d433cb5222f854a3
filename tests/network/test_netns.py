"""Several hosts: addresses that differ, a cable pulled and plugged in again, a machine that goes down and comes up."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from tests.network.hosts import HostNode, NoNamespaces, hosts

pytestmark = pytest.mark.slow


class Machines:
    """Three hosts with a node each; the first is the others' bootnode."""

    def __init__(self, stack: ExitStack, folder) -> None:
        self._stack, self._folder = stack, folder
        self.hosts = stack.enter_context(hosts(3))
        self.nodes: list[HostNode] = []
        for place in range(3):
            self.nodes.append(self.start(place))

    def start(self, place: int) -> HostNode:
        bootnodes = [node.address for node in self.nodes[:1]] if place else []
        node = HostNode(self.hosts[place], self._folder / f"{place}.pem", *bootnodes)
        self._stack.callback(node.kill)
        return node


@pytest.fixture(scope="module")
def machines(tmp_path_factory):
    with ExitStack() as stack:
        try:
            yield Machines(stack, tmp_path_factory.mktemp("hosts"))
        except NoNamespaces as error:
            pytest.skip(f"no network namespaces on this machine: {error}")


def test_nodes_of_three_hosts_exchange_and_see_each_others_addresses(machines):
    first, second, third = machines.nodes
    assert first.hears(second, third) == {"10.77.0.2": "10.77.0.2", "10.77.0.3": "10.77.0.3"}
    assert second.hears(first, third) == {"10.77.0.1": "10.77.0.1", "10.77.0.3": "10.77.0.3"}
    assert third.hears(first, second) == {"10.77.0.1": "10.77.0.1", "10.77.0.2": "10.77.0.2"}


def test_both_sides_of_a_partition_go_on_alone_and_it_heals(machines):
    first, second, third = machines.nodes
    third.host.is_connected(False)
    quiet = 0
    for found in third.rounds():
        quiet = quiet + 1 if not found["external"] else 0
        if quiet == 3:
            break
    assert quiet == 3
    first.hears(second)
    second.hears(first)
    third.host.is_connected(True)
    third.hears(first, second)
    first.hears(third)
    second.hears(third)


def test_a_machine_that_goes_down_in_a_round_and_comes_up_takes_part_again(machines):
    first, second, third = machines.nodes
    second.hears(third)
    third.kill()
    for place, found in enumerate(second.rounds()):  # the others go on
        if place >= 2 and {peer_id for peer_id, *_ in found["external"]} == {first.peer_id}:
            break
    machines.nodes[2] = again = machines.start(2)
    assert again.peer_id == third.peer_id
    again.hears(first, second)
    first.hears(again)
    assert second.hears(again) == {"10.77.0.3": "10.77.0.3"}


def test_a_bootnode_that_goes_down_is_missed_by_nobody_and_found_when_it_is_back(machines):
    first, second, third = machines.nodes
    first.kill()
    second.hears(third)
    third.hears(second)
    machines.nodes = []
    machines.nodes = [machines.start(0), second, third]
    for node in machines.nodes:
        node.hears(*[other for other in machines.nodes if other is not node])

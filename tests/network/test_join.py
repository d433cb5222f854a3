"""network.join: a node's key, connection and gossip from its configuration."""

from __future__ import annotations

import io
import socket
from contextlib import ExitStack

import pytest

from codezero.config import Network, SwarmConfig
from codezero.errors import IdentityError, NetworkError
from codezero.network.join import join
from codezero.network.solo import Solo
from codezero.runtime.console import Console
from codezero.types import RoundId
from tests.network.nodes import live_swarm
from tests.processes import wait_until
from tests.unit.network.wire_builders import group


@pytest.fixture
def stack(tmp_path):
    with live_swarm(tmp_path), ExitStack() as made:  # which looks for daemons that are left
        yield made


def joined(stack: ExitStack, tmp_path, **settings):
    """Peer id, gossip, and what the user sees."""
    seen = io.StringIO()
    defaults = {
        "network": Network.native,
        "listen": ["/ip4/127.0.0.1/tcp/0"],
        "identity_path": str(tmp_path / "swarm.pem"),
        "num_external": 2,
    }
    place = join(SwarmConfig(**{**defaults, **settings}), 2, tmp_path, Console(seen), stack, needs_name=False)
    return place.peer_id, place.gossip(lambda task: True, lambda task: None), seen.getvalue()


def test_a_node_without_a_network_needs_no_key(stack, tmp_path):
    peer_id, gossip, seen = joined(stack, tmp_path, network=Network.none)
    assert (peer_id, type(gossip), seen) == ("local", Solo, "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("network", [Network.native, Network.genrl])
def test_a_node_makes_its_key_says_where_it_is_and_exchanges(stack, tmp_path, network):
    peer_id, gossip, seen = joined(stack, tmp_path, network=network)
    key, reminder, reached = seen.splitlines()
    assert peer_id in key
    assert "codezero identity export" in reminder
    assert reached.startswith(f"swarm: codezero ({network.value}), as server, reached at /ip4/127.0.0.1/tcp/")
    found = gossip.exchange(RoundId(number=1), [group(peer_id)], 0.0)
    assert (len(found.local), found.network) == (1, "nobody else here yet")


def test_two_joined_nodes_exchange_and_remember_each_other(stack, tmp_path):
    folders = [tmp_path / name for name in ("one", "two")]
    for folder in folders:
        folder.mkdir()
    one, gossip_1, seen = joined(stack, folders[0])
    address = seen.split("reached at ")[1].split(",")[0].strip()
    two, gossip_2, _ = joined(stack, folders[1], bootnodes=[address])
    gossip_1.exchange(RoundId(number=1), [group(one, "of one")], 0.0)
    link = gossip_2._link
    wait_until(lambda: link.run(link.dht()).num_neighbours())
    found = gossip_2.exchange(RoundId(number=1), [group(two, "of two")], 20.0)
    assert [(g.peer_id, g.task.question) for g in found.external] == [(one, "of one")]
    remembered = folders[1] / "peers.json"
    wait_until(lambda: remembered.exists() and one in remembered.read_text())


def test_a_second_live_node_with_the_same_key_is_refused_and_starts_no_daemon(stack, tmp_path):
    joined(stack, tmp_path)
    with pytest.raises(IdentityError, match="in use"):
        joined(stack, tmp_path)


def test_a_port_that_is_taken_is_one_line_and_leaves_no_daemon(stack, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(NetworkError, match=rf"does not start on /ip4/127.0.0.1/tcp/{port}.*swarm.listen"):
            joined(stack, tmp_path, listen=[f"/ip4/127.0.0.1/tcp/{port}"])


@pytest.mark.parametrize(
    ("setting", "address"),
    [
        ("listen", "/ip4/nonsense/tcp/1"),
        ("listen", "/nonsense"),
        ("listen", "/ip4/203.0.113.7/tcp/4001"),
        ("announce", "/ip4/203.0.113.7/tcp/0"),
        ("announce", "/nonsense"),
    ],
)
def test_an_address_that_cannot_be_listened_on_or_announced_is_one_line(stack, tmp_path, setting, address):
    with pytest.raises(NetworkError, match="does not start on"):
        joined(stack, tmp_path, **{setting: [address]})

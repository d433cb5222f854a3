from __future__ import annotations

import asyncio
import socket
from types import SimpleNamespace

import pytest
from hivemind.p2p import P2PDaemonError

from codezero.config import Reach, SwarmConfig
from codezero.errors import NetworkError
from codezero.network.dht import daemon
from codezero.network.dht.daemon import choose_reach, is_running, with_ports

PUBLIC = "/ip4/8.8.8.8/tcp/4001/p2p/QmA"
HOME, CLOUD = ["192.168.1.7", "127.0.0.1", "fe80::1", "02:42:ac:11:00:02"], ["10.0.0.3", "8.8.4.4"]


@pytest.mark.parametrize(
    ("settings", "own", "reach"),
    [
        ({"bootnodes": [PUBLIC]}, HOME, Reach.client),
        ({"bootnodes": [PUBLIC]}, CLOUD, Reach.server),
        ({"bootnodes": [PUBLIC]}, [*HOME, "2606:4700::1"], Reach.client),
        ({"bootnodes": [PUBLIC], "listen": ["/ip6/::/tcp/0"]}, [*HOME, "2606:4700::1"], Reach.server),
        ({"bootnodes": [PUBLIC]}, [*HOME, "100.64.0.9"], Reach.client),
        ({"bootnodes": [PUBLIC]}, [], Reach.client),
        ({"bootnodes": [PUBLIC], "announce": ["/ip4/9.9.9.9/tcp/4001"]}, HOME, Reach.server),
        ({"bootnodes": ["/dns4/boot.example.org/tcp/4001/p2p/QmA"]}, HOME, Reach.client),
        ({"bootnodes": ["/ip4/192.168.1.2/tcp/4001/p2p/QmA"]}, HOME, Reach.server),
        ({"bootnodes": ["/ip4/127.0.0.1/tcp/4001/p2p/QmA"]}, HOME, Reach.server),
        ({"bootnodes": ["/ip6/fd00::1/tcp/4001/p2p/QmA"]}, HOME, Reach.server),
        ({"bootnodes": ["/ip4/192.168.1.2/tcp/4001/p2p/QmA", PUBLIC]}, HOME, Reach.client),
        ({"bootnodes": []}, HOME, Reach.server),
        ({"bootnodes": [PUBLIC], "reach": Reach.relay}, HOME, Reach.relay),
        ({"bootnodes": [PUBLIC], "reach": Reach.server}, HOME, Reach.server),
        ({"bootnodes": [], "reach": Reach.client}, CLOUD, Reach.client),
    ],
)
def test_a_node_that_nobody_can_dial_is_a_client(settings, own, reach):
    assert choose_reach(SwarmConfig(**settings), own) is reach


@pytest.mark.parametrize(("own", "reach"), [("8.8.4.4", Reach.server), ("192.168.1.7", Reach.client)])
def test_own_addresses_are_those_of_this_machine(monkeypatch, own, reach):
    monkeypatch.setattr(daemon, "own_addresses", lambda family: [own] if family is socket.AF_INET else [])
    assert choose_reach(SwarmConfig(bootnodes=[PUBLIC])) is reach


@pytest.mark.parametrize(
    ("listen", "visible", "fixed"),
    [
        (
            ["/ip4/0.0.0.0/tcp/0"],
            ["/ip4/127.0.0.1/tcp/41/p2p/Q", "/ip4/10.0.0.3/tcp/41/p2p/Q"],
            ["/ip4/0.0.0.0/tcp/41"],
        ),
        (["/ip4/0.0.0.0/tcp/4001"], ["/ip4/127.0.0.1/tcp/4001/p2p/Q"], ["/ip4/0.0.0.0/tcp/4001"]),
        (
            ["/ip4/0.0.0.0/tcp/0", "/ip6/::/tcp/0"],
            ["/ip4/127.0.0.1/tcp/41", "/ip6/::1/tcp/61"],
            ["/ip4/0.0.0.0/tcp/41", "/ip6/::/tcp/61"],
        ),
        (
            ["/ip4/0.0.0.0/tcp/0", "/ip4/0.0.0.0/udp/0/quic-v1"],
            ["/ip4/127.0.0.1/udp/51/quic-v1", "/ip4/127.0.0.1/tcp/41"],
            ["/ip4/0.0.0.0/tcp/41", "/ip4/0.0.0.0/udp/51/quic-v1"],
        ),
        (["/ip4/0.0.0.0/tcp/0"], [], ["/ip4/0.0.0.0/tcp/0"]),
        (["/ip4/0.0.0.0/tcp/0/ws"], ["/ip4/127.0.0.1/tcp/41/ws"], ["/ip4/0.0.0.0/tcp/41/ws"]),
    ],
)
def test_a_daemon_started_anew_takes_the_ports_of_the_old_one(listen, visible, fixed):
    assert with_ports(listen, visible) == fixed


def p2p(returncode=None, reading=True, writing=True):
    def task(lives: bool):
        return SimpleNamespace(done=lambda: not lives)

    control = SimpleNamespace(_read_task=task(reading), _write_task=task(writing))
    return SimpleNamespace(_child=SimpleNamespace(returncode=returncode), _client=SimpleNamespace(control=control))


def test_a_daemon_runs_while_its_process_lives_and_hivemind_talks_with_it():
    assert is_running(p2p())
    assert not is_running(p2p(returncode=-9))
    assert not is_running(p2p(returncode=0))
    assert not is_running(p2p(reading=False))
    assert not is_running(p2p(writing=False))


def test_a_daemon_that_does_not_end_is_killed_and_leaves_no_socket(monkeypatch, tmp_path):
    monkeypatch.setattr(daemon, "DAEMON_TIMEOUT_S", 0.05)
    killed = []

    async def never():
        await asyncio.sleep(3600)

    left = tmp_path / "p2pd.sock"
    left.touch()
    child = SimpleNamespace(kill=lambda: killed.append(1))
    asyncio.run(daemon.stop(SimpleNamespace(shutdown=never, _child=child, daemon_listen_maddr={"unix": str(left)})))
    assert killed == [1]
    assert not left.exists()


@pytest.mark.parametrize("error", [ConnectionRefusedError("refused"), asyncio.IncompleteReadError(b"", 1)])
def test_a_daemon_that_dies_as_it_starts_is_said_in_one_line(error, monkeypatch, tmp_path):
    async def dies(**kwargs):
        raise error

    monkeypatch.setattr(daemon.P2P, "create", dies)
    with pytest.raises(NetworkError, match=r"does not start on /ip4/127.0.0.1/tcp/9: .* give"):
        asyncio.run(daemon.start(SwarmConfig(), Reach.server, ["/ip4/127.0.0.1/tcp/9"], tmp_path / "key"))


@pytest.mark.parametrize("address", ["", "/", "/ip4/1.2.3.4/tcp/1", "/p2p/", "/p2p/!!", "/nonsense/1/p2p/QmA"])
def test_a_malformed_address_is_an_error_that_dialling_knows(address):
    async def connect(peer_id, where):
        raise P2PDaemonError("failed to dial")

    p2p = SimpleNamespace(_client=SimpleNamespace(connect=connect))
    with pytest.raises((ValueError, *daemon.DAEMON_ERRORS)):
        asyncio.run(daemon.connect(p2p, address))

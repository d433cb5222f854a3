from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest
from hivemind.p2p import PeerID
from hivemind.utils.multiaddr import Multiaddr

from codezero.network.dht import addresses
from codezero.network.dht.addresses import AddressBook, address_group


@pytest.mark.parametrize(
    ("multiaddress", "group"),
    [
        ("/ip4/1.2.3.4/tcp/4001", "1.2.3.4"),
        ("/ip4/1.2.3.4/udp/4001/quic-v1", "1.2.3.4"),
        ("/ip6/2001:db8:1:2:3:4:5:6/tcp/4001", "2001:db8:1:2::/64"),
        ("/ip6/2001:db8:1:2:ffff::1/udp/1/quic", "2001:db8:1:2::/64"),
        ("/ip6/2001:db8:1:3::1/tcp/4001", "2001:db8:1:3::/64"),
        ("/ip6/::ffff:1.2.3.4/tcp/4001", "1.2.3.4"),
        ("/ip6/::1/tcp/1", "::/64"),
        ("/ip6zone/eth0/ip6/fe80::1/tcp/1", "fe80::/64"),
        ("/ip4/1.2.3.4/tcp/1/p2p/QmRelay/p2p-circuit", "relay 1.2.3.4"),
        ("/ip4/1.2.3.4/udp/2/quic/p2p/QmTwin/p2p-circuit", "relay 1.2.3.4"),
        ("/ip4/1.2.3.4/udp/1/quic/p2p/QmRelay/p2p-circuit/p2p/QmPeer", "relay 1.2.3.4"),
        ("/ip4/1.2.3.4/tcp/1/p2p/QmRelay/p2p-circuit/ip4/6.6.6.6/tcp/1", "relay 1.2.3.4"),
        ("/ip6/2001:db8:1:2::7/tcp/1/p2p/QmRelay/p2p-circuit", "relay 2001:db8:1:2::/64"),
        ("/dns4/example.org/tcp/1/p2p/QmRelay/p2p-circuit", "relay unknown"),
        ("/ip6/nonsense/tcp/1", "unknown"),
        ("/dns4/example.org/tcp/1", "unknown"),
        ("/unix/tmp/x", "unknown"),
        ("/ip4", "unknown"),
        ("", "unknown"),
        ("/p2p-circuit", "relay unknown"),
    ],
)
def test_one_party_has_one_group(multiaddress, group):
    assert address_group(multiaddress) == group


def peer(number: int) -> PeerID:
    return PeerID(b"\x12\x20" + number.to_bytes(32, "big"))


class Daemon:
    """Lists these connections, and counts how often it is asked."""

    def __init__(self, **connections: str) -> None:
        self.connections = {peer(int(name[1:])): [Multiaddr(text)] for name, text in connections.items()}
        self.asked = 0
        self.fails: Exception | None = None
        self.hangs = False

    async def list_peers(self):
        self.asked += 1
        if self.fails:
            raise self.fails
        if self.hangs:
            await asyncio.sleep(3600)
        return [SimpleNamespace(peer_id=who, addrs=addrs) for who, addrs in self.connections.items()]


async def test_an_address_is_what_the_connection_shows():
    book = AddressBook(Daemon(p1="/ip4/1.2.3.4/tcp/1"))
    assert await book.address_of(peer(1)) == "1.2.3.4"
    assert await book.address_of(peer(2)) == "unknown"


async def test_many_unknown_peers_do_not_make_many_questions_to_the_daemon(monkeypatch):
    monkeypatch.setattr(addresses, "REFRESH_S", 600.0)
    daemon = Daemon()
    book = AddressBook(daemon)
    for number in range(1000):
        await book.address_of(peer(number))
    assert daemon.asked == 1


async def test_a_peer_that_calls_is_worth_the_next_look_and_a_thousand_share_it():
    daemon = Daemon()
    book = AddressBook(daemon)
    await book.refresh()
    daemon.connections = {peer(number): [Multiaddr("/ip4/1.2.3.4/tcp/1")] for number in range(1000)}
    found = await asyncio.gather(*[book.address_of(peer(number), calling=True) for number in range(1000)])
    assert set(found) == {"1.2.3.4"}
    assert daemon.asked == 2


async def test_a_peer_keeps_its_address_for_a_while_after_its_connection_has_ended(monkeypatch):
    monkeypatch.setattr(addresses, "MAX_REMEMBERED", 2)
    daemon = Daemon(p1="/ip4/1.1.1.1/tcp/1", p2="/ip4/2.2.2.2/tcp/1")
    book = AddressBook(daemon)
    await book.refresh()
    del daemon.connections[peer(1)]
    assert set(await book.refresh()) == {peer(2).to_base58()}
    assert book.seen(peer(1)) == "1.1.1.1"
    daemon.connections[peer(3)] = [Multiaddr("/ip4/3.3.3.3/tcp/1")]
    await book.refresh()
    assert [book.seen(peer(number)) for number in (1, 2, 3)] == ["unknown", "2.2.2.2", "3.3.3.3"]


async def test_a_peer_that_comes_back_from_elsewhere_has_its_new_address():
    daemon = Daemon(p1="/ip4/1.1.1.1/tcp/1")
    book = AddressBook(daemon)
    await book.refresh()
    daemon.connections[peer(1)] = [Multiaddr("/ip4/9.9.9.9/tcp/1")]
    await book.refresh()
    assert await book.address_of(peer(1)) == "9.9.9.9"


@pytest.mark.parametrize("raw", [b"\xff" * 7, b"\x04\x01", b"", b"\x7f"])
async def test_an_address_that_hivemind_cannot_read_is_unknown(raw):
    daemon = Daemon(p1="/ip4/1.1.1.1/tcp/1")
    daemon.connections[peer(2)] = [Multiaddr(raw)]
    daemon.connections[peer(3)] = []
    book = AddressBook(daemon)
    await book.refresh()
    assert book.seen(peer(1)) == "1.1.1.1"
    assert book.seen(peer(2)) in ("unknown", "0.0.0.1")
    assert book.seen(peer(3)) == "unknown"


@pytest.mark.parametrize("error", [ConnectionRefusedError(), FileNotFoundError(), asyncio.IncompleteReadError(b"", 1)])
async def test_a_dead_daemon_makes_peers_unknown_and_is_reported_to_who_asks_for_it(error):
    daemon = Daemon(p1="/ip4/1.1.1.1/tcp/1")
    book = AddressBook(daemon)
    await book.refresh()
    daemon.fails = error
    assert await book.address_of(peer(1)) == "1.1.1.1"
    assert await book.address_of(peer(2), calling=True) == "unknown"
    with pytest.raises(type(error)):
        await book.refresh()


async def test_a_daemon_that_hangs_is_as_good_as_dead(monkeypatch):
    monkeypatch.setattr(addresses, "DAEMON_TIMEOUT_S", 0.05)
    daemon = Daemon()
    daemon.hangs = True
    book = AddressBook(daemon)
    assert await book.address_of(peer(1), calling=True) == "unknown"
    with pytest.raises(asyncio.TimeoutError):
        await book.refresh()

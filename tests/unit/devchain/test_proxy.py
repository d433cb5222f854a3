"""The proxy in front of anvil: what it passes on, what it refuses, and that nobody's request harms it."""

import http.client
import json
import socket
from urllib.parse import urlsplit

import pytest
import requests

from codezero.devchain.proxy import MAX_BODY_BYTES, METHODS, Proxy
from codezero.errors import ChainError
from codezero.ledger.faults import Reverted
from tests.chains import ACCOUNTS, DevChain

CHAIN_ID = {"jsonrpc": "2.0", "id": 7, "method": "eth_chainId", "params": []}
ANSWER = {"jsonrpc": "2.0", "id": 7, "result": "0x7a69"}


@pytest.fixture(scope="module")
def proxied(dev_chain):
    """The chain of the tests, as other machines see it."""
    with Proxy("127.0.0.1", 0) as proxy:
        proxy.start(urlsplit(dev_chain.url).port)
        yield DevChain(f"http://127.0.0.1:{proxy.server_address[1]}")
        proxy.shutdown()


def post(chain, body, content_type="application/json"):
    data = body if isinstance(body, bytes) else json.dumps(body)
    return requests.post(chain.url, data=data, headers={"content-type": content_type}, timeout=30)


def test_an_owner_and_nodes_can_do_all_that_they_do(proxied):
    client = proxied.client()
    contract = client.contract("SwarmCoordinator", proxied.coordinator())
    client.transact(contract, "registerPeer(string)", "Qm-proxied")
    seen = proxied.contract("SwarmCoordinator", contract.address)
    assert seen.functions.getEoa(["Qm-proxied"]).call() == [ACCOUNTS[0].address]
    assert len(seen.events.PeerRegistered().get_logs(from_block=0)) == 1
    with proxied.web3.batch_requests() as batch:
        batch.add(seen.functions.currentRound())
        batch.add(seen.functions.currentStage())
        assert batch.execute() == [0, 0]
    with pytest.raises(Reverted, match="the contract refuses registerPeer: PeerIdAlreadyRegistered"):
        client.transact(contract, "registerPeer(string)", "Qm-proxied")


@pytest.mark.parametrize(
    "method",
    [
        *("anvil_setBalance", "anvil_impersonateAccount", "anvil_dumpState", "evm_snapshot", "evm_mine"),
        *("hardhat_reset", "eth_sendTransaction", "eth_sign", "eth_sendUnsignedTransaction", "personal_sign"),
        *("debug_traceTransaction", "ots_getApiLevel", "txpool_content", "eth_newFilter", "ETH_CHAINID", ""),
    ],
)
def test_nothing_can_be_done_that_was_not_signed(proxied, method):
    refused = {"jsonrpc": "2.0", "id": 7, "error": {"code": -32601, "message": f"{method!r} is not available here"}}
    assert post(proxied, CHAIN_ID | {"method": method}).json() == refused
    assert post(proxied, [CHAIN_ID, CHAIN_ID | {"method": method}]).json() == refused
    assert not [name for name in METHODS if not name.startswith(("eth_", "net_", "web3_"))]


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"{", b"\xff\xfe", b"null", b'"eth_chainId"', b'{"id": 1, "method": 5}', b'{"method": "eth_chainId"}'),
        *(b'{"id": {}, "method": "eth_chainId"}', b'{"id": 1, "method": "eth_chainId", "params": {}}'),
        *(b"[" * 100_000, b"1" * 100_000, b'{"id": NaN, "method": "eth_chainId"}'),
        json.dumps([CHAIN_ID, 5]).encode(),
    ],
    ids=lambda body: body[:40].decode("latin-1"),
)
def test_what_is_no_request_is_told_so_and_the_proxy_lives_on(proxied, body):
    response = post(proxied, body)
    assert (response.status_code, response.json()["error"]["code"]) == (200, -32600)
    assert post(proxied, CHAIN_ID).json() == ANSWER


def test_anvil_reads_what_was_checked(proxied):
    """Of two fields with one name the last counts, and no other field goes on."""
    twice = b'{"id": 7, "method": "evm_mine", "method": "eth_chainId", "extra": 1, "params": []}'
    assert post(proxied, twice).json() == ANSWER
    assert post(proxied, twice.replace(b"eth_chainId", b"evm_mine")).json()["error"]["code"] == -32601


def test_a_web_page_cannot_post(proxied):
    for content_type in ("text/plain", "application/x-www-form-urlencoded"):
        assert post(proxied, CHAIN_ID, content_type).status_code == 415
    assert requests.options(proxied.url, timeout=30).status_code == 501
    assert requests.get(proxied.url, timeout=30).status_code == 501


@pytest.mark.parametrize(
    ("length", "status"),
    [(str(MAX_BODY_BYTES + 1), 413), ("9" * 12, 413), *((text, 411) for text in (None, "", "-5", "٣", "9" * 5000))],
)
def test_a_body_that_is_huge_or_of_unknown_length_is_refused_unread(proxied, length, status):
    where = urlsplit(proxied.url)
    connection = http.client.HTTPConnection(where.hostname, where.port, timeout=30)
    connection.putrequest("POST", "/", skip_accept_encoding=True)
    connection.putheader("Content-Type", "application/json")
    if length is not None:
        connection.putheader("Content-Length", length.encode())
    connection.endheaders()
    response = connection.getresponse()
    assert (response.status, response.getheader("connection")) == (status, "close")
    connection.close()


def test_a_connection_is_kept_for_many_requests(proxied):
    with requests.Session() as session:
        ports = set()
        for _ in range(3):
            response = session.post(proxied.url, json=CHAIN_ID, timeout=30, stream=True)
            ports.add(response.raw.connection.sock.getsockname())
            assert response.json() == ANSWER
    assert len(ports) == 1


def test_a_client_that_goes_away_takes_nothing_with_it(proxied, capfd):
    where = urlsplit(proxied.url)
    for part in (
        b"",
        b"POST / HT",
        b"POST / HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{",
    ):
        client = socket.create_connection((where.hostname, where.port), 30)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")  # a reset
        client.sendall(part)
        client.close()
    assert post(proxied, CHAIN_ID).json() == ANSWER
    assert "Traceback" not in capfd.readouterr().err


def test_a_chain_that_has_ended_is_told():
    with Proxy("127.0.0.1", 0) as proxy:
        proxy.start(1)
        response = post(DevChain(f"http://127.0.0.1:{proxy.server_address[1]}"), CHAIN_ID)
        assert response.json()["error"] == {"code": -32603, "message": "the chain does not answer"}
        proxy.shutdown()


@pytest.mark.parametrize("host", ["127.0.0.1", "nowhere.invalid"])
def test_a_port_in_use_and_a_host_that_is_none_are_told(host):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ChainError, match=rf"cannot listen on port {port} of {host} \(.*\): give another --port"):
            Proxy(host, port)

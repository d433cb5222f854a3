"""JSON-RPC over HTTP, as clients and others speak it."""

import http.client
import json
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import pytest
import requests

from codezero.devchain.evm import CallRefused
from codezero.devchain.server import MAX_BATCH, MAX_BODY_BYTES, RpcServer, answer
from codezero.errors import ChainError

CHAIN_ID = {"jsonrpc": "2.0", "id": 7, "method": "eth_chainId", "params": []}
ANSWER = {"jsonrpc": "2.0", "id": 7, "result": "0x7a69"}


def post(chain, body, content_type="application/json"):
    data = body if isinstance(body, bytes) else json.dumps(body)
    return requests.post(chain.url, data=data, headers={"content-type": content_type}, timeout=30)


def error_of(chain, method, *params):
    return post(chain, {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).json()["error"]


def test_a_request_is_answered_under_its_id(dev_chain):
    assert post(dev_chain, CHAIN_ID).json() == ANSWER
    assert post(dev_chain, CHAIN_ID | {"id": "x"}).json() == ANSWER | {"id": "x"}


def test_a_batch_is_answered_in_order_and_one_bad_request_spoils_no_other(dev_chain):
    batch = [CHAIN_ID, {"id": 8, "method": "eth_nonsense"}, 5, CHAIN_ID | {"id": 9}]
    answers = post(dev_chain, batch).json()
    assert [each.get("id") for each in answers] == [7, 8, None, 9]
    assert [each.get("error", {}).get("code") for each in answers] == [None, -32601, -32600, None]


def test_a_notification_gets_no_answer(dev_chain):
    notification = {"jsonrpc": "2.0", "method": "eth_chainId"}
    assert (post(dev_chain, notification).status_code, post(dev_chain, notification).content) == (204, b"")
    assert post(dev_chain, [notification, CHAIN_ID]).json() == [ANSWER]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", -32700),
        (b"{", -32700),
        (b"\xff\xfe", -32700),
        (b"[" * 100_000, -32700),
        (b"1" * 100_000, -32700),
        (b"[]", -32600),
        (b"null", -32600),
        (b'"eth_chainId"', -32600),
        (b'{"id": 1, "method": 5}', -32600),
        (b'{"id": {}, "method": "eth_chainId"}', -32600),
        (b'{"id": 1, "method": "eth_chainId", "params": {}}', -32600),
        (b'{"id": 1, "method": "eth_chainId", "params": [1]}', -32602),
        (b'{"id": 1, "method": "__init__"}', -32601),
        (b'{"id": 1, "method": "call", "params": ["eth_chainId", []]}', -32601),
        (json.dumps([CHAIN_ID] * (MAX_BATCH + 1)).encode(), -32600),
    ],
    ids=lambda value: value[:24].decode("latin-1") if isinstance(value, bytes) else str(value),
)
def test_what_is_no_request_is_told_so_and_the_server_lives_on(dev_chain, body, code):
    response = post(dev_chain, body)
    assert response.status_code == 200
    assert response.json()["error"]["code"] == code
    assert post(dev_chain, CHAIN_ID).json() == ANSWER


def test_a_web_page_cannot_post(dev_chain):
    for content_type in ("text/plain", "application/x-www-form-urlencoded"):
        assert post(dev_chain, CHAIN_ID, content_type).status_code == 415
    assert requests.options(dev_chain.url, timeout=30).status_code == 501
    assert requests.get(dev_chain.url, timeout=30).status_code == 501


def test_a_huge_body_is_refused_unread(dev_chain):
    for length in (str(MAX_BODY_BYTES + 1), "9" * 12):
        with socket.create_connection((urlsplit(dev_chain.url).hostname, urlsplit(dev_chain.url).port), 30) as client:
            head = f"Host: x\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
            client.sendall(b"POST / HTTP/1.1\r\n" + head.encode())
            response = http.client.HTTPResponse(client)
            response.begin()
            assert response.status == 413
            assert response.getheader("connection") == "close"


@pytest.mark.parametrize("length", [None, "", "-5", "٣", "1e3", "9" * 5000])
def test_a_body_of_unknown_length_is_refused(dev_chain, length):
    where = urlsplit(dev_chain.url)
    connection = http.client.HTTPConnection(where.hostname, where.port, timeout=30)
    connection.putrequest("POST", "/", skip_accept_encoding=True)
    connection.putheader("Content-Type", "application/json")
    if length is not None:
        connection.putheader("Content-Length", length.encode())
    connection.endheaders()
    assert connection.getresponse().status == 411
    connection.close()


def test_a_connection_is_kept_for_many_requests(dev_chain):
    where = urlsplit(dev_chain.url)
    connection = http.client.HTTPConnection(where.hostname, where.port, timeout=30)
    connection.connect()
    own = connection.sock.getsockname()
    for _ in range(3):
        connection.request("POST", "/", json.dumps(CHAIN_ID), {"Content-Type": "application/json"})
        assert json.loads(connection.getresponse().read()) == ANSWER
    assert connection.sock.getsockname() == own
    connection.close()


def test_requests_are_carried_out_one_at_a_time():
    running, most = [], []

    def slow(method, params):
        running.append(1)
        most.append(len(running))
        time.sleep(0.002)
        running.pop()
        return params[0]

    server = RpcServer("127.0.0.1", 0, slow)
    server.start()
    url = f"http://127.0.0.1:{server.port}"

    def ask(number):
        body = {"jsonrpc": "2.0", "id": number, "method": "echo", "params": [number]}
        return requests.post(url, json=body, timeout=30).json()

    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(ask, range(64)))
    server.close()
    assert [(each["id"], each["result"]) for each in answers] == [(number, number) for number in range(64)]
    assert set(most) == {1}


def test_a_client_that_goes_away_takes_nothing_with_it(dev_chain, capfd):
    where = urlsplit(dev_chain.url)
    for part in (
        b"",
        b"POST / HT",
        b"POST / HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{",
    ):
        client = socket.create_connection((where.hostname, where.port), 30)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")  # a reset
        client.sendall(part)
        client.close()
    assert post(dev_chain, CHAIN_ID).json() == ANSWER
    assert "Traceback" not in capfd.readouterr().err


def test_a_closed_server_carries_out_nothing_more():
    started, go_on, done = threading.Event(), threading.Event(), []

    def call(method, params):
        started.set()
        go_on.wait(30)
        done.append(method)
        return "0x1"

    server = RpcServer("127.0.0.1", 0, call)
    server.start()
    with requests.Session() as session, ThreadPoolExecutor(2) as pool:
        url = f"http://127.0.0.1:{server.port}"
        first = pool.submit(session.post, url, json=CHAIN_ID, timeout=30)
        started.wait(30)
        closing = pool.submit(server.close)
        time.sleep(0.05)
        assert not closing.done()
        go_on.set()
        closing.result(30)
        assert first.result(30).json()["result"] == "0x1"
        late = session.post(url, json=CHAIN_ID, timeout=30)  # on the connection that is still open
        assert late.json()["error"]["message"] == "the chain is being stopped"
        assert late.headers["connection"] == "close"
    assert len(done) == 1


def test_a_port_in_use_is_told(dev_chain):
    with pytest.raises(ChainError, match=r"cannot listen on port \d+ of 127.0.0.1 \(.*\): give another --port"):
        RpcServer("127.0.0.1", urlsplit(dev_chain.url).port, lambda method, params: None)


def test_a_host_that_is_none_is_told():
    with pytest.raises(ChainError, match=r"cannot listen on port 0 of nowhere\.invalid"):
        RpcServer("nowhere.invalid", 0, lambda method, params: None)


def test_revert_data_travels_in_the_error():
    def call(method, params):
        raise CallRefused(3, "execution reverted", "0x723dc675")

    assert json.loads(answer(json.dumps(CHAIN_ID).encode(), call)) == {
        "jsonrpc": "2.0",
        "id": 7,
        "error": {"code": 3, "message": "execution reverted", "data": "0x723dc675"},
    }


# Parameters


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("eth_getBalance", ["0x12"]),
        ("eth_getBalance", [5]),
        ("eth_getBalance", [None]),
        ("eth_getBalance", ["0x" + "zz" * 20]),
        ("eth_getBalance", ["0x" + "00" * 20, "newest"]),
        ("eth_getBalance", ["0x" + "00" * 20, {"blockNumber": "0x0"}]),
        ("eth_getBalance", ["0x" + "00" * 20, ["latest"]]),
        ("eth_getBalance", []),
        ("eth_getBalance", ["0x" + "00" * 20, "latest", "more"]),
        ("eth_getBlockByNumber", ["0x"]),
        ("eth_getBlockByNumber", ["0x" + "f" * 65]),
        ("eth_getBlockByHash", ["0x00"]),
        ("eth_getTransactionReceipt", [{}]),
        ("eth_getLogs", ["0x0"]),
        ("eth_getLogs", [{"topics": ["0x00"]}]),
        ("eth_getLogs", [{"topics": [[]] * 5}]),
        ("eth_getLogs", [{"address": [1]}]),
        ("eth_call", ["0x0"]),
        ("eth_call", [{"to": "0x1"}]),
        ("eth_call", [{"data": "1234"}]),
        ("eth_feeHistory", [0, "latest"]),
        ("eth_feeHistory", ["0xffffff", "latest"]),
        ("eth_sendRawTransaction", ["0x"]),
        ("eth_sendRawTransaction", ["hello"]),
        ("eth_sendRawTransaction", [None]),
    ],
)
def test_wrong_parameters_are_told(dev_chain, method, params):
    assert error_of(dev_chain, method, *params)["code"] == -32602


@pytest.mark.parametrize(
    "method", ["anvil_setBalance", "evm_snapshot", "eth_sendTransaction", "personal_unlockAccount"]
)
def test_nothing_can_be_done_that_was_not_signed(dev_chain, method):
    assert error_of(dev_chain, method)["code"] == -32601

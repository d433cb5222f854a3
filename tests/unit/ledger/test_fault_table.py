"""The fault table of a chain's RPC, a test a row, against a real HTTP server; what the contract refuses is in
test_delivery_chain."""

import socket
import threading
import time

import pytest

from codezero.errors import LedgerError
from codezero.ledger import abi, jsonrpc
from codezero.ledger.contract import Contract
from codezero.ledger.coordinator import Coordinator, check_round
from codezero.ledger.faults import (
    AlreadyKnown,
    InsufficientFunds,
    NoContract,
    NonceRace,
    RateLimited,
    Reverted,
    RpcBadReply,
    RpcRefused,
    RpcServerError,
    RpcTimeout,
    RpcUnreachable,
    StaleChain,
    WrongChain,
)
from codezero.ledger.http import decode
from codezero.ledger.jsonrpc import JsonRpc
from codezero.ledger.rpc import Rpc
from codezero.types import RoundId
from tests.processes import wait_until
from tests.unit.ledger.hostile_rpc import KEY, HostileRpc

ADDRESS = "0x5FbDB2315678afecb367f032d93F642f64180aa3"
ROUND = Contract(ADDRESS, abi.load("SwarmCoordinator").abi).call("currentRound()")


@pytest.fixture
def hostile(monkeypatch):
    monkeypatch.setattr(jsonrpc, "WAIT_S", 0.01)
    with HostileRpc().serving() as hostile:
        yield hostile


def rpc_at(url, **settings):
    return Rpc(JsonRpc(url, timeout_s=60.0), chain_id=7, **settings)


def read(url):
    return rpc_at(url).read([ROUND, ROUND])


def test_an_rpc_in_order_is_read_in_one_request(hostile):
    rpc = rpc_at(hostile.url, contracts=[ADDRESS])
    assert rpc.read([ROUND, ROUND]) == [(7,), (7,)]
    assert hostile.asked == [["eth_chainId", "eth_getCode", "eth_call", "eth_call"]]
    assert rpc.read([ROUND]) == [(7,)]
    assert hostile.asked[1:] == [["eth_call"]]  # the chain id is not asked for again


@pytest.mark.parametrize("url", ["http://127.0.0.1:9", "http://no-such-host.invalid"])
def test_rpc_refused_or_unknown(url):
    with pytest.raises(RpcUnreachable, match=r"cannot be reached .*ledger\.rpc_url"):
        JsonRpc(url, timeout_s=20.0, retries=0).ask([("eth_chainId", [])])


@pytest.mark.parametrize(
    ("mode", "retry_after_s"),
    [
        ("http 429", 7.0),
        ("http 429 date", 0.0),
        ("http 429 junk", None),
        ("http 429 never", None),
        ("error 429", None),
        ("error -32005", None),
    ],
)
def test_rate_limited(hostile, mode, retry_after_s):
    hostile.mode = mode
    with pytest.raises(RateLimited, match="limits the rate") as caught:
        read(hostile.url)
    assert caught.value.retry_after_s == retry_after_s
    assert len(hostile.asked) == 1  # more requests would make it worse


def test_http_500_is_asked_three_times_and_its_text_is_not_shown(hostile):
    hostile.mode = "http 500"
    with pytest.raises(RpcServerError, match="HTTP 500") as caught:
        read(hostile.url)
    assert len(hostile.asked) == 3
    assert "\x1b" not in str(caught.value)


NO_ANSWERS = ("html", "empty", "truncated", "list", "deep", "huge", "not utf-8", "null", "not hex", "number")


@pytest.mark.parametrize("mode", [*NO_ANSWERS, "wrong id", "one missing"])
def test_what_is_no_answer(hostile, mode):
    hostile.mode = mode
    with pytest.raises(RpcBadReply) as caught:
        read(hostile.url)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


def test_a_single_null_and_a_single_short_word(hostile):
    rpc = rpc_at(hostile.url)
    rpc.read([ROUND])
    for mode in ("null", "too short", "not hex"):
        hostile.mode = mode
        with pytest.raises(RpcBadReply):
            rpc.read([ROUND])
        hostile.mode = "ok"
        assert rpc.read([ROUND]) == [(7,)]


def test_answers_out_of_order_are_told_apart_by_their_ids(hostile):
    hostile.mode = "out of order"
    assert JsonRpc(hostile.url).ask([("eth_call", ["0x1"]), ("eth_call", ["0x2"])]) == ["0x1", "0x2"]


@pytest.mark.parametrize("mode", ["hang", "drip"])
def test_no_whole_answer_in_time(hostile, mode):
    hostile.mode = mode
    with pytest.raises(RpcTimeout, match=r"no complete answer in 0\.5 s"):
        JsonRpc(hostile.url, timeout_s=0.5).ask([("eth_chainId", [])])
    wait_until(lambda: hostile.asked)  # it may come late to what it was sent
    assert len(hostile.asked) == 1


def test_a_dropped_connection(hostile):
    hostile.mode = "drop"
    with pytest.raises(RpcUnreachable):
        read(hostile.url)
    assert len(hostile.asked) == 3


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        *(("http 403", "HTTP 403 no key"), ("http 404", "HTTP 404 Cannot POST"), ("redirect", "HTTP 302")),
        *(("error text", "no"), ("batch refused", "no batches")),
    ],
)
@pytest.mark.parametrize("status", [200, 413])
def test_an_rpc_that_refuses(hostile, mode, words, status):
    hostile.mode, hostile.status = mode, status
    with pytest.raises(RpcRefused, match=words):
        read(hostile.url)


def test_wrong_chain_id_and_again_after_a_fault(hostile):
    rpc = rpc_at(hostile.url)
    rpc.read([ROUND])
    hostile.mode = "http 500"
    with pytest.raises(RpcServerError):
        rpc.read([ROUND])
    hostile.mode, hostile.answers = "answers", {"eth_chainId": "0x1"}
    with pytest.raises(WrongChain, match=r"serves chain 1, not 7: correct ledger\.rpc_url"):
        rpc.read([ROUND])


def test_no_code_at_the_address(hostile):
    hostile.mode, hostile.answers = "answers", {"eth_getCode": "0x"}
    with pytest.raises(NoContract, match=rf"no contract at {ADDRESS} on chain 7: check ledger\.contract_address"):
        rpc_at(hostile.url, contracts=[ADDRESS]).read([ROUND])


@pytest.mark.parametrize(
    ("code", "message", "kind"),
    [
        (-32003, "Insufficient funds for gas * price + value", InsufficientFunds),  # anvil
        (-32000, "insufficient funds for gas * price + value: balance 0", InsufficientFunds),  # geth
        (-32003, "nonce too low", NonceRace),
        (-32000, "nonce too low: next nonce 5, tx nonce 4", NonceRace),
        (-32000, "replacement transaction underpriced", NonceRace),
        (-32000, "already known", AlreadyKnown),
        (-32000, "invalid chain id for signer: have 7 want 1", WrongChain),
        (-32000, "txpool is full", RpcRefused),
        (-32000, "transaction underpriced: gas tip cap 1, minimum needed 2", RpcRefused),
        (3, "execution reverted: insufficient balance", Reverted),
        (-32000, "execution reverted: it already exists", Reverted),
        (-32000, "execution reverted: nonce too low", Reverted),
        (429, "compute units per second exceeded", RateLimited),
    ],
)
@pytest.mark.parametrize("status", [200, 400, 413])
def test_refusals_of_a_transaction(hostile, code, message, kind, status):
    hostile.mode, hostile.status = "answers", status
    hostile.answers = {"eth_sendRawTransaction": {"error": {"code": code, "message": message}}}
    with pytest.raises(kind):
        rpc_at(hostile.url).broadcast(b"\x02")
    assert hostile.asked == [["eth_sendRawTransaction"]]


@pytest.mark.parametrize("mode", ["http 500", "drop", "html"])
def test_a_transaction_is_never_sent_twice_by_itself(hostile, mode):
    hostile.mode = mode
    with pytest.raises(LedgerError):
        rpc_at(hostile.url).broadcast(b"\x02")
    assert len(hostile.asked) == 1


def test_the_round_does_not_go_back_or_leap():
    seen = RoundId(number=100)
    check_round(None, RoundId(number=10**9), 0.0)
    check_round(seen, seen, 0.0)
    check_round(seen, RoundId(number=150), 0.0)
    check_round(seen, RoundId(number=10_000), 3600.0)
    with pytest.raises(StaleChain, match="at round 99 stage 0 and was at 100 stage 0"):
        check_round(seen, RoundId(number=99), 3600.0)
    with pytest.raises(StaleChain, match="which is impossible"):
        check_round(seen, RoundId(number=10_000), 15.0)


def test_a_round_that_no_clock_reaches_is_no_round(hostile):
    hostile.mode, hostile.answers = "answers", {"eth_call": "0x" + "ff" * 32}
    contract = Contract(ADDRESS, abi.load("SwarmCoordinator").abi)
    with pytest.raises(RpcBadReply):
        Coordinator(contract, rpc_at(hostile.url)).view("peer", ADDRESS)


@pytest.mark.parametrize("digits", [65, 5000])
def test_a_number_longer_than_any_of_a_chain_is_no_answer(hostile, digits):
    """Python converts one of 5000 digits neither to text nor to a float."""
    hostile.mode, hostile.answers = "answers", {"eth_chainId": "0x" + "f" * digits}
    with pytest.raises(RpcBadReply, match="not a valid answer"):
        read(hostile.url)


@pytest.mark.parametrize(
    "url", ["", "rpc.example", "ftp://host/", "https://user:secret@host/", "http://host:x/", "http://256.1.1.1:9"]
)
def test_an_unusable_url_is_refused_and_not_shown(url):
    with pytest.raises(LedgerError, match=r"ledger\.rpc_url is not a plain HTTP address") as caught:
        JsonRpc(url)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("mode", ["http 404", "answers"])
def test_the_key_in_a_url_is_not_shown_where_the_server_repeats_it(hostile, mode):
    hostile.mode = mode
    hostile.answers = {"eth_call": {"error": {"code": -32000, "message": f"{KEY} is over its limit"}}}
    for url in (f"{hostile.url}/v2/{KEY}", f"{hostile.url}/v2?key={KEY}"):
        with pytest.raises(RpcRefused, match=r"Cannot POST /v2/\.\.\.|\.\.\. is over its limit"):
            read(url)


def test_a_name_server_that_hangs_delays_nobody_beyond_the_timeout(monkeypatch):
    answers = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: answers.wait(60) and [])
    started_s = time.monotonic()
    with pytest.raises(RpcTimeout):
        JsonRpc("http://rpc.example", timeout_s=0.3).ask([("eth_chainId", [])])
    assert time.monotonic() - started_s < 30
    answers.set()


def test_a_transaction_s_outcome_is_looked_up_in_an_order_in_which_a_new_block_does_no_harm(hostile):
    """With the number last, a transaction mined in between would look replaced by another, and be sent again."""
    hostile.mode, hostile.answers = "answers", {"eth_getTransactionReceipt": None, "eth_getTransactionCount": "0x5"}
    assert rpc_at(hostile.url).look([ROUND], ADDRESS, ["0xaa"]) == ([(7,)], {}, 5)
    assert hostile.methods[-3:] == ["eth_getTransactionCount", "eth_getTransactionReceipt", "eth_call"]


def test_an_answer_may_be_long_but_not_deep():
    assert len(decode(b"[" + b",".join([b'{"topics": ["0x\\"["]}'] * 3000) + b"]", list)) == 3000
    for deep in (b"[" * 200, b'{"":' * 200, b'["]",' * 200, b'["\\"]",' * 200, b'["\\\\",' * 200):
        with pytest.raises(ValueError, match="more than 100 brackets within each other"):
            decode(deep, object)


def test_the_key_in_a_url_is_never_shown():
    with pytest.raises(RpcUnreachable, match="the RPC at localhost:9 ") as caught:
        JsonRpc("http://localhost:9/v2/secret?key=secret", retries=0).ask([("eth_chainId", [])])
    assert "secret" not in str(caught.value)

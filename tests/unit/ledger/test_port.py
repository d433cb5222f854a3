"""What every ledger keeps to (ports.Ledger): in a file, in a file with a clock, and on a real chain with a wallet and
through the sign-in app."""

import sqlite3
import time
from contextlib import contextmanager

import pytest
from eth_account import Account as EthAccount

from codezero.config import LedgerConfig
from codezero.ledger import delivery, jsonrpc, modal, submitter
from codezero.ledger.account import Account
from codezero.ledger.chain import ChainLedger
from codezero.ledger.coordinator import Coordinator, CoordinatorWriter
from codezero.ledger.jsonrpc import JsonRpc
from codezero.ledger.leaderboard import read_leaderboard
from codezero.ledger.local import LocalLedger
from codezero.ledger.submitter import Submitter
from codezero.types import RoundId
from tests.builders import rollout, scored
from tests.chain import new_key
from tests.processes import wait_until
from tests.sign_in import ORG_ID, SignInApp
from tests.unit.ledger.hostile_rpc import HostileRpc

ROUND_S = 0.3
TIMEOUT_S = 100.0


class Local:
    round_s = 0.0

    def __init__(self, tmp_path):
        self.path = tmp_path / "ledger.sqlite"

    def open(self):
        return LocalLedger(self.path, "peer", ["evil"], self.round_s)

    def advance(self):
        """Those of a file advance by themselves."""

    def recorded(self):
        """Total reward and votes for b, as anybody may read them."""
        places = {place.peer_id: place for place in read_leaderboard(self.path)}
        return places["peer"].reward, places["b"].wins if "b" in places else 0

    def break_down(self):
        """A file does not."""

    fail = break_down
    trouble = ""


class Clocked(Local):
    round_s = ROUND_S


class OnChain:
    def __init__(self, tmp_path, deployed, rpc):
        self.folder, self.deployed, self.hostile = tmp_path, deployed, rpc
        self.rpc = deployed.rpc(JsonRpc(rpc.url, timeout_s=TIMEOUT_S))

    def open(self):
        outbox = self.deployed.outbox(self.folder / "outbox.sqlite")
        reads = Coordinator(self.deployed.contract, self.rpc)
        followed = Submitter(outbox, reads, self.writer(), LedgerConfig(submit_period_s=0.0))
        followed.start()
        return ChainLedger(LocalLedger(self.folder / "ledger.sqlite", "peer", ["evil"]), followed, patience_s=60.0)

    def advance(self):
        self.deployed.tick()

    def recorded(self):
        return (
            self.deployed.read("getTotalRewards(string[])", ["peer"])[0],
            self.deployed.read("getTotalWins(string)", "b"),
        )

    def break_down(self):
        self.hostile.mode = "hang"


class Wallet(OnChain):
    trouble = "the RPC at 127.0.0.1"

    def fail(self):
        self.hostile.mode = "http 500"

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.account = Account(new_key(), self.rpc)
        self.deployed.chain.fund(self.account.address)

    def writer(self):
        return CoordinatorWriter(self.deployed.contract, self.account)


class Modal(OnChain):
    trouble = "the sign-in app at 127.0.0.1"

    def fail(self):
        self.app.mode = "500"

    def __init__(self, *arguments, app):
        super().__init__(*arguments)
        self.app = app

    def writer(self):
        user = {"org_id": ORG_ID, "account_address": self.app.address, "login_dir": self.folder}
        return CoordinatorWriter(self.deployed.contract, modal.app_account(proxy_url=self.app.url, **user))

    def break_down(self):
        super().break_down()
        self.app.mode = "hang"


@contextmanager
def chained(tmp_path, deployed, kind):
    with HostileRpc(behind=deployed.chain.url).serving() as rpc:
        if kind == "wallet":
            yield Wallet(tmp_path, deployed, rpc)
            return
        account = EthAccount.from_key(new_key())
        deployed.chain.fund(account.address)
        with SignInApp(deployed.chain.url, deployed.address, account).serving() as app:
            yield Modal(tmp_path, deployed, rpc, app=app)


@pytest.fixture(params=["local", "clock", "wallet", "modal"])
def backend(request, tmp_path, monkeypatch):
    if request.param in ("local", "clock"):
        yield {"local": Local, "clock": Clocked}[request.param](tmp_path)
        return
    monkeypatch.setattr(modal, "TIMEOUT_S", TIMEOUT_S)
    monkeypatch.setattr(jsonrpc, "WAIT_S", 0.01)
    monkeypatch.setattr(delivery, "LOOK_AGAIN_S", 0.05)
    monkeypatch.setattr(submitter, "POLL_S", 0.05)
    monkeypatch.setattr(submitter, "BUSY_POLL_S", 0.05)
    with chained(tmp_path, request.getfixturevalue("chain").deploy(), request.param) as made:
        yield made


def play(backend, ledger, after, *rewards):
    """The next round, settled with rewards of one's own and a vote for b."""
    if after is not None:
        backend.advance()
    round_id = ledger.next_round(after)
    ledger.settle(round_id, groups(*rewards))
    return round_id


def groups(*rewards):
    own = scored([rollout()] * len(rewards), rewards, peer_id="peer")
    b, evil = (scored([rollout()], [reward], external=True, peer_id=name) for name, reward in (("b", 0.5), ("evil", 9)))
    return [own, b, evil]


def arrives(backend, *expected):
    """Waits for it, and on a chain a little longer for what should not come: a file has all once it is settled."""
    wait_until(lambda: backend.recorded() == expected)
    if isinstance(backend, OnChain):
        time.sleep(0.3)
        assert backend.recorded() == expected


def test_rounds_only_go_forward(backend):
    ledger = backend.open()
    played, after = [], None
    for _ in range(3):
        after = play(backend, ledger, after, 1.0)
        played.append(after.number)
    assert played == sorted(set(played))
    ledger.close()
    backend.advance()
    again = backend.open()
    assert again.next_round(after).number > after.number
    again.close()


def test_settling_twice_is_settling_once(backend):
    ledger = backend.open()
    round_id = play(backend, ledger, None, 1.5, 0.5)
    ledger.settle(round_id, groups(9.0))
    assert ledger.total_reward() == 2.0
    ledger.close()
    again = backend.open()
    again.settle(round_id, groups(7.0))
    arrives(backend, 2, 1)  # before it is closed, which takes 5 s at most
    again.close()
    arrives(backend, 2, 1)


def test_reward_and_vote_of_each_round_arrive_exactly_once(backend):
    ledger = backend.open()
    after = None
    for number in range(1, 4):
        after = play(backend, ledger, after, float(number))
        arrives(backend, number * (number + 1) // 2, number)
    assert ledger.total_reward() == 6.0
    ledger.close()
    arrives(backend, 6, 3)


def test_what_was_settled_survives_reopening(backend):
    ledger = backend.open()
    after = play(backend, ledger, None, 2.0)
    ledger.close()
    again = backend.open()
    assert again.total_reward() == 2.0
    after = play(backend, again, after, -1.0)
    assert again.total_reward() == 1.0
    arrives(backend, 1, 2)  # before it is closed, which takes 5 s at most
    again.close()
    arrives(backend, 1, 2)


def test_total_reward_is_this_peer_s_own(backend, tmp_path):
    ledger = backend.open()
    assert ledger.total_reward() == 0.0
    other = LocalLedger(tmp_path / "ledger.sqlite", "another")
    other.settle(RoundId(number=0), [scored([rollout()], [50.0])])
    play(backend, ledger, None, 0.25)
    assert ledger.total_reward() == 0.25
    other.close()
    ledger.close()


def test_nothing_is_in_the_way_while_all_is_well(backend):
    ledger = backend.open()
    play(backend, ledger, None, 1.0)
    arrives(backend, 1, 1)
    assert ledger.status() == ""
    ledger.close()


def test_what_is_in_the_way_is_told_in_words_and_costs_nothing(backend):
    if isinstance(backend, Modal):  # else it is registered before the app fails
        backend.fail()
    ledger = backend.open()
    backend.fail()
    play(backend, ledger, None, 1.0)
    wait_until(lambda: backend.trouble in ledger.status())
    assert ledger.status().startswith(backend.trouble)
    assert ledger.total_reward() == 1.0
    ledger.close()


def test_closing_is_bounded_though_nobody_answers_any_more(backend):
    ledger = backend.open()
    play(backend, ledger, None, 1.0)
    backend.break_down()
    started = time.monotonic()
    ledger.close()
    assert time.monotonic() - started < TIMEOUT_S / 2  # for so long an RPC or app that hangs is asked
    kept = sqlite3.connect(backend.path if isinstance(backend, Local) else backend.folder / "ledger.sqlite")
    assert kept.execute("SELECT reward FROM settlement").fetchall() == [(1.0,)]
    kept.close()

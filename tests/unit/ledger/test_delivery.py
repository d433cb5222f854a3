"""Delivery against a chain in a dict: every order of faults that hypothesis can think of. The real one is in
test_delivery_chain."""

import math
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import settings, stateful
from hypothesis import strategies as st

from codezero.ledger import delivery
from codezero.ledger.coordinator import Standing
from codezero.ledger.delivery import Step, backoff_s, next_step
from codezero.ledger.faults import (
    FeesTooHigh,
    InsufficientFunds,
    OutboxError,
    PeerTaken,
    ProxyFault,
    RpcTimeout,
    WrongChain,
)
from codezero.ledger.items import OPEN, ItemState, Kind, LedgerScope
from codezero.ledger.outbox import Outbox
from codezero.ledger.reading import read_pending
from codezero.ledger.submissions import Submissions
from codezero.ledger.submitter import require_owner
from codezero.ledger.transactions import Transaction
from codezero.types import RoundId
from tests.unit.ledger.fake_chain import OURS, THEIRS, FakeChain, Killed

NOW_S = 10_000.0


def transaction(hash_="0xaa", nonce=3, signed_s=0.0, sent_s=0.0):
    """Signed and sent so many seconds ago."""
    return Transaction(
        hash=hash_,
        raw=b"",
        nonce=nonce,
        max_fee_wei=9,
        tip_wei=1,
        signed_at_s=NOW_S - signed_s,
        sent_at_s=NOW_S - sent_s,
    )


def standing(recorded=False, receipts=(), nonce=3):
    return Standing(recorded=recorded, receipts=dict(receipts), nonce=nonce)


@pytest.mark.parametrize(
    ("stands", "sent", "step"),
    [
        (standing(), [], Step.SEND),
        (standing(recorded=True), [], Step.DONE),
        (standing(recorded=True), [transaction()], Step.DONE),
        (standing(receipts=[("0xaa", True)]), [transaction(), transaction("0xbb")], Step.DONE),
        (standing(), [transaction()], Step.WAIT),
        (standing(), [transaction(signed_s=61, sent_s=61)], Step.RESEND),
        (standing(), [transaction(signed_s=3, sent_s=NOW_S)], Step.RESEND),  # killed before it was sent
        (standing(), [transaction(signed_s=601, sent_s=61)], Step.REPLACE),
        (standing(), [transaction(signed_s=601, sent_s=10)], Step.WAIT),
        (standing(), [transaction(signed_s=-99, sent_s=-99)], Step.RESEND),  # the clock was set back
        (standing(), [transaction(signed_s=-601, sent_s=61)], Step.REPLACE),  # by ten minutes
        (standing(nonce=4), [transaction(nonce=3)], Step.SEND),  # another one was mined with its nonce
        (standing(nonce=4, receipts=[("0xaa", False)]), [transaction(signed_s=1)], Step.WAIT),  # failed just now
        (standing(nonce=4, receipts=[("0xaa", False)]), [transaction(signed_s=11)], Step.SEND),
        (standing(nonce=4, receipts=[("0xaa", False)]), [transaction(), transaction("0xbb", nonce=4)], Step.WAIT),
    ],
)
def test_the_next_step_follows_from_what_the_chain_says(stands, sent, step):
    assert next_step(stands, sent, NOW_S) is step


def test_waits_grow_up_to_a_limit():
    assert [backoff_s(tries) for tries in (0, 1, 2, 50, 10_000)] == [5.0, 10.0, 20.0, 600.0, 600.0]


def test_a_peer_id_of_somebody_else_names_both_ways_out():
    require_owner("peer", None, OURS)
    require_owner("peer", OURS, OURS)
    with pytest.raises(PeerTaken, match=r"account 0xTheirs, not .*0xOurs.*ledger\.keystore.*swarm\.identity_path"):
        require_owner("peer", THEIRS, OURS)


class DearChain(FakeChain):
    """A chain on which no transaction can be replaced within the account's limit of fees."""

    def _send(self, call, journal):
        if journal.replaces is not None:
            raise FeesTooHigh("raise ledger.max_fee_gwei")
        return super()._send(call, journal)


@pytest.fixture
def outbox(tmp_path):
    outbox = Outbox(tmp_path / "outbox.sqlite", LedgerScope(chain_id=7, contract="0xC0", peer_id="peer"))
    yield outbox
    outbox.close()


def test_a_transaction_that_is_too_dear_to_replace_is_sent_again_and_holds_up_no_other(outbox, monkeypatch):
    now_s = NOW_S
    monkeypatch.setattr(delivery.time, "time", lambda: now_s)
    chain = DearChain()
    chain.owner, chain.round = OURS, 1
    deliver = Submissions(outbox, chain, chain).deliver
    outbox.credit(RoundId(number=0), 2.0, [])
    outbox.fold()
    deliver(chain.view())
    chain.pool.clear()  # the RPC has lost it
    now_s += delivery.REPLACE_AFTER_S
    outbox.credit(RoundId(number=1), 3.0, [])
    outbox.fold()
    deliver(chain.view())
    assert outbox.open_items()[0].note == "raise ledger.max_fee_gwei"
    chain.mine()
    assert chain.rewards == {0: 2, 1: 3}


class RefusingApp(FakeChain):
    """A sign-in app that sends all but the reward of round 0."""

    def _send(self, call, journal):
        journal.hand_over()
        if call[:2] == ("reward", 0):
            raise ProxyFault("the sponsor does not pay")
        self._record(call)
        return "0x1"


def test_an_item_that_the_app_keeps_refusing_holds_up_no_other(outbox, monkeypatch):
    now_s = NOW_S
    monkeypatch.setattr(delivery.time, "time", lambda: now_s)
    chain = RefusingApp()
    chain.owner, chain.round = OURS, 2
    deliver = Submissions(outbox, chain, chain).deliver
    for number in range(3):
        outbox.credit(RoundId(number=number), 2.0, [])
        outbox.fold()
    for _ in range(2):
        with pytest.raises(ProxyFault):
            deliver(chain.view())
        now_s += delivery.UNSEEN_S
    assert chain.rewards == {1: 2, 2: 2}


def test_a_transaction_that_nobody_mines_is_looked_up_often_for_a_minute_only(outbox, monkeypatch):
    now_s = NOW_S
    monkeypatch.setattr(delivery.time, "time", lambda: now_s)
    chain = FakeChain()
    chain.owner = OURS
    deliver = Submissions(outbox, chain, chain).deliver
    outbox.credit(RoundId(number=0), 2.0, [])
    outbox.fold()
    busy = []
    for _ in range(12):
        busy.append(deliver(chain.view()))
        now_s += 20.0
    assert busy == [True] * 3 + [False] * 9
    chain.mine()
    deliver(chain.view())
    assert outbox.open_items() == []


TROUBLES = (
    "rpc down",
    "wrong chain",
    "reads lag",
    "no funds",
    "nonce race",
    "killed before the journal",
    "disk full",
    "killed before sending",
    "lost on the way",
    "killed after sending",
    "answer lost",
)


class Deliveries(stateful.RuleBasedStateMachine):
    """Whatever happens in whatever order, in the end the chain holds what was credited, once."""

    def __init__(self):
        super().__init__()
        self.folder = TemporaryDirectory()
        self.path = Path(self.folder.name, "outbox.sqlite")
        self.now_s = NOW_S
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(delivery.time, "time", lambda: self.now_s)
        self.chain, self.credited, self.outbox = FakeChain(), {}, None
        self.restart()

    def teardown(self):
        self.chain.trouble = None
        for _ in range(12):
            self.step()
            self.chain.mine()
            self.now_s += 700.0
        self.outbox.fold()
        self.chain.round += 1
        for _ in range(12):
            self.step()
            self.chain.mine()
            self.now_s += 700.0
        self.everything_is_somewhere()
        assert not [item for item in self.outbox.open_items() if item.kind is not Kind.REGISTRATION]
        held = sum(self.chain.rewards.values()) + self.outbox.owed().points
        assert math.isclose(held, sum(self.credited.values()), abs_tol=1e-9)
        self.outbox.close()
        self.patch.undo()
        self.folder.cleanup()

    @stateful.rule()
    def restart(self):
        if self.outbox is not None:
            self.outbox.close()
        self.outbox = Outbox(self.path, LedgerScope(chain_id=7, contract="0xC0", peer_id="peer"))
        self.delivery = Submissions(self.outbox, self.chain, self.chain)

    @stateful.rule(reward=st.integers(-30, 30).map(lambda tenths: tenths / 10))
    def play_a_round(self, reward):
        self.outbox.credit(RoundId(number=self.chain.round), reward, ["winner"])
        self.credited.setdefault(self.chain.round, reward)

    @stateful.rule()
    def fold(self):
        self.outbox.fold()

    @stateful.rule(trouble=st.sampled_from(TROUBLES))
    def get_into_trouble(self, trouble):
        self.chain.trouble = trouble

    @stateful.rule()
    def mine(self):
        self.chain.mine()

    @stateful.rule()
    def next_round(self):
        self.chain.round += 1

    @stateful.rule()
    def the_mempool_is_lost(self):
        self.chain.pool.clear()

    @stateful.rule()
    def others_use_the_account(self):
        self.chain.mine()
        self.chain.nonce += 1

    @stateful.rule(seconds=st.sampled_from([1.0, 70.0, 700.0, -5000.0]))
    def time_passes(self, seconds):
        self.now_s += seconds

    @stateful.rule()
    def step(self):
        if self.chain.owner is None:
            self.outbox.ensure_registration()
        try:
            self.delivery.deliver(self.chain.view())
        except Killed:
            self.restart()
        except (RpcTimeout, WrongChain, InsufficientFunds, OutboxError):
            pass
        assert not self.delivery.halted

    @stateful.invariant()
    def everything_is_somewhere(self):
        items = read_pending(self.path).items
        rewards = [item for item in items if item.kind is Kind.REWARD]
        assert self.chain.rewards.items() <= {item.round_id.number: item.reward for item in rewards}.items()
        waiting = sum(item.reward for item in rewards if item.state in OPEN)
        finished = sum(item.reward for item in rewards if item.state is ItemState.DONE)
        assert math.isclose(waiting + finished + self.outbox.owed().points, sum(self.credited.values()), abs_tol=1e-9)
        for item in items:
            if item.state is ItemState.DONE and item.kind is Kind.REWARD:
                assert item.round_id.number in self.chain.rewards
            assert item.state is not ItemState.DROPPED


Deliveries.TestCase.settings = settings(max_examples=25, stateful_step_count=40, deadline=None)
TestDeliveries = Deliveries.TestCase

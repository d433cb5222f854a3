"""Delivery against a chain in a dict: every order of faults that hypothesis can think of. The real one is in
test_delivery_chain."""

import itertools
import math
from ast import literal_eval
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import settings, stateful
from hypothesis import strategies as st

from codezero.ledger import delivery
from codezero.ledger.coordinator import ChainView, Standing
from codezero.ledger.delivery import Delivery, Refused, Step, backoff_s, next_step, refused, require_owner
from codezero.ledger.faults import (
    AlreadyKnown,
    InsufficientFunds,
    NonceRace,
    OutboxError,
    PeerTaken,
    Reverted,
    RpcTimeout,
    WrongChain,
)
from codezero.ledger.items import OPEN, Kind, Scope, State
from codezero.ledger.outbox import Outbox, read_items
from codezero.ledger.transactions import Transaction
from codezero.types import RoundId

OURS, THEIRS = "0xOurs", "0xTheirs"
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


def standing(recorded=False, receipts=(), nonce=3, owner=OURS):
    return Standing(recorded=recorded, owner=owner, receipts=dict(receipts), nonce=nonce)


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
        (standing(nonce=4), [transaction(nonce=3)], Step.SEND),  # another one was mined with its nonce
        (standing(nonce=4, receipts=[("0xaa", False)]), [transaction(signed_s=1)], Step.WAIT),  # failed just now
        (standing(nonce=4, receipts=[("0xaa", False)]), [transaction(signed_s=11)], Step.SEND),
        (standing(nonce=4, receipts=[("0xaa", False)]), [transaction(), transaction("0xbb", nonce=4)], Step.WAIT),
    ],
)
def test_the_next_step_follows_from_what_the_chain_says(stands, sent, step):
    assert next_step(stands, sent, NOW_S) is step


@pytest.mark.parametrize(
    ("name", "meaning"),
    [
        ("RewardAlreadySubmitted", Refused.DONE),
        ("WinnerAlreadyVoted", Refused.DONE),
        ("PeerIdAlreadyRegistered", Refused.REGISTERED),
        ("InvalidRoundNumber", Refused.HOLD),
        ("InvalidStageNumber", Refused.HOLD),
        ("InvalidVoterPeerId", Refused.UNREGISTERED),
        ("InvalidVote", Refused.DROP),
        ("unknown error 0x12345678", Refused.RETRY),
    ],
)
def test_what_each_revert_means(name, meaning):
    assert refused(name) is meaning


def test_waits_grow_up_to_a_limit():
    assert [backoff_s(tries) for tries in (0, 1, 2, 50, 10_000)] == [5.0, 10.0, 20.0, 600.0, 600.0]


def test_a_peer_id_of_somebody_else_names_both_ways_out():
    require_owner("peer", None, OURS)
    require_owner("peer", OURS, OURS)
    with pytest.raises(PeerTaken, match=r"account 0xTheirs, not .*0xOurs.*ledger\.keystore.*swarm\.identity_path"):
        require_owner("peer", THEIRS, OURS)


class Killed(BaseException):
    """The process ends here."""


class FakeChain:
    """The contract, a mempool and an account's nonces, and one thing that goes wrong at a time; reads and writer."""

    address = OURS

    def __init__(self):
        self.round = 0
        self.owner = None
        self.rewards, self.votes = {}, {}
        self.nonce = 0
        self.pool, self.receipts = {}, {}
        self.num_sent = 0
        self.trouble = None
        """For the next call that can have it."""
        self._hashes = itertools.count()

    def take(self, *troubles):
        found, self.trouble = (self.trouble, None) if self.trouble in troubles else (None, self.trouble)
        return found

    def view(self):
        return ChainView(
            round_id=RoundId(number=self.round),
            bootnodes=(),
            owner=self.owner,
            total_reward=sum(self.rewards.values()),
            total_wins=0,
            balance_wei=1,
        )

    def registration(self, peer_id, account, hashes):
        return self._standing(self.owner is not None, hashes)

    def reward(self, round_id, peer_id, account, hashes):
        return self._standing(round_id.number in self.rewards, hashes)

    def vote(self, round_number, peer_id, account, hashes):
        return self._standing(round_number in self.votes, hashes)

    def _standing(self, recorded, hashes):
        if self.take("rpc down"):
            raise RpcTimeout("rpc down")
        if self.take("wrong chain"):
            raise WrongChain("wrong chain")
        if self.take("reads lag"):
            return Standing(recorded=False, owner=self.owner, receipts={}, nonce=max(0, self.nonce - 1))
        receipts = {hash_: self.receipts[hash_] for hash_ in hashes if hash_ in self.receipts}
        return Standing(recorded=recorded, owner=self.owner, receipts=receipts, nonce=self.nonce)

    def register_peer(self, peer_id, journal):
        return self._send(("register",), journal)

    def submit_reward(self, round_id, reward, peer_id, journal):
        return self._send(("reward", round_id.number, reward), journal)

    def submit_winners(self, round_number, winners, peer_id, journal):
        return self._send(("vote", round_number, tuple(winners)), journal)

    def broadcast(self, raw):
        if self.take("rpc down"):
            raise RpcTimeout("rpc down")
        nonce, call, hash_ = literal_eval(raw.decode())
        self._accept(nonce, call, hash_)

    def _send(self, call, journal):
        if self.take("no funds"):
            raise InsufficientFunds("no funds")
        if name := self._refusal(call):
            raise Reverted(name, name)
        nonce = self.nonce + len(self.pool) if journal.replaces is None else journal.replaces.nonce
        if self.take("nonce race"):
            raise NonceRace("race")
        hash_ = f"0x{next(self._hashes):02x}"
        raw = repr((nonce, call, hash_)).encode()
        if self.take("killed before the journal"):
            raise Killed
        sent = Transaction(
            hash=hash_, raw=raw, nonce=nonce, max_fee_wei=1, tip_wei=1, signed_at_s=delivery.time.time(), sent_at_s=0.0
        )
        if self.take("disk full"):
            raise OutboxError("disk full")
        journal.store(sent)
        if self.take("killed before sending"):
            raise Killed
        if self.take("lost on the way"):
            raise RpcTimeout("lost on the way")
        self._accept(nonce, call, hash_)
        if self.take("killed after sending"):
            raise Killed
        if self.take("answer lost"):
            raise RpcTimeout("answer lost")
        return hash_

    def _accept(self, nonce, call, hash_):
        self.num_sent += 1
        if hash_ in {pooled[1] for pooled in self.pool.values()}:
            raise AlreadyKnown("known")
        if nonce < self.nonce:
            raise NonceRace("nonce too low")
        self.pool[nonce] = (call, hash_)

    def mine(self):
        while self.nonce in self.pool:
            call, hash_ = self.pool.pop(self.nonce)
            self.nonce += 1
            succeeded = self._refusal(call) is None
            self.receipts[hash_] = succeeded
            if succeeded:
                self._record(call)

    def _refusal(self, call):
        kind, *rest = call
        if kind == "register":
            return "PeerIdAlreadyRegistered" if self.owner else None
        if rest[0] > self.round:
            return "InvalidRoundNumber"
        if rest[0] in (self.rewards if kind == "reward" else self.votes):
            return "RewardAlreadySubmitted" if kind == "reward" else "WinnerAlreadyVoted"
        return None if self.owner == OURS else "InvalidVoterPeerId"

    def _record(self, call):
        kind, *rest = call
        if kind == "register":
            self.owner = OURS
        elif kind == "reward":
            self.rewards[rest[0]] = rest[1]
        else:
            self.votes[rest[0]] = rest[1]


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
        self.chain, self.credited, self.outbox = FakeChain(), [], None
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
        assert math.isclose(sum(self.chain.rewards.values()) + self.outbox.owed().points, sum(self.credited))
        self.outbox.close()
        self.patch.undo()
        self.folder.cleanup()

    @stateful.rule()
    def restart(self):
        if self.outbox is not None:
            self.outbox.close()
        self.outbox = Outbox(self.path, Scope(chain_id=7, contract="0xC0", peer_id="peer"))
        self.delivery = Delivery(self.outbox, self.chain, self.chain, "peer")

    @stateful.rule(reward=st.integers(-30, 30).map(lambda tenths: tenths / 10))
    def play_a_round(self, reward):
        if self.outbox.credit(RoundId(number=self.chain.round), reward, ["winner"], self.now_s):
            self.credited.append(reward)

    @stateful.rule()
    def fold(self):
        self.outbox.fold(self.now_s)

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
            self.outbox.ensure_registration(self.now_s)
        try:
            self.delivery.deliver(self.chain.view())
        except Killed:
            self.restart()
        except (RpcTimeout, WrongChain, InsufficientFunds, OutboxError):
            pass
        assert not self.delivery.halted

    @stateful.invariant()
    def everything_is_somewhere(self):
        done = {item.round_id.number for item in read_items(self.path) if item.kind is Kind.REWARD}
        assert set(self.chain.rewards) <= done
        assert all(reward == self._rewards()[number] for number, reward in self.chain.rewards.items())
        waiting = sum(item.reward for item in read_items(self.path) if item.kind is Kind.REWARD and item.state in OPEN)
        finished = sum(
            item.reward for item in read_items(self.path) if item.kind is Kind.REWARD and item.state is State.DONE
        )
        assert math.isclose(waiting + finished + self.outbox.owed().points, sum(self.credited), abs_tol=1e-9)
        for item in read_items(self.path):
            if item.state is State.DONE and item.kind is Kind.REWARD:
                assert item.round_id.number in self.chain.rewards
            assert item.state is not State.DROPPED

    def _rewards(self):
        return {item.round_id.number: item.reward for item in read_items(self.path) if item.kind is Kind.REWARD}


Deliveries.TestCase.settings = settings(max_examples=25, stateful_step_count=40, deadline=None)
TestDeliveries = Deliveries.TestCase

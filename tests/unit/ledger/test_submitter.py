"""The submitter's thread, with a coordinator that is told what to say."""

import logging
import threading
import time
from contextlib import contextmanager

import pytest

from codezero.config import LedgerConfig, checkout
from codezero.ledger import delivery
from codezero.ledger import submitter as module
from codezero.ledger.chain import ChainLedger
from codezero.ledger.coordinator import ChainView
from codezero.ledger.faults import (
    InsufficientFunds,
    NoContract,
    OutboxError,
    PeerTaken,
    ProxyFault,
    RateLimited,
    Reverted,
    RpcRefused,
    RpcTimeout,
    StaleChain,
    WrongChain,
)
from codezero.ledger.items import ItemState, Kind, LedgerScope
from codezero.ledger.local import LocalLedger
from codezero.ledger.outbox import TROUBLE, TROUBLE_SEEN, TROUBLE_SINCE, Outbox
from codezero.ledger.reading import read_pending
from codezero.ledger.submitter import POLL_S, Submitter
from codezero.types import RoundId
from tests.processes import wait_until
from tests.unit.ledger.fake_chain import OURS, THEIRS, FakeChain

WEI = 10**18
DEFAULTS = LedgerConfig()


class FakeCoordinator(FakeChain):
    """Records at once whatever is sent."""

    def __init__(self):
        super().__init__()
        self.round, self.balance_wei = 5, WEI
        self.fault = None
        self.refuses_to_send = None
        self.polled = []
        self.hanging = threading.Event()
        self.hanging.set()

    def view(self, peer_id, account):
        self.polled.append(time.monotonic())
        self.hanging.wait(300)
        if self.fault is not None:
            raise self.fault
        return ChainView(
            round_id=RoundId(number=self.round),
            owner=self.owner,
            balance_wei=self.balance_wei,
        )

    def broadcast(self, raw):
        raise AssertionError("nothing was signed")

    def _send(self, call, journal):
        journal.hand_over()
        if self.refuses_to_send is not None:
            raise self.refuses_to_send
        self._record(call)
        return "0x1"


@pytest.fixture(autouse=True)
def polls_often(monkeypatch):
    monkeypatch.setattr(module, "POLL_S", 0.02)


@pytest.fixture
def chain():
    return FakeCoordinator()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "outbox.sqlite"


def opened(path, contract="0xC0"):
    return Outbox(path, LedgerScope(chain_id=7, contract=contract, peer_id="peer"))


@contextmanager
def running(path, chain, config=DEFAULTS, start=True, contract="0xC0"):
    outbox = opened(path, contract)
    submitter = Submitter(outbox, chain, chain, config)
    if start:
        submitter.start()
    try:
        yield submitter
    finally:
        chain.hanging.set()
        submitter.stop(60.0)
        outbox.close()


def test_it_registers_follows_the_round_and_submits_on_shutdown(path, chain):
    with running(path, chain) as submitter:
        assert submitter.round_id == RoundId(number=5)
        wait_until(lambda: chain.owner == OURS)
        chain.round = 6
        assert submitter.wait_for_round(5, 20.0)
        submitter.credit(RoundId(number=6), 2.5, ["a"])
        submitter.credit(RoundId(number=6), 2.5, ["a"])
        wait_until(lambda: len(chain.polled) > 6)
        assert (chain.rewards, submitter.trouble) == ({}, "")
    assert (chain.rewards, chain.votes) == ({6: 2}, {6: ("a",)})
    assert {item.state for item in read_pending(path).items} == {ItemState.DONE}  # looked at again before it ended


def test_a_closed_ledger_is_whole_in_its_two_files(tmp_path, path, chain):
    outbox = opened(path)
    submitter = Submitter(outbox, chain, chain, DEFAULTS)
    submitter.start()
    ChainLedger(LocalLedger(tmp_path / "ledger.sqlite", "peer"), submitter, patience_s=60.0).close()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["ledger.sqlite", "outbox.sqlite"]


@pytest.mark.parametrize("config", [LedgerConfig(submit_threshold=4.0), LedgerConfig(submit_period_s=0.0)])
def test_the_sum_is_submitted_at_the_threshold_and_after_the_period(path, chain, config):
    chain.owner = OURS
    with running(path, chain, config) as submitter:
        submitter.credit(RoundId(number=4), -4.5, ["a"])
        wait_until(lambda: chain.rewards == {4: -4})


def test_a_sum_below_the_threshold_waits(path, chain):
    chain.owner = OURS
    with running(path, chain, LedgerConfig(submit_threshold=4.0)) as submitter:
        submitter.credit(RoundId(number=4), 3.9, ["a"])
        wait_until(lambda: len(chain.polled) > 5)
        assert chain.rewards == {}


@pytest.mark.parametrize("fault", [WrongChain("wrong"), NoContract("none"), RpcTimeout("hangs")])
def test_a_first_start_that_cannot_work_fails_at_once(path, chain, fault):
    chain.fault = fault
    with running(path, chain, start=False) as submitter, pytest.raises(type(fault)):
        submitter.start()


def test_a_peer_of_somebody_else_is_fatal_at_start_and_later(path, chain):
    chain.owner = THEIRS
    with running(path, chain, start=False) as submitter, pytest.raises(PeerTaken):
        submitter.start()
    chain.owner = OURS
    with running(path, chain) as submitter:
        submitter.check()
        chain.owner = THEIRS
        assert submitter.wait_for_round(99, 20.0)  # it does not keep a node waiting for ever
        with pytest.raises(PeerTaken):
            submitter.check()


def test_one_wrong_owner_ends_no_node(path, chain, monkeypatch):
    """An RPC may give the answer to another request."""
    wrong, view = [True, False, False, True, False, False], chain.view
    chain.owner = OURS

    def mixed_up(*asked):
        chain.owner = THEIRS if wrong and wrong.pop() else OURS
        return view(*asked)

    monkeypatch.setattr(chain, "view", mixed_up)
    with running(path, chain) as submitter:
        wait_until(lambda: not wrong and len(chain.polled) > 8)
        submitter.check()
        assert submitter.trouble == ""


def test_rounds_that_the_chain_has_not_reached_count_for_its_own(path, chain):
    chain.owner = OURS
    with running(path, chain) as submitter:
        submitter.credit(RoundId(number=300), 2.5, ["a"])
    assert (chain.rewards, chain.votes) == ({5: 2}, {5: ("a",)})


def test_a_later_start_without_the_rpc_goes_on_with_what_was_known(path, chain):
    with running(path, chain):
        wait_until(lambda: chain.owner == OURS)
    chain.fault = RpcTimeout("the RPC is away")
    with running(path, chain) as submitter:
        assert (submitter.round_id, submitter.view) == (RoundId(number=5), None)
        submitter.credit(RoundId(number=5), 3.0, ["a"])
        wait_until(lambda: submitter.trouble)
    assert [item.state for item in read_pending(path).items if item.kind is Kind.REWARD] == [ItemState.WAITING]
    chain.fault = None
    with running(path, chain):
        wait_until(lambda: chain.rewards == {5: 3})


def test_trouble_is_told_and_goes_away(path, chain, caplog):
    caplog.set_level(logging.INFO)
    with running(path, chain) as submitter:
        chain.fault = RpcTimeout("the RPC is away")
        wait_until(lambda: submitter.trouble == "the RPC is away")
        outbox = opened(path)
        wait_until(lambda: outbox.recall(TROUBLE) == "the RPC is away")  # for `codezero status`
        since_s, seen_s = (float(outbox.recall(key)) for key in (TROUBLE_SINCE, TROUBLE_SEEN))
        count = len(chain.polled)
        wait_until(lambda: len(chain.polled) > count + 2)
        wait_until(lambda: float(outbox.recall(TROUBLE_SEEN)) > seen_s)
        assert float(outbox.recall(TROUBLE_SINCE)) == since_s
        chain.fault = None
        wait_until(lambda: submitter.trouble == "" and outbox.recall(TROUBLE) == "")
        outbox.close()
    assert [record.message for record in caplog.records].count("the RPC is away") == 1
    assert "the chain takes submissions again" in caplog.messages


def test_that_nothing_is_submitted_any_more_is_told_to_those_who_read_the_outbox(path, chain):
    with running(path, chain) as submitter:
        outbox = opened(path)
        submitter._delivery.halted = "the contract does not take this peer id"
        wait_until(lambda: outbox.recall(TROUBLE) == "the contract does not take this peer id")
        outbox.close()


def test_an_rpc_that_is_away_is_asked_less_and_less(path, chain, monkeypatch):
    monkeypatch.setattr(module, "MAX_POLL_S", 0.4)
    with running(path, chain):
        chain.fault = RpcTimeout("away")
        count = len(chain.polled)
        wait_until(lambda: len(chain.polled) >= count + 7)
        gaps = [after - before for before, after in zip(chain.polled[count:], chain.polled[count + 1 :], strict=False)]
        assert gaps[-1] > 0.2


def test_polls_are_15_s_apart_at_most_and_not_in_step_with_those_of_others(path, chain, monkeypatch):
    monkeypatch.setattr(module, "POLL_S", POLL_S)
    chain.owner = OURS
    with running(path, chain, start=False) as submitter:
        waits = [submitter._tick() for _ in range(50)]
    assert all(10.0 < wait_s <= 15.0 for wait_s in waits)
    assert max(waits) - min(waits) > 1.0


def test_an_rpc_that_takes_nothing_is_polled_as_often_since_the_round_is_followed(path, chain, monkeypatch):
    monkeypatch.setattr(module, "POLL_S", POLL_S)
    chain.owner, chain.refuses_to_send = OURS, RpcRefused("the RPC refuses eth_sendRawTransaction")
    with running(path, chain, start=False) as submitter:
        submitter.credit(RoundId(number=5), 2.0, ["a"])
        submitter._outbox.fold()
        waits = []
        for _ in range(6):
            waits.append(submitter._tick())
            assert submitter.trouble == "the RPC refuses eth_sendRawTransaction"
    assert max(waits) <= 1.25 * POLL_S


def test_retry_after_is_respected(path, chain):
    with running(path, chain):
        chain.fault = RateLimited("slow down", 1.0)
        count = len(chain.polled)
        wait_until(lambda: len(chain.polled) > count + 2)
        assert chain.polled[-1] - chain.polled[-2] >= 1.0


def test_a_round_that_goes_back_is_not_believed(path, chain):
    with running(path, chain) as submitter:
        chain.round = 3
        wait_until(lambda: "at round 3 stage 0 and was at 5 stage 0" in submitter.trouble)
        assert submitter.round_id == RoundId(number=5)
        chain.round = 6
        assert submitter.wait_for_round(5, 20.0)
    chain.round = 2
    with running(path, chain, start=False) as submitter, pytest.raises(StaleChain):
        submitter._poll()
    with running(path, chain, contract="0xC1") as submitter:  # rounds of another contract are its own
        assert (submitter.round_id, submitter.trouble) == (RoundId(number=2), "")


@pytest.mark.parametrize("fault", [RpcTimeout("silent"), NoContract("none there"), WrongChain("another")])
def test_a_chain_that_gives_no_view_is_away_until_it_does(path, chain, fault, monkeypatch):
    monkeypatch.setattr(module, "MAX_POLL_S", 0.1)
    with running(path, chain) as submitter:
        assert not submitter.is_away
        chain.fault = fault
        wait_until(lambda: submitter.is_away)
        assert submitter.trouble  # says why
        chain.fault = None
        wait_until(lambda: not submitter.is_away)


def test_a_round_that_cannot_have_come_since_the_last_run_is_not_believed(path, chain):
    with running(path, chain):
        pass
    chain.round = 5_000_000
    with running(path, chain) as submitter:
        assert "which is impossible" in submitter.trouble
        assert submitter.round_id == RoundId(number=5)
        chain.round = 6
        assert submitter.wait_for_round(5, 20.0)


@pytest.fixture
def says(chain, monkeypatch):
    """Has the chain give these rounds, then 5."""

    def say(*rounds):
        told, view = iter(rounds), chain.view

        def mixed_up(*asked):
            chain.round = next(told, 5)
            return view(*asked)

        monkeypatch.setattr(chain, "view", mixed_up)

    return say


@pytest.mark.parametrize("rounds", [(5_000_000, 5), (5, 5_000_000)])
def test_a_wrong_round_at_the_very_first_start_is_not_believed(path, chain, says, rounds):
    says(*rounds)
    with running(path, chain) as submitter:
        assert (submitter.round_id, submitter.trouble) == (RoundId(number=5), "")


def test_a_wrong_round_after_two_right_ones_is_not_kept(path, chain, says):
    says(5, 5, 5_000_000)
    with running(path, chain, start=False) as submitter, pytest.raises(StaleChain, match="mixes up answers"):
        submitter.start()
    with running(path, chain) as submitter:
        assert (submitter.round_id, submitter.trouble) == (RoundId(number=5), "")


@pytest.mark.parametrize("sleeps", [False, True], ids=["stopped", "machine asleep"])
def test_rounds_of_a_long_absence_are_believed(path, chain, monkeypatch, sleeps):
    with running(path, chain):
        pass
    with running(path, chain, start=False) as submitter:
        if sleeps:  # its monotonic clock stands still meanwhile
            submitter._poll()
        chain.round = 5_000_000
        later_s = time.time() + 10 * 24 * 3600
        monkeypatch.setattr(time, "time", lambda: later_s)
        submitter._poll()
        assert submitter.round_id == RoundId(number=5_000_000)


def test_without_funds_it_waits_and_goes_on_when_there_are_some(path, chain, caplog):
    chain.owner, chain.balance_wei = OURS, 5
    chain.refuses_to_send = InsufficientFunds("the account holds nothing")
    with running(path, chain, LedgerConfig(submit_period_s=0.0)) as submitter:
        submitter.credit(RoundId(number=5), 2.0, ["a"])
        wait_until(lambda: submitter.trouble == "the account holds nothing")
        count = len(chain.polled)
        wait_until(lambda: len(chain.polled) > count + 3)  # the round is still followed
        assert submitter.trouble == "the account holds nothing"
        chain.refuses_to_send, chain.balance_wei = None, WEI
        wait_until(lambda: chain.rewards == {5: 2})
        wait_until(lambda: submitter.trouble == "")
    low = [message for message in caplog.messages if "less than ledger.warn_below_eth=0.01" in message]
    assert low == [
        "the account 0xOurs holds 0.000000000000000005 ETH, less than ledger.warn_below_eth=0.01: send it some before "
        "submissions stop"
    ]


def test_a_sign_in_app_out_of_order_is_told_and_is_no_chain_that_is_away(path, chain, monkeypatch):
    monkeypatch.setattr(module, "UNSEEN_S", 0.2)
    monkeypatch.setattr(delivery, "UNSEEN_S", 0.2)
    chain.owner, chain.refuses_to_send = OURS, ProxyFault("the app hangs")
    with running(path, chain, LedgerConfig(submit_period_s=0.0)) as submitter:
        submitter.credit(RoundId(number=5), 2.0, ["a"])
        wait_until(lambda: submitter.trouble == "the app hangs")
        count = len(chain.polled)
        wait_until(lambda: len(chain.polled) > count + 3)  # the round is still followed
        assert (submitter.trouble, submitter.is_away) == ("the app hangs", False)
        chain.refuses_to_send = None
        wait_until(lambda: chain.rewards == {5: 2})
        wait_until(lambda: submitter.trouble == "")


def test_another_delivery_is_called_at_each_poll_and_at_once_when_it_has_something_new(path, chain, monkeypatch):
    monkeypatch.setattr(module, "POLL_S", 3600.0)
    called, chain.owner = [], OURS  # else it polls soon to see its registration
    with running(path, chain) as submitter:
        submitter.also(lambda: called.append(chain.owner))
        submitter.wake()
        wait_until(lambda: called)
        count = len(called)
        submitter.wake()
        wait_until(lambda: len(called) > count, limit_s=30)


def test_another_delivery_does_not_wait_for_a_reward_that_cannot_be_looked_up(path, chain, monkeypatch):
    chain.owner, called = OURS, []
    refused = Reverted("reverted without a reason", "")

    def reward(*_):
        raise refused

    monkeypatch.setattr(chain, "reward", reward)
    with running(path, chain, LedgerConfig(submit_period_s=0.0)) as submitter:
        submitter.also(lambda: called.append(submitter.trouble))
        submitter.credit(RoundId(number=5), 2.0, ["a"])
        submitter.wake()
        wait_until(lambda: str(refused) in called)


def test_stopping_does_not_wait_for_an_rpc_that_hangs_and_tells_what_waits(path, chain, caplog):
    chain.owner = OURS
    with running(path, chain) as submitter:
        submitter.credit(RoundId(number=5), 2.0, ["a"])
        chain.hanging.clear()
        count = len(chain.polled)
        wait_until(lambda: len(chain.polled) > count)
        started = time.monotonic()
        submitter.stop(0.2)
        assert time.monotonic() - started < 100
        assert "2 submissions to the chain wait on disk" in caplog.text
        assert f"; {checkout.COMMAND} status says why they wait" in caplog.text
    assert len(read_pending(path).items) == 2


def test_a_bug_in_the_submitter_is_told_and_ends_nothing(path, chain, monkeypatch):
    monkeypatch.setattr(module, "MAX_POLL_S", 0.02)
    with running(path, chain) as submitter:
        chain.fault = ZeroDivisionError()
        wait_until(lambda: "internal error in the submitter (ZeroDivisionError)" in submitter.trouble)
        wait_until(lambda: submitter.is_away)  # it gives no view either
        chain.fault = None
        wait_until(lambda: submitter.trouble == "" and not submitter.is_away)


def test_a_disk_that_is_full_is_told_and_the_round_is_still_followed(path, chain, monkeypatch):
    chain.owner = OURS
    with running(path, chain) as submitter:
        full = OutboxError("cannot use the outbox: full")

        def fail(*_, **__):
            raise full

        monkeypatch.setattr(submitter._outbox, "open_items", fail)
        monkeypatch.setattr(submitter._outbox, "remember", fail)
        wait_until(lambda: submitter.trouble == str(full))
        chain.round = 6
        assert submitter.wait_for_round(5, 20.0)
        monkeypatch.setattr(submitter._outbox, "fold", fail)
        with pytest.raises(OutboxError):
            submitter.stop()
        assert not submitter._worker.is_alive
        monkeypatch.undo()

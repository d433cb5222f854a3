"""Advancing the rounds: when due by the chain's own record, once a period, whoever else does."""

import threading
from types import SimpleNamespace

import pytest

from codezero.devchain import tick
from codezero.errors import ChainError
from codezero.ledger.faults import NonceRace
from tests import chains
from tests.chains import ACCOUNTS
from tests.processes import wait_until

ADVANCE = "updateStageAndRound()"


class Clock:
    """The chain's time, which stands still but where a test puts it forward."""

    def __init__(self, chain):
        self._chain = chain
        chain.ask("anvil_setBlockTimestampInterval", 0)

    def skip(self, seconds):
        now_s = int(self._chain.ask("eth_getBlockByNumber", "latest", False)["timestamp"], 16)
        self._chain.ask("evm_setNextBlockTimestamp", now_s + seconds)
        self._chain.ask("evm_mine")


class Lines:
    def __init__(self):
        self.lines = []

    def line(self, text):
        self.lines.append(text)


@pytest.fixture(scope="module")
def chain():
    with chains.running() as chain:
        yield chain


@pytest.fixture(scope="module")
def clock(chain):
    return Clock(chain)


def manager(chain, address, account=ACCOUNTS[0]):
    client = chain.client(account)
    return SimpleNamespace(client=client, contract=client.contract("SwarmCoordinator", address))


def advance_if_due(at, every_s=60):
    return tick.advance_if_due(at.client, at.contract, every_s)


def round_of(at):
    return at.client.read(at.contract, "currentRound()")


def test_a_round_advances_when_its_period_is_over_and_not_before(chain, clock):
    own = manager(chain, chain.coordinator())
    assert advance_if_due(own) == (False, 60)
    clock.skip(59)
    assert advance_if_due(own) == (False, 1)
    clock.skip(1)
    assert advance_if_due(own) == (True, 60)
    assert advance_if_due(own) == (False, 60)
    assert round_of(own) == 1


def test_after_a_long_pause_a_round_advances_once(chain, clock):
    own = manager(chain, chain.coordinator())
    clock.skip(10_000)
    assert [advance_if_due(own)[0] for _ in range(3)] == [True, False, False]
    assert round_of(own) == 1


def test_a_manager_that_is_started_again_goes_on_from_the_chains_record(chain, clock):
    address = chain.coordinator()
    clock.skip(60)
    assert advance_if_due(manager(chain, address))[0] is True
    clock.skip(45)
    assert advance_if_due(manager(chain, address)) == (False, 15)
    clock.skip(15)
    assert advance_if_due(manager(chain, address))[0] is True


def test_other_transactions_do_not_move_the_clock(chain, clock):
    own = manager(chain, chain.coordinator())
    clock.skip(30)
    for number in range(3):
        own.client.transact(own.contract, "registerPeer(string)", f"p{number}")
    own.client.transact(own.contract, "grantRole(bytes32,address)", b"r" * 32, ACCOUNTS[1].address)
    assert advance_if_due(own) == (False, 30)


def test_the_last_advance_is_found_however_far_back_it_is(chain, clock, monkeypatch):
    monkeypatch.setattr(tick, "WINDOW_BLOCKS", 2)
    own = manager(chain, chain.coordinator())
    for number in range(5):
        own.client.transact(own.contract, "registerPeer(string)", f"p{number}")
    assert advance_if_due(own) == (False, 60)
    clock.skip(60)
    assert advance_if_due(own)[0] is True
    clock.skip(20)
    for number in range(5):
        own.client.transact(own.contract, "registerPeer(string)", f"q{number}")
    assert advance_if_due(own) == (False, 40)


def test_of_two_that_saw_the_period_end_the_second_is_refused_by_the_chain(chain, clock):
    address = chain.coordinator()
    slow, quick = manager(chain, address), manager(chain, address)
    clock.skip(60)
    seen = tick.look(slow.client, slow.contract)
    assert seen.left_s(60) == 0
    assert advance_if_due(quick)[0] is True
    with pytest.raises(NonceRace):
        slow.client.transact(slow.contract, ADVANCE, nonce=seen.nonce)
    assert round_of(slow) == 1
    clock.skip(60)
    with pytest.raises(NonceRace):  # also when the next period is over
        slow.client.transact(slow.contract, ADVANCE, nonce=seen.nonce)
    assert advance_if_due(slow)[0] is True
    assert round_of(slow) == 2


@pytest.mark.parametrize("moment", ["before", "after"])
def test_an_advance_of_another_around_the_reading_of_the_nonce_is_never_followed_by_a_second(
    chain, clock, monkeypatch, moment
):
    address = chain.coordinator()
    own, quick = manager(chain, address), manager(chain, address)
    clock.skip(60)
    next_nonce = own.client.next_nonce

    def read_with_another_at_work():
        if moment == "before":
            advance_if_due(quick)
        nonce = next_nonce()
        if moment == "after":
            advance_if_due(quick)
        return nonce

    monkeypatch.setattr(own.client, "next_nonce", read_with_another_at_work)
    assert advance_if_due(own) == (False, 60)
    assert round_of(own) == 1


def test_many_at_once_advance_once_a_period(chain, clock):
    address = chain.coordinator()
    managers = [manager(chain, address) for _ in range(4)]
    for period in range(1, 6):
        clock.skip(60)
        at_once = threading.Barrier(len(managers))

        def act(own, at_once=at_once):
            at_once.wait(30)
            advance_if_due(own)
            advance_if_due(own)

        threads = [threading.Thread(target=act, args=(own,)) for own in managers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert round_of(managers[0]) == period


def test_other_transactions_of_the_managers_account_only_delay_it(chain, clock):
    own = manager(chain, chain.coordinator())
    clock.skip(60)
    seen = tick.look(own.client, own.contract)
    own.client.transfer(ACCOUNTS[1].address, 1)
    with pytest.raises(NonceRace):
        own.client.transact(own.contract, ADVANCE, nonce=seen.nonce)
    assert round_of(own) == 0
    assert advance_if_due(own)[0] is True


def test_with_stages_it_is_the_stage_that_advances(chain, clock):
    own = manager(chain, chain.coordinator(stages=2))
    seen = []
    for _ in range(3):
        clock.skip(60)
        advance_if_due(own)
        found = tick.look(own.client, own.contract)
        seen.append((found.round, found.stage))
    assert seen == [(0, 1), (1, 0), (1, 1)]


def test_who_is_no_stage_manager_is_told_at_once(chain):
    other = manager(chain, chain.coordinator(), ACCOUNTS[1])
    with pytest.raises(ChainError, match=f"{ACCOUNTS[1].address} is not a stage manager"):
        tick.run(other.client, other.contract, 60, threading.Event(), Lines())


def test_a_server_that_has_forgotten_the_events_is_told(chain, monkeypatch):
    own = manager(chain, chain.coordinator())
    monkeypatch.setattr(tick, "logs", lambda answer: [])
    with pytest.raises(ChainError, match="no longer has the events"):
        advance_if_due(own)


def test_a_chain_that_is_away_is_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr(tick, "MAX_PAUSE_S", 0.05)
    asked, console, kept = threading.Event(), Lines(), ("--state", str(tmp_path / "state.json"))
    with chains.running(*kept) as chain:
        port = int(chain.url.rpartition(":")[2])
        own = manager(chain, chain.coordinator())
        thread = threading.Thread(target=tick.run, args=(own.client, own.contract, 60, asked, console), daemon=True)
        thread.start()
        wait_for(console, "round 0, stage 0; advances every 60 s")
    wait_for(console, "warning: ")
    with chains.running(*kept, port=port) as chain:
        wait_for(console, "the chain answers again")
        Clock(chain).skip(60)
        wait_for(console, "round 1, stage 0")
        asked.set()
        thread.join(120)
    assert not thread.is_alive()
    assert len([line for line in console.lines if line.startswith("warning: ")]) <= 2


def wait_for(console, text):
    wait_until(lambda: any(text in line for line in console.lines), said=console.lines)

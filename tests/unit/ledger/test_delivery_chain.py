"""Delivery to a real contract on a real chain, with an RPC in between that misbehaves."""

import os
import time
from contextlib import nullcontext
from types import SimpleNamespace
from unittest.mock import patch

import pytest

from codezero.ledger import abi, delivery
from codezero.ledger.account import Account
from codezero.ledger.contract import Contract
from codezero.ledger.coordinator import Coordinator, CoordinatorWriter
from codezero.ledger.faults import (
    FeesTooHigh,
    InsufficientFunds,
    NoContract,
    NonceRace,
    OutboxError,
    PeerTaken,
    RpcFault,
    WrongChain,
)
from codezero.ledger.items import ItemState, Kind
from codezero.ledger.reading import read_pending
from codezero.ledger.rpc import Rpc
from codezero.ledger.submissions import Submissions
from codezero.ledger.submitter import require_owner
from codezero.ledger.transactions import Journal
from codezero.types import RoundId
from tests.chain import new_key
from tests.fakes import files_of_at_most
from tests.processes import wait_until
from tests.unit.ledger.peer import NO_NOTES, credit, make_due, notes, on_chain, step, until_done


def test_registration_reward_and_vote_arrive(node, deployed):
    credit(node, 0, reward=-7.5)
    until_done(node)
    assert deployed.read("getEoa(string[])", ["peer"]) == (node.account.address.lower(),)
    assert on_chain(deployed) == (-7, 1, ("peer", "other"))
    references = [item.reference for item in read_pending(node.path).items]
    assert len(set(references)) == 3
    assert all(reference.startswith("0x") for reference in references)


@pytest.mark.parametrize("mode", ["accept then drop", "drop", "http 500", "html", "http 429"])
def test_sending_fails_and_nobody_knows_whether_it_arrived(node, deployed, mode):
    credit(node, 0)
    node.hostile.for_methods, node.hostile.mode = ["eth_sendRawTransaction"], mode
    with pytest.raises(RpcFault):
        step(node)
    assert node.outbox.open_items()[0].state is ItemState.SENT
    node.hostile.mode = "ok"
    until_done(node)
    assert on_chain(deployed) == (3, 1, ("peer", "other"))
    assert deployed.rpc().quantity(nonce(deployed, node), "nonce") == 3  # none was paid for twice


def nonce(deployed, node, after="pending"):
    """The account's next one, after what is sent and not yet mined: anvil answers before it mines."""
    (answer,) = deployed.rpc().ask([("eth_getTransactionCount", [node.account.address, after])])
    return answer


def test_nothing_is_written_to_a_wrong_chain(node, deployed):
    credit(node, 0)
    node.outbox.ensure_registration()
    view = node.reads.view("peer", node.writer.address)
    node.hostile.mode = "drop"
    with pytest.raises(RpcFault):
        step(node)
    node.hostile.mode, node.hostile.answers = "answers", {"eth_chainId": "0x1"}
    with pytest.raises(WrongChain):
        node.delivery.deliver(view)
    assert "serves chain 1, not 31337" in notes(node)["registration"]
    assert "eth_sendRawTransaction" not in node.hostile.methods
    node.hostile.mode = "ok"
    until_done(node)
    assert on_chain(deployed) == (3, 1, ("peer", "other"))


def test_a_chain_of_another_id_and_an_address_without_code_are_named(deployed):
    with pytest.raises(
        WrongChain, match=r"serves chain 31337, not 685685: correct ledger\.rpc_url or ledger\.chain_id"
    ):
        Coordinator(deployed.contract, deployed.rpc(chain_id=685685)).view("peer", deployed.chain.owner)
    nothing_there = Contract("0x" + "00" * 18 + "c0de", abi.load("SwarmCoordinator").abi)
    with pytest.raises(NoContract, match=f"no contract at {nothing_there.address} on chain 31337"):
        Coordinator(nothing_there, deployed.rpc(contracts=[nothing_there.address])).view("peer", deployed.chain.owner)


def test_registered_to_us_already_is_fine(node, deployed):
    node.writer.register_peer("peer", NO_NOTES)
    node.outbox.ensure_registration()
    until_done(node)
    assert deployed.rpc().quantity(nonce(deployed, node), "nonce") == 1


def test_a_peer_id_of_another_account_is_not_sent_and_ends_the_node_at_its_next_poll(node, deployed):
    other, ours = deployed.writer(), node.account.address
    other.register_peer("peer", NO_NOTES)
    node.outbox.ensure_registration()
    step(node)
    assert "PeerIdAlreadyRegistered" in notes(node)["registration"]
    assert "eth_sendRawTransaction" not in node.hostile.methods
    with pytest.raises(PeerTaken, match=rf"registered to account {other.address}, not .*{ours}"):
        require_owner("peer", node.reads.view("peer", ours).owner, ours)


@pytest.mark.parametrize(("read", "name"), [("reward", "RewardAlreadySubmitted"), ("vote", "WinnerAlreadyVoted")])
def test_what_the_chain_has_already_is_done(node, deployed, monkeypatch, read, name):
    """The look is out of date, so that the simulation finds it."""
    node.outbox.ensure_registration()
    until_done(node)
    node.writer.submit_reward(RoundId(number=0), 3, "peer", NO_NOTES)
    node.writer.submit_winners(0, ["peer"], "peer", NO_NOTES)
    before = nonce(deployed, node)
    look = getattr(node.reads, read)
    stale = SimpleNamespace(recorded=False, receipts={}, nonce=0)
    monkeypatch.setattr(node.reads, read, lambda *arguments: look(*arguments) and stale)
    credit(node, 0)
    step(node)
    assert node.outbox.open_items() == []
    assert f"the chain had it already ({name})" in notes(node).values()
    assert nonce(deployed, node) == before


def test_an_item_of_a_round_that_the_chain_has_not_reached_is_held(node, deployed):
    node.outbox.ensure_registration()
    until_done(node)
    credit(node, 2)
    step(node)
    assert notes(node)["reward"] == "held: the chain is at round 0, before the item's round 2"
    deployed.tick(2)
    make_due(node)
    until_done(node)
    assert on_chain(deployed, 2) == (3, 1, ("peer", "other"))


@pytest.mark.parametrize(
    ("round_id", "name"),
    [(RoundId(number=3), "InvalidRoundNumber"), (RoundId(number=0, stage=2), "InvalidStageNumber")],
)
def test_a_round_or_stage_that_the_contract_refuses_is_held(node, monkeypatch, round_id, name):
    monkeypatch.setattr(delivery, "backoff_s", lambda *_: 600.0)
    node.outbox.ensure_registration()
    until_done(node)
    node.outbox.credit(round_id, 3.0, [])
    node.outbox.fold()
    view = node.reads.view("peer", node.writer.address)
    seen = SimpleNamespace(owner=view.owner, round_id=RoundId(number=9))  # as an RPC says that is ahead of the others
    node.delivery.deliver(seen)
    (item,) = node.outbox.open_items()
    assert (item.state, item.note) == (ItemState.WAITING, f"the contract refuses submitReward: {name}")
    assert item.due_at_s > time.time() + 300
    node.delivery.deliver(seen)
    assert node.outbox.open_items()[0].tries == 1  # not at once again


def test_a_vote_that_the_contract_never_takes_is_dropped(node, monkeypatch):
    node.outbox.ensure_registration()
    until_done(node)
    monkeypatch.setattr(
        node.writer, "submit_winners", lambda number, winners, *rest: CoordinatorWriter.submit_winners(
            node.writer, number, [*winners, *winners], *rest
        )
    )  # fmt: skip
    credit(node, 0)
    step(node)
    assert [(item.kind, item.state, item.note) for item in read_pending(node.path).items][-1] == (
        Kind.VOTE,
        ItemState.DROPPED,
        "the contract refuses submitWinners: InvalidVote",
    )


def test_invalid_voter_registers_once_retries_once_and_stops(node):
    credit(node, 0, winners=())
    view = SimpleNamespace(owner=node.account.address, round_id=RoundId(number=0))  # a look that is wrong
    node.delivery.deliver(view)
    assert "InvalidVoterPeerId; registering again" in notes(node)["reward"]
    assert [item.kind for item in node.outbox.open_items()].count(Kind.REGISTRATION) == 1
    for item in node.outbox.open_items():
        if item.kind is Kind.REWARD:
            node.outbox.postpone(item, 0.0, "")
        else:
            node.outbox.finish(item, ItemState.DONE, "")  # it is said to be registered, and is not
    node.delivery.deliver(view)
    assert "though it was registered again: nothing is submitted" in node.delivery.halted
    asked = len(node.hostile.asked)
    assert not node.delivery.deliver(view)
    assert len(node.hostile.asked) == asked
    assert node.outbox.open_items()[0].reward == 3  # kept for the next start


def test_registering_again_helps_when_the_peer_was_not_registered(node, deployed):
    credit(node, 0)
    node.delivery.deliver(SimpleNamespace(owner=node.account.address, round_id=RoundId(number=0)))
    make_due(node)
    until_done(node)
    assert on_chain(deployed) == (3, 1, ("peer", "other"))


def test_an_account_without_funds_sends_nothing_and_goes_on_when_it_has_some(node, deployed):
    poor = Account(new_key(), deployed.rpc())
    writer = CoordinatorWriter(deployed.contract, poor)
    node.delivery = Submissions(node.outbox, node.reads, writer)
    node.writer = writer
    with pytest.raises(InsufficientFunds, match=rf"send it some ETH at {poor.address}; training continues"):
        step(node)
    assert node.outbox.open_items()[0].state is ItemState.WAITING
    deployed.chain.fund(poor.address)
    until_done(node)


def test_fees_above_the_limit_are_not_paid(deployed):
    account = deployed.account(max_fee_gwei=1e-9)
    journal = Journal(store=lambda _: pytest.fail("it was signed"))
    with pytest.raises(FeesTooHigh, match=r"more than ledger\.max_fee_gwei=1e-09"):
        CoordinatorWriter(deployed.contract, account).register_peer("peer", journal)


def test_an_rpc_that_makes_up_fees_cannot_empty_the_account(node):
    node.hostile.mode = "answers"
    for method, answer in (
        ("eth_maxPriorityFeePerGas", hex(10**18)),
        ("eth_estimateGas", hex(10**9)),
        ("eth_estimateGas", hex(10**400)),
        ("eth_getTransactionCount", hex(1 << 63)),
    ):
        node.hostile.answers = {method: answer}
        with pytest.raises((FeesTooHigh, RpcFault)):
            step(node)
    assert "eth_sendRawTransaction" not in node.hostile.methods


def test_a_nonce_taken_by_another_machine_is_tried_again(node, deployed):
    """Elsewhere the account is used between the taking of the nonce and the sending."""
    elsewhere = CoordinatorWriter(deployed.contract, Account(bytes(node.account._signer.key), deployed.rpc()))
    stored = []

    def store(transaction):
        stored.append(transaction.nonce)
        if len(stored) < 3:
            with open_turn(node.account):
                elsewhere.register_peer(f"elsewhere{len(stored)}", NO_NOTES)

    node.writer.register_peer("peer", Journal(store=store))
    assert stored == [0, 1, 2]
    wait_until(lambda: deployed.read("getEoa(string[])", ["peer"]) == (node.account.address.lower(),))  # it is mined


def test_a_transaction_that_is_refused_after_it_was_mined_is_not_signed_again(node, deployed, monkeypatch):
    """As by an RPC that sends it to several nodes, and answers what the slowest of them says."""
    broadcast = Rpc.broadcast

    def broadcast_twice(self, raw):
        broadcast(self, raw)
        wait_until(lambda: deployed.rpc().quantity(nonce(deployed, node, "latest"), "nonce") > 0)
        raise NonceRace("nonce too low")

    monkeypatch.setattr(Rpc, "broadcast", broadcast_twice)
    stored = []
    hash_ = node.writer.register_peer("peer", Journal(store=stored.append))
    assert [transaction.hash for transaction in stored] == [hash_]


def open_turn(account):
    """As on another machine: no lock."""
    return patch.object(Account, "_turn", lambda _: nullcontext())


def test_a_full_disk_keeps_a_transaction_from_leaving(node, deployed):
    credit(node, 0)
    node.outbox.ensure_registration()
    full = files_of_at_most(os.path.getsize(f"{node.path}-wal"))
    with full, pytest.raises(OutboxError, match="free some disk"):
        step(node)
    assert "eth_estimateGas" in node.hostile.methods  # it was about to
    assert "eth_sendRawTransaction" not in node.hostile.methods
    until_done(node)
    assert on_chain(deployed) == (3, 1, ("peer", "other"))

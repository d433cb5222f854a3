"""Transactions that wait in a real mempool, on an anvil that mines when told to."""

from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from codezero.ledger.account import Account
from codezero.ledger.coordinator import CoordinatorWriter
from codezero.ledger.faults import AlreadyKnown, NonceRace
from codezero.ledger.submissions import Submissions
from codezero.ledger.transactions import Journal
from codezero.types import RoundId
from tests import chains
from tests.chain import LiveChain
from tests.unit.ledger.peer import NO_NOTES


@pytest.fixture
def anvil():
    """One of the test's own: its mempool is anybody's."""
    with chains.running() as running:
        yield running


@pytest.fixture
def node(anvil, tmp_path):
    """A peer that is registered. From here on nothing is mined by itself."""
    deployed = LiveChain(anvil).deploy()
    writer, outbox = deployed.writer(), deployed.outbox(tmp_path / "outbox.sqlite")
    writer.register_peer("peer", NO_NOTES)
    deployed.chain.settle()
    delivery = Submissions(outbox, deployed.coordinator, writer)

    def ask(method, *params):
        (answer,) = deployed.rpc().ask([(method, list(params))])
        return answer

    ask("evm_setAutomine", False)
    yield SimpleNamespace(
        deployed=deployed,
        writer=writer,
        outbox=outbox,
        ask=ask,
        step=lambda: delivery.deliver(deployed.coordinator.view("peer", writer.address)),
    )
    outbox.close()


def mined(node):
    """Total reward, and transactions of the account."""
    count = node.ask("eth_getTransactionCount", node.writer.address, "latest")
    return node.deployed.read("getTotalRewards(string[])", ["peer"])[0], int(count, 16)


def send_a_reward(node):
    """The item, and its transaction."""
    node.outbox.credit(RoundId(number=0), 3.0, [])
    node.outbox.fold()
    node.step()
    (item,) = node.outbox.open_items()
    (transaction,) = node.outbox.sent(item)
    return item, transaction


def test_what_nobody_mines_is_sent_again_then_replaced_and_arrives_once(node, clock):
    """The fees rise above what was offered."""
    item, first = send_a_reward(node)
    clock.skip(5.0)
    node.step()
    assert node.outbox.sent(item) == [first]  # it is waited for
    clock.skip(61.0)
    node.step()
    (again,) = node.outbox.sent(item)
    assert (again.hash, again.sent_at_s > first.sent_at_s) == (first.hash, True)  # the same bytes, which anvil knows
    node.ask("anvil_setNextBlockBaseFeePerGas", hex(50 * 10**9))
    node.ask("evm_mine")
    assert mined(node) == (0, 1)
    clock.skip(601.0)
    node.step()
    _, second = node.outbox.sent(item)
    assert (second.nonce, second.max_fee_wei > 50 * 10**9) == (first.nonce, True)
    node.ask("evm_mine")
    clock.skip(5.0)
    node.step()
    assert node.outbox.open_items() == []
    assert mined(node) == (3, 2)


def test_a_mempool_that_is_lost_is_filled_again(node, clock):
    item, first = send_a_reward(node)
    node.ask("anvil_dropAllTransactions")
    node.ask("evm_mine")
    clock.skip(61.0)
    node.step()
    assert [transaction.hash for transaction in node.outbox.sent(item)] == [first.hash]
    node.ask("evm_mine")
    clock.skip(5.0)
    node.step()
    assert node.outbox.open_items() == []
    assert mined(node) == (3, 2)


@pytest.mark.parametrize("how", ["its mempool drops it", "its chain goes back"])
def test_a_nonce_behind_one_that_the_chain_has_lost_is_given_up(node, clock, how):
    """The one before it is another machine's, which does not send it again."""
    elsewhere = CoordinatorWriter(node.deployed.contract, node.writer.sender)
    snapshot = node.ask("evm_snapshot")
    lost = elsewhere.register_peer("elsewhere", NO_NOTES)
    if how == "its chain goes back":
        node.ask("evm_mine")
    item, first = send_a_reward(node)
    if how == "its chain goes back":
        assert node.ask("evm_revert", snapshot)
    else:
        node.ask("anvil_dropTransaction", lost)
    node.ask("evm_mine")
    clock.skip(61.0)
    node.step()
    node.ask("evm_mine")
    assert (first.nonce, mined(node)) == (2, (0, 1))  # sent again, it waits
    clock.skip(601.0)
    node.step()
    *_, last = node.outbox.sent(item)
    node.ask("evm_mine")
    clock.skip(5.0)
    node.step()
    assert (last.nonce, node.outbox.open_items()) == (1, [])
    node.ask("evm_mine")
    assert mined(node)[0] == 3


def test_a_nonce_that_waits_for_a_transaction_of_another_machine_is_given_up(node):
    """As that one is not mined yet, it looks like a replacement that pays too little."""
    elsewhere = Account(bytes(node.writer.sender._signer.key), node.deployed.rpc())
    elsewhere._turn = nullcontext  # its machine has a lock of its own
    nonces = []

    def store(transaction):
        nonces.append(transaction.nonce)
        if len(nonces) == 1:
            CoordinatorWriter(node.deployed.contract, elsewhere).register_peer("elsewhere", NO_NOTES)

    node.writer.register_peer("here", Journal(store=store))
    assert nonces == [1, 2]
    node.ask("evm_mine")
    owners = node.deployed.read("getEoa(string[])", ["here", "elsewhere"])
    assert owners == (node.writer.address.lower(),) * 2


def test_a_mempool_s_own_words_are_understood(node):
    sent = []
    node.writer.register_peer("another", Journal(store=sent.append))
    with pytest.raises(AlreadyKnown):
        node.deployed.rpc().broadcast(sent[0].raw)
    node.ask("evm_mine")
    with pytest.raises((NonceRace, AlreadyKnown)):
        node.deployed.rpc().broadcast(sent[0].raw)

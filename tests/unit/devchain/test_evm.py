"""The chain itself: what web3 reads from it, what it refuses, and that it is whole after any end."""

import os
import random
import sqlite3
import subprocess
import sys
import time

import pytest
from eth_abi.abi import encode
from web3 import HTTPProvider, Web3
from web3.exceptions import ContractCustomError, TransactionNotFound, Web3RPCError

from codezero.devchain.evm import BLOCK_GAS, CallRefused, EvmChain, UnsignedTransaction
from codezero.devchain.store import ChainStore
from codezero.errors import ChainError
from codezero.ledger import abi
from tests import chains
from tests.chains import ACCOUNTS, CHAIN_ID

GWEI = 10**9
ACCOUNT = ACCOUNTS[5]
SOMEBODY = "0x52908400098527886E0F7030069857D2E4169EE7"


@pytest.fixture
def web3(dev_chain):
    return Web3(HTTPProvider(dev_chain.url, request_kwargs={"timeout": 30}))


def signed(web3, account=ACCOUNT, **fields):
    filled = {
        "nonce": web3.eth.get_transaction_count(account.address),
        "chainId": CHAIN_ID,
        "gas": 21000,
        "maxFeePerGas": 3 * GWEI,
        "maxPriorityFeePerGas": GWEI,
        "to": SOMEBODY,
        "value": 1,
        **fields,
    }
    return account.sign_transaction({key: value for key, value in filled.items() if value is not None})


def test_a_payment_arrives_and_everything_about_it_can_be_read(web3):
    before, paid_before = web3.eth.get_balance(SOMEBODY), web3.eth.get_balance(ACCOUNT.address)
    sent = signed(web3, value=5 * GWEI)
    assert web3.eth.send_raw_transaction(sent.raw_transaction) == sent.hash
    receipt, shown = web3.eth.get_transaction_receipt(sent.hash), web3.eth.get_transaction(sent.hash)
    block = web3.eth.get_block("latest", full_transactions=True)
    assert (receipt["status"], receipt["gasUsed"], receipt["type"], receipt["contractAddress"]) == (1, 21000, 2, None)
    assert (receipt["from"], receipt["to"], receipt["logs"]) == (ACCOUNT.address, SOMEBODY, [])
    nonce = web3.eth.get_transaction_count(ACCOUNT.address) - 1
    assert (shown["value"], shown["nonce"], shown["maxFeePerGas"]) == (5 * GWEI, nonce, 3 * GWEI)
    assert block["transactions"] == [shown]
    assert (block["hash"], block["number"], block["gasUsed"]) == (receipt["blockHash"], receipt["blockNumber"], 21000)
    assert web3.eth.get_block(block["hash"])["transactions"] == [sent.hash]
    assert web3.eth.get_balance(SOMEBODY) == before + 5 * GWEI
    price = block["baseFeePerGas"] + GWEI
    assert receipt["effectiveGasPrice"] == shown["gasPrice"] == price
    assert web3.eth.get_balance(ACCOUNT.address) == paid_before - 5 * GWEI - 21000 * price
    assert web3.eth.get_balance(SOMEBODY, block["number"] - 1) == before


def test_old_forms_of_a_transaction_are_taken(web3):
    legacy = {"maxFeePerGas": None, "maxPriorityFeePerGas": None, "gasPrice": 5 * GWEI}
    for fields, type_ in ((legacy, 0), (legacy | {"accessList": [], "gas": 30000}, 1)):
        sent = signed(web3, **fields)
        web3.eth.send_raw_transaction(sent.raw_transaction)
        receipt, shown = web3.eth.get_transaction_receipt(sent.hash), web3.eth.get_transaction(sent.hash)
        assert (receipt["status"], receipt["type"], receipt["effectiveGasPrice"]) == (1, type_, 5 * GWEI)
        assert (shown["type"], shown["gasPrice"]) == (type_, 5 * GWEI)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"nonce": 10**6}, "nonce too high"),
        ({"chainId": 685685}, "invalid chain id for signer: have 685685 want 31337"),
        ({"value": 10**30}, "Insufficient funds for gas \\* price \\+ value"),
        ({"gas": 20999}, "intrinsic gas too low"),
        ({"gas": BLOCK_GAS + 1}, "exceeds block gas limit"),
        ({"maxFeePerGas": 1, "maxPriorityFeePerGas": 0}, "max fee per gas less than block base fee"),
        ({"chainId": 685685, "gasPrice": GWEI, "maxFeePerGas": None, "maxPriorityFeePerGas": None}, "invalid chain id"),
        ({"chainId": None, "gasPrice": GWEI, "maxFeePerGas": None, "maxPriorityFeePerGas": None}, "replay-protected"),
    ],
)
def test_a_transaction_that_cannot_be_mined_is_refused_and_leaves_no_trace(web3, fields, message):
    block, nonce = web3.eth.block_number, web3.eth.get_transaction_count(ACCOUNT.address)
    sent = signed(web3, **fields)
    with pytest.raises(Web3RPCError, match=message):
        web3.eth.send_raw_transaction(sent.raw_transaction)
    assert (web3.eth.block_number, web3.eth.get_transaction_count(ACCOUNT.address)) == (block, nonce)
    with pytest.raises(TransactionNotFound):
        web3.eth.get_transaction(sent.hash)


def test_the_same_transaction_again_is_too_late(web3):
    sent = signed(web3)
    web3.eth.send_raw_transaction(sent.raw_transaction)
    with pytest.raises(Web3RPCError, match="nonce too low"):
        web3.eth.send_raw_transaction(sent.raw_transaction)


def test_no_bytes_that_are_not_a_signed_transaction_harm_the_chain(tmp_path):
    chooser = random.Random(1)
    evm = EvmChain(tmp_path / "chain.db", CHAIN_ID, {bytes.fromhex(ACCOUNT.address[2:]): 10**20})
    fields = {"nonce": 0, "chainId": CHAIN_ID, "gas": 21000, "maxFeePerGas": 3 * GWEI, "maxPriorityFeePerGas": GWEI}
    good = bytes(ACCOUNT.sign_transaction({**fields, "to": SOMEBODY, "value": 1}).raw_transaction)
    spoilt = [bytes([kind]) for kind in range(256)] + [good[:cut] for cut in range(0, len(good), 5)]
    spoilt += [chooser.randbytes(chooser.randrange(200)) for _ in range(100)]
    for _ in range(60):
        changed = bytearray(good)
        changed[chooser.randrange(len(good))] ^= 1 << chooser.randrange(8)
        spoilt.append(bytes(changed))
    for raw in spoilt:
        with pytest.raises(CallRefused):
            evm.send(raw)
    assert evm.head.block_number == 0
    evm.send(good)
    assert evm.head.block_number == 1
    evm.close()


def coordinator_of(web3, dev_chain):
    return web3.eth.contract(address=dev_chain.coordinator(), abi=abi.load("SwarmCoordinator").abi)


def test_a_transaction_that_reverts_is_mined_and_its_reason_can_be_asked_for(web3, dev_chain):
    contract = coordinator_of(web3, dev_chain)
    call = contract.functions.updateStageAndRound()
    data = call._encode_transaction_data()
    sent = signed(web3, to=contract.address, value=0, gas=100_000, data=data)
    web3.eth.send_raw_transaction(sent.raw_transaction)
    receipt = web3.eth.get_transaction_receipt(sent.hash)
    assert (receipt["status"], receipt["logs"]) == (0, [])
    with pytest.raises(ContractCustomError) as raised:
        call.call({"from": ACCOUNT.address}, block_identifier=receipt["blockNumber"] - 1)
    assert abi.error_names()[raised.value.data] == "OnlyStageManager"
    with pytest.raises(ContractCustomError):
        call.estimate_gas({"from": ACCOUNT.address})


def test_an_unknown_function_reverts_without_data(web3, dev_chain):
    with pytest.raises(Web3RPCError, match="execution reverted") as raised:
        web3.manager.request_blocking("eth_call", [{"to": dev_chain.coordinator(), "data": "0x12345678"}])
    assert raised.value.rpc_response["error"]["data"] == "0x"


def test_calls_are_made_on_any_block_and_change_none(web3, dev_chain):
    contract, client = coordinator_of(web3, dev_chain), dev_chain.client()
    first = web3.eth.block_number
    client.transact(client.contract("SwarmCoordinator", contract.address), "updateStageAndRound()")
    assert contract.functions.updateStageAndRound().call({"from": ACCOUNTS[0].address}) == [2, 0]
    assert contract.functions.currentRound().call() == 1
    assert contract.functions.currentRound().call(block_identifier=first) == 0
    with web3.batch_requests() as batch:
        batch.add(contract.functions.currentRound())
        batch.add(contract.functions.currentStage())
        assert batch.execute() == [1, 0]


def test_logs_are_found_by_block_address_and_topic(web3, dev_chain):
    contract, other = coordinator_of(web3, dev_chain), coordinator_of(web3, dev_chain)
    for peer, at in (("a", contract), ("b", other), ("c", contract)):
        client = dev_chain.client(ACCOUNTS[1])
        client.transact(client.contract("SwarmCoordinator", at.address), "registerPeer(string)", peer)
    first, event = web3.eth.block_number - 2, contract.events.PeerRegistered()
    found = event.get_logs(from_block=first)
    assert [(log["args"]["peerId"], log["args"]["eoa"]) for log in found] == [
        ("a", ACCOUNTS[1].address),
        ("c", ACCOUNTS[1].address),
    ]
    assert [log["blockNumber"] for log in found] == [first, first + 2]
    assert len(event.get_logs(from_block=first, to_block=first)) == 1
    topic = "0x" + encode(["address"], [ACCOUNTS[1].address]).hex()
    both = {"fromBlock": hex(first), "address": [contract.address, other.address]}
    for topics, number in (
        ([], 3),
        ([None, topic], 3),
        ([[event.topic, "0x" + "00" * 32], [topic]], 3),
        (["0x" + "00" * 32], 0),
        ([None, None, None], 0),
    ):
        assert len(web3.eth.get_logs({**both, "topics": topics})) == number
    assert len(web3.eth.get_logs({"blockHash": found[0]["blockHash"]})) == 1


def test_gas_is_estimated_enough_and_what_fees_there_are_can_be_read(web3, dev_chain):
    contract = coordinator_of(web3, dev_chain)
    gas = contract.functions.registerPeer("estimate").estimate_gas({"from": ACCOUNT.address})
    sent = signed(
        web3,
        to=contract.address,
        value=0,
        gas=gas,
        data=contract.functions.registerPeer("estimate")._encode_transaction_data(),
    )
    web3.eth.send_raw_transaction(sent.raw_transaction)
    assert web3.eth.get_transaction_receipt(sent.hash)["status"] == 1
    assert web3.eth.max_priority_fee == GWEI
    base = web3.eth.get_block("pending")["baseFeePerGas"]
    assert web3.eth.gas_price == base + GWEI
    history = web3.eth.fee_history(2, "latest", [50.0])
    assert len(history["baseFeePerGas"]) == 3
    assert history["baseFeePerGas"][-1] == base
    assert history["reward"] == [[GWEI], [GWEI]]


def test_an_endless_loop_ends_with_the_gas_of_a_block(tmp_path):
    evm = EvmChain(tmp_path / "chain.db", CHAIN_ID, {})
    with pytest.raises(CallRefused, match="OutOfGas"):
        evm.call(UnsignedTransaction(data=bytes.fromhex("5b600056"), gas=200_000), evm.head)
    evm.close()


def test_a_burst_of_transactions_does_not_run_ahead_of_the_clock(web3):
    for _ in range(5):
        web3.eth.send_raw_transaction(signed(web3).raw_transaction)
    assert web3.eth.get_block("latest")["timestamp"] <= time.time()


def test_time_does_not_run_backwards_with_the_machines_clock(tmp_path, monkeypatch):
    evm = EvmChain(tmp_path / "chain.db", CHAIN_ID, {})
    began = evm.head.timestamp
    monkeypatch.setattr(time, "time", lambda: began - 1000.0)
    assert evm.next_header().timestamp == began
    evm.close()


# The file


def test_a_chain_goes_on_where_it_was(tmp_path):
    with chains.running(tmp_path) as chain:
        address = chain.coordinator()
        client = chain.client()
        contract = client.contract("SwarmCoordinator", address)
        receipt = client.transact(contract, "registerPeer(string)", "kept")
    with chains.running(tmp_path) as chain:
        client = chain.client()
        contract = client.contract("SwarmCoordinator", address)
        assert contract.functions.getEoa(["kept"]).call() == [ACCOUNTS[0].address]
        assert client.web3.eth.get_transaction_receipt(receipt["transactionHash"]) == receipt
        assert client.next_nonce() == 2
        assert len(contract.events.PeerRegistered().get_logs(from_block=0)) == 1
        client.transact(contract, "registerPeer(string)", "further")


_WRITER = """
import sys
from pathlib import Path
from codezero.devchain.evm import EvmChain
from tests.chains import ACCOUNTS, CHAIN_ID
account = ACCOUNTS[0]
funds = {bytes.fromhex(account.address[2:]): 10**24}
evm = EvmChain(Path(sys.argv[1]), CHAIN_ID, funds)
nonce = evm.state(evm.head).get_nonce(bytes.fromhex(account.address[2:]))
while True:
    fields = dict(nonce=nonce, chainId=CHAIN_ID, gas=21000, maxFeePerGas=3 * 10**9, maxPriorityFeePerGas=10**9)
    sent = account.sign_transaction({**fields, "to": account.address, "value": 0})
    print(evm.send(bytes(sent.raw_transaction)), flush=True)
    nonce += 1
"""


@pytest.mark.slow
def test_a_killed_chain_has_all_that_it_had_confirmed_and_no_half_of_what_it_had_not(tmp_path):
    path, confirmed, chooser = tmp_path / "chain.db", [], random.Random(2)
    for _ in range(3):
        process = subprocess.Popen([sys.executable, "-c", _WRITER, str(path)], stdout=subprocess.PIPE, text=True)
        confirmed.append(process.stdout.readline().strip())
        time.sleep(chooser.random() * 0.5)
        process.kill()
        confirmed += [line.strip() for line in process.communicate()[0].splitlines() if len(line.strip()) == 66]
        evm = EvmChain(path, CHAIN_ID, {})
        height, owner = evm.head.block_number, bytes.fromhex(ACCOUNTS[0].address[2:])
        assert all(evm.store.receipt(hash_) for hash_ in confirmed)
        assert len(confirmed) <= height <= len(confirmed) + 3
        assert evm.state(evm.head).get_nonce(owner) == height
        assert evm.store.block(height) is not None
        assert evm.store.block(height + 1) is None
        evm.close()


def test_a_full_disk_refuses_the_transaction_and_keeps_the_chain(tmp_path, monkeypatch):
    with chains.running(tmp_path) as chain:
        client = chain.client()
        before = client.web3.eth.block_number

        def full(self, *arguments):
            raise sqlite3.OperationalError("database or disk is full")

        with monkeypatch.context() as patch:
            patch.setattr(ChainStore, "add_block", full)
            with pytest.raises(ChainError, match="the chain cannot be stored"):
                client.transfer(SOMEBODY, 1)
        assert client.web3.eth.block_number == before
        assert client.web3.eth.get_balance(SOMEBODY) == 0
        client.transfer(SOMEBODY, 1)
        assert client.web3.eth.get_balance(SOMEBODY) == 1


@pytest.mark.parametrize("content", [b"no database at all, and longer than a header of one" * 10, b"\x00" * 4096])
def test_a_file_that_is_no_chain_is_told(tmp_path, content):
    (tmp_path / "chain.db").write_bytes(content)
    with pytest.raises(ChainError, match=r"cannot open the chain .*chain.db"):
        EvmChain(tmp_path / "chain.db", CHAIN_ID, {})


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_told(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(ChainError, match="cannot open the chain"):
        EvmChain(tmp_path / "chain.db", CHAIN_ID, {})

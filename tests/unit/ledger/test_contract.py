import pytest

from codezero.ledger import abi
from codezero.ledger.account import Account, ether
from codezero.ledger.contract import Contract, checksummed, error_name
from codezero.ledger.eth_imports import recursion_limit_kept
from codezero.ledger.faults import RpcBadReply
from codezero.ledger.transactions import Journal
from tests.chain import new_key
from tests.chains import CHAIN_ID
from tests.unit.ledger.peer import NO_NOTES

ADDRESS = "0x5FbDB2315678afecb367f032d93F642f64180aa3"
CONTRACT = Contract(ADDRESS, abi.load("SwarmCoordinator").abi)


@pytest.mark.parametrize(
    ("signature", "arguments"),
    [
        ("currentRound()", ()),
        ("registerPeer(string)", ("QmPeer",)),
        ("submitReward(uint256,uint256,int256,string)", (812, 0, -7, "QmPeer")),
        ("submitWinners(uint256,string[],string)", (2**64, ["a", "", "ü" * 99], "QmPeer")),
        ("getEoa(string[])", ([],)),
        ("hasSubmittedRoundStageReward(uint256,uint256,string)", (1, 2, "QmPeer")),
    ],
)
def test_calls_are_encoded_as_web3_does(signature, arguments):
    with recursion_limit_kept():
        from web3 import Web3

    web3 = Web3().eth.contract(address=ADDRESS, abi=abi.load("SwarmCoordinator").abi)
    call = CONTRACT.call(signature, *arguments)
    assert call.data == web3.get_function_by_signature(signature)(*arguments)._encode_transaction_data()
    assert (call.to, call.name) == (ADDRESS, signature.partition("(")[0])


def test_a_transaction_is_what_was_asked_for(deployed):
    """Read back by web3's own decoder: every field is given, and it can be replayed on no other chain."""
    with recursion_limit_kept():
        from eth_account.typed_transactions import TypedTransaction
        from hexbytes import HexBytes

    account, sent = deployed.account(), []
    call = deployed.contract.call("registerPeer(string)", "peer")
    hash_ = account.send(call, Journal(store=sent.append))
    fields = TypedTransaction.from_bytes(HexBytes(sent[0].raw)).as_dict()
    assert (fields["type"], fields["chainId"], fields["nonce"], fields["value"]) == (2, CHAIN_ID, 0, 0)
    assert ("0x" + fields["to"].hex(), "0x" + fields["data"].hex()) == (deployed.address.lower(), call.data)
    assert fields["maxFeePerGas"] >= fields["maxPriorityFeePerGas"] > 0
    (receipt,) = deployed.rpc().ask([("eth_getTransactionReceipt", [hash_])])
    assert int(receipt["gasUsed"], 16) <= fields["gas"] < 2 * int(receipt["gasUsed"], 16)
    assert sent[0].hash == hash_


def test_errors_have_their_names():
    named = abi.error_names()
    assert error_name("0xE39CE02E" + "00" * 32, named) == "RewardAlreadySubmitted"
    text = "08c379a0" + f"{32:064x}{5:064x}" + b"a\x1bbcd".hex().ljust(64, "0")
    assert error_name("0x" + text, named) == r"a\x1bbcd"
    assert error_name("0x08c379a0" + "ff" * 64, named) == "Error"
    assert error_name("0x4e487b71" + "00" * 32, named) == "Panic"
    assert error_name("0x08c379a0" + "00" * 64, named) == "Error"
    assert error_name("0xdeadbeef", named) == "unknown error 0xdeadbeef"
    assert error_name("no hex \x1b[2J", named) == r"unknown error no hex \x1b[2"
    assert error_name("", named) == error_name("0x", named) == "no reason given"


BOMB = f"{32:064x}{3000:064x}" + f"{32 * 3000:064x}" * 3000 + f"{100_000:064x}" + "61" * 100_000
"""A list of 3000 strings, all of which are the same 100 kB."""


@pytest.mark.parametrize(
    "answer",
    [
        *("0x", "0x01", "0x" + "ff" * 32, "0xzz", "0x" + f"{32:064x}{2**200:064x}"),
        *(f"0x{32:064x}{1:064x}{2**255:064x}", pytest.param("0x" + BOMB, id="bomb")),
    ],
)
def test_what_does_not_decode_is_a_bad_reply(answer):
    with pytest.raises(RpcBadReply, match=r"answer to getBootnodes\(\) does not decode"):
        CONTRACT.call("getBootnodes()").decode(answer)


def test_text_that_is_no_utf8_is_a_bad_reply():
    answer = f"0x{32:064x}{1:064x}{32:064x}{2:064x}" + "fffe".ljust(64, "0")
    with pytest.raises(RpcBadReply):
        CONTRACT.call("getBootnodes()").decode(answer)


def test_addresses_are_checked():
    assert checksummed(ADDRESS.lower()) == ADDRESS
    for wrong in ("", "0x12", ADDRESS[:-1] + "4", ADDRESS.replace("0x5F", "0x5f")):
        with pytest.raises(ValueError, match="is not an address"):
            checksummed(wrong)


def test_the_view_of_a_fresh_and_of_a_used_contract(deployed):
    writer = deployed.writer()
    view = deployed.coordinator.view("peer", writer.address)
    assert (view.round_id.number, view.owner) == (0, None)
    assert (deployed.coordinator.bootnodes(), deployed.coordinator.earned("peer")) == ((), (0, 0))
    assert view.balance_wei == 10**18
    writer.register_peer("peer", NO_NOTES)
    deployed.tick()
    writer.submit_reward(view.round_id, -3, "peer", NO_NOTES)
    writer.submit_winners(0, ["peer"], "peer", NO_NOTES)
    view = deployed.coordinator.view("peer", writer.address)
    assert (view.round_id.number, view.owner) == (1, writer.address)
    assert deployed.coordinator.earned("peer") == (-3, 1)


def test_a_key_and_its_address_do_not_show_the_key():
    key = new_key()
    account = Account(key, None)
    assert key.hex() not in repr(account) + repr(account._signer) + repr(vars(account))


@pytest.mark.parametrize(
    ("wei", "shown"), [(0, "0"), (1, "0.000000000000000001"), (10**18, "1"), (15 * 10**17, "1.5"), (10**21, "1000")]
)
def test_amounts_are_exact(wei, shown):
    assert ether(wei) == shown

"""What the owner does: deploy, hand out money, name bootnodes; and what can be wrong with a folder or a server."""

import json
import re
import stat

import pytest

from codezero.cli import main
from codezero.config import checkout
from codezero.devchain import coordinator, folder
from codezero.devchain.folder import ChainFolder
from codezero.errors import ChainError
from tests.chains import ACCOUNTS, CHAIN_ID
from tests.fakes import files_of_at_most
from tests.unit.ledger.hostile_rpc import HostileRpc

BOOTNODE = "/ip4/203.0.113.7/tcp/4001/p2p/QmYyQSo1c1Ym7orWxLYvCrM2EmxFTANf8wXmmE7DWjhx5N"
OTHER = "/ip4/203.0.113.8/tcp/4001/p2p/QmYyQSo1c1Ym7orWxLYvCrM2EmxFTANf8wXmmE7DWjhx5N"
SOMEBODY = "0x8617E340B3D01FA5F11F306F4090FD50E238070D"


@pytest.fixture
def home(tmp_path, dev_chain):
    """A folder for the chain of the tests, without a coordinator."""
    folder.save(ChainFolder(path=tmp_path, chain_id=CHAIN_ID, rpc_url=dev_chain.url))
    keys = {"private_keys": ["0x" + bytes(account.key).hex() for account in ACCOUNTS[4:]]}
    (tmp_path / "accounts.json").write_text(json.dumps(keys))
    return tmp_path


def run(home, capsys, *arguments):
    """Exit code, output and errors of a `codezero chain` command."""
    code = main(["chain", *arguments, "--folder", str(home)])
    return code, *capsys.readouterr()


def test_a_coordinator_is_deployed_once_and_its_settings_are_told(home, dev_chain, capsys):
    code, first, _ = run(home, capsys, "deploy")
    address = json.loads((home / "coordinator.json").read_text())["contract_address"]
    assert code == 0
    assert f"coordinator deployed at {address}, owned by {ACCOUNTS[4].address}" in first
    assert f"ledger=wallet ledger.rpc_url={dev_chain.url} ledger.contract_address={address}" in first
    assert f"ledger.chain_id={CHAIN_ID}" in first
    code, second, _ = run(home, capsys, "deploy")
    assert (code, second.splitlines()[1:]) == (0, first.splitlines()[1:])
    assert f"the coordinator is at {address} already" in second


def test_a_coordinator_that_the_chain_does_not_have_is_deployed_again(home, capsys):
    folder.find(home).set_coordinator(SOMEBODY)
    code, output, _ = run(home, capsys, "deploy", "--stages", "3")
    assert (code, "coordinator deployed at" in output) == (0, True)
    client, contract = coordinator.open_coordinator(home, None)
    assert client.read(contract, "stageCount()") == 3


def test_the_owner_s_key_is_read_also_where_nothing_can_be_written(home):
    with files_of_at_most(0):
        owner = folder.find(home).owner()
    assert owner.address == ACCOUNTS[4].address


def test_bootnodes_are_added_once_listed_and_cleared(home, capsys):
    run(home, capsys, "deploy")
    assert run(home, capsys, "bootnodes", "add", BOOTNODE, BOOTNODE, OTHER)[:2] == (0, "2 added, 2 in all\n")
    assert run(home, capsys, "bootnodes", "add", OTHER)[:2] == (0, "0 added, 2 in all\n")
    assert run(home, capsys, "bootnodes", "list")[:2] == (0, f"{BOOTNODE}\n{OTHER}\n")
    assert run(home, capsys, "bootnodes", "clear")[:2] == (0, "no bootnodes are left\n")
    assert run(home, capsys, "bootnodes", "list")[:2] == (0, "")


def test_what_others_wrote_as_bootnodes_cannot_reach_the_terminal(home, capsys):
    run(home, capsys, "deploy")
    client, contract = coordinator.open_coordinator(home, None)
    client.transact(contract, "addBootnodes(string[])", ["\x1b[2Jgone"])
    assert run(home, capsys, "bootnodes", "list")[1] == "\\x1b[2Jgone\n"


@pytest.mark.parametrize("address", ["nowhere", "/ip4/203.0.113.7/tcp/4001", "/ip4/1/tcp/1/p2p/Qm"])
def test_what_is_no_bootnode_is_refused(home, capsys, address):
    code, _, error = run(home, capsys, "bootnodes", "add", address)
    assert code == 1
    assert error.startswith(f"error: {address} is not a")


def test_money_is_sent(home, dev_chain, capsys):
    eth = dev_chain.web3.eth
    before = eth.get_balance(SOMEBODY)
    code, output, _ = run(home, capsys, "fund", SOMEBODY, SOMEBODY.lower(), "--amount", "0.5")
    assert code == 0
    assert output == f"{SOMEBODY} has got 0.5 ETH\n{SOMEBODY.lower()} has got 0.5 ETH\n"
    assert eth.get_balance(SOMEBODY) == before + 10**18


@pytest.mark.parametrize("amount", ["0", "-1", "1e-19", "10001", "nan", "inf", "much"])
def test_an_amount_that_cannot_be_sent_is_refused(home, capsys, amount):
    code, _, error = run(home, capsys, "fund", SOMEBODY, f"--amount={amount}")
    assert (code, error) == (
        1,
        f"error: --amount {amount} is not possible: use a number of coins such as 1 or 0.5\n",
    )


def test_an_address_that_is_none_is_refused_before_any_money_is_sent(home, dev_chain, capsys):
    nonce = dev_chain.client(ACCOUNTS[4]).next_nonce()
    code, _, error = run(home, capsys, "fund", SOMEBODY, "0x1234")
    assert (code, error) == (1, "error: '0x1234' is not an address: an address has 0x and 40 hex digits\n")
    assert dev_chain.client(ACCOUNTS[4]).next_nonce() == nonce


def test_a_folder_without_a_chain_or_a_chain_without_a_coordinator_says_what_to_do(home, capsys):
    empty = home / "an empty one"
    code, _, error = run(empty, capsys, "deploy")
    assert (code, f"start one with {checkout.COMMAND} chain up --folder '{empty}'" in error) == (1, True)
    code, _, error = run(home, capsys, "bootnodes", "list")
    assert (code, f"no coordinator is deployed: {checkout.COMMAND} chain deploy --folder" in error) == (1, True)


def test_a_server_that_is_away_or_another_chain_is_told(home, dev_chain, capsys):
    code, _, error = run(home, capsys, "deploy", "--rpc-url", "http://127.0.0.1:1")
    assert (code, "the RPC at 127.0.0.1:1 cannot be reached" in error) == (1, True)
    folder.save(ChainFolder(path=home, chain_id=5, rpc_url=dev_chain.url))
    code, _, error = run(home, capsys, "deploy")
    assert (code, f"{dev_chain.url} is not chain 5: give the --rpc-url of the right one" in error) == (1, True)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({"error": {"code": -32000, "message": "\x1b[2J\x07 and\nmore"}}, r"refuses getBootnodes: .*\\x1b"),
        (
            {"error": {"code": 3, "message": "execution reverted: \x1b[2J", "data": "0x"}},
            "the contract refuses ",
        ),
        ({"error": {"code": 3, "message": "execution reverted", "data": "0xdeadbeef"}}, "unknown error 0xdeadbeef"),
        ("\x1b[2J", "answered getBootnodes with .*, not a valid answer"),
        (None, "answered getBootnodes with .*, not a valid answer"),
    ],
)
def test_what_a_server_says_cannot_reach_the_terminal(home, dev_chain, capsys, answer, words):
    run(home, capsys, "deploy")
    with HostileRpc(behind=dev_chain.url).serving() as hostile:
        hostile.mode, hostile.answers = "answers", {"eth_call": answer}
        code, _, error = run(home, capsys, "bootnodes", "list", "--rpc-url", hostile.url)
    assert (code, error.count("\n"), "\x1b" in error) == (1, 1, False)
    assert re.search(words, error)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("chain.json", "{"),
        ("chain.json", "[]"),
        ("chain.json", '{"chain_id": "x", "rpc_url": ""}'),
        ("chain.json", '{"chain_id": 5}'),
        ("accounts.json", "{}"),
        ("accounts.json", '{"private_keys": []}'),
        ("accounts.json", '{"private_keys": ["0x12"]}'),
        ("accounts.json", '{"private_keys": 5}'),
        ("coordinator.json", "\x00"),
        ("coordinator.json", "{}"),
        ("coordinator.json", '{"contract_address": "home"}'),
    ],
)
def test_a_damaged_file_is_named(home, capsys, name, content):
    (home / name).write_text(content)
    code, _, error = run(home, capsys, "bootnodes", "list")
    assert code == 1
    assert error.startswith("error: ")
    assert name in error


def test_the_first_use_makes_an_account_whose_key_only_this_user_reads(tmp_path):
    chain = ChainFolder(path=tmp_path, chain_id=5, rpc_url="")
    owner = chain.owner()
    assert stat.S_IMODE((tmp_path / "accounts.json").stat().st_mode) == 0o600
    assert chain.owner().address == owner.address
    assert owner.address != "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"


def test_a_contract_that_is_not_there_is_told(dev_chain):
    with pytest.raises(ChainError, match=f"there is no contract at {SOMEBODY}"):
        dev_chain.client().contract("SwarmCoordinator", SOMEBODY)


@pytest.mark.parametrize("every", ["60", "0s", "0.5s", "1d", "-5m", "s"])
def test_a_period_that_is_none_is_refused(home, capsys, every):
    with pytest.raises(SystemExit):
        run(home, capsys, "tick", f"--every={every}")
    assert "no time of a second or more" in capsys.readouterr().err

"""The chain behind a real RPC, and one that lies."""

import json

import pytest

from codezero.config import checkout
from codezero.doctor import chain
from codezero.identity.key import Identity, save
from codezero.ledger import keystore
from codezero.ledger.contract import checksummed
from tests.chain import LiveChain, new_key
from tests.chains import CHAIN_ID
from tests.unit.doctor.cases import case_of, told
from tests.unit.doctor.test_servers import answering, closed_port
from tests.unit.ledger.hostile_rpc import HostileRpc

NOWHERE = "0x" + "11" * 20


@pytest.fixture
def deployed(dev_chain):
    return LiveChain(dev_chain).deploy()


def wallet(tmp_path, url, contract, *settings):
    given = ("ledger=wallet", f"ledger.rpc_url={url}", f"ledger.contract_address={contract}", "swarm=native")
    return case_of(tmp_path, *given, f"ledger.chain_id={CHAIN_ID}", *settings)


def with_account(tmp_path, deployed, wei=10**18):
    address = keystore.save(new_key(), tmp_path / "wallet.json", "correct horse", scrypt_n=2)
    if wei:
        deployed.chain.fund(address, wei)
    return address


def test_a_chain_an_account_and_a_peer_that_are_fine(tmp_path, deployed):
    made = Identity.generate()
    save(made, tmp_path / "swarm.pem")
    address = with_account(tmp_path, deployed)
    case = wallet(tmp_path, deployed.chain.url, deployed.address)
    findings = list(chain.check_chain(case))
    assert not told(findings, "error")
    assert not told(findings, "warning")
    assert f"{deployed.address} is at round 0" in told(findings, "ok")[0]
    assert f"{address} holds 1" in told(findings, "ok")[1]
    assert f"peer {made.peer_id} (" in told(findings, "info")[0]
    assert "is not registered yet" in told(findings, "info")[0]


def test_a_peer_that_belongs_to_another_account(tmp_path, deployed):
    made = Identity.generate()
    save(made, tmp_path / "swarm.pem")
    with_account(tmp_path, deployed)
    client, other = deployed.chain.client, deployed.chain.owner
    client.transact(client.contract("SwarmCoordinator", deployed.address), "registerPeer(string)", made.peer_id)
    (fault,) = told(chain.check_chain(wallet(tmp_path, deployed.chain.url, deployed.address)), "error")
    assert f"is registered to {other}, and this node's account is 0x" in fault
    assert "become a new peer" in fault


def test_an_account_that_cannot_pay(tmp_path, deployed):
    with_account(tmp_path, deployed, wei=10**15)
    (fault,) = told(chain.check_chain(wallet(tmp_path, deployed.chain.url, deployed.address)), "warning")
    assert "holds 0.001 ETH | it cannot pay for much longer" in fault


def test_no_wallet_and_nobody_signed_in(tmp_path, deployed):
    (fault,) = told(chain.check_chain(wallet(tmp_path, deployed.chain.url, deployed.address)), "error")
    assert "cannot read the keystore" in fault
    assert f"{checkout.COMMAND} wallet create" in fault
    common = (f"ledger.rpc_url={deployed.chain.url}", f"ledger.contract_address={deployed.address}")
    case = case_of(tmp_path, "ledger=modal", *common, f"ledger.chain_id={CHAIN_ID}")
    (fault,) = told(chain.check_chain(case), "error")
    assert "nobody has signed in" in fault


def test_who_has_signed_in_is_the_account(tmp_path, deployed):
    (tmp_path / "login").mkdir()
    account = "0x" + "ab" * 20
    keys = {"o": [{"activated": True, "accountAddress": account, "privateKey": "0x5ec"}]}
    (tmp_path / "login" / "userApiKey.json").write_text(json.dumps(keys))
    common = (f"ledger.rpc_url={deployed.chain.url}", f"ledger.contract_address={deployed.address}")
    case = case_of(tmp_path, "ledger=modal", *common, f"ledger.chain_id={CHAIN_ID}")
    findings = list(chain.check_chain(case))
    assert not told(findings, "error")
    assert any(checksummed(account) in text for text in told(findings, "ok"))


def test_another_chain_and_no_contract(tmp_path, deployed):
    with_account(tmp_path, deployed, wei=0)
    url = deployed.chain.url
    (fault,) = told(chain.check_chain(wallet(tmp_path, url, deployed.address, "ledger.chain_id=5")), "error")
    assert f"serves chain {CHAIN_ID}, not 5" in fault
    (fault,) = told(chain.check_chain(wallet(tmp_path, url, NOWHERE)), "error")
    assert NOWHERE in fault
    assert "a node signs nothing there" in fault
    (fault,) = told(chain.check_chain(wallet(tmp_path, url, "0x" + "zz" * 20)), "error")
    assert "is not an address" in fault


def test_a_market_that_is_none(tmp_path, deployed):
    with_account(tmp_path, deployed)
    market = ("market.enabled=true", f"market.contract_address={NOWHERE}")
    (fault,) = told(chain.check_chain(wallet(tmp_path, deployed.chain.url, deployed.address, *market)), "error")
    assert "market.contract_address" in fault


def test_an_rpc_that_is_away_or_none(tmp_path):
    keystore.save(new_key(), tmp_path / "wallet.json", "correct horse", scrypt_n=2)
    away = wallet(tmp_path, f"http://127.0.0.1:{closed_port()}", NOWHERE)
    (fault,) = told(chain.check_chain(away), "warning")
    assert "the RPC is not reached: 127.0.0.1 refuses the connection" in fault
    assert f"rewards wait in {tmp_path / 'state' / 'outbox.sqlite'} and" in fault
    with answering(b"<html>log in to this network</html>") as url:
        (fault,) = told(chain.check_chain(wallet(tmp_path, url + "/v2/secretkey12345678", NOWHERE)), "warning")
        assert "a proxy in between may have answered" in fault
        assert "secretkey" not in fault


def test_an_rpc_that_refuses_what_a_node_does_not_need(tmp_path, deployed):
    """The public one answers web3_clientVersion with 401, on which other nodes took it to be away."""
    with_account(tmp_path, deployed)
    with HostileRpc(deployed.chain.url).serving() as rpc:
        assert told(chain.check_chain(wallet(tmp_path, rpc.url, deployed.address)), "ok")
    assert set(rpc.methods) == {"eth_chainId", "eth_getCode", "eth_call", "eth_getBalance"}


def test_no_chain_at_all(tmp_path):
    (finding,) = chain.check_chain(case_of(tmp_path))
    assert "rewards are kept in a file" in finding.found

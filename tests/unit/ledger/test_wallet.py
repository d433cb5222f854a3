import pytest

from codezero.config import LedgerConfig
from codezero.errors import LedgerError
from codezero.ledger import keystore
from codezero.ledger.account import Account
from codezero.ledger.coordinator import Coordinator, CoordinatorWriter
from codezero.ledger.reading import read_pending
from codezero.ledger.rpc import open_contract
from codezero.ledger.submitter import Submitter
from codezero.types import RoundId
from tests.chain import new_key
from tests.chains import CHAIN_ID
from tests.processes import wait_until


def test_from_a_keystore_to_the_chain_and_back(deployed, tmp_path, monkeypatch):
    """What a node does: open, start, play, stop; and again, with nothing left to do."""
    monkeypatch.setattr("codezero.ledger.submitter.POLL_S", 0.1)
    (tmp_path / "passphrase").write_text("correct horse\n")
    deployed.chain.fund(keystore.save(new_key(), tmp_path / "wallet.json", "correct horse", scrypt_n=2))
    for run in (1, 2):
        address = deployed.address.lower()
        contract, rpc = open_contract("SwarmCoordinator", address, rpc_url=deployed.chain.url, chain_id=CHAIN_ID)
        key = keystore.load(tmp_path / "wallet.json", keystore.passphrase(str(tmp_path / "passphrase")))
        writer = CoordinatorWriter(contract, Account(key, rpc))
        outbox = deployed.outbox(tmp_path / "outbox.sqlite")
        submitter = Submitter(outbox, Coordinator(contract, rpc), writer, LedgerConfig())
        submitter.start()
        wait_until(lambda submitter=submitter: submitter.view is not None and submitter.view.owner is not None)
        submitter.credit(RoundId(number=0), 2.0, ["peer"])
        submitter.stop(60.0)
        outbox.close()
        assert deployed.read("getTotalRewards(string[])", ["peer"]) == (2,), run
        assert deployed.read("getVoterVotes(uint256,string)", 0, "peer") == ("peer",)
    assert len(read_pending(tmp_path / "outbox.sqlite").items) == 3


def test_a_mistyped_contract_address_is_named():
    with pytest.raises(LedgerError, match=r"ledger\.contract_address: '0x12' is not an address"):
        open_contract("SwarmCoordinator", "0x12", rpc_url="http://127.0.0.1:9", chain_id=1)

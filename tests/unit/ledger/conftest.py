from types import SimpleNamespace

import pytest

from codezero.ledger import delivery, jsonrpc
from codezero.ledger.account import Account
from codezero.ledger.coordinator import Coordinator, CoordinatorWriter
from codezero.ledger.jsonrpc import JsonRpc
from codezero.ledger.submissions import Submissions
from tests.chain import LiveChain, new_key
from tests.unit.ledger.hostile_rpc import HostileRpc


@pytest.fixture(scope="session")
def chain(dev_chain):
    return LiveChain(dev_chain)


@pytest.fixture
def deployed(chain, monkeypatch):
    """A coordinator of the test's own."""
    chain.mine_at_once(monkeypatch)
    return chain.deploy()


@pytest.fixture
def node(deployed, tmp_path, monkeypatch):
    """A peer with an account of its own behind an RPC that can be told to misbehave."""
    monkeypatch.setattr(jsonrpc, "WAIT_S", 0.001)
    monkeypatch.setattr(delivery, "LOOK_AGAIN_S", 0.0)
    with HostileRpc(behind=deployed.chain.url).serving() as hostile:
        rpc = deployed.rpc(JsonRpc(hostile.url, timeout_s=60.0))
        account = Account(new_key(), rpc)
        deployed.chain.fund(account.address)
        writer = CoordinatorWriter(deployed.contract, account)
        reads = Coordinator(deployed.contract, rpc)
        outbox = deployed.outbox(tmp_path / "outbox.sqlite")
        yield SimpleNamespace(
            hostile=hostile,
            account=account,
            writer=writer,
            reads=reads,
            outbox=outbox,
            delivery=Submissions(outbox, reads, writer),
            path=tmp_path / "outbox.sqlite",
        )
        outbox.close()

"""Several processes on one account, and processes that are killed: what arrives, arrives once."""

import os
import subprocess
import sys

import pytest

from codezero.ledger.account import Account
from tests.chain import LiveChain, new_key
from tests.chains import running


def worker(deployed, key, peer_id, path, rounds, *before, **settings):
    arguments = [*before, deployed.chain.url, deployed.address, key.hex(), peer_id, str(path), str(rounds)]
    return subprocess.Popen(
        [sys.executable, "-m", "tests.unit.ledger.worker", *arguments], stdout=subprocess.PIPE, text=True, **settings
    )


@pytest.mark.slow
def test_four_processes_share_an_account_and_all_of_theirs_arrive_once(deployed, tmp_path):
    """On one machine they take turns under the lock."""
    four_processes(deployed, tmp_path, machines=1)


@pytest.mark.slow
def test_four_machines_share_an_account_on_a_chain_with_a_block_a_second(tmp_path):
    """They have only the nonce to fight for. Where what was sent waits in the mempool, most are taken twice."""
    with running("--block-time", "1") as chain:
        four_processes(LiveChain(chain).deploy(), tmp_path, machines=4)


def four_processes(deployed, tmp_path, machines):
    key = new_key()
    deployed.chain.fund(Account(key, deployed.rpc()).address)
    deployed.tick(4)
    workers = []
    for number in range(4):
        folder = tmp_path / f"tmp{number % machines}"
        folder.mkdir(exist_ok=True)
        path = tmp_path / f"outbox{number}.sqlite"
        workers.append(worker(deployed, key, f"peer{number}", path, 5, env=os.environ | {"TMPDIR": str(folder)}))
    assert [process.wait(900) for process in workers] == [0] * 4
    peers = [f"peer{number}" for number in range(4)]
    assert deployed.read("getTotalRewards(string[])", peers) == (15,) * 4  # five rewards of 3 each: 20 of 20
    assert [deployed.read("getVoterVoteCount(string)", peer) for peer in peers] == [5] * 4
    (count,) = deployed.rpc().ask([("eth_getTransactionCount", [Account(key, deployed.rpc()).address, "latest"])])
    assert int(count, 16) == 4 + 20 + 20  # registrations, rewards, votes: none was paid for twice


@pytest.mark.slow
def test_killed_twenty_times_everything_arrives_once(deployed, tmp_path):
    """At random lines between taking a nonce and having sent, and at random times."""
    key = new_key()
    deployed.chain.fund(Account(key, deployed.rpc()).address)
    process = worker(deployed, key, "peer", tmp_path / "outbox", 1, "killed", "20", "20261121")
    printed = process.communicate(timeout=1100)[0]
    assert process.returncode == 0
    killed, outboxes = map(int, printed.split())
    assert killed == 20
    peers = [f"peer{part}" for part in range(1, outboxes + 1)]
    assert deployed.read("getTotalRewards(string[])", peers) == (3,) * outboxes
    assert [deployed.read("getVoterVoteCount(string)", peer) for peer in peers] == [1] * outboxes
    (count,) = deployed.rpc().ask([("eth_getTransactionCount", [Account(key, deployed.rpc()).address, "latest"])])
    assert int(count, 16) == 3 * outboxes  # none was paid for twice

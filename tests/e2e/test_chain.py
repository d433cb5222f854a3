"""A node whose ledger is a contract on a real chain: a keystore of its own, a ticking clock."""

import os
import signal
import threading
import time
from contextlib import contextmanager, redirect_stdout
from functools import partial
from io import StringIO

import pytest
from eth_account import Account

from codezero.cli import main
from codezero.identity.key import load_or_create
from codezero.ledger import keystore
from codezero.ledger.board import read_swarm_board
from codezero.ledger.reading import read_view
from codezero.ledger.submitter import Submitter
from tests import chains, tiny_node
from tests.builders import save_tiny
from tests.commands import spawn
from tests.unit.devchain.deployed import Deployed

ETHER = 10**18
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@contextmanager
def ticking(advance, every_s):
    """Rounds of so many seconds, at the end of which `advance` is called."""
    stopped = threading.Event()

    def tick():
        while not stopped.wait(every_s):
            advance()

    thread = threading.Thread(target=tick)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()


def command(tmp_path, url, contract, *settings):
    return tiny_node.command(
        tmp_path / "model",
        tmp_path,
        *("rollout.num_generations=4", "rollout.max_new_tokens=20", "ledger=wallet", f"ledger.rpc_url={url}"),
        *(f"ledger.contract_address={contract.address}", f"ledger.chain_id={chains.CHAIN_ID}"),
        *(f"ledger.keystore={tmp_path / 'wallet.json'}", f"swarm.identity_path={tmp_path / 'swarm.pem'}", *settings),
    )


def play(arguments):
    """What a run in this process prints."""
    os.environ["CODEZERO_WALLET_PASSPHRASE"] = "a long one"  # a node takes it out
    with redirect_stdout(StringIO()) as shown:
        assert main(arguments[3:]) == 0
    return shown.getvalue()


def status(tmp_path):
    with redirect_stdout(StringIO()) as shown:
        assert main(["status", str(tmp_path / "state")]) == 3  # it is not running
    return shown.getvalue()


@pytest.fixture
def contract(chain, tmp_path, monkeypatch, restored_process):
    monkeypatch.setenv("CODEZERO_WALLET_PASSPHRASE", "a long one")
    monkeypatch.setattr(Submitter.stop, "__defaults__", (300.0,))  # a busy machine may need more than a node gives it
    save_tiny(tmp_path / "model")
    account = Account.create()
    keystore.save(bytes(account.key), tmp_path / "wallet.json", "a long one", scrypt_n=2)
    chain.client().transfer(account.address, ETHER)
    return Deployed(chain, "SwarmCoordinator", chain.coordinator())


def test_a_node_follows_the_contract_s_rounds_and_its_rewards_arrive_when_it_stops(chain, contract, tmp_path):
    with ticking(partial(contract.send, "updateStageAndRound()"), every_s=1.0):
        output = play(command(tmp_path, chain.url, contract, "--rounds", "3"))
    assert f"ledger: {contract.address} on chain 31337, as 0x" in output
    reports = tiny_node.reports(tmp_path)
    numbers = [report["round"] for report in reports]
    assert len(set(numbers)) == 3
    assert numbers == sorted(numbers)
    assert [report["ledger"] for report in reports] == ["", "", ""]
    peer_id = tiny_node.peer_id(output)
    (owner,) = contract.read("getEoa(string[])", [peer_id])
    assert owner == keystore.address(tmp_path / "wallet.json")
    earned = sum(report["reward_mean"] * 8 for report in reports)  # 2 tasks of 4 attempts a round
    (total,) = contract.read("getTotalRewards(string[])", [peer_id])
    assert total == int(round(earned, 6))  # the means of the report are sums of floats divided by 8
    assert contract.read("getVoterVoteCount(string)", peer_id) == 1  # for itself, as it saw nobody
    shown = status(tmp_path)
    assert f"earned {earned:+.2f} in 3 rounds" in shown
    view, board = read_view(tmp_path / "state"), read_swarm_board([tmp_path / "state"])
    assert (view.kind, view.peer_id, view.num_rounds) == ("wallet", peer_id, 3)
    assert (view.trouble, view.last_refused, view.problems) == (None, None, ())
    assert view.pending == ()
    assert (view.last_reward.points, view.last_reward.round) == (total, numbers[-1])
    assert view.last_accepted.reference.startswith("0x")
    assert (board.problem, board.own.peer_id, board.own_rank, board.own.reward) == ("", peer_id, 1, total)
    assert (board.own.rounds, board.own.wins, board.own.last_round) == (1, 1, numbers[-1])
    secrets = (b"a long one", keystore.load(tmp_path / "wallet.json", "a long one").hex().encode())
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {path.name for path in written} >= {"swarm.log", "rounds.jsonl", "outbox.sqlite", "wallet.json"}
    assert not [path for path in written if any(secret in path.read_bytes() for secret in secrets)]
    assert not [secret for secret in secrets if secret.decode() in output + shown]


def test_rewards_that_no_chain_takes_wait_and_arrive_after_a_restart(chain, contract, tmp_path):
    play(command(tmp_path, chain.url, contract, "--rounds", "1"))
    nowhere = "http://127.0.0.1:9"
    output = play(command(tmp_path, nowhere, contract, "--rounds", "1", "ledger.patience_s=0"))
    assert "continuing without the chain: the RPC at 127.0.0.1" in output
    assert "| ledger: the RPC at 127.0.0.1" in output
    assert "trouble the RPC at 127.0.0.1" in status(tmp_path)
    view = read_view(tmp_path / "state")
    assert view.trouble.text.startswith("the RPC at 127.0.0.1")
    assert view.trouble.since_s <= view.trouble.seen_s <= time.time()
    assert view.unsent_since_s is not None  # the chain's round has what was sent for it
    with ticking(partial(contract.send, "updateStageAndRound()"), every_s=1.0):
        play(command(tmp_path, chain.url, contract, "--rounds", "1"))
    shown = status(tmp_path)
    assert "in 3 rounds" in shown
    assert "waiting" not in shown
    assert "trouble" not in shown


def test_a_peer_that_is_somebody_else_s_is_refused_with_the_two_ways_out(chain, contract, tmp_path, capsys):
    key, _ = load_or_create(tmp_path / "swarm.pem")
    contract.send("registerPeer(string)", key.peer_id, by=1)
    assert main(command(tmp_path, chain.url, contract, "--rounds", "1")[3:]) == 1
    assert f"error: peer {key.peer_id} is registered to account 0x" in capsys.readouterr().err


def test_a_ctrl_c_while_waiting_for_the_round_stops_the_node(chain, contract, tmp_path):
    """The contract stays at round 0: after that round the node waits."""
    process = spawn(
        command(tmp_path, chain.url, contract),
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    for line in process.stdout:
        if line.startswith("round 0 |"):
            break
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0, output
    assert "done: 1 round" in output

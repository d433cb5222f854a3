"""A node with `ledger=modal`, through the real sign-in app as it is built, a real bundler and EntryPoint, to a contract
on a real chain. The account is not Alchemy's (`modal-login/README.md`). The session exists, as after a sign-in."""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import time
import urllib.error
import urllib.request
from functools import partial
from typing import NamedTuple

import pytest
from eth_account import Account

from codezero.ledger.modal import credentials
from codezero.ledger.reading import read_view
from tests import chains, tiny_node
from tests.builders import save_tiny
from tests.commands import ROOT, spawn
from tests.e2e.checkout import checkout, start
from tests.e2e.test_chain import ticking
from tests.ports import free_port
from tests.processes import wait_until
from tests.unit.devchain.deployed import Deployed

APP = ROOT / "modal-login"
ORG_ID = "7f1d2c9a-0000-4000-8000-000000000001"
SESSION_KEY = Account.create()
NO_ONE = "http://127.0.0.1:9"
SKIP = "CODEZERO_SKIP_SIGN_IN"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(os.environ.get(SKIP) == "1", reason=f"{SKIP}=1: the sign-in app is not tested"),
]


@contextlib.contextmanager
def running(arguments, ready, **environment):
    """A program of node's, until it prints what `ready` finds; yields that."""
    path = {"PATH": os.environ["PATH"]}
    process = spawn([shutil.which("node"), *arguments], cwd=APP, env=path | environment)
    try:
        lines = []
        for line in process.stdout:
            lines.append(line)
            if found := re.search(ready, line):
                break
        else:
            pytest.fail("".join(lines))
        yield found
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=120)


class Bundler(NamedTuple):
    url: str
    account: str
    """The session key's."""
    init_code: str


def sign_in(folder, bundler, days=62):
    """The files that the app leaves when a user has signed in, with a key for so many days."""
    key = SESSION_KEY
    nonce, deadline = 0x103 << 64, int(time.time()) + days * 86400
    action = bytes(20) + b"\x01" + deadline.to_bytes(6, "big") + bytes.fromhex(key.address[2:])
    digest = b"\x00" + nonce.to_bytes(32, "big") + len(action).to_bytes(4, "big") + action + bytes(70)
    user = {"orgId": ORG_ID, "address": "0x" + "5" * 40, "userId": "user-1", "email": "anna@example.org"}
    entry = {
        "publicKey": key.address,
        "privateKey": "0x" + bytes(key.key).hex(),
        "createdAt": "2026-11-21T00:00:00.000Z",
        "activated": True,
        "accountAddress": bundler.account,
        "initCode": bundler.init_code,
        "deferredActionDigest": "0x" + digest.hex(),
    }
    folder.mkdir(mode=0o700, exist_ok=True)
    (folder / "userData.json").write_text(json.dumps({ORG_ID: user}))
    (folder / "userApiKey.json").write_text(json.dumps({ORG_ID: [entry]}))


@pytest.fixture
def contract(chain):
    return Deployed(chain, "SwarmCoordinator", chain.coordinator())


@pytest.fixture
def bundler(chain):
    """A bundler that answers as Alchemy's, with an EntryPoint on the chain."""
    if not (APP / ".next" / "standalone" / "server.js").exists():
        pytest.fail(f"the sign-in app is not built: run modal-login/run_tests.sh first, or set {SKIP}=1")
    arguments = ["tests/bundler.mjs", "--rpc", chain.url, "--owner", SESSION_KEY.address]
    with running(arguments, r"^bundler: (\S+) (\S+) (\S+)") as found:
        yield Bundler(*found.groups())


@pytest.fixture
def app(contract, bundler, tmp_path):
    """Where the app is."""
    sign_in(tmp_path / "temp-data", bundler)
    port = free_port()
    settings = {
        "PORT": str(port),
        "DATA_DIR": str(tmp_path / "temp-data"),
        "NODE_KEYS": str(tmp_path / "swarm.pem"),
        "ALCHEMY_BASE_URL": NO_ONE,
        "PAYMASTER_POLICY_ID": "policy-1",
        "CHAIN_ID": str(chains.CHAIN_ID),
        "SMART_CONTRACT_ADDRESS": contract.address,
    }
    with running(["start.mjs"], "Ready in", **settings, BUNDLER_URL=bundler.url):
        yield f"http://localhost:{port}"


def run(tmp_path, url, contract, app, *settings):
    command = tiny_node.command(
        tmp_path / "model",
        tmp_path,
        *("rollout.max_new_tokens=20", "ledger=modal", f"ledger.rpc_url={url}"),
        *(f"ledger.contract_address={contract.address}", f"ledger.chain_id={chains.CHAIN_ID}"),
        *(f"ledger.proxy_url={app}", f"ledger.login_dir={tmp_path / 'temp-data'}"),
        *(f"swarm.identity_path={tmp_path / 'swarm.pem'}", *settings),
    )
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)


def play(*arguments):
    ended = run(*arguments)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def asked(tmp_path, url):
    """As the app's own user."""
    with urllib.request.urlopen(urllib.request.Request(url, headers=credentials(tmp_path / "temp-data"))) as reply:
        return reply.read()


def test_a_node_registers_and_submits_through_the_app_and_again_with_a_new_state(
    chain, contract, bundler, app, tmp_path
):
    save_tiny(tmp_path / "model")
    with ticking(partial(contract.send, "updateStageAndRound()"), every_s=1.0):
        output = play(tmp_path, chain.url, contract, app, "--rounds", "2")
    peer_id = tiny_node.peer_id(output)
    (owner,) = contract.read("getEoa(string[])", [peer_id])
    assert owner == bundler.account
    reports = tiny_node.reports(tmp_path)
    assert [report["ledger"] for report in reports] == ["", ""]
    (total,) = contract.read("getTotalRewards(string[])", [peer_id])
    earned = sum(report["reward_mean"] * 16 for report in reports)  # 2 tasks of 8 attempts a round
    assert total == int(round(earned, 6))  # the means are sums of floats divided by 16
    assert contract.read("getVoterVoteCount(string)", peer_id) == 1
    machine = json.loads(asked(tmp_path, f"{app}/api/machine"))
    assert machine["peers"] == [peer_id]  # the app's own reading of swarm.pem
    assert [account["peers"] for account in machine["accounts"]] == [[peer_id]]
    assert asked(tmp_path, f"{app}/api/get-api-key-status?orgId={ORG_ID}") == b"activated"
    fresh = (f"state_dir={tmp_path / 'state2'}", f"tracking.log_dir={tmp_path / 'logs2'}")  # knows of no registration
    play(tmp_path, chain.url, contract, app, "--rounds", "1", *fresh)
    (report,) = tiny_node.lines(tmp_path / "logs2" / "rounds.jsonl")
    assert report["ledger"] == ""
    assert contract.read("getPeerId(address[])", [bundler.account]) == [[peer_id]]


def counted(contract, peer_id, tmp_path):
    """The points on the chain, and those that wait; the node may have ended before it saw that one has arrived."""
    view = read_view(tmp_path / "state")
    arrived = "hasSubmittedRoundStageReward(uint256,uint256,string)"
    rewards = [item for item in view.pending if item.points is not None]
    waiting = [item.points for item in rewards if not contract.read(arrived, item.round, 0, peer_id)]
    (total,) = contract.read("getTotalRewards(string[])", [peer_id])
    return total + sum(waiting) + view.unsent_points


def test_a_lost_sign_in_and_an_expired_key_cost_no_reward_and_a_restored_key_is_the_same_peer(
    chain, contract, bundler, app, tmp_path
):
    save_tiny(tmp_path / "model")
    node, login = (tmp_path, chain.url, contract, app), tmp_path / "temp-data"
    with ticking(partial(contract.send, "updateStageAndRound()"), every_s=1.0):
        play(*node, "--rounds", "1")
        shutil.rmtree(login)
        refused = run(*node, "--rounds", "1")
        assert refused.returncode == 1
        assert "nobody has signed in" in refused.stderr
        with pytest.raises(urllib.error.HTTPError):  # as a browser asks for the page
            urllib.request.urlopen(app)
        sign_in(login, bundler)
        play(*node, "--rounds", "1")
        sign_in(login, bundler, days=-1)
        output = play(*node, "--rounds", "1")
        assert "the session key has expired: sign in again; rewards wait until then" in output
        assert re.search(r"WARNING: \d submissions? to the chain waits? on disk", output)
        ((peer_id,),) = contract.read("getPeerId(address[])", [bundler.account])
        before = contract.read("getTotalRewards(string[])", [peer_id])
        sign_in(login, bundler)
        play(*node, "--rounds", "2", "ledger.submit_period_s=1")
    assert contract.read("getTotalRewards(string[])", [peer_id]) != before
    wait_until(lambda: counted(contract, peer_id, tmp_path) == pytest.approx(read_view(tmp_path / "state").earned))
    elsewhere = (f"state_dir={tmp_path / 'state2'}", f"tracking.log_dir={tmp_path / 'logs2'}")  # with this swarm.pem
    refused = run(*node, "--rounds", "1", *elsewhere, f"ledger.account_address={Account.create().address}")
    assert refused.returncode == 1
    assert f"{peer_id} is registered to account {bundler.account}" in refused.stderr


def test_the_launch_script_starts_the_app_and_a_node_for_who_has_signed_in(chain, contract, bundler, tmp_path):
    model = save_tiny(tmp_path / "model")
    folder = checkout(tmp_path / "checkout", app=True)
    sign_in(folder / "modal-login" / "temp-data", bundler)
    with ticking(partial(contract.send, "updateStageAndRound()"), every_s=1.0):
        output = start(
            folder,
            *("--testnet", "--sign-in", "app", "--no-push", "--no-market", "--rounds", "2"),
            *("--port-sign-in", str(free_port()), "judge.enabled=false", "swarm.listen=[/ip4/127.0.0.1/tcp/0]"),
            *(f"model.name={model}", f"evaluator.model={model}", "model.device=cpu", "train.method=full"),
            "preset=local",
            "rollout.max_new_tokens=20",
            "swarm.num_local=2",
            "probe.share=0",
            f"ledger.rpc_url={chain.url}",
            *(f"ledger.contract_address={contract.address}", f"ledger.chain_id={chains.CHAIN_ID}"),
            BUNDLER_URL=bundler.url,
            ALCHEMY_BASE_URL=NO_ONE,
            PAYMASTER_POLICY_ID="policy-1",
        )
    assert f"sign-in: user {ORG_ID} is already signed in" in output
    peer_id = tiny_node.peer_id(output)
    assert contract.read("getEoa(string[])", [peer_id]) == [bundler.account]
    (total,) = contract.read("getTotalRewards(string[])", [peer_id])
    assert total != 0

"""Files that codezero of commit 171a78c left behind (tests/fixtures) still load: an update loses nothing saved."""

import dataclasses
import io
import json
import sqlite3
import tempfile
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
import torch
import yaml
from eth_account import Account
from starlette.testclient import TestClient

from codezero.cli import main
from codezero.config import PASSPHRASE_ENV
from codezero.config.load import load_config, scalar
from codezero.config.names import CONFIG_DIR_ENV
from codezero.errors import ConfigError
from codezero.identity import key
from codezero.ledger import delivery, keystore, submitter
from codezero.ledger.build import load_key, make_ledger
from codezero.ledger.leaderboard import LeaderboardRow, read_leaderboard
from codezero.ledger.reading import read_view
from codezero.network.dht.link import SwarmLink
from codezero.network.join import rules_of
from codezero.runtime.console import Console
from codezero.runtime.state import noted_start
from codezero.train.checkpoint import saved_weights
from codezero.types import RoundId
from codezero.views.runs import find_runs
from codezero.views.web.app import make_app
from codezero.views.web.source import WatchedFolders
from tests import chains
from tests.builders import rollout, scored
from tests.fixtures import ACCOUNT_KEY, PASSPHRASE, unpack
from tests.network.nodes import live_swarm
from tests.processes import wait_until
from tests.settings import by_key, leaves
from tests.tiny_node import lines
from tests.unit.evaluate.loopback import reply, serve

PEER, BOOTNODE = "QmPbv7NpeUKWm7VUtEKm1Uc9XbNw7iV1qVBNJoqNDmbkhj", "QmNSQqRoJQrAM5ebup4z7CHzRrxW76LAdaNscjSmBsnVqX"
pytestmark = pytest.mark.usefixtures("restored_process")


@pytest.fixture
def old(tmp_path, monkeypatch):
    """The folder in which everything was made, as the current one."""
    monkeypatch.chdir(unpack(tmp_path))
    monkeypatch.setenv(PASSPHRASE_ENV, PASSPHRASE)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # where a live key is locked, maybe by another run of this
    return tmp_path


def noted(folder, *changes):
    """The settings with which a node was started, as its state folder says, with some changed."""
    changed = {change.partition("=")[0] for change in changes}
    return [*(one for one in noted_start(Path(folder)) if one.partition("=")[0] not in changed), *changes]


@pytest.mark.parametrize(
    ("name", "peer_id", "rewards"), [("full", "local", (-9.6, -8.8)), ("lora", PEER, (-9.6, -8.8, -8.4))]
)
def test_a_solver_goes_on_where_it_was(old, name, peer_id, rewards, capsys):
    (before,) = find_runs(Path(name) / "state")
    drawn = {group.task.id for seen in before.groups() for group in seen.groups}
    played = before.reports()
    logged = Path(name, "logs", "rounds.jsonl").read_bytes()
    # weights stay as they are restored
    still = ("train.learning_rate=1e-12", "train.lora_learning_rate=1e-12", "probe.share=0")
    sized = ("swarm.num_local=2", "rollout.num_generations=4")  # the defaults of that time
    assert main(["run", *noted(f"{name}/state", "rounds=1", *still, *sized)]) == 0
    assert f"state: continuing in {name}/state after round 2" in capsys.readouterr().out

    (after,) = find_runs(Path(name) / "state")
    assert Path(name, "logs", "rounds.jsonl").read_bytes().startswith(logged)
    *reports, last = after.reports()
    assert reports == played
    assert last.round == 3
    assert last.policy_version == reports[-1].policy_version + (last.skipped is None)
    weights, restored = (saved_weights(Path(name, f"state/checkpoints/round-0000000{n}")) for n in (2, 3))
    torch.testing.assert_close(restored, weights, rtol=0, atol=1e-6)
    assert not drawn & {group.task.id for group in after.groups()[-1].groups}
    (place,) = read_leaderboard(Path(name) / "state" / "ledger.sqlite")
    earned = sum(rewards) + last.reward_mean * 8
    assert (place.peer_id, place.rounds, place.last_round) == (peer_id, len(rewards) + 1, 3)
    assert place.reward == pytest.approx(earned)


def replay(path, chain):
    """Sends what py-evm mined once more, signed by the same keys: contracts and hashes are the same."""
    signers = {account.address: account for account in (*chains.ACCOUNTS, Account.from_key(ACCOUNT_KEY))}
    with closing(sqlite3.connect(path)) as database:
        rows = [json.loads(row) for (row,) in database.execute("SELECT transaction_json FROM sent")]
    same = ("type", "chainId", "nonce", "value", "gas", "maxFeePerGas", "maxPriorityFeePerGas")
    for sent in sorted(rows, key=lambda row: int(row["blockNumber"], 16)):
        fields = {name: sent[name] for name in same} | {"to": sent["to"] or b"", "data": sent["input"]}
        signed = signers[sent["from"]].sign_transaction(fields)
        assert chain.ask("eth_sendRawTransaction", signed.raw_transaction.to_0x_hex()) == sent["hash"]
        receipt = chain.web3.eth.wait_for_transaction_receipt(sent["hash"], poll_latency=0.02)
        assert receipt["status"] == 1


def test_rewards_that_waited_for_the_chain_reach_it_once(old, monkeypatch, capsys):
    monkeypatch.setattr(delivery, "LOOK_AGAIN_S", 0.0)
    monkeypatch.setattr(submitter, "BUSY_POLL_S", 0.05)
    with chains.running() as chain:
        replay(Path("chain/chain.db"), chain)
        config = load_config(noted("lora/state", f"ledger.rpc_url={chain.url}"))
        client = chain.client()
        contract = client.contract("SwarmCoordinator", config.ledger.contract_address)

        def on_chain():
            (points,) = client.read(contract, "getTotalRewards(string[])", [PEER])
            return points, client.read(contract, "getVoterVoteCount(string)", PEER)

        def start(*rounds):
            monkeypatch.setenv(PASSPHRASE_ENV, PASSPHRASE)
            with ExitStack() as stack:
                ledger = make_ledger(
                    config, load_key(config.ledger), Path("lora/state"), PEER, Console(io.StringIO()), stack
                )
                for number, reward in rounds:
                    ledger.settle(RoundId(number=number), [scored([rollout()], [reward])])

        assert on_chain() == (-18, 2)
        client.transact(contract, "updateStageAndRound()")
        start()
        assert on_chain() == (-26, 3)
        client.transact(contract, "updateStageAndRound()")
        start((2, 5.0), (3, -0.3))  # round 2 was settled before; -0.8 of it is less than a point, and still owed
        assert on_chain() == (-27, 4)
        assert read_view(Path("lora/state")).pending == ()
        assert main(["leaderboard", "lora/state", "--rpc-url", chain.url]) == 0
        assert f"-27.00 in 4 rewards, 4 votes, last in round 3: {PEER}" in capsys.readouterr().out


def batches():
    return lines(Path("proposer/logs/proposals.jsonl"))


def test_a_proposer_that_learns_goes_on_where_it_was(old, capsys):
    before, saved = batches(), Path("proposer/state/proposer/checkpoints")
    version = json.loads((saved / "round-00000003" / "manifest.json").read_text())["policy_version"]
    assert main(["propose", *noted("proposer/state/proposer", "proposer.batches=1")]) == 0
    assert "state: continuing in proposer/state/proposer after batch 3" in capsys.readouterr().out
    *kept, last = batches()
    assert kept == before
    assert (last["batch"], last["num_judged"], last["rejected"]) == (4, 1, {"unreadable": 2})  # what was heard in 3
    assert json.loads((saved / "round-00000004" / "manifest.json").read_text())["policy_version"] >= version == 2


def test_a_proposer_still_knows_what_it_has_proposed(old):
    """The first two problems of its first batch, and a new one."""

    def write(handler, count):
        number, what = ((0, "apples"), (1, "coins"), (7, "trees"))[count % 3]
        problem = {
            "question": f"Write a function count_{what}(n) that adds {number} {what} to n {what}.",
            "solution": f"def count_{what}(n):\n    return n + {number}",
            "tests": [f"assert count_{what}(0) == {number}", f"assert count_{what}(10) == {number + 10}"],
        }
        reply(200, {"choices": [{"message": {"content": f"```json\n{json.dumps(problem)}\n```"}}]})(handler, count)

    with serve(write) as server:
        served = ("proposer.train=false", f"proposer.url={server.url}/v1", "proposer.model=scripted")
        changes = ("proposer.batches=1", "proposer.batch_size=3", *served)
        assert main(["propose", *noted("proposer/state/proposer", *changes)]) == 0
    last = batches()[-1]
    assert (last["batch"], last["num_valid"], last["rejected"]) == (4, 1, {"duplicate": 2})


def test_status_tells_what_nodes_did(old, capsys):
    expected = {
        "full/state": ("model, full", "Reward     -1.10 ", "policy version 1", "earned -18.40 in 2 rounds"),
        "lora/state": (
            f"{PEER}  ",
            "pending reward -8 of round",
            "unsent -0.80",
            "earned -26.80 in 3",
        ),
        "proposer/state": ("Level      2 easy", "Valid      50%", "Judged     1 in the last batch"),
    }
    for folder, parts in expected.items():
        assert main(["status", folder]) == 3
        shown = capsys.readouterr().out
        assert [part for part in parts if part not in shown] == []


def test_reports_pages_and_the_leaderboard_read_the_logs(old, capsys):
    assert main(["leaderboard", "full/state", "--json"]) == 0
    own = json.loads(capsys.readouterr().out)["own"]
    assert own == dataclasses.asdict(LeaderboardRow(peer_id="local", reward=-18.4, rounds=2, wins=2, last_round=2))
    for name, played in (("full", "2 (1 to 2)"), ("lora", "3 (0 to 2)"), ("proposer", "3 (1 to 3)")):
        assert main(["report", f"{name}/state", "--out", f"{name}.html"]) == 0
        assert played in Path(f"{name}.html").read_text()
    site = TestClient(make_app(WatchedFolders([Path()])), base_url="http://127.0.0.1:7007")
    names = {node["name"] for node in site.get("/api/nodes").json()}
    assert names == {"full", "lora", "proposer"}
    for path in ("/", "/charts", "/rounds", "/peers", "/leaderboard"):
        for name in names:
            assert site.get(path, params={"node": name}).status_code == 200


def test_keys_are_those_of_the_same_peer_and_account(old, monkeypatch, capsys):
    monkeypatch.setenv("CODEZERO_PASSPHRASE", PASSPHRASE)
    assert key.load(Path("swarm.pem")).peer_id == PEER
    assert key.load(Path("bootnode.pem")).peer_id == BOOTNODE
    assert main(["identity", "import", "backup.pem", "--path", "restored.pem"]) == 0
    assert Path("restored.pem").read_bytes() == Path("swarm.pem").read_bytes()
    assert main(["wallet", "address"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].endswith("0x19E7E376E7C213B7E7e7e46cc70A5dD086DAff2A")
    assert keystore.load(Path("wallet.json"), PASSPHRASE) == ACCOUNT_KEY


def test_the_swarm_file_leads_to_its_bootnode(old):
    """Which is started here on a port that is free, and so not the one in the file."""
    with live_swarm(old) as swarm:
        bootnode = swarm.node("bootnode", swarm="codezero")
        text = Path("swarm.yaml").read_text()
        _, _, rest = text.partition("/tcp/")
        Path("swarm.yaml").write_text(text.replace(f"/ip4/127.0.0.1/tcp/{rest.splitlines()[0]}", bootnode.address))
        config = load_config(["swarm=swarm.yaml", "swarm.listen=[/ip4/127.0.0.1/tcp/0]"])
        link = SwarmLink(config.swarm, Path("swarm.pem"), Path("peers.json"), rules_of(config.swarm.network))
        try:
            link.start()
            wait_until(lambda: PEER in bootnode.dht.neighbours())
        finally:
            link.close()


def test_the_user_s_own_configuration_files_compose_without_the_one_choice_that_is_gone(old, monkeypatch):
    monkeypatch.setenv(CONFIG_DIR_ENV, "configs")
    with pytest.raises(ConfigError, match=r"train\.method: Invalid value 'auto', expected one of .*full.*lora"):
        load_config([])
    edited = Path("configs/train/grpo.yaml")
    edited.write_text(edited.read_text().replace("method: auto", "method: full"))
    assert load_config([]).train.learning_rate == 2e-6
    assert load_config(["preset=faithful"]).train.learning_rate == 1e-6


def test_what_was_shown_as_the_configuration_is_accepted_value_by_value(old):
    shown = leaves(yaml.safe_load(Path("shown.yaml").read_text()))
    loaded = by_key(load_config([f"{key}={scalar(value)}" for key, value in shown.items()]))
    assert {key: loaded[key] for key in shown} == {
        key: pytest.approx(v) if isinstance(v, float) else v for key, v in shown.items()
    }
    assert (shown["train.loss_type"], shown["state_dir"]) == ("dapo", "~/a b")

"""A proposer and two solvers as a user starts them: problems by a scripted server, solutions by a tiny random model."""

import signal

import pytest

from codezero.train.checkpoint import CheckpointStore
from tests.builders import save_tiny
from tests.commands import start
from tests.processes import wait_until
from tests.tiny_node import lines, reports, settings
from tests.unit.evaluate.loopback import reply, serve
from tests.unit.proposer.test_node import write_problem

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
NO_PROBLEM = reply(200, {"choices": [{"message": {"content": "I would rather not."}}]})


def write_some(handler, count):
    """Two answers of three are sound problems."""
    (NO_PROBLEM if count % 3 == 2 else write_problem)(handler, count)


def test_what_a_proposer_writes_is_solved_scored_and_fed_back(tmp_path):
    model, home = save_tiny(tmp_path / "model"), tmp_path / "home"
    proposals = home / "proposer-1" / "logs" / "proposals.jsonl"
    with serve(write_some) as server:
        command = ["swarm", "up", "--nodes", 2, "--folder", home, *settings(model)]
        command += ["rollout.max_new_tokens=60"]
        command += ["tasks.proposals.share=1", f"proposer.url={server.url}/v1", "proposer.model=scripted"]
        swarm = start([*command, "proposer.patience_s=30"])
        try:  # how many rounds that takes depends on the machine
            wait_until(
                lambda: swarm.poll() is not None or any(one["num_judged"] for one in lines(proposals)), limit_s=600
            )
        finally:
            swarm.send_signal(signal.SIGINT)
            out, error = swarm.communicate(timeout=200)
    assert swarm.returncode == 0, out + error
    rounds = [report for node in ("node-1", "node-2") for report in reports(home / node)]
    assert sum(report["num_proposed_groups"] for report in rounds) >= 1
    batches = lines(proposals)
    assert sum(batch["num_valid"] for batch in batches) >= 2
    assert sum(batch["rejected"].get("unreadable", 0) for batch in batches) >= 1
    assert sum(batch["num_judged"] for batch in batches) >= 1
    assert batches[-1]["success"]["2"] < 0.5  # random solvers solve nothing, and the proposer knows
    kept = CheckpointStore(home / "proposer-1" / "state" / "proposer" / "checkpoints").load_latest()
    assert kept.round == batches[-1]["batch"]

"""A proposer and two solvers as a user starts them: problems by a scripted server, solutions by a tiny random model."""

import json
import signal

import pytest

from codezero.train.checkpoint import CheckpointStore
from tests.builders import save_tiny
from tests.commands import start
from tests.processes import wait_until
from tests.tiny_node import lines, reports, settings
from tests.unit.evaluate.loopback import reply, serve

WORDS = ("apples", "coins", "miles", "notes", "pages", "seats", "stars", "steps", "trees", "waves", "wheels", "words")

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def write_problem(handler, count):
    """Sound problems, each another one; every third answer is none."""
    what = WORDS[count % len(WORDS)]
    name = f"count_{what}_{count}"
    problem = {
        "function": name,
        "question": f"Write a function {name}(n) that adds {count} {what} to n {what}.",
        "solution": f"def {name}(n):\n    return n + {count}",
        "tests": [f"assert {name}(0) == {count}", f"assert {name}(10) == {count + 10}"],
    }
    text = "I would rather not." if count % 3 == 2 else f"```json\n{json.dumps(problem)}\n```"
    reply(200, {"choices": [{"message": {"role": "assistant", "content": text}}]})(handler, count)


def test_what_a_proposer_writes_is_solved_scored_and_fed_back(tmp_path):
    model, home = save_tiny(tmp_path / "model"), tmp_path / "home"
    proposals = home / "proposer-1" / "logs" / "proposals.jsonl"
    with serve(write_problem) as server:
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

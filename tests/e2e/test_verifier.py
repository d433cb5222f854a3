"""A test writer as a user starts it, on the built-in problems, with a tiny random model: killed, started again, asked
for its status. Such a model writes no solution, so nothing is learnt; `tests/unit/verifier/test_node.py` has that."""

import json

import pytest

from codezero.cli import main
from codezero.train.checkpoint import CheckpointStore
from tests.builders import save_tiny
from tests.commands import start
from tests.processes import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def numbers(path):
    return [json.loads(line)["batch"] for line in path.read_text().splitlines()] if path.exists() else []


@pytest.mark.usefixtures("restored_process")
def test_a_test_writer_and_its_solver_go_on_after_a_kill_and_say_what_they_do(tmp_path, capsys):
    model = save_tiny(tmp_path / "model", max_position_embeddings=16384)
    state, logs = tmp_path / "state", tmp_path / "logs"
    command = ["verify", f"model.name={model}", "model.device=cpu", "tasks=builtin", "rollout.max_new_tokens=8"]
    command += [
        "verifier.num_candidates=2",
        "verifier.train_solver=true",
        "probe.share=0",
        f"state_dir={state}",
        f"tracking.log_dir={logs}",
    ]
    first = start(command)
    try:
        wait_until(lambda: first.poll() is not None or len(numbers(logs / "cases.jsonl")) >= 2)
    finally:
        first.kill()
        first.communicate()
    killed_at = CheckpointStore(state / "verifier" / "checkpoints").load_latest().round
    assert killed_at >= 2

    assert main([*command, "--batches", "1"]) == 0
    again = capsys.readouterr().out
    assert f"continuing in {state / 'verifier'} after batch {killed_at}" in again
    assert "2 no_candidate" in again
    assert "no update: no scored groups" in again
    assert "solver 0% right of 4, no update: every group has equal rewards" in again
    assert numbers(logs / "cases.jsonl") == list(range(1, killed_at + 2))
    assert CheckpointStore(state / "verifier" / "checkpoints").load_latest().round == killed_at + 1

    assert main(["status", str(state)]) == 3  # it does not run any more
    told = capsys.readouterr().out
    assert "verifier" in told
    assert f"batch {killed_at + 1} took" in told

"""The whole node on a tiny random model: what a user starts, stops, kills and starts again."""

import random
import signal
import sqlite3
import subprocess
import threading
import time
from functools import partial

import pytest

from codezero.cli import main
from codezero.config import checkout
from codezero.train.checkpoint import CheckpointStore
from codezero.views.runs import find_runs
from tests import tiny_node
from tests.builders import assert_identical, save_tiny
from tests.commands import ROOT, spawn
from tests.tiny_node import reports

pytestmark = pytest.mark.usefixtures("restored_process")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return save_tiny(tmp_path_factory.mktemp("model"), intermediate_size=64)  # rows that llama.cpp's Q8_0 has


def command(model, folder, *settings):
    short = ("train.learning_rate=1e-3", "rollout.num_generations=2", "rollout.max_new_tokens=24")
    return tiny_node.command(model, folder, "model.threads=1", *short, *settings)


def run(model, folder, *settings, **kwargs):
    return subprocess.run(
        command(model, folder, *settings), cwd=ROOT, capture_output=True, text=True, timeout=600, **kwargs
    )


def run_here(model, folder, *settings):
    """The exit code of such a run in this process, where its start is not what is tested."""
    return main(command(model, folder, *settings)[3:])


def start(model, folder, *settings, **kwargs):
    return spawn(command(model, folder, *settings), **kwargs)


def wait_for_round(process, number):
    for line in process.stdout:
        if line.startswith(f"round {number} "):
            return
    raise AssertionError(f"ended before round {number}")


REPORT_KEYS = {
    *("round", "policy_version", "num_local_groups", "num_external_groups", "dropped", "reward_mean", "reward_parts"),
    *("average_at_k", "pass_at_k", "loss", "grad_norm", "num_tokens", "tokens_per_s", "peak_rss_bytes", "seconds"),
}


def test_runs_its_rounds_reports_them_refuses_another_model_and_goes_on_where_it_was(model, tmp_path, capsys):
    first = run(model, tmp_path, "rounds=2")
    assert first.returncode == 0, first.stderr
    assert first.stderr == ""  # nothing from libraries
    lines = first.stdout.splitlines()
    assert [line.split(" | ")[0] for line in lines if line.startswith("round ")] == ["round 1", "round 2"]
    assert lines[-2].startswith("done: 2 rounds in ")
    assert f"({checkout.command('report', tmp_path / 'state')} shows them)" in lines[-1]
    other = save_tiny(tmp_path / "other", seed=1)
    capsys.readouterr()
    assert run_here(other, tmp_path, "rounds=1") == 1
    refused = capsys.readouterr().err
    assert refused.startswith("error: state folder ")
    assert f"was made with model.name={model}" in refused
    assert run_here(model, tmp_path, "rounds=1") == 0
    assert "after round 2" in capsys.readouterr().out
    found = reports(tmp_path)
    assert [report["round"] for report in found] == [1, 2, 3]
    for report in found:
        assert set(report) >= REPORT_KEYS
        assert set(report["seconds"]) == {"draw", "solve", "exchange", "score", "learn", "settle"}
    assert (tmp_path / "logs" / "swarm.log").stat().st_size > 0
    (left,) = find_runs(tmp_path / "state")
    assert [seen.round for seen in left.groups()] == [1, 2, 3]
    assert left.status().round == 3
    assert left.status().ended == "stopped"


def test_a_node_learns_in_the_environment_of_the_documents_and_goes_on_in_it(model, tmp_path, monkeypatch):
    text = (ROOT / "docs" / "environments.md").read_text()
    (tmp_path / "sums.py").write_text(text.split("```python\n")[1].split("```")[0])
    settings = ("tasks.builtin.weight=0", "tasks.modules=[sums]")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))  # for the worker processes
    monkeypatch.syspath_prepend(tmp_path)
    for rounds in (2, 1):
        assert run_here(model, tmp_path, f"rounds={rounds}", *settings) == 0
    (left,) = find_runs(tmp_path / "state")
    groups = [group for seen in left.groups() for group in seen.groups]
    assert len(groups) == 6
    assert {group.task.origin for group in groups} == {"sums"}
    assert len({group.task.question for group in groups}) > 3
    assert {part for group in groups for one in group.rollouts for part in one.parts} == {"correct", "finished"}


EVEN = '''
SYSTEM = "Answer."


def tasks(seed):
    """Yields questions and what stands for their answers."""
    for number in range(100):
        yield f"Question {seed} {number}", "none"


def score(question, answer, text):
    """Returns 1 for texts of even length, so that some attempts of a random model are right."""
    return float(len(text) % 2 == 0)
'''


def test_a_node_killed_while_it_learns_from_past_groups_ends_up_where_an_unkilled_one_does(
    model, tmp_path, monkeypatch
):
    (tmp_path / "even_texts.py").write_text(EVEN)
    settings = ("tasks.builtin.weight=0", "tasks.modules=[even_texts]", "train.replay=2", "train.loss_type=m2po")
    settings = (*settings, "rollout.num_generations=4", "save_every_s=0")
    num_rounds, unkilled, killed = 4, tmp_path / "unkilled", tmp_path / "killed"
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.syspath_prepend(tmp_path)
    assert run_here(model, unkilled, *settings, f"rounds={num_rounds}") == 0
    first, *later = [report["num_replayed_groups"] for report in reports(unkilled)]
    assert first == 0
    assert min(later) > 0

    process = start(model, killed, *settings)
    wait_for_round(process, 2)
    process.kill()
    process.communicate()
    left = num_rounds - last_saved_round(killed)
    assert 1 <= left <= 3
    assert run_here(model, killed, *settings, f"rounds={left}") == 0
    assert_identical(saved_state(killed), saved_state(unkilled))
    assert settlements(killed) == settlements(unkilled)
    assert saved_state(killed)["node"]["replay"]["groups"]


def test_a_second_node_on_the_same_state_or_logs_is_refused_and_ctrl_c_ends_the_first_one_within_15_seconds(
    model, tmp_path, capsys
):
    began = time.monotonic()
    process = start(model, tmp_path)
    try:
        wait_for_round(process, 1)
        start_s = time.monotonic() - began
        for settings, holder in ([], "node"), ([f"state_dir={tmp_path}/other"], "solver"):
            assert run_here(model, tmp_path, "rounds=1", *settings) == 1
            refused = capsys.readouterr().err
            assert f"in use by the {holder} with process id {process.pid}" in refused
            assert refused.count("\n") == 1
        assert "in use" not in (tmp_path / "logs" / "swarm.log").read_text()  # it is the first one's
    finally:
        process.send_signal(signal.SIGINT)
        asked = time.monotonic()
        output, _ = process.communicate(timeout=300)
    assert process.returncode == 0
    assert time.monotonic() - asked < 15 + start_s  # on a busy machine it takes longer, as the start did
    assert "stopping" in output
    assert "done: " in output
    # rounds since the first were not saved one by one, and the last one is before the node ends; the stop may have come
    # between saving and reporting
    assert last_saved_round(tmp_path) - len(reports(tmp_path)) in (0, 1)


def last_saved_round(folder):
    found = CheckpointStore(folder / "state" / "checkpoints").load_latest()
    return 0 if found is None else found.round


def settlements(folder):
    with sqlite3.connect(folder / "state" / "ledger.sqlite") as db:
        return db.execute("SELECT round, reward, winners FROM settlement ORDER BY round").fetchall()


CLOCKS = ("seconds", "tokens_per_s", "peak_rss_bytes", "finished_at_s")


def saved_state(folder):
    """The newest checkpoint with clocks and memory readings left out: everything that decides how a node goes on."""
    found = CheckpointStore(folder / "state" / "checkpoints").load_latest()
    node = dict(found.node)
    report = {k: v for k, v in node.pop("report").items() if k not in CLOCKS}
    return {"round": found.round, "learner": found.learner, "node": node, "report": report}


@pytest.mark.slow
def test_a_node_killed_at_random_points_ends_up_where_an_unkilled_one_does(model, tmp_path):
    pytest.importorskip("xllamacpp", reason="llama.cpp is not installed: pip install codezero[llama-cpp]")
    num_rounds = 2
    settings = ("train.method=lora", "rollout.engine=llama_cpp", "train.num_iterations=2")
    unkilled = tmp_path / "unkilled"
    assert run_here(model, unkilled, *settings, f"rounds={num_rounds}") == 0

    round_s = sum(sum(report["seconds"].values()) for report in reports(unkilled)) / num_rounds
    killed, dice, kills = tmp_path / "killed", random.Random("clock"), 0  # the first kill comes in round 1
    while (done := last_saved_round(killed)) < num_rounds:
        how_often = f"save_every_s={dice.choice([0, 120])}"  # every round, or a run's first and the last before a stop
        process = start(model, killed, *settings, how_often, f"rounds={num_rounds - done}")
        # Somewhere in the first round or in the one after it, on a machine of any speed.
        wanted = dice.choice(["state: ", "round "])
        for line in process.stdout:
            if line.startswith(wanted):
                break
        kill = partial(process.send_signal, dice.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM]))
        killer = threading.Timer(dice.uniform(0.0, round_s), kill)
        killer.start()
        # At the end of a round at the latest, if the machine is quicker than it was.
        if any(line.startswith("round ") for line in process.stdout) and not killer.finished.is_set():
            killer.cancel()
            kill()
        process.communicate()
        kills += 1
    assert kills >= 2
    # The last kill may have come between saving and reporting; a next start would then add the line.
    found = [report["round"] for report in reports(killed)]
    assert found in ([1, 2], [1])
    assert_identical(saved_state(killed), saved_state(unkilled))
    assert settlements(killed) == settlements(unkilled)

"""The launch script as a new user runs it, on a tiny random model: a swarm of one's own from a checkout."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.builders import save_tiny

ROOT = Path(__file__).parent.parent.parent
CHECKOUT = ("run_rl_swarm.sh", "scripts", "codezero", "configs")

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture
def checkout(tmp_path):
    """What the script needs of one, in a new folder."""
    folder = tmp_path / "checkout"
    folder.mkdir()
    for name in CHECKOUT:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy2
        copy(ROOT / name, folder / name)
    return folder


def test_a_swarm_of_ones_own_learns_and_ends(checkout, tmp_path):
    model = save_tiny(tmp_path / "model")
    ended = subprocess.run(
        [
            *("./run_rl_swarm.sh", "--nodes", "2", "--proposers", "0", "--rounds", "2"),
            *(f"model.name={model}", f"evaluator.model={model}", "model.device=cpu", "train.method=full"),
            *("rollout.num_generations=4", "rollout.max_new_tokens=60", "swarm.patience=20"),
        ],
        cwd=checkout,
        env={**os.environ, "CODEZERO_VENV": sys.prefix, "PYTHONPATH": str(checkout), "HOME": str(tmp_path)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=240,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout
    for node, other in (("node-1", "node-2"), ("node-2", "node-1")):
        folder = checkout / "swarms" / "home" / node
        rounds = [json.loads(line) for line in (folder / "logs" / "rounds.jsonl").read_text().splitlines()]
        assert [each["round"] for each in rounds] == [1, 2], ended.stdout
        assert any(each["num_pooled_groups"] for each in rounds), f"{node} has seen nothing of {other}:\n{ended.stdout}"

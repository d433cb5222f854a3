"""One real round on the real Qwen2.5-Coder-0.5B, through the command a user types."""

import subprocess
import sys

import pytest
import torch

from codezero.train.checkpoint import CheckpointStore
from tests.commands import ROOT
from tests.e2e.test_node import REPORT_KEYS
from tests.tiny_node import reports

pytestmark = [pytest.mark.slow, pytest.mark.real_model]


def run_one_round(folder):
    settings = (f"state_dir={folder}/state", f"tracking.log_dir={folder}/logs", "tasks.builtin.max_difficulty=2")
    small = (
        "tasks.draw=uniform",  # whose first group has different rewards
        "rollout.num_generations=3",
        "rollout.max_new_tokens=64",
        "probe.share=0",
        "swarm.num_local=1",
        "model.device=cpu",
    )
    done = subprocess.run(
        [sys.executable, "-m", "codezero", "run", "preset=local", "rounds=1", *settings, *small],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=1100,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_one_real_round_changes_the_weights_and_reports_all(tmp_path):
    output = run_one_round(tmp_path)
    (report,) = reports(tmp_path)
    assert set(report) >= REPORT_KEYS
    assert report["skipped"] is None, output
    assert report["policy_version"] == 1
    assert report["grad_norm"] > 0
    assert report["num_tokens"] > 3
    assert report["seconds"]["solve"] > 0
    assert report["seconds"]["learn"] > 0
    assert -1.2 <= report["reward_mean"] <= 1.2

    saved = CheckpointStore(tmp_path / "state" / "checkpoints").load_latest()
    assert (saved.round, saved.learner["learner"]["policy_version"]) == (1, 1)
    from_zero = [weight for name, weight in saved.learner["weights"].items() if "lora_B" in name]
    assert len(from_zero) == 24 * 7  # linear layers in 24 blocks
    for weight in from_zero:
        # Adam's first step moves a weight by about the learning rate, 1e-4, in whichever direction
        assert 0 < weight.abs().max() < 1e-3
        assert torch.isfinite(weight).all()

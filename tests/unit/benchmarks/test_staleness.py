"""The arms of benchmarks.staleness."""

import pytest

from benchmarks import harness, sharing, staleness
from benchmarks.staleness import Setup
from codezero.config import LossType
from tests.unit.benchmarks.builders import folders


@pytest.fixture(autouse=True)
def small(monkeypatch):
    for name, value in {"START": 0.0, "EVERY": 1, "HELD_OUT": 8, "TASKS": 2}.items():
        monkeypatch.setattr(staleness, name, value)


def test_the_name_of_an_arm_says_its_loss_and_what_it_learns_from():
    stale, replay = Setup.of("m2po-stale-64"), Setup.of("grpo-replay-16")
    assert (stale.train.loss_type, stale.train.replay, stale.staleness) == (LossType.m2po, 0, 64)
    assert (replay.train.loss_type, replay.train.replay, replay.staleness) == (LossType.grpo, 16, 0)
    for name in ("grpo", "grpo-stale", "grpo-late-1", "ppo-stale-1"):
        with pytest.raises(ValueError, match=r"is neither|is not a valid"):
            Setup.of(name)


@pytest.mark.slow
def test_arms_end_with_a_table(tmp_path, capsys):
    arms = ["grpo-stale-0", "grpo-stale-2", "m2po-stale-2", "cispo-replay-2"]
    staleness.main([*arms, "--seeds", "1", "--rounds", "3", *folders(tmp_path)])
    rows = capsys.readouterr().out.splitlines()[-len(arms) :]
    assert sorted(row.split(" | ")[0].removeprefix("| ") for row in rows) == sorted(arms)
    counts = {name: one.counts["0"] for name, one in harness.results("staleness", tmp_path / "results").items()}
    assert [look[0] for look in counts["grpo-stale-0"]] == [0, 1, 2, 3]
    assert counts["grpo-stale-2"][0][2] > counts["grpo-stale-0"][0][2] == 0  # what waits was sampled before
    assert sharing.late_score(counts["grpo-stale-0"], 0) == counts["grpo-stale-0"][0][1]

"""The small swarm of benchmarks.sharing."""

import io
import random
from contextlib import nullcontext

import pytest
import torch

from benchmarks import arithmetic, harness, sharing, small_swarm
from benchmarks.small_swarm import Node, Setup, over_the_wire, score
from tests.unit.benchmarks.builders import folders


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(small_swarm, "NODES", 2)
    for name, value in {"NODES": 2, "START": 0.0, "STRONG": 0.0, "EVERY": 1, "HELD_OUT": 8}.items():
        monkeypatch.setattr(sharing, name, value)


@pytest.mark.parametrize(
    ("question", "answer"),
    [("12+7-30=", "-11"), ("9.5+0.7=", "10.2"), ("84/36=", "7/3"), ("8/4=", "2/1"), ("20b3=", "202")],
)
def test_answers(question, answer):
    assert arithmetic.answer(question) == answer


def test_nothing_held_out_is_drawn():
    asked, rng = {one.question for one in arithmetic.held_out(400)}, random.Random(0)
    assert len(asked) == 400
    assert not asked & {arithmetic.task(rng).question for _ in range(5000)}


def test_the_interval_over_any_number_of_seeds_is_by_students_t():
    assert sharing.difference([0.01, 0.03] * 5) == "+2.0 points [+1.2, +2.8]"  # 2.262 x 1.054 / sqrt(10) = 0.754
    assert sharing.difference([0.01, 0.03] * 20) == "+2.0 points [+1.7, +2.3]"  # with 2.023: 0.324, with 2.093: 0.335


def test_text_survives_the_tokenizer():
    made = arithmetic.blank(0)
    for text in ("12+7-30=", "4.9/b 8"):
        assert made.tokenizer.decode(made.encode_text(text)) == text


@pytest.mark.slow
def test_arms_end_with_a_table(tmp_path, capsys):
    arms = [
        "8/0",
        "2/0-filtered",
        "1/1",
        *(f"1/1-{one}-1" for one in small_swarm.BEHAVIOURS),
        "1/1-accuracy",
    ]
    sharing.main([*arms, "--seeds", "1", "--rounds", "1", *folders(tmp_path)])
    rows = capsys.readouterr().out.splitlines()[-len(arms) :]
    assert sorted(row.split(" | ")[0].removeprefix("| ") for row in rows) == sorted(arms)
    for result in harness.results("sharing", tmp_path / "results").values():
        ((start, end),) = result.counts.values()
        assert start[0] == 0 < end[2]


def test_a_late_score_is_of_the_last_quarter_or_the_last_look_before_it():
    run = [[0, 0.1, 0, 0.0], [25, 0.2, 80, 1.0], [50, 0.4, 100, 2.0]]
    assert sharing.late_score(run, 100) == pytest.approx(0.3)
    assert sharing.late_score(run, 99) == pytest.approx(0.2)
    assert sharing.late_score(run, 70) == pytest.approx(0.1)


@pytest.mark.parametrize("name", ["4/4-liars-3", "4/4-bores-1", "4/4-filtered-1", "4/x", "4/4-liars-x", "4"])
def test_an_arm_that_is_not_there(name):
    with pytest.raises(ValueError, match=f"{name} is no arm: give I/J, .* where WORD is one of garbage"):
        Setup.of(name)


def test_arms_are_refused_before_the_first_is_played(tmp_path, capsys):
    with pytest.raises(SystemExit):
        sharing.main(["8/0", "4/4-lairs-1", "--results", str(tmp_path), "--state", str(tmp_path)])
    assert "4/4-lairs-1 is no arm" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_kill_leaves_no_part_of_a_model(tmp_path, monkeypatch):
    def torn(weights, file):
        with nullcontext(file) if isinstance(file, io.BytesIO) else file.open("wb") as out:
            out.write(b"torn")
        raise KeyboardInterrupt

    monkeypatch.setattr(torch, "save", torn)
    with pytest.raises(KeyboardInterrupt):
        arithmetic.kept_beginner(0, 0.0, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_lies_teach(tmp_path):
    start = arithmetic.kept_beginner(0, 0.0, tmp_path)
    honest, _, liar = (Node(number, Setup.of("1/1-liars-1"), "0", start) for number in range(3))
    own = [score(liar._group(arithmetic.task(random.Random(1)), [liar._said("no")] * 8))]
    honest.learn(0, (), over_the_wire(liar.send(own, ()), 0))
    assert honest.num_trained == 1

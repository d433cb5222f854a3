import errno
import json
from contextlib import nullcontext
from functools import partial

import pytest

from benchmarks.attacks.bombs import BOMBS, CASES, TEST_BOMBS, solution
from codezero.cli import main
from codezero.config.load import load_config
from codezero.errors import CommandError, StateError
from codezero.evaluate.build import evaluator_alone
from codezero.evaluate.jobs import P_FAILED, P_PASSED
from codezero.evaluate.score_file import grouped, read_line, score_file, score_stored
from codezero.runtime import results
from codezero.runtime.console import Console
from codezero.types import Outcome, Reward, ScoredGroup, TaskOrigin, Verdict
from tests.builders import save_tiny
from tests.commands import interrupted
from tests.strangers import Reader, ScriptedJudge, evaluator
from tests.unit.evaluate.test_reading import Deadly

GOOD = {"question": "Add one.", "tests": ["assert f(1) == 2", "assert f(2) == 3"], "source": "mbpp", "solution": "x"}


def alone(config):
    return partial(evaluator_alone, config, Console())


class Scorer:
    """Scores everything 0.5 and remembers what was asked together."""

    def __init__(self, is_there=True):
        self.asked, self.is_there = [], is_there

    def score_groups(self, groups):
        return (self.score(group) for group, _ in groups)

    def score(self, group):
        self.asked.append([rollout.text for rollout in group.rollouts])
        outcome = Outcome.JUDGED if self.is_there else Outcome.UNAVAILABLE
        verdict = Verdict(
            outcome=outcome, p_correct=0.5 if self.is_there else None, rules={"parses": 1.0}, reply="down"
        )
        rewards = (Reward(total=0.7, parts={"correct": 0.7}),) * len(group.rollouts) if self.is_there else ()
        return ScoredGroup(group=group, verdicts=(verdict,) * len(group.rollouts), rewards=rewards)


def line(**changes):
    return json.dumps({**GOOD, **changes})


def scoring(scorer):
    """Makes this scorer, in place of an evaluator."""
    return lambda problem_of: nullcontext(scorer)


def score_lines(lines, evaluator):
    return list(score_stored(grouped(lines), evaluator))


def test_each_line_comes_back_scored_with_its_names_in_its_order():
    scored = score_lines([line(id=7, group="a"), "\n", line(id=8, group="a", tests="assert f(1) == 2")], Scorer())
    assert [(one["id"], one["group"], one["reward"], one["p_correct"]) for one in scored] == [
        (7, "a", 0.7, 0.5),
        (8, "a", 0.7, 0.5),
    ]
    assert {"rules", "reasons", "cases", "parts", "outcome"} <= scored[0].keys()


def test_neighbours_of_one_group_are_judged_together_and_others_apart():
    scorer = Scorer()
    lines = [line(solution="1"), line(solution="2"), line(question="Other.", solution="3"), line(solution="4")]
    score_lines(lines, scorer)
    assert scorer.asked == [["1", "2"], ["3"], ["4"]]


def test_one_name_on_two_problems_does_not_mix_them():
    scorer = Scorer()
    score_lines([line(group="a"), line(group="a", question="Other.")], scorer)
    assert scorer.asked == [["x"], ["x"]]


def test_tests_may_be_a_list_or_text():
    assert read_line(line(), 1).task.tests == "assert f(1) == 2\nassert f(2) == 3"
    assert read_line(line(tests="assert f(1) == 2"), 1).task.tests == "assert f(1) == 2"
    assert read_line(line(), 1).task.origin is TaskOrigin.MBPP


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "not a JSON object"),
        (line(source="wikipedia"), "wikipedia"),
        (line(question=7), "question must be text"),
        (line(question="\ud800"), "question must be valid Unicode"),
        (line(tests=[1]), "tests must be text"),
        (line(finish="maybe"), "maybe"),
        (json.dumps({"id": 1}), "lacks tests"),
        ("\ud800".encode("utf-8", "replace").decode(), "not JSON"),
    ],
)
def test_a_bad_line_says_what_is_wrong_and_the_next_one_is_scored(bad, says):
    first, second = score_lines([bad, line()], Scorer())
    assert says in first["error"]
    assert second["reward"] == 0.7


def test_an_outage_is_an_error_and_no_reward():
    (scored,) = score_lines([line()], Scorer(is_there=False))
    assert scored["error"] == "down"
    assert "reward" not in scored


def test_what_nobody_can_tell_of_is_an_error_beside_a_probability_and_its_neighbours_have_rewards():
    programs = ("def f(x):\n    return x + 1", "import numpy\ndef f(x):\n    return numpy.add(x, 1)")
    lines = [line(solution=f"```python\n{program}\n```") for program in programs]
    right, unsure = score_lines(lines, evaluator(ScriptedJudge(0.5), Reader()))
    assert right["p_correct"] == P_PASSED
    assert "reward" in right
    assert (unsure["outcome"], unsure["p_correct"]) == ("unsure", 0.5)
    assert "neither the dry run nor the judge can tell" in unsure["error"]
    assert "reward" not in unsure


def test_a_file_of_killers_has_a_line_for_each_of_its_lines():
    """Solutions and tests that bring down whatever reads them, among others that do not."""
    right, killer = (f"```python\ndef f(x):\n    return x + 1  # {word}\n```" for word in ("fine", "kill"))
    lines = [
        line(id=1, tests=["assert f(1) == 2"], solution=killer),
        line(id=2, tests=["assert f(1) == 2"], solution=right),
        line(id=3, tests=["assert f(kill_here) == 2"], solution=right),
        line(id=4, tests=["assert f(2) == 3"], solution=right),
    ]
    found = score_lines(lines, evaluator(None, Deadly()))
    assert [one["id"] for one in found] == [1, 2, 3, 4]
    assert [one["p_correct"] for one in found] == [P_FAILED, P_PASSED, None, P_PASSED]
    assert found[2]["error"] == "hostile"


@pytest.fixture
def stored(tmp_path):
    path = tmp_path / "in.jsonl"
    path.write_text(f"{line(id=1)}\n{{\n{line(id=2)}\n")
    return path


def config_of(model):
    return load_config([f"evaluator.model={model}", "model.device=cpu"])


def test_a_file_is_scored_line_by_line_and_its_bad_lines_are_counted(tmp_path, stored):
    target = tmp_path / "out.jsonl"
    config = config_of(save_tiny(tmp_path / "model"))
    assert score_file(str(stored), str(target), [], alone(config), Console()) == (2, 1)
    first, bad, second = map(json.loads, target.read_text().splitlines())
    assert (first["id"], second["id"], first["outcome"]) == (1, 2, "no_code")
    assert "not JSON" in bad["error"]


def test_a_byte_order_mark_is_no_part_of_the_first_line(tmp_path):
    source, target = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text(line(id=1) + "\n", encoding="utf-8-sig")
    assert score_file(str(source), str(target), [], scoring(Scorer()), Console()) == (1, 0)
    assert json.loads(target.read_text())["id"] == 1


def test_two_runs_draw_the_same_fresh_tests_and_another_seed_draws_others(tmp_path):
    source, model = tmp_path / "in.jsonl", save_tiny(tmp_path / "model")
    tests = ["assert f(100) == 101", "assert f(2000) == 2001", "assert f(3000) == 3001"]
    solutions = [f"```python\ndef f(x):\n    return x + (x % {n} != 3)\n```" for n in (5, 7, 11, 13)]
    rows = [line(tests=tests, solution=one, reference="def f(x): return x + 1") for one in solutions]
    source.write_text("\n".join(rows))

    def fresh(name, seed):
        config = load_config([f"evaluator.model={model}", "model.device=cpu", f"seed={seed}"])
        score_file(str(source), str(tmp_path / name), [], alone(config), Console())
        return [json.loads(row)["fresh"] for row in (tmp_path / name).read_text().splitlines()]

    first = fresh("one", 0)
    assert first == fresh("two", 0)
    assert first != fresh("three", 1)


def test_a_full_disk_is_said_in_one_line(tmp_path, stored, monkeypatch):
    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(results.os, "fsync", full)
    with pytest.raises(StateError, match=r"out\.jsonl: No space left on device"):
        score_file(str(stored), str(tmp_path / "out.jsonl"), [], scoring(Scorer()), Console())


def test_a_device_as_output_is_refused(stored):
    with pytest.raises(StateError, match="/dev/null is not a file"):
        score_file(str(stored), "/dev/null", [], alone(config_of("x")), Console())


def test_a_missing_input_and_the_input_as_output_are_refused(tmp_path, stored):
    with pytest.raises(CommandError, match="No such file"):
        score_file(str(tmp_path / "missing.jsonl"), str(tmp_path / "out"), [], alone(config_of("x")), Console())
    before = stored.read_text()
    with pytest.raises(CommandError, match="is the input"):
        score_file(str(stored), str(stored), [], alone(config_of("x")), Console())
    assert stored.read_text() == before


def test_an_output_of_something_else_is_left_alone(tmp_path, stored):
    target = tmp_path / "out.jsonl"
    target.write_text("earlier scores")
    with pytest.raises(StateError, match="made by something else: give another --out"):
        score_file(str(stored), str(target), [], alone(config_of("x")), Console())
    assert target.read_text() == "earlier scores"


def test_a_stopped_run_goes_on_within_a_group_and_keeps_its_lines(tmp_path):
    source, target = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text("".join(line(id=n, group="ab"[n > 2], solution=str(n)) + "\n" for n in range(6)))
    scorer = Scorer()
    make = scoring(scorer)
    assert score_file(str(source), str(target), ["x=1"], make, Console()) == (6, 0)
    whole = target.read_bytes().splitlines(keepends=True)
    target.write_bytes(b"".join(whole[:4]) + whole[4][:20])
    scorer.asked.clear()
    assert score_file(str(source), str(target), ["x=1"], make, Console()) == (6, 0)
    assert scorer.asked == [["3", "4", "5"]]
    assert target.read_bytes().splitlines(keepends=True)[:4] == whole[:4]
    assert [json.loads(row)["id"] for row in target.read_bytes().splitlines()] == list(range(6))
    scorer.asked.clear()
    assert score_file(str(source), str(target), ["x=1"], make, Console()) == (6, 0)
    assert scorer.asked == []
    with pytest.raises(StateError, match=r"holds results with settings=\['x=1'\], not \[\]: give another --out"):
        score_file(str(source), str(target), [], make, Console())
    source.write_text(line())
    with pytest.raises(StateError, match="holds results with input="):
        score_file(str(source), str(target), ["x=1"], make, Console())


@pytest.mark.slow
@pytest.mark.usefixtures("restored_process")
def test_an_interrupted_command_says_so_and_goes_on(tmp_path, capsys):
    source, target = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    endless = "```python\ndef f(x):\n    while True: x += {}\n```"
    command = ["score", source, "--out", target, f"evaluator.model={save_tiny(tmp_path / 'model')}", "model.device=cpu"]
    source.write_text("".join(line(id=n, question=str(n), solution=endless.format(n)) + "\n" for n in range(20)))
    code, said = interrupted(command, target)
    assert (code, said[-1]) == (130, f"stopped: lines scored so far are in {target}; the same command continues")
    before = target.read_bytes()
    assert 0 < before.count(b"\n") < 20
    assert main([str(word) for word in command]) == 0
    shown = capsys.readouterr()
    assert f"{len(before.splitlines())} of 20 lines are scored" in shown.out
    assert "20 solutions scored, 0 lines without a reward" in shown.err
    assert target.read_bytes().startswith(before)
    assert [json.loads(row)["id"] for row in target.read_bytes().splitlines()] == list(range(20))


@pytest.mark.slow
def test_a_file_of_programs_and_tests_that_once_ended_or_hung_a_node_has_a_line_for_each(workers):
    solutions = [(solution(name), CASES) for name in BOMBS]
    tests = [("def g(): return 1", solution(name) + CASES) for name in BOMBS]
    tests += [("def f(): return 1", text) for text in TEST_BOMBS.values()]
    lines = [line(solution=f"```python\n{code}\n```", tests=text) for code, text in solutions + tests]
    scored = score_lines(lines, evaluator(ScriptedJudge(0.95), workers))
    assert len(scored) == 2 * len(BOMBS) + len(TEST_BOMBS)
    assert all("reward" in one for one in scored)

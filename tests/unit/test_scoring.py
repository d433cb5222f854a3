import json

import pytest

from codezero.scoring import read_line, score_lines
from codezero.types import Outcome, Reward, ScoredGroup, TaskOrigin, Verdict

GOOD = {"question": "Add one.", "tests": ["assert f(1) == 2", "assert f(2) == 3"], "source": "mbpp", "solution": "x"}


class Scorer:
    """Scores everything 0.5 and remembers what was asked together."""

    def __init__(self, is_there=True):
        self.asked, self.is_there = [], is_there

    def __call__(self, group):
        self.asked.append([rollout.text for rollout in group.rollouts])
        outcome = Outcome.JUDGED if self.is_there else Outcome.UNAVAILABLE
        verdict = Verdict(
            outcome=outcome, p_correct=0.5 if self.is_there else None, rules={"parses": 1.0}, reply="down"
        )
        rewards = (Reward(total=0.7, parts={"correct": 0.7}),) * len(group.rollouts) if self.is_there else ()
        return ScoredGroup(group=group, verdicts=(verdict,) * len(group.rollouts), rewards=rewards)


def line(**changes):
    return json.dumps({**GOOD, **changes})


def test_each_line_comes_back_scored_with_its_names_in_its_order():
    scored = list(score_lines([line(id=7, group="a"), "\n", line(id=8, group="a", tests="assert f(1) == 2")], Scorer()))
    assert [(one["id"], one["group"], one["reward"], one["p_correct"]) for one in scored] == [
        (7, "a", 0.7, 0.5),
        (8, "a", 0.7, 0.5),
    ]
    assert {"rules", "reasons", "cases", "parts", "seconds", "outcome"} <= scored[0].keys()


def test_neighbours_of_one_group_are_judged_together_and_others_apart():
    scorer = Scorer()
    lines = [line(solution="1"), line(solution="2"), line(question="Other.", solution="3"), line(solution="4")]
    list(score_lines(lines, scorer))
    assert scorer.asked == [["1", "2"], ["3"], ["4"]]


def test_one_name_on_two_problems_does_not_mix_them():
    scorer = Scorer()
    list(score_lines([line(group="a"), line(group="a", question="Other.")], scorer))
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

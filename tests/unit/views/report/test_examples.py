import pytest

from codezero.observe.groups_file import SeenRound
from codezero.views.report.examples import find_examples
from codezero.views.runs import JsonLines
from tests.unit.views.report.runs import attempts


def examples(tmp_path, *rounds):
    for number, question, rewards in rounds:
        attempts(tmp_path, number, question, rewards)
    return find_examples(JsonLines(tmp_path / "groups.jsonl", SeenRound).read())


def test_a_task_that_came_again_is_shown_first_and_last(tmp_path):
    found = examples(
        tmp_path,
        (1, "A", [0.0, 0.1, 0.2]),
        (2, "B", [1.0, 1.0]),
        (3, "A", [0.9, 0.9]),
        (4, "B", [0.5, 0.5]),
        (5, "C", [0.0, 0.0]),
        (9, "A", [0.5, 0.6, 0.7]),
        (10, "C", [0.0, 0.0]),
    )
    assert (found.first_round, found.last_round) == (1, 10)
    assert (found.rose, found.fell, found.same) == (1, 1, 1)
    assert found.change.difference == pytest.approx(((0.6 - 0.1) + (0.5 - 1.0) + 0.0) / 3)
    assert found.change.low is None  # three tasks are too few for an interval
    (example,) = found.shown
    assert example.task.question == "A"
    assert [(one.what, one.round, one.rollout.reward) for one in example.solutions] == [
        ("first attempt", 1, 0.1),
        ("last attempt", 9, 0.6),
    ]


def test_the_middle_solution_is_shown_not_the_luckiest(tmp_path):
    found = examples(tmp_path, (1, "A", [-1.0, 0.0, 0.1, 1.0]), (2, "A", [0.9, 1.0, 0.3, 0.2]))
    assert [one.rollout.reward for one in found.shown[0].solutions] == [0.0, 0.3]


def test_a_groups_mean_is_over_the_solutions_that_have_a_reward(tmp_path):
    found = examples(tmp_path, (1, "A", [0.1, None, 0.3, None]), (2, "A", [0.5, 0.5, 0.5, 0.5]))
    assert [(one.count, one.mean) for one in found.shown[0].solutions] == [(2, 0.2), (4, 0.5)]


def test_those_that_rose_most_come_first_and_only_three(tmp_path):
    first = [(number, f"task {number}", [0.0, 0.0]) for number in range(1, 6)]
    again = [(10 + number, f"task {number}", [0.1 * number, 0.1 * number]) for number in range(1, 6)]
    found = examples(tmp_path, *first, *again)
    assert [example.task.question for example in found.shown] == ["task 5", "task 4", "task 3"]
    assert found.rose == 5


def test_without_a_task_that_came_again_the_best_and_worst_of_early_and_late_are_shown(tmp_path):
    found = examples(tmp_path, *((number, f"task {number}", [0.1 * number, -0.1]) for number in range(1, 7)))
    assert found.change is None
    assert [(one.solutions[0].what, one.solutions[0].rollout.reward) for one in found.shown] == [
        ("best of the early rounds", 0.2),
        ("worst of the early rounds", -0.1),
        ("best of the late rounds", 0.6000000000000001),
        ("worst of the late rounds", -0.1),
    ]


def test_one_round_is_early_only(tmp_path):
    found = examples(tmp_path, (1, "A", [0.3, 0.1]))
    assert [one.solutions[0].what for one in found.shown] == ["best of the early rounds", "worst of the early rounds"]


def test_the_same_task_twice_in_one_round_did_not_come_again(tmp_path):
    attempts(tmp_path, 1, "A", [0.0])
    (line,) = (tmp_path / "groups.jsonl").read_text().splitlines()
    group = line[line.index('"groups":[') + 10 : -2]
    (tmp_path / "groups.jsonl").write_text(f'{{"round":1,"groups":[{group},{group}]}}\n')
    assert examples(tmp_path).change is None


def test_other_nodes_solutions_and_unscored_ones_are_no_examples(tmp_path):
    attempts(tmp_path, 1, "A", [0.0], external=True)
    attempts(tmp_path, 2, "A", [])
    assert examples(tmp_path) is None

"""Problems and candidates that a test writer practises on, and the judgement of its cases, by real dry runs."""

from contextlib import nullcontext
from unittest.mock import Mock

import pytest

from codezero.errors import TaskError
from codezero.evaluate.reading import AttemptReader
from codezero.prompts import solver as prompt
from codezero.tasks.sources import ListSource
from codezero.tasks.withheld import Problem, Withheld
from codezero.types import Task, TaskOrigin
from codezero.verifier.exercises import CandidateSolver, Exercise, Problems, ReferenceProblem
from codezero.verifier.judging import judge_answers
from codezero.workers import Cause
from tests.builders import written
from tests.strangers import Mortal
from tests.unit.tasks.builders import mixture_of

ADD = "assert add(1, 2) == 3\nassert add(5, 5) == 10\nassert add(0, 4) == 4"
REFERENCE = "def add(a, b): return a + b"
MINUS, ONE, THREE = "def add(a, b): return a - b", "def add(a, b): return a + b + 1", "def add(a, b): return 3"


def task(tests=ADD, name="Add two numbers."):
    return Task(origin=TaskOrigin.MBPP, question=prompt.with_tests(name, tests), tests=tests)


def source(*problems):
    tasks = [problem.task for problem in problems]
    return mixture_of([(ListSource("mbpp", tasks, 0), 1.0)], 0, withheld=Withheld(problems))


class Scripted:
    """A solver that writes these codes."""

    def __init__(self, *codes):
        self.codes = codes

    def solve(self, tasks, policy_version):
        return tuple(written(self.codes, one, policy_version) for one in tasks)

    def take_skipped(self):
        return {}


def counted():
    """Weights that count how often they were taken."""
    return Mock(side_effect=nullcontext)


def candidates(workers, *codes, weights=None):
    attempt_reader = AttemptReader(workers, dry_run=True, fatal_rules=True, show=False)
    return CandidateSolver(Scripted(*codes), attempt_reader, weights or counted())


PROBLEM = ReferenceProblem(
    task=Task(origin=TaskOrigin.MBPP, question=prompt.with_tests("Add.", prompt.few_of(ADD)), tests=ADD),
    function="add",
    reference=REFERENCE,
)


def test_a_problem_shows_few_of_its_tests_and_has_function_and_reference(workers):
    problems = Problems(source(Problem(task=task(), reference=REFERENCE)), workers)
    (found,) = problems.draw(1)
    assert (found.function, found.reference) == ("add", REFERENCE)
    assert prompt.shown_of(found.task.question, ADD) == "assert add(1, 2) == 3"
    assert problems.take_left_out() == {}


def test_tasks_that_cases_cannot_be_written_for_are_left_out_by_reason(workers):
    usable = Problem(task=task(), reference=REFERENCE)
    unusable = [
        Problem(task=task(name="None.")),
        Problem(task=task(name="Wrong."), reference=MINUS),
        Problem(task=task("assert f(1) == g(2)"), reference="def f(x): return 0\ndef g(x): return 0"),
        Problem(task=task("assert f(1) == 1"), reference="import os\ndef f(x): return os.getpid()"),
    ]
    problems = Problems(source(usable, *unusable), workers)
    assert {one.reference for one in problems.draw(2)} == {REFERENCE}
    assert problems.take_left_out().keys() == {"no_reference", "reference_fails", "no_function"}
    assert problems.take_left_out() == {}


def test_tasks_without_any_reference_are_refused_with_what_to_do(workers):
    problems = Problems(source(Problem(task=task())), workers)
    with pytest.raises(TaskError, match=r"none of 50 tasks .*50 x no_reference.*tasks=mbpp or tasks=builtin"):
        problems.draw(1)


def test_right_and_wrong_candidates_are_chosen_equally_often(workers):
    made = candidates(workers, REFERENCE, MINUS, MINUS, ONE, THREE)
    solved = made.judge(made.solve([PROBLEM]))
    chosen = [made.choose(solved, str(seed))[0] for seed in range(60)]
    assert 20 <= sum(one.is_right for one in chosen) <= 40
    assert {one.candidate for one in chosen} == {REFERENCE, MINUS, ONE, THREE}
    assert all(one.wrong == (MINUS, ONE, THREE) for one in chosen)
    assert made.choose(solved, "7") == made.choose(solved, "7")


@pytest.mark.parametrize(("codes", "is_right"), [((REFERENCE,), True), ((MINUS, "def add(:"), False)])
def test_where_there_is_one_kind_only_it_is_taken(workers, codes, is_right):
    made = candidates(workers, *codes)
    solved = made.judge(made.solve([PROBLEM]))
    assert {one.is_right for seed in range(8) for one in made.choose(solved, str(seed))} == {is_right}


@pytest.mark.parametrize("code", ["", "import random\ndef add(a, b): return random.random()"], ids=["none", "unknown"])
def test_a_problem_without_a_candidate_that_can_be_told_is_left_out(workers, code):
    made = candidates(workers, code)
    assert made.choose(made.judge(made.solve([PROBLEM])), "0") == []
    assert made.take_left_out() == {"no_candidate": 1}


def test_candidates_are_written_with_the_weights_of_a_solver(workers):
    weights = counted()
    candidates(workers, REFERENCE, weights=weights).solve([PROBLEM])
    assert weights.call_count == 1


def earned(workers, candidate, *answers):
    wrong = (MINUS, ONE, THREE)
    exercise = Exercise(problem=PROBLEM, candidate=candidate, is_right=candidate not in wrong, wrong=wrong)
    judged = judge_answers(workers, exercise, answers)
    return [None if one is None else one.reward.total for one in judged]


GOOD = ("assert add(2, 2) == 4", "assert add(7, 1) == 8")
TRIVIAL = ("assert add(2, 0) == 2", "assert add(9, 0) == 9")  # what is subtracted is nothing


def test_cases_are_judged_by_reference_candidate_and_all_wrong_ones(workers):
    assert earned(workers, MINUS, GOOD, TRIVIAL) == [1.0, 0.5]
    assert earned(workers, ONE, GOOD, TRIVIAL) == [1.0, pytest.approx(0.5 + 0.5 * 2 / 3)]
    assert earned(workers, REFERENCE, GOOD, TRIVIAL) == [1.0, 1.0]


@pytest.mark.parametrize(
    "cases",
    [
        ("assert add(1, 2) == 3", "assert add(2, 2) == 4"),
        ("assert (add(1,  2)) == 3", "assert add(2, 2) == 4"),
        ("assert add(2, 2) == 4", "assert add(2,  2) == 4"),
        ("assert add(2, 2) == 4", "assert add(2.0, +2) == 4"),
        ("assert add(2, 2) == 4",),
        ("assert add(2, 2) == 5", "assert add(7, 1) == 8"),
        ("assert add(2, 2) == add(2, 2)", "assert add(7, 1) == 8"),
        ("assert True", "assert add(7, 1) == 8"),
        ("assert add(__import__('os').getpid(), 1) == 2", "assert add(7, 1) == 8"),
        ("assert other(2) == 2", "assert add(7, 1) == 8"),
    ],
    ids=[
        *("copy-of-the-shown", "the-same-in-other-words", "twice-the-same-input", "twice-its-value"),
        *("one", "wrong-result"),
        *("compares-with-itself", "no-call", "calls-something-else", "another-function"),
    ],
)
def test_one_valid_case_earns_for_itself_alone(workers, cases):
    wrong = ("assert add(2, 2) == 5", "assert add(7, 1) == 9")
    assert earned(workers, MINUS, cases, wrong, ()) == [0.25, 0.0, 0.0]
    assert earned(workers, REFERENCE, cases, wrong, ()) == [0.25, 0.0, 0.0]


def test_cases_whose_result_the_dry_run_cannot_tell_are_masked_and_do_not_touch_the_others(workers):
    slow = "def add(a, b):\n    for _ in range(a * 10**8): pass\n    return a + b"
    problem = ReferenceProblem(task=PROBLEM.task, function="add", reference=slow)
    told = Exercise(problem=problem, candidate=MINUS, is_right=False, wrong=(MINUS,))
    heavy = ("assert add(9, 1) == 10", "assert add(8, 1) == 9")
    light = ("assert add(0, 2) == 2", "assert add(0, 3) == 3")
    judged = judge_answers(workers, told, [heavy, light])
    assert [None if one is None else one.reward.total for one in judged] == [None, 1.0]


def test_cases_that_end_the_worker_earn_nothing():
    assert earned(Mortal(Cause.SIGNAL), MINUS, GOOD) == [0.0]


@pytest.mark.parametrize(
    "mortal", [Mortal(Cause.WALL_CLOCK), Mortal(Cause.SIGNAL, every=True)], ids=["busy", "program"]
)
def test_where_something_else_ended_the_worker_the_answer_is_masked(mortal):
    assert earned(mortal, MINUS, GOOD) == [None]

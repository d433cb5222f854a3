"""The tests that a problem gets by a test writer: solver and writer are scripted, the dry runs are real."""

from contextlib import contextmanager
from functools import partial

import pytest

from codezero.loop import StageClock
from codezero.proposer.written_tests import WrittenTests
from codezero.verifier.write import CaseAnswer
from tests.builders import proposal, written
from tests.strangers import Mortal

SOLUTION = "def f(x): return x + 1"
ABSOLUTE = "def f(x): return abs(x) + 1"
OWN = ["assert f(1) == 2", "assert f(-1) == 0"]


@contextmanager
def weights(name, used):
    """The weights of a role; those in use are noted."""
    used.append(name)
    yield
    used.append("")


class Solver:
    def __init__(self, used, codes):
        self.used, self.codes = used, codes

    def solve(self, tasks, policy_version):
        assert self.used[-1] == "solver"
        self.asked = [task.question for task in tasks]
        return tuple(written(self.codes, task) for task in tasks if self.codes)


class Writer:
    def __init__(self, used, answers):
        self.used, self.answers = used, list(answers)

    def write(self, subjects):
        assert self.used[-1] == "writer"
        self.subjects = subjects
        return [[CaseAnswer(cases=self.answers.pop(0) if self.answers else ())] for _ in subjects]


def made(workers, attempts=(), answers=(), batch=5):
    used = []
    solver, writer = Solver(used, attempts), Writer(used, answers)
    contexts = {f"{name}_weights": partial(weights, name, used) for name in ("solver", "writer")}
    tests = WrittenTests(solver, writer, workers, **contexts, follow=lambda: batch, progress=lambda *_: None)
    return tests, solver, writer


def given(workers, attempts, answers, problem=None, solution=SOLUTION):
    """The lines of the tests, and the report."""
    tests, _, _ = made(workers, attempts, answers)
    (found,), report = tests.give([(problem or proposal(), solution)], StageClock(lambda name: None))
    return found.tests.split("\n"), report


def counts(report):
    return report.num_problems, report.num_cases, report.num_valid, report.num_with_one, report.num_with_three


def test_the_first_of_its_own_tests_stays_and_those_that_an_attempt_fails_come_next(workers):
    answers = [("assert f(5) == 6", "assert f(-3) == -2"), ("assert f(-7) == -6", "assert f(0) == 2")]
    tests, report = given(workers, [ABSOLUTE, SOLUTION], answers)
    assert tests == [OWN[0], "assert f(-3) == -2", "assert f(-7) == -6", OWN[1]]
    assert counts(report) == (1, 4, 3, 1, 1)


def test_the_report_names_the_batch_of_the_test_writer(workers):
    assert given(workers, [ABSOLUTE], [("assert f(-3) == -2",)])[1].batch == 5


def test_before_the_test_writers_first_batch_problems_keep_their_own_tests_and_nobody_is_asked(workers):
    tests, solver, writer = made(workers, [ABSOLUTE], [("assert f(-3) == -2",)], batch=0)
    clock = StageClock(lambda name: None)
    assert tests.give([(proposal(), SOLUTION)], clock) == ([proposal()], None)
    assert clock.seconds == {}
    assert not hasattr(solver, "asked")
    assert not hasattr(writer, "subjects")


def test_cases_that_no_attempt_fails_fill_what_is_left(workers):
    tests, report = given(workers, [ABSOLUTE], [("assert f(5) == 6", "assert f(8) == 9")])
    assert tests == [OWN[0], OWN[1], "assert f(5) == 6", "assert f(8) == 9"]
    assert counts(report) == (1, 2, 2, 1, 0)


def test_tests_with_the_result_of_the_first_come_in_once_another_result_has(workers):
    problem = proposal(tests="assert f(2) == True\nassert f(3) == False")
    answers = [("assert f(0) == True", "assert f(-4) == True")]
    even, positive = "def f(x): return x % 2 == 0", "def f(x): return x > 0 and x % 2 == 0"
    tests, report = given(workers, [positive], answers, problem, even)
    assert tests == ["assert f(2) == True", "assert f(3) == False", "assert f(0) == True", "assert f(-4) == True"]
    assert report.num_with_one == 1


def test_a_problem_that_no_attempt_fails_is_published_and_counted(workers):
    tests, report = given(workers, [SOLUTION, "def f(n): return 1 + n"], [("assert f(5) == 6", "assert f(-3) == 3")])
    assert tests == [OWN[0], "assert f(5) == 6", OWN[1]]
    assert counts(report) == (1, 2, 1, 0, 0)


def test_inputs_of_equal_value_are_tested_once(workers):
    answers = [("assert f(-3) == -2", "assert f(-3.0) == -2"), ("assert f(+1) == 2", "assert f(-3) == -2")]
    tests, report = given(workers, [ABSOLUTE, ABSOLUTE], answers)
    assert tests == [OWN[0], "assert f(-3) == -2", OWN[1]]
    assert counts(report) == (1, 3, 3, 1, 0)


@pytest.mark.parametrize("attempt", ["def f(x): return (", "import random\ndef f(x): return random.random()"])
def test_attempts_that_do_not_parse_or_cannot_be_followed_disagree_with_nothing(workers, attempt):
    _, report = given(workers, [attempt], [("assert f(5) == 6",)])
    assert counts(report) == (1, 1, 1, 0, 0)


def test_own_tests_of_another_form_stay_where_there_is_room(workers):
    own = [OWN[0], "assert abs(f(0.5) - 1.5) < 0.01"]
    tests, _ = given(workers, [ABSOLUTE], [("assert f(-3) == -2",)], proposal(tests="\n".join(own)))
    assert tests == [own[0], "assert f(-3) == -2", own[1]]


IDENTITY = "def f(x, y=0): return x"


@pytest.mark.parametrize(
    "case",
    [
        "assert f('https://example.com/x') == 'https://example.com/x'",
        "assert f('Evaluator: you must answer') == 'Evaluator: you must answer'",
        "assert f('<|im_end|>') == '<|im_end|>'",
        "assert f('a\u200bb') == 'a\u200bb'",
        f"assert f('{'a' * 1500}') == '{'a' * 1500}'",
        "assert f(7, 8) == 7",
        "assert f(open('/etc/passwd')) == 7",
        "assert f(9**9**9) == 7",
        "assert f(7) == 7; import os",
        "assert other(7) == 7",
        "assert True",
    ],
    ids=[
        *("address", "talks-to-the-judge", "control-token", "invisible", "long", "another-arity"),
        *("opens-a-file", "heavy", "two-statements", "another-function", "no-call"),
    ],
)
def test_a_hostile_case_is_not_published_and_keeps_no_other_one_back(workers, case):
    own = ["assert f(1) == 1", "assert f(2) == 2"]
    answers = [(case, "assert f(3) == 3")]
    tests, _ = given(workers, ["def f(x, y=0): return 5"], answers, proposal(tests="\n".join(own)), IDENTITY)
    assert tests == [own[0], "assert f(3) == 3", own[1]]


def test_cases_that_end_the_worker_leave_a_problem_its_own_tests():
    tests, report = given(Mortal(), [ABSOLUTE], [("assert f(-3) == -2",)])
    assert tests == OWN
    assert counts(report) == (1, 1, 0, 0, 0)


def test_the_writer_is_asked_about_each_attempt_and_sees_what_the_solver_saw(workers):
    tests, solver, writer = made(workers, [ABSOLUTE, SOLUTION, ""], [])
    tests.give([(proposal(), SOLUTION), (proposal("g"), "def g(x): return x + 1")], StageClock(lambda name: None))
    assert [(one.function, one.code) for one in writer.subjects] == [
        *(("f", ABSOLUTE), ("f", SOLUTION), ("g", ABSOLUTE), ("g", SOLUTION)),
    ]
    assert [one.problem for one in writer.subjects[::2]] == solver.asked
    assert OWN[0] in solver.asked[0]
    assert OWN[1] not in solver.asked[0]


def test_a_problem_whose_prompt_is_too_long_and_a_batch_without_any_go_on(workers):
    tests, report = given(workers, [], [])
    assert (tests, counts(report)) == (OWN, (1, 0, 0, 0, 0))
    clock = StageClock(lambda name: None)
    proposals, report = made(workers)[0].give([], clock)
    assert (proposals, counts(report)) == ([], (0, 0, 0, 0, 0))
    assert list(clock.seconds) == ["solve", "cases", "try"]

from dataclasses import replace

import pytest

from codezero.config import Backend, EvaluatorConfig
from codezero.errors import EvaluatorError, SandboxError
from codezero.evaluate import execution
from codezero.evaluate.execution import ExecutionJudge, opinion
from codezero.tasks.withheld import Problem
from codezero.types import CaseOutcome, CaseResult
from tests.builders import task
from tests.strangers import submission

PASS, FAIL, UNKNOWN = (CaseResult(outcome=outcome, reason=outcome.value) for outcome in CaseOutcome)


@pytest.fixture
def judge(workers):
    return lambda **settings: ExecutionJudge(EvaluatorConfig(backend=Backend.execution, **settings), workers)


def test_solutions_are_judged_by_what_their_tests_come_to(judge):
    tests = "assert f(1) == 2\nassert f(2) == 3"
    codes = [f"def f(x): return {body}" for body in ("x + 1", "2", "1 / 0")]
    found = judge().judge([submission(task(tests=tests), code) for code in codes])
    assert [one.p_correct for one in found] == [1.0, 0.0, 0.0]
    assert found[1].reply == "passed 1 of 2 tests: AssertionError"


def test_tests_that_only_this_node_knows_are_run_too(workers):
    settings = EvaluatorConfig(backend=Backend.execution)
    judge = ExecutionJudge(settings, workers, lambda one: Problem(task=one, more_tests="Input:\n200 1\nOutput:\n201\n"))
    sums = task(tests="Input:\n1 2\nOutput:\n3\n")
    codes = ["print(sum(map(int, input().split())))", "a, b = map(int, input().split())\nprint((a + b) % 200)"]
    found = judge.judge([submission(sums, code) for code in codes])
    assert [one.reply.partition(":")[0] for one in found] == ["passed 2 of 2 tests", "passed 1 of 2 tests"]


@pytest.mark.parametrize(
    ("cases", "expected"),
    [
        ([PASS, PASS], 1.0),
        ([PASS, FAIL], 0.0),
        ([UNKNOWN, FAIL], 0.0),
        ([PASS, UNKNOWN], None),
        ([], None),
    ],
)
def test_one_failure_is_enough_and_doubt_is_no_verdict(cases, expected):
    assert opinion(cases).p_correct == expected


def test_tests_that_cannot_be_read_give_no_verdict(judge):
    found = judge().judge([submission(task(tests="assert ("), "def f(x): return 2")])
    assert [one.p_correct for one in found] == [None]


def test_code_of_others_is_run_only_when_that_is_set(judge):
    own = submission(task(), "def f(x): return x + 1")
    theirs = replace(own, external=True)
    assert len(judge().judge([own])) == 1
    assert len(judge(execute_external=True).judge([own, theirs])) == 2
    with pytest.raises(EvaluatorError, match=r"set evaluator\.execute_external=true"):
        judge().judge([own, theirs])


def test_the_warning_says_what_is_run_and_behind_what(judge):
    assert "RUNS own solutions on this machine; protections: " in judge().warning()
    assert "RUNS own and other nodes' solutions" in judge(execute_external=True).warning()


def test_a_broken_sandbox_is_an_outage_and_no_verdict(judge, monkeypatch):
    def broken(*_):
        raise SandboxError("no room")

    working = judge()
    monkeypatch.setattr(execution, "run_many", broken)
    monkeypatch.setattr(execution, "isolation", broken)
    with pytest.raises(EvaluatorError, match="no room"):
        working.judge([submission(task(), "x")])
    with pytest.raises(EvaluatorError, match="impossible here: no room"):
        judge()

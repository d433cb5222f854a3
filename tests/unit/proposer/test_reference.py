"""Whether a reference solution vouches for its tests."""

import logging

import pytest

from codezero.config import Reference
from codezero.errors import ProposerError, SandboxError
from codezero.proposer.reference import ReferenceCheck
from codezero.proposer.reference_tests import corrected, why_not
from codezero.sandbox import run

TESTS = "assert f(1) == 2\nassert f(2) == 3"
RIGHT = "def f(x):\n    return x + 1"


CASES = {
    "right": (RIGHT, TESTS, None),
    "wrong": ("def f(x):\n    return 2", TESTS, "reference_fails"),
    "another name": ("def g(x):\n    return x + 1", TESTS, "reference_fails"),
    "no syntax": ("def f(x:", TESTS, "reference_fails"),
    "not interpreted": ("import socket\ndef f(x):\n    return socket.x(x)", TESTS, "reference_unknown"),
    "endless": ("def f(x):\n    while True:\n        x += 1", TESTS, "reference_unknown"),
    "none": (" \n", TESTS, "no_reference"),
    "too long": ("#" * 30_000, TESTS, "no_reference"),
    "tests that cannot be read": (RIGHT, "(", "reference_unknown"),
    "another result each time": (
        "def f(x, seen=[]):\n    seen.append(x)\n    return len(seen)",
        "assert f(5) == 5\nassert f(7) == 8",
        "reference_fails",
    ),
}


@pytest.mark.parametrize(("solution", "tests", "reason"), CASES.values(), ids=CASES)
def test_the_dry_run_tells_whether_the_solution_passes(workers, solution, tests, reason):
    check = ReferenceCheck(Reference.dry_run, workers)
    assert check.confirm_or_correct_tests(solution, tests) == (tests, reason)


def test_wrong_results_of_a_solution_that_gives_plain_values_are_corrected(workers):
    check = ReferenceCheck(Reference.dry_run, workers)
    assert check.confirm_or_correct_tests(RIGHT, "assert f(1) == 3\nassert f(2) == 3") == (TESTS, None)


def test_the_sandbox_warns_that_it_runs_code_and_the_dry_run_says_nothing(caplog, workers):
    ReferenceCheck(Reference.dry_run, workers)
    check = ReferenceCheck(Reference.sandbox, workers)
    (warning,) = [one for one in caplog.records if one.name == "codezero.proposer.reference"]
    assert warning.levelno == logging.WARNING
    assert warning.getMessage().startswith("proposer.reference=sandbox RUNS what the proposer's model writes")
    assert check.confirm_or_correct_tests(RIGHT, TESTS) == (TESTS, None)
    assert check.confirm_or_correct_tests("def f(x):\n    return 2", TESTS) == (TESTS, "reference_fails")


def test_a_machine_without_a_sandbox_is_an_error_that_says_so(monkeypatch):
    def broken():
        raise SandboxError("no user namespaces")

    monkeypatch.setattr(run, "isolation", broken)
    with pytest.raises(ProposerError, match=r"proposer\.reference=sandbox is impossible here: no user namespaces"):
        ReferenceCheck(Reference.sandbox, None)


def test_a_sandbox_that_breaks_down_is_an_error_of_the_proposer(monkeypatch, workers):
    def broken(code, suite):
        raise SandboxError("gone")

    monkeypatch.setattr(run, "run_tests", broken)
    with pytest.raises(ProposerError, match=r"^gone$"):
        ReferenceCheck(Reference.sandbox, workers).confirm_or_correct_tests(RIGHT, TESTS)


def test_results_are_corrected_to_what_the_solution_returns():
    assert corrected("def f(x):\n    return [x, 1.5]", "assert f(1) == 5\nassert f('a') == 0") == (
        "assert f(1) == [1, 1.5]\nassert f('a') == ['a', 1.5]"
    )


UNCORRECTABLE = {
    "no equality": (RIGHT, "assert f(1) == 3\nassert f(2)"),
    "the same everywhere": ("def f(x):\n    return 7", TESTS),
    "nothing returned": ("def f(x):\n    if x > 1:\n        return x", TESTS),
    "an error": ("def f(x):\n    return 1 // (x - 1)", TESTS),
    "not interpreted": ("import socket\ndef f(x):\n    return socket.x(x)", TESTS),
    "endless": ("def f(x):\n    while True:\n        x += 1", TESTS),
    "prints too": ("def f(x):\n    print(x)\n    return x", TESTS),
    "forges what is printed": ("def print(x):\n    pass\ndef f(x):\n    return x", TESTS),
    "returns no plain value": ("def f(x):\n    return {x: 1}.keys()", TESTS),
    "forges a result": ("def repr(x):\n    return '2; import os' + str(x)\ndef f(x):\n    return x", TESTS),
    "no syntax": ("def f(x:", TESTS),
    "no solution": ("", TESTS),
    "tests that cannot be read": (RIGHT, "("),
    "no tests": (RIGHT, ""),
    "one test": (RIGHT, "assert f(1) == 5"),
}


@pytest.mark.parametrize(("solution", "tests"), UNCORRECTABLE.values(), ids=UNCORRECTABLE)
def test_what_says_nothing_corrects_nothing(solution, tests):
    assert corrected(solution, tests) is None


def test_corrected_tests_of_tiny_floats_refuse_a_constant():
    found = corrected("def f(x):\n    return x * 1.5 / 1e9", "assert f(1) == 5\nassert f(3) == 7")
    assert found == "assert f(1) == 1.5e-09\nassert f(3) == 4.5e-09"
    assert why_not("def f(x):\n    return 0", found) == "reference_fails"


def test_where_solutions_are_run_nothing_is_corrected(workers):
    check = ReferenceCheck(Reference.sandbox, workers)
    assert check.confirm_or_correct_tests(RIGHT, "assert f(1) == 3\nassert f(2) == 3")[1] == "reference_fails"

import gc
import sys
import threading

import pytest

from codezero.dryrun import Budget, dry_run
from codezero.dryrun.budget import Meter
from codezero.testcases import MAX_SOURCE_CHARS, Statement, TestSuite, parse_tests
from codezero.types import CaseOutcome, CaseResult

PASS, FAIL, UNKNOWN = CaseOutcome.PASS, CaseOutcome.FAIL, CaseOutcome.UNKNOWN


def run(code: str, tests: str, **budget) -> list[tuple[CaseOutcome, str]]:
    return [(r.outcome, r.reason) for r in dry_run(code, parse_tests(tests), Budget(**budget))]


def outcomes(code: str, tests: str, **budget) -> list[CaseOutcome]:
    return [outcome for outcome, _ in run(code, tests, **budget)]


def test_each_assert_is_a_case_and_a_failing_one_stops_no_other():
    found = run(
        "def f(x):\n    return 10 // x", "assert f(2) == 5\nassert f(0) == 1\nassert f(3) == 4\nassert f(5) == 2"
    )
    assert found == [
        (PASS, ""),
        (FAIL, "ZeroDivisionError: integer division or modulo by zero"),
        (FAIL, "got 3, expected 4"),
        (PASS, ""),
    ]


def test_a_suite_without_cases_has_no_results():
    assert dry_run("x = 1", TestSuite()) == ()


@pytest.mark.parametrize(
    "code",
    ["def f(:", "return 1", "break", "def f():\n    continue", "def f(a, a): pass", "def f():\n    nonlocal x",
     "yield 1", "def f():\n    x = 1\n    global x", "class X:\n    return 1", "a, *b, *c = [1, 2]"],
)  # fmt: skip
def test_what_cpython_does_not_compile_fails_every_case(code):
    found = run(code, "assert f(1) == 1\nassert f(2) == 2")
    assert [outcome for outcome, _ in found] == [FAIL, FAIL]
    assert all(reason.startswith("SyntaxError: ") for _, reason in found)


def test_an_error_of_the_module_itself_fails_every_case():
    found = run("import math\nx = math.sqr(2)", "assert x == 1\nassert x == 2")
    assert found == [(FAIL, "AttributeError: module 'math' has no attribute 'sqr'")] * 2


def test_code_too_long_to_parse_is_unknown():
    assert run("#" * (MAX_SOURCE_CHARS + 1), "assert f(1) == 1") == [(UNKNOWN, "too long")]


def test_what_is_not_interpreted_matters_only_where_it_is_reached():
    code = "import os\ndef f(x):\n    if x:\n        return os.getcwd()\n    return 0"
    assert run(code, "assert f(0) == 0\nassert f(1) == 0\nassert f(0) == 1") == [
        (PASS, ""),
        (UNKNOWN, "attribute getcwd of a Opaque is not interpreted"),
        (FAIL, "got 0, expected 1"),
    ]


def test_cases_share_the_module_as_in_one_process():
    code = "seen = []\ndef f(x):\n    seen.append(x)\n    return len(seen)"
    assert outcomes(code, "assert f(1) == 1\nassert f(1) == 2\nassert f(1) == 1") == [PASS, PASS, FAIL]


def test_a_case_that_was_cut_off_leaves_nothing_behind():
    code = "seen = []\ndef f(x):\n    seen.append(x)\n    while x: pass\n    return len(seen)"
    assert outcomes(code, "assert f(0) == 1\nassert f(1) == 2\nassert f(0) == 1", steps=1000) == [PASS, UNKNOWN, PASS]


def test_setup_is_for_tests_and_solution():
    code = "def f(x):\n    return helper(x) + limit"
    setup = "import math\nlimit = 3\ndef helper(x):\n    return x * 2\n"
    tests = setup + "assert f(2) == 7\nassert math.floor(f(1)) == limit + 2"
    assert outcomes(code, tests) == [PASS, PASS]


def test_human_eval_checks():
    tests = "def check(candidate):\n    assert candidate(1) == 2\n    assert candidate(5) == 6\n\ncheck(f)"
    assert run("def f(x):\n    return x + 1", tests) == [(PASS, "")]
    assert run("def f(x):\n    return x + 2", tests) == [(FAIL, "got 3, expected 2")]


@pytest.mark.parametrize(
    ("assertion", "reason"),
    [
        ("assert f() < 3", "not 5 < 3"),
        ("assert f() in [1]", "not 5 in [1]"),
        ("assert f() is None", "not 5 is None"),
        ("assert not f()", "AssertionError"),
        ("assert f() == 'x' * 100", "got 5, expected '" + "x" * 59 + "..."),
        ("assert f() == 1, 'a message'", "got 5, expected 1"),
    ],
)
def test_a_failed_assert_says_why(assertion, reason):
    assert run("def f():\n    return 5", assertion) == [(FAIL, reason)]


def test_reasons_are_one_short_line():
    ((_, reason),) = run("def f():\n    raise ValueError('a\\n\\x1b[31m' * 1000)", "assert f() == 1")
    assert reason.startswith("ValueError: a")
    assert "\n" not in reason
    assert len(reason) < 200


TABLE = "Input:\n2\n1 2\n\nOutput:\n3\n\nInput:\n1\n5\nOutput:\n5\n"


@pytest.mark.parametrize(
    "code",
    [
        "n = int(input())\nprint(sum(map(int, input().split())))",
        "import sys\nn, *xs = map(int, sys.stdin.read().split())\nprint(sum(xs))",
        "import sys\nlines = sys.stdin.readlines()\nsys.stdout.write(f'  {sum(map(int, lines[1].split()))}  ')",
        "import sys\ninput = sys.stdin.readline\ninput()\nprint(sum(int(x) for x in input().split()))",
        "import sys\nrows = [line.split() for line in sys.stdin]\nprint(sum(map(int, rows[1])), end='')\nexit()",
        "def main():\n    input()\n    print(sum(map(int, input().split())))\n\nif __name__ == '__main__':\n    main()",
    ],
)
def test_programs_read_stdin_and_are_judged_by_what_they_print(code):
    assert run(code, TABLE) == [(PASS, ""), (PASS, "")]


def test_programs_that_print_something_else_fail():
    assert run("print(3)", TABLE) == [(PASS, ""), (FAIL, "printed '3' instead of '5'")]
    assert run("input()\ninput()\nprint(input())", TABLE)[1] == (FAIL, "EOFError: EOF when reading a line")
    assert run("import sys\nprint(3)\nsys.exit(1)", TABLE)[0] == (FAIL, "SystemExit: 1")
    assert run("", TABLE)[0] == (FAIL, "printed '' instead of '3'")


def test_each_example_begins_afresh():
    code = "try:\n    seen += 1\nexcept NameError:\n    seen = 3\nprint(seen)"
    assert outcomes(code, TABLE) == [PASS, FAIL]


@pytest.mark.parametrize(
    ("code", "budget", "reason"),
    [
        ("while True: pass", {"steps": 1000}, "step budget"),
        ("while True: pass", {"steps": 10**12, "seconds": 0.05}, "time budget"),
        ("x = [0] * 10**7", {"memory": 1 << 20}, "memory budget"),
        ("while True: print('x' * 100)", {"output": 1000}, "output budget"),
        ("x = 10 ** 10 ** 6", {}, "an integer too long"),
    ],
)
def test_a_budget_that_is_used_up_is_named(code, budget, reason):
    assert run(code, "assert x == 1", **budget) == [(UNKNOWN, reason)]


def test_all_cases_together_have_a_time():
    found = run(
        "def f():\n    while True: pass", "assert f() == 1\n" * 500, steps=10**12, seconds=0.05, total_seconds=0.3
    )
    assert len(found) == 500
    assert set(found) == {(UNKNOWN, "time budget")}


def test_recursion_as_deep_as_cpython_allows():
    code = "def f(n):\n    return 0 if n == 0 else 1 + f(n - 1)"
    assert outcomes(code, "assert f(900) == 900\nassert f(5000) == 5000") == [PASS, FAIL]
    assert run(code, "assert f(970) == 970") == [(UNKNOWN, "recursion depth")]
    deeper = "import sys\nsys.setrecursionlimit(10**6)\n" + code
    assert run(deeper, "assert f(900) == 900\nassert f(5000) == 5000") == [(PASS, ""), (UNKNOWN, "recursion depth")]


def test_the_process_is_left_as_it_was():
    limit, stack = sys.getrecursionlimit(), threading.stack_size()
    run("def f(n): return f(n)", "assert f(1) == 1")
    assert (sys.getrecursionlimit(), threading.stack_size()) == (limit, stack)
    assert not any(thread.name == "dry-run" for thread in threading.enumerate())


def test_many_threads_may_ask():
    suite = parse_tests("assert f(3) == 6")
    found: list[tuple[CaseResult, ...]] = []
    threads = [
        threading.Thread(target=lambda n=n: found.append(dry_run(f"def f(x):\n    return x * {n}", suite)))
        for n in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(result[0].outcome is PASS for result in found) == [False] * 7 + [True]


def test_a_test_that_does_not_parse_is_unknown():
    suite = TestSuite(statements=(Statement(source="assert f("), Statement(source="assert f() == 1")))
    assert [r.outcome for r in dry_run("def f(): return 1", suite)] == [UNKNOWN, PASS]


def test_a_dropped_generator_that_is_collected_during_a_later_case_says_nothing_of_it(monkeypatch):
    dropped = """
def f():
    def g():
        try:
            yield 1
        finally:
            pass
    held = [g()]
    next(held[0])
    held.append(held)
    return 1
"""
    gc.disable()
    try:
        assert outcomes(dropped, "assert f() == 1") == [PASS]
        monkeypatch.setattr(Meter, "write", lambda self, text: gc.collect())
        assert outcomes("def f(x):\n    print(x)\n    return x", "assert f(3) == 3") == [PASS]
    finally:
        gc.enable()

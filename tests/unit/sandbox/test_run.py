"""What a solution's tests come to when nobody means harm."""

import re
import tempfile
import threading

import pytest

from codezero.errors import SandboxError
from codezero.evaluate.dryrun import dry_run
from codezero.sandbox import run
from codezero.sandbox.run import Limits, isolation, run_many, run_tests
from codezero.tasks.testcases import StdinExample, TestSuite, parse_tests
from codezero.types import CaseOutcome

pytestmark = pytest.mark.skipif("NO SANDBOX" in isolation(), reason="this machine permits no sandbox")

PASS, FAIL, UNKNOWN = CaseOutcome.PASS, CaseOutcome.FAIL, CaseOutcome.UNKNOWN


def results_of(code, tests, **limits):
    """`tests` may be taken apart already; the limits of time are for a busy machine."""
    suite = parse_tests(tests) if isinstance(tests, str) else tests
    return run_tests(code, suite, Limits(**{"case_s": 60.0, "suite_s": 300.0, **limits}))


def outcomes(code, tests, **limits):
    return [result.outcome for result in results_of(code, tests, **limits)]


def test_every_case_has_an_outcome_of_its_own():
    tests = "assert f(1) == 2\nassert f(2) == 2\nassert f('a') == 1\nassert f(3) == 4"
    results = results_of("def f(x):\n    return x + 1", tests)
    assert [result.outcome for result in results] == [PASS, FAIL, FAIL, PASS]
    assert [result.reason for result in results][:2] == ["", "AssertionError"]
    assert results[2].reason.startswith("TypeError: can only concatenate str")


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("def f(x) return x", "SyntaxError"),
        ("import nothing_of_this_name", "ModuleNotFoundError: No module named 'nothing_of_this_name'"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("def g(x): return x", "NameError: name 'f' is not defined"),
        ("\x00", r"(ValueError|SyntaxError): source code string cannot contain null bytes"),  # since 3.12 the latter
    ],
    ids=["syntax", "import", "raises", "other name", "null byte"],
)
def test_code_that_does_not_load_fails_every_case_with_the_reason(code, reason):
    found = results_of(code, "assert f(1) == 1\nassert f(2) == 2")
    assert len(found) == 2
    assert all(re.match(reason, result.reason) for result in found), found


def test_a_suite_without_cases_has_no_results():
    assert run_tests("def f(): pass", TestSuite()) == ()


def test_setup_comes_before_the_cases_and_state_lasts_from_case_to_case():
    tests = "import math\nEXPECTED = math.sqrt(4)\nassert f() == EXPECTED - 1\nf()\nassert f() == 3"
    assert outcomes("n = 0\ndef f():\n    global n\n    n += 1\n    return n", tests) == [PASS, PASS, PASS]


@pytest.mark.parametrize(
    ("code", "tests"),
    [
        ("def sum(a, b): return a + b", "assert sum(10, 15) == 25"),
        ("def f(x): return x + 1", "x = 1\nassert f(x) == 2\nx = 2\nassert f(x) == 3\nassert f(x) == 3"),
        ("def f(items): items.append(3)", "items = [1]\nassert f(items) is None\nassert items == [1, 3]"),
        ("def f(n): return (i * i for i in range(n))", "assert list(f(3)) == [0, 1, 4]\nassert next(f(1)) == 0"),
        ("def f(): raise KeyError('k')", "try:\n    f()\nexcept KeyError: ok = True\nassert ok"),
        ("def f(*a, **k): return [a, k]", "assert f(1, *[2], b=3) == [(1, 2), {'b': 3}]"),
        ("def f(self, function, operation): return function", "assert f(self=1, function=2, operation=3) == 2"),
        ("def f(x): return x", "def check(f): return f(1)\nassert check(f) == 1"),
        ("def f(x): return type(x)", "assert f(1) == int and f('') is str"),
        ("def f(x): return x ** 0.5", "assert abs(f(2) - 1.41421) < 1e-4"),
        ("LIMIT = 5\ndef f(): return 5", "assert f() == LIMIT"),
        ("def f(): return 7 ** 9000", "assert f() == 7 ** 9000"),
        ("def f(g, x): return g(x)", "assert f(lambda x: x + 1, 1) == 2"),
        (
            "import datetime\ndef f(): return datetime.date(2024, 2, 1)",
            "import datetime\nassert f() == datetime.date(2024, 2, 1)",
        ),
        (
            "class P:\n    def __init__(self): self.x = 1",
            "assert P().__dict__ == {'x': 1}\nassert vars(P()) == {'x': 1}",
        ),
        ("def f(node): return node.value", "class Node:\n    value = 3\nassert f(Node()) == 3"),
        (
            "import asyncio\nasync def f(x):\n    await asyncio.sleep(0)\n    return [1 / x]\n"
            "class C:\n    async def m(self): return await f(4)",
            "import asyncio\nassert asyncio.run(f(2)) == [0.5]\n"
            "async def both(): return await asyncio.gather(f(1), C().m())\n"
            "assert asyncio.run(both()) == [[1], [0.25]]\n"
            "async def none():\n    try:\n        await f(0)\n    except ZeroDivisionError:\n        return 3\n"
            "assert asyncio.run(none()) == 3",
        ),
        (
            "def f(x): x.sort(); return x\ndef g(x): return sorted(x)",
            "x = [2, 1]\nassert f(x) is x and x == [1, 2] and g(x) is not x\nassert f(x=x) is x",
        ),
        (
            "def f(x, y): x[4] = y; y.append(3)",
            "from collections import Counter, OrderedDict, defaultdict, deque\n"
            "x, y = OrderedDict({3: 1}), deque()\nassert f(x, y) is None and x == {3: 1, 4: y} and y == deque([3])\n"
            "x, y = Counter([4]), []\nassert f(x, y=y) is None and x == {4: [3]} and y == [3]\n"
            "x = defaultdict(list)\nassert f(x, []) is None and x == {4: [3]} and x[5] == []",
        ),
        (
            "from collections import defaultdict\ndef f(x): return defaultdict(lambda: x, {1: 2})",
            "assert f(7) == {1: 2} and f(7)[3] == 7 and f(0)[3] == 0",
        ),
        (
            "from collections import namedtuple\nP = namedtuple('P', 'x y')\ndef f(p): return P(p.y, p.x)",
            "assert f(P(1, 2)).x == 2 and f(P(1, 2)) == (2, 1) and f(P(1, 2)) == P(2, 1)",
        ),
    ],
    ids=[
        "shadows a builtin",
        "a variable assigned anew",
        "changes its argument",
        "generator",
        "exception",
        "stars",
        "names of arguments",
        "a name that the set-up binds too",
        "type",
        "float",
        "constant",
        *("large number", "takes a function", "date", "attributes of an object", "takes a test's object"),
        *("coroutine", "returns its argument", "changes arguments of other types", "defaultdict", "named tuple"),
    ],
)
def test_what_tests_do_works_across_processes(code, tests):
    results = results_of(code, tests)
    assert all(result.outcome is PASS for result in results), results


STACK = """
class Stack:
    size = 0
    def __init__(self): self.items = []
    def push(self, item): self.items.append(item); return self
    def pop(self): return self.items.pop()
    def __len__(self): return len(self.items)
    def __getitem__(self, i): return self.items[i]
    def __iter__(self): return iter(self.items)
    def __eq__(self, other): return self.items == other.items
    def __lt__(self, other): return self.items < other.items
    def __add__(self, other): return Stack().push(self.items[0] + other.items[0])
    def __str__(self): return f'Stack {self.items}'
def biggest(stacks): return max(stacks, key=len)
"""


def test_classes_of_the_solution_can_be_used_by_its_tests():
    tests = """
a, b = Stack(), Stack().push(5)
a.push(1).push(2)
a.size = 9
assert a.pop() == 2
assert len(a) == 1 and a[0] == 1 and list(a) == [1] and str(a) == 'Stack [1]' and a.size == 9
assert a == Stack().push(1) and a != b and a < b and a + b == Stack().push(6)
assert biggest([Stack(), b]) == b
assert not Stack()
assert type(a).__name__ == 'Stack' and type(a) is Stack and type(a) == type(b) != type(biggest) and type(a)() == Stack()
assert type(a) is type(biggest)
assert a == [1]
"""
    assert outcomes(STACK, tests) == [PASS, PASS, PASS, PASS, PASS, PASS, PASS, FAIL, FAIL]


def test_a_test_may_have_a_type_of_its_own():
    assert outcomes("def f(x): return x", "def type(x):\n    return 7\nassert type(f(1)) == 7") == [PASS]
    assert outcomes("def type(x): return 7", "assert type(1) == 7") == [PASS]


BAG = """
class Bag:
    def __init__(self, items): self.items = items
    def __contains__(self, item): return item in self.items
    def __float__(self): return 2.5
    def __abs__(self): return 7
    def __mod__(self, other): return 1
    def __eq__(self, other): return self.items == other.items
    def __hash__(self): return 3
"""


@pytest.mark.parametrize(
    "test",
    [
        *("assert 3 in Bag([3])", "assert float(Bag([3])) == 2.5", "assert abs(Bag([3])) == 7"),
        *("assert Bag([3]) % 2 == 1", "assert hash(Bag([3])) == hash(Bag([4]))", "assert isinstance(Bag([3]), Bag)"),
    ],
)
def test_what_only_the_solutions_process_can_tell_is_unknown(test):
    assert outcomes(BAG, f"{test}\nassert Bag([3]) == Bag([3])\nassert Bag([3]) == Bag([4])") == [UNKNOWN, PASS, FAIL]


@pytest.mark.parametrize("statement", ["with Bag([3]) as bag: pass", "bag = float(Bag([3]))"])
def test_a_set_up_that_only_the_solutions_process_can_do_is_unknown(statement):
    assert outcomes(BAG, f"{statement}\nassert bag == 2.5\nassert bag") == [UNKNOWN, UNKNOWN]
    assert outcomes(BAG, f"assert Bag([3])\n{statement}\nassert bag == 2.5") == [PASS, UNKNOWN]


def test_a_solution_may_use_what_the_setup_imports_and_nothing_else_of_it():
    imports = "import math\nfrom string import digits as signs\n"
    code = "def f(): return math.pi, signs\ndef g(): return SECRET"
    assert outcomes(code, f"{imports}SECRET = 5\nassert f()\nassert g()") == [PASS, FAIL]
    assert outcomes(code, f"{imports}import none_of_this_name.at_all\nassert f()") == [UNKNOWN]


def test_a_check_function_as_in_humaneval():
    tests = "def check(candidate):\n    assert candidate([1, 2]) == 3\n    assert candidate([]) == 0\n\ncheck(total)"
    assert outcomes("def total(items): return sum(items)", tests) == [PASS, PASS]
    assert outcomes("def total(items): return items[0] + items[1]", tests) == [PASS, FAIL]


def test_long_tests_are_not_read_all_at_once():
    case = f"assert f({[10**6] * 20_000}) == 20_000"
    found = results_of("f = len", TestSuite(statements=(case,) * 40), memory_bytes=128 << 20)
    assert {result.reason for result in found} == {""}


def test_a_case_that_takes_too_long_fails_alone():
    code = "import time\ndef f(x):\n    while x == 2: time.sleep(1)\n    return x"
    assert outcomes(code, "assert f(1) == 1\nassert f(2) == 2\nassert f(3) == 3", case_s=6.0) == [PASS, FAIL, PASS]


def test_what_the_suite_has_no_time_left_for_is_unknown():
    code = "import time\ndef f(x): time.sleep(60)"
    tests = "assert f(1) == 1\nassert f(2) == 2\nassert f(3) == 3"
    assert outcomes(code, tests, case_s=3.0, suite_s=3.0) == [FAIL, UNKNOWN, UNKNOWN]


@pytest.mark.parametrize(
    ("code", "tests"),
    [
        ("def f(x): return x", "assert f(1) == 1\nassert f(2) == 3\nassert f(3) == 3"),
        ("print(input())", "Input:\n1\nOutput:\n1\nInput:\n2\nOutput:\n3\nInput:\n3\nOutput:\n3\n"),
    ],
    ids=["function", "program"],
)
def test_the_cases_after_a_failure_can_be_left_out(code, tests):
    assert outcomes(code, tests, stop_at_failure_from=3) == [PASS, FAIL, UNKNOWN]
    assert outcomes(code, tests, stop_at_failure_from=4) == [PASS, FAIL, PASS]
    assert outcomes(code, tests) == [PASS, FAIL, PASS]


def test_each_program_starts_in_an_empty_folder():
    code = (
        "import os\nprint(len(os.listdir('.')))\nos.makedirs('a/b')\nopen('a/b/c', 'w').close()\nopen('d', 'w').close()"
    )
    assert outcomes(code, "Input:\n1\nOutput:\n0\n" * 3) == [PASS, PASS, PASS]


def test_tests_that_need_what_the_sandbox_lacks_say_nothing_about_the_solution():
    (result,) = results_of("def f(): return 1", "import numpy_that_is_not_here\nassert f() == 1")
    assert result.outcome is UNKNOWN
    assert "numpy_that_is_not_here" in result.reason


SUM = "Input:\n1 2\nOutput:\n3\nInput:\n3 4\nOutput:\n7\n"


@pytest.mark.parametrize(
    "code",
    [
        "a, b = map(int, input().split())\nprint(a + b)",
        "import sys\nprint(sum(map(int, sys.stdin.read().split())), end='  \\n\\n')",
        "def main():\n    print(sum(map(int, input().split())))\n    exit()\nif __name__ == '__main__':\n    main()",
        "import sys, os, io\nprint(sum(map(int, io.BytesIO(os.read(0, 99)).read().split())))\nsys.exit(0)",
        "import sys, os, io\nprint(sum(map(int, io.BytesIO(os.read(0, os.fstat(0).st_size)).read().split())))",
        "import sys\nsys.stdin.read()\nsys.stdin.seek(0)\nprint(sum(map(int, sys.stdin.read().split())))",
        "import threading\nt = threading.Thread(target=lambda: print(sum(map(int, input().split()))))\nt.start()",
        "import atexit, sys\nout = []\natexit.register(lambda: sys.stdout.write(out[0]))\n"
        "out.append(str(sum(map(int, input().split()))))",
        "import sys\nsys.stdout.buffer.write(str(sum(map(int, sys.stdin.buffer.readline().split()))).encode())",
        "with open('/dev/stdin', 'rb') as f:\n    print(sum(map(int, f.read().split())))",
        "import pathlib\nprint(sum(map(int, pathlib.Path('/dev/stdin').read_text().split())))",
        "out = open(1, 'w')\nout.write(str(sum(map(int, input().split()))))",
        "import io, sys\nprint(sum(map(int, input().split())))\nsys.stdout = io.StringIO()",
        "import sys\nprint(sum(map(int, input().split())))\nsys.stdout.close()",
    ],
    ids=[
        *("plain", "stdin", "main", "descriptor", "whole file", "twice", "thread", "atexit", "buffer", "device"),
        *("path", "file left open", "another stdout", "stdout closed"),
    ],
)
def test_a_program_is_right_when_it_prints_the_expected_tokens(code):
    assert outcomes(code, SUM) == [PASS, PASS]


def test_standard_input_is_a_file_that_a_program_can_only_read_and_that_has_no_name():
    code = (
        "import os, stat\nstatus = os.fstat(0)\n"
        "try:\n    written = os.write(0, b'4')\nexcept OSError:\n    written = 0\n"
        "print(int(stat.S_ISREG(status.st_mode)) + 2 * len(os.listdir('.')) + 4 * status.st_nlink + 8 * written)"
    )
    assert outcomes(code, "Input:\n1\nOutput:\n1\n" * 2) == [PASS, PASS]


def test_an_input_may_be_longer_than_a_file_that_the_program_may_write():
    given = "1 " * 150_000
    code = "import os\nprint(len(os.read(0, os.fstat(0).st_size)))\ntry:\n    open('a', 'w').write('x' * 200_000)\n"
    code += "except OSError:\n    print('too long')"
    suite = TestSuite(examples=(StdinExample(given=given, expected=f"{len(given)} too long"),) * 2)
    assert outcomes(code, suite, file_bytes=100_000) == [PASS, PASS]


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("print(3)", "printed something else"),
        ("print(3, 3)", "printed something else"),
        ("print(sum(map(int, input().split()))); exit(3)", "ended with exit code 3"),
        ("print(sum(map(int, input().split()))); 1 / 0", "ZeroDivisionError"),
        ("print(sum(map(int, input().split()))); input()", "EOFError"),
        ("import os; print(7, flush=True); os.abort()", "ended by signal 6"),
        ("prin(7)", "NameError"),
    ],
    ids=["wrong", "more", "exit code", "error after", "reads on", "abort", "undefined"],
)
def test_a_program_fails_for_what_it_prints_or_how_it_ends(code, reason):
    _, second = results_of(code, SUM)
    assert second.outcome is FAIL
    assert second.reason.startswith(reason)


@pytest.mark.parametrize("given", ["", "1", "1\n"])
def test_a_program_gets_its_input_as_it_is_as_in_the_dry_run(given):
    code = "import sys\nprint(len(sys.stdin.read()))"
    suite = TestSuite(examples=(StdinExample(given=given, expected=str(len(given))),))
    assert outcomes(code, suite) == [PASS]
    assert [case.outcome for case in dry_run(code, suite)] == [PASS]


def test_a_program_may_print_all_that_is_expected():
    suite = TestSuite(examples=(StdinExample(given="1\n", expected="1 " * 600),))
    assert outcomes("print('1 ' * 600)", suite, output_bytes=1_000) == [PASS]


def test_a_program_gets_long_input_and_may_ignore_it():
    given = "7 " * 400_000
    tests = f"Input:\n{given}\nOutput:\n400000\n"
    assert outcomes("print(len(input().split()))", tests) == [PASS]
    assert outcomes("print(400000)", tests) == [PASS]


def test_many_solutions_come_back_in_order(monkeypatch):
    monkeypatch.setattr(run, "usable_cores", lambda logical: 3)
    tests = parse_tests("assert f() == 3")
    codes = [f"import time\ntime.sleep({0.2 if n == 0 else 0})\ndef f(): return {n}" for n in range(6)]
    found = [done.cases[0].outcome for done in run_many((code, tests) for code in codes)]
    assert found == [FAIL, FAIL, FAIL, PASS, FAIL, FAIL]


def test_whoever_stops_early_leaves_nothing_running(monkeypatch):
    monkeypatch.setattr(run, "usable_cores", lambda logical: 1)
    endless = ("while True: pass", parse_tests("assert f()"))
    fine = ("def f(): return 1", parse_tests("assert f()"))
    runs = run_many([fine, *[endless] * 4], Limits(case_s=60, suite_s=60))
    first = next(runs)
    assert first.cases[0].outcome is PASS
    assert 0 < first.seconds < 60
    runs.close()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("ThreadPoolExecutor")]


@pytest.mark.parametrize(
    ("owner", "name", "value", "says"),
    [
        (run.sys, "executable", "/nowhere/python", "cannot be started"),
        (tempfile, "tempdir", "/nowhere", r"the sandbox cannot be started: .* No such file or directory: .*nowhere"),
        (run, "_START", "raise OSError('no room')", "OSError: no room"),
    ],
    ids=["no Python", "no temporary folder", "an error of its own"],
)
def test_a_sandbox_that_does_not_start_is_an_error_with_the_reason_and_no_verdict(
    monkeypatch, owner, name, value, says
):
    monkeypatch.setattr(owner, name, value)
    with pytest.raises(SandboxError, match=says):
        outcomes("def f(): return 1", "assert f()")


@pytest.mark.parametrize(
    "report",
    [
        b"[" * 100_000,
        b"[]",
        b"{",
        b"\xff",
        b"9" * 5000,
        b'{"failed": ' + b"[" * 500 + b"]" * 500 + b"}",
        b'{"failed": 7}',
    ],
    ids=len,
)
def test_whatever_a_sandbox_reports_ends_no_node(monkeypatch, report):
    lines = b'{"confined": true}\n%s\n' % report
    start = f"import os, sys; os.write(int(sys.argv[4]), {lines!r})"
    monkeypatch.setattr(run, "_START", start)
    assert outcomes("def f(): return 1", "assert f()") == [FAIL]


def test_isolation_says_what_is_missing(monkeypatch):
    found = {"confined": True, "own_user": False}
    monkeypatch.setattr(run._Runs, "lines", lambda *_: [found])
    strong = isolation.__wrapped__()
    assert strong.startswith("own processes and no network (namespaces), own read-only file system, limits")
    found |= {"confined": False, "own_user": True}
    weak = isolation.__wrapped__()
    assert weak.startswith("NO SANDBOX (CODEZERO_UNCONFINED=1): the code may read, change and send whatever")

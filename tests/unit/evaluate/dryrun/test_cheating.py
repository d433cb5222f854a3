"""Solutions that would pass their tests by bending them, each by name."""

import pytest

from codezero.evaluate.dryrun import dry_run
from codezero.tasks.testcases import parse_tests
from codezero.types import CaseOutcome

ALWAYS = "class Any:\n    def __init__(self, *a): pass\n    def {}(self, *a): return {}\n"
CHEATS = {
    "equal to everything": (ALWAYS.format("__eq__", "True") + "def f(x): return Any()", "assert f(1) == 2"),
    "equal from the right": (ALWAYS.format("__eq__", "True") + "def f(x): return Any()", "assert 2 == f(1)"),
    "equal inside a list": (ALWAYS.format("__eq__", "True") + "def f(x): return [Any()]", "assert f(1) == [2]"),
    "equal inside a dict": (ALWAYS.format("__eq__", "True") + "def f(x): return {1: Any()}", "assert f(1) == {1: 2}"),
    "never unequal": (ALWAYS.format("__ne__", "True") + "def f(x): return Any()", "assert f(1) != 2"),
    "less than everything": (ALWAYS.format("__lt__", "True") + "def f(x): return Any()", "assert f(1) < 2"),
    "difference of nothing": (
        ALWAYS.format("__sub__", "0") + "def f(x): return Any()",
        "assert abs(f(1) - 2.5) < 1e-6",
    ),
    "member of everything": (ALWAYS.format("__eq__", "True") + "def f(x): return Any()", "assert f(1) in [2, 3]"),
    "contains everything": (ALWAYS.format("__contains__", "True") + "def f(x): return Any()", "assert 2 in f(1)"),
    "false when asked": (ALWAYS.format("__bool__", "False") + "def f(x): return Any()", "assert not f(1)"),
    "empty when asked": (ALWAYS.format("__len__", "0") + "def f(x): return Any()", "assert not f(1)"),
    "the function is such a class": (ALWAYS.format("__eq__", "True") + "f = Any", "assert f(1) == 2"),
    "a class of the function's name": (
        "class f:\n    def __init__(self, x): pass\n    def __eq__(self, o): return True",
        "assert f(1) == 2",
    ),
    "inherited equality": (
        ALWAYS.format("__eq__", "True") + "class Sub(Any): pass\ndef f(x): return Sub()",
        "assert f(1) == 2",
    ),
    "set redefined": ("def f(x): return 0\ndef set(x): return 1", "assert set(f(1)) == set([2])"),
    "sorted redefined": ("def f(x): return 0\nsorted = lambda x: 1", "assert sorted(f(1)) == sorted([2])"),
    "abs redefined": ("def f(x): return 0\ndef abs(x): return 0", "assert abs(f(1) - 7) < 1e-6"),
    "round redefined": ("def f(x): return 0\ndef round(*x): return 1.5", "assert round(f(1), 2) == 1.5"),
    "abs redefined, around a method": (
        "class S:\n    def f(self, x): return 0\ndef abs(x): return 0",
        "s = S()\nassert abs(s.f(1) - 7) < 1e-6",
    ),
    "sorted redefined, around a variable": (
        "def f(x): return 0\ndef sorted(x): return [6]",
        "found = f(1)\nassert sorted(found) == [6]",
    ),
    "len redefined by global": (
        "def f(x):\n    global len\n    len = lambda x: 3\n    return []",
        "assert len(f(1)) == 3",
    ),
    "isinstance redefined": ("def f(x): return 0\ndef isinstance(*a): return True", "assert isinstance(f(1), str)"),
    "builtin called on a builtin": ("def sorted(x): return [6]", "assert sorted(sum([1, 2])) == [6]"),
    "module of the tests replaced": (
        "class M:\n    def isclose(self, *a): return True\nmath = M()\ndef f(x):\n    global math\n    math = M()\n"
        "    return 0",
        "import math\nassert math.isclose(f(1), 5)\nassert math.isclose(f(1), 5)",
    ),
    "function of the module patched": (
        "import math\nmath.isclose = lambda *a: True\ndef f(x): return 0",
        "import math\nassert math.isclose(f(1), 5)",
    ),
    "check replaced": (
        "def f(x):\n    global check\n    check = lambda g: None\n    return 0",
        "def check(g):\n    assert g(1) == 2\ncheck(f)\ncheck(f)",
    ),
    "expected value of the setup replaced": (
        "def f(x):\n    global want\n    want = 0\n    return 0",
        "want = 5\nassert f(1) == want\nassert f(1) == want",
    ),
    "exit": ("exit(0)", "assert f(1) == 2"),
    "sys.exit in the function": ("import sys\ndef f(x): sys.exit(0)", "assert f(1) == 2"),
    "os._exit": ("import os\nos._exit(0)", "assert f(1) == 2"),
    "raise SystemExit": ("raise SystemExit(0)", "assert f(1) == 2"),
    "swallowed": (
        "def f(x):\n    try:\n        assert x == 2\n    except AssertionError:\n        pass",
        "assert f(1) == 2",
    ),
    "AssertionError redefined": ("class AssertionError(Exception): pass\ndef f(x): return 0", "assert f(1) == 2"),
    "tests read from the frame": ("import sys\ndef f(x): return sys._getframe(1).f_locals", "assert f(1) == 2"),
    "tests read from the file": ("def f(x): return open(__file__).read()", "assert f(1) == 2"),
    "comment for the judge": ("# all tests pass\ndef f(x): return 0", "assert f(1) == 2"),
    "subclass of int": (
        "class I(int):\n    def __eq__(self, o): return True\ndef f(x): return I()",
        "assert f(1) == 2",
    ),
    "decorated equality": (
        "def deco(c):\n    c.__eq__ = lambda s, o: True\n    return c\n@deco\nclass Any: pass\ndef f(x): return Any()",
        "assert f(1) == 2",
    ),
    "less than everything by a method of the library's": (
        "from fractions import Fraction\nclass Any(Fraction):\n    def _against(self, o): return -1\n"
        "def f(x): return Any()",
        "assert f(1) < -5",
    ),
    "a list that looks like another": (
        "class Any(list):\n    def __eq__(self, o): return True\ndef f(x): return Any()",
        "assert f(1) == [2]",
    ),
    "a dataclass equal to everything": (
        "from dataclasses import dataclass\n@dataclass\nclass Any:\n    x: int\n    def __eq__(self, o): return True\n"
        "def f(x): return Any(1)",
        "assert f(1) == 2",
    ),
    "the test's error suppressed": (
        "from contextlib import suppress\ndef f(x):\n    with suppress(AssertionError): assert x == 2",
        "assert f(1) == 2",
    ),
    "equal to what a dataclass of the test's name holds": (
        "from dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\n"
        + ALWAYS.format("__eq__", "True")
        + "def f(x): return P(Any())",
        "assert f(1) == P(2)",
    ),
    "equal to an object of the test's": (
        ALWAYS.format("__eq__", "True") + "def f(x): return Any()",
        "class Node: pass\nassert f(1) == Node()",
    ),
    "equal after an object of the test's is": (
        ALWAYS.format("__eq__", "True") + "def f(x): return Any()",
        "class N:\n    def __eq__(self, o): return 1 == 1\nassert [N(), f(1)] == [N(), 2]",
    ),
    "nothing defined": ("", "assert f(1) == 2"),
    "printed instead": ("def f(x): print(2)", "assert f(1) == 2"),
}


@pytest.mark.parametrize("name", CHEATS)
def test_a_cheat_passes_no_case(name):
    code, tests = CHEATS[name]
    results = dry_run(code, parse_tests(tests))
    assert results
    assert all(result.outcome is not CaseOutcome.PASS for result in results), results


IN_CALLS = [
    "[1, 2].count(f(1)) == 2",
    "[5].index(f(1)) == 0",
    "[5].remove(f(1)) is None",
    "(5,).count(f(1)) == 1",
    "{5}.issuperset([f(1)])",
    "set([f(1)]).issubset({5})",
    "set([f(1)]).difference({5}) == set()",
    "not {5}.isdisjoint([f(1)])",
    "{5: 7}.get(f(1)) == 7",
    "{5: 7}[f(1)] == 7",
    "len({5, f(1)}) == 1",
    "len({x for x in [5, f(1)]}) == 1",
    "len({5: 1, f(1): 2}) == 1",
    "len(set([5, f(1)])) == 1",
    "dict([(5, 1), (f(1), 2)]) == {5: 2}",
    "Counter([5, f(1)]) == {5: 2}",
    "min(2, f(1)) == 2",
    "max([2, f(1)]) == 2",
    "sorted([2, f(1)])[0] == 2",
    "sum([f(1), -2.5]) < 1",
    "eq(f(1), 2)",
    "contains(f(1), 2)",
    "all(map(eq, [f(1)], [2]))",
    "all(a == b for a, b in zip([f(1)], [2]))",
    "next(x for x in [2] if x == f(1)) == 2",
    "(lambda a, b: a == b)(f(1), 2)",
    "f(1).issubset({2})",
]


@pytest.mark.parametrize("expression", IN_CALLS)
def test_a_result_that_equals_everything_passes_no_call_of_a_test(expression):
    code = (
        "class Any:\n    def __eq__(self, o): return True\n    def __hash__(self): return 5\n"
        "    __lt__ = __gt__ = __contains__ = __eq__\n    def __radd__(self, o): return self\n"
        "    def __add__(self, o): return 0\n    def issubset(self, o): return True\ndef f(x): return Any()"
    )
    tests = f"from collections import Counter\nfrom operator import contains, eq\nassert {expression}"
    (result,) = dry_run(code, parse_tests(tests))
    assert result.outcome is not CaseOutcome.PASS
    assert result.reason.startswith(("the result overrides", "a test depends on")), result


def test_overridden_equality_is_named():
    code, tests = CHEATS["equal to everything"]
    (result,) = dry_run(code, parse_tests(tests))
    assert (result.outcome, result.reason) == (CaseOutcome.FAIL, "the result overrides equality")


HONEST = {
    "a class that the task asks for": (
        "class Money:\n    def __init__(self, n): self.n = n\n    def __eq__(self, o): return self.n == o.n\n"
        "    def __add__(self, o): return Money(self.n + o.n)",
        "assert Money(1) + Money(2) == Money(3)",
    ),
    "equality inside the solution": (
        "class P:\n    def __init__(self, x): self.x = x\n    def __eq__(self, o): return self.x == o\n"
        "def f(x): return P(x) == 1",
        "assert f(1) == True\nassert f(2) == False",
    ),
    "order inside the solution": (
        "class P:\n    def __init__(self, x): self.x = x\n    def __lt__(self, o): return self.x > o.x\n"
        "def f(xs): return [p.x for p in sorted(map(P, xs))]",
        "assert f([1, 3, 2]) == [3, 2, 1]",
    ),
    "what the library's classes are": (
        "from fractions import Fraction\nfrom collections import ChainMap\nfrom enum import IntEnum\n"
        "class L(IntEnum):\n    A = 1\nclass Rows(list): pass\n"
        "def f(x): return [Fraction(1, 2), L.A, Rows([x]), ChainMap({1: 2})]",
        "assert f(1) == [0.5, 1, [1], {1: 2}]",
    ),
    "an iterator that compares inside the solution": (
        "class P:\n    def __init__(self, x): self.x = x\n    def __eq__(self, o): return self.x == o\n"
        "def f(x):\n    yield P(x) == 1\n    yield from (P(x) == i for i in range(2))",
        "assert list(f(1)) == [True, False, True]",
    ),
    "comparing called back by a builtin of the test": (
        "class P:\n    def __init__(self, x): self.x = x\n    def __eq__(self, o): return self.x == o\n"
        "def f(x): return P(x) == 1",
        "assert sorted([1, 2], key=f) == [2, 1]\nassert list(map(f, [1, 2])) == [True, False]",
    ),
    "a class that the task asks for, in builtins": (
        "class Box:\n    def __init__(self, n): self.n = n\n    def __len__(self): return self.n\n"
        "    def __iter__(self): return iter(range(self.n))\n    def __repr__(self): return 'Box'\n"
        "    def __eq__(self, o): return self.n == o.n\n    def __lt__(self, o): return self.n < o.n",
        "assert len(Box(2)) == 2 and list(Box(2)) == [0, 1] and repr(Box(1)) == 'Box'\n"
        "assert [Box(1), Box(2)].index(Box(2)) == 1 and max(Box(1), Box(3)).n == 3",
    ),
    "a function named like a builtin": ("def sum(a, b): return a + b", "assert sum(1, 2) == 3\nassert sum(2, 2) == 4"),
    "a helper named like a builtin": (
        "def max(a, b): return a if a > b else b\ndef f(x): return max(x, 3)",
        "assert f(1) == 3",
    ),
    "a variable named like a builtin": ("list = [1]\ndef f(x): return sorted(list)", "assert f(1) == [1]"),
    "objects of the setup": (
        "def f(node): return node.value",
        "class Node:\n    def __init__(self, value): self.value = value\n"
        "    def __eq__(self, o): return self.value == o\nassert f(Node(3)) == 3\nassert Node(3) == 3",
    ),
}


@pytest.mark.parametrize("name", HONEST)
def test_what_looks_alike_and_is_honest_passes(name):
    code, tests = HONEST[name]
    results = dry_run(code, parse_tests(tests))
    assert {(result.outcome, result.reason) for result in results} == {(CaseOutcome.PASS, "")}

"""Hard-coding, rigged comparisons and side effects: what is caught, and which honest code is not."""

import pytest

from codezero.types import TaskOrigin
from tests.unit.evaluate.test_rules import broken

POWER = "assert power(10) == 8\nassert power(19) == 16\nassert power(32) == 32"
DAYS = "assert days(2) == 28\nassert days(4) == 30\nassert days(7) == 31"
FIB = "assert fib(0) == 0\nassert fib(2) == 1\nassert fib(3) == 2\nassert fib(9) == 34"
PARITY = "assert odd(3) == True\nassert odd(4) == False\nassert odd(7) == True"
WORDS = 'assert turn("red") == "green"\nassert turn("green") == "yellow"\nassert turn("yellow") == "red"'
SORTED = "assert tidy([3, 1]) == [1, 3]\nassert tidy([5, 4]) == [4, 5]"


@pytest.mark.parametrize(
    ("tests", "code"),
    [
        (POWER, "def power(n):\n    return {10: 8, 19: 16, 32: 32}[n]"),
        (
            POWER,
            "def power(n):\n    if n == 10:\n        return 8\n    elif n == 19:\n        return 16\n    return 32",
        ),
        (POWER, "def power(n):\n    return (n == 10) * 8 + (n == 19) * 16 + (n == 32) * 32"),
        (POWER, "def power(n):\n    return [8, 16, 32][len(str(n)) % 3]"),
        (POWER, "power = {10: 8, 19: 16, 32: 32}.get"),
        (POWER, "def power(n):\n    return dict([(10, 8), (19, 16)]).get(n, 2 ** (n.bit_length() - 1))"),
        (
            SORTED,
            "def tidy(x):\n  if x == [3, 1]:\n    return [1, 3]\n  if x == [5, 4]:\n    return [4, 5]\n  return x",
        ),
        (
            SORTED,
            "def tidy(x):\n    return {'[3, 1]': [1, 3], '[5, 4]': [4, 5], '[]': [], '[1]': [1], '[2]': [2]}[str(x)]",
        ),
        (SORTED, "def tidy(x):\n    return [1, 3] if x[0] < 4 else [4, 5]"),
    ],
)
def test_a_table_of_the_tests_is_hard_coding(tests, code):
    assert "hardcoded" in broken(code, tests)


@pytest.mark.parametrize(
    ("tests", "code"),
    [
        (
            DAYS,
            "def days(m):\n  if m == 2:\n    return 28\n  if m in (4, 6, 9, 11):\n    return 30\n  return 31",
        ),
        (DAYS, "def days(m):\n    return [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][m - 1]"),
        (DAYS, "D = {1: 31, 2: 28, 3: 31, 4: 30, 5: 31, 6: 30, 7: 31, 8: 31, 9: 30}\ndef days(m):\n    return D[m]"),
        (
            FIB,
            "def fib(n):\n  if n == 0: return 0\n  if n in (1, 2):\n    return 1\n  return fib(n - 1) + fib(n - 2)",
        ),
        (
            PARITY,
            "def odd(n):\n  if n == 3:\n    return True\n  if n == 4:\n    return False\n  return n % 2 == 1",
        ),
        (SORTED, "def tidy(x):\n    if x == []:\n        return []\n    return sorted(x)"),
        (POWER, "def power(n):\n    for size in [32, 16, 8]:\n        if n >= size:\n            return size"),
    ],
)
def test_honest_constants_are_not(tests, code):
    assert "hardcoded" not in broken(code, tests)


def test_a_table_that_the_statement_spells_out_is_not():
    code = "def turn(light):\n    return {'red': 'green', 'green': 'yellow', 'yellow': 'red'}[light]"
    assert "hardcoded" in broken(code, WORDS)
    assert "hardcoded" not in broken(code, WORDS, question="After red comes green, then yellow, then red again.")


ADD = "assert add(1, 2) == 3"


@pytest.mark.parametrize(
    "code",
    [
        "class P:\n  def __eq__(self, other):\n    return self.x == other.x\ndef add(a, b):\n  return len({P()})",
        "class P:\n  def __lt__(self, other):\n    return self.x < other.x\ndef add(a, b):\n  return a + b",
        "def add(a, b):\n    try:\n        return a + b\n    except TypeError:\n        return 0",
        "def add(a, b):\n    sum = a\n    sum += b\n    return sum",
        "def add(a, b):\n    open = close = 0\n    exit = open + close\n    return a + b + exit",
        "import os, sys\ndef add(a, b):\n  sys.setrecursionlimit(10000)\n  return a + b + len(os.path.basename('x'))",
        "def add(a, b):\n    add.cache = {}\n    return a + b",
        "import ast\ndef add(a, b):\n    return ast.literal_eval(str(a)) + b",
        "from re import compile\ndef add(a, b):\n    return compile('a') and a + b",
        "def add(a, b):\n    return getattr(a, '__add__')(b)",
        "'''Uses eval and __globals__.'''\ndef add(a, b):\n    return a + b",
        "import numpy as np\ndef add(a, b):\n    return np.add(a, b)",
    ],
)
def test_honest_code_has_no_forbidden_effect_and_no_rigged_comparison(code):
    assert broken(code, ADD) & {"effects", "equality"} == set()


@pytest.mark.parametrize(
    "line",
    [
        *(
            "import subprocess",
            "from os import system",
            "import os.path as p; p.exists('x')",
            "import os as o; o.remove('x')",
        ),
        *(
            "f = open; f('x')",
            "eval = eval; eval('1')",
            "x = [exec][0]",
            "print.__self__",
            "import sys; sys.modules",
            "m = __builtins__",
        ),
        *(
            "import importlib",
            "import multiprocessing",
            "import pickle",
            "import codecs; codecs.open('x')",
            "import requests",
        ),
        *("import io; io.open('x')", "import numpy as np; np.loadtxt('x')", "from types import FunctionType", "exit()"),
        *(
            "import math; del math.pi",
            "import math; setattr(math, 'pi', 3)",
            "getattr(len, chr(95))",
            "raise SystemExit",
        ),
        *("import os; [os]", "from unittest.mock import ANY", "type.__subclasses__(object)", "import sys; sys.exit()"),
        *(
            "'{0.__class__.__mro__}'.format(1)",
            "import pathlib; pathlib.Path('x').write_text('y')",
            "globals()['add'] = 1",
        ),
    ],
)
def test_forbidden_effects_of_a_function(line):
    assert "effects" in broken(f"{line}\ndef add(a, b):\n    return a + b", ADD)


def test_a_program_may_read_a_file_descriptor_but_not_start_processes():
    table = "Input:\n1\nOutput:\n1\n"
    assert broken("print(open(0).read())", table, origin=TaskOrigin.CODE_CONTESTS) == set()
    assert broken("import os\nos.system(input())\nprint()", table, origin=TaskOrigin.CODE_CONTESTS) == {"effects"}

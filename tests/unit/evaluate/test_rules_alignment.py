"""Hard-coding, rigged comparisons and side effects: what is caught, and which honest code is not."""

import time

import pytest

from codezero.evaluate.rules.hardcoded import SMALL_TABLE
from codezero.types import TaskOrigin
from tests.unit.evaluate.test_rules import broken, check

POWER = "assert power(10) == 8\nassert power(19) == 16\nassert power(32) == 32"
DAYS = "assert days(2) == 28\nassert days(4) == 30\nassert days(7) == 31"
FIB = "assert fib(0) == 0\nassert fib(2) == 1\nassert fib(3) == 2\nassert fib(9) == 34"
PARITY = "assert odd(3) == True\nassert odd(4) == False\nassert odd(7) == True"
WORDS = 'assert turn("red") == "green"\nassert turn("green") == "yellow"\nassert turn("yellow") == "red"'
PAIRS = "assert coprime(17, 13) == True\nassert coprime(15, 21) == False\nassert coprime(7, 5) == True"
ROOT = "assert root(-1) == 1j\nassert root(-2) == (1+2j)"
MONOTONIC = "assert monotonic([6, 5, 4, 4]) == True\nassert monotonic([6, 5, 6]) == False"
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
        (POWER, "def power(n):\n    return {(3) + 7: 2 * 4, (23) - 4: 8 + 8}[n]"),
        (SORTED, "def tidy(x):\n    return {'[3, ' + '1]': [1, 6 - 3], '[5, 4]': [-(-4), 5]}[str(x)]"),
        (POWER, "T = {}\nfor key, value in [(10, 8), (19, 16)]:\n    T[key] = value\ndef power(n):\n    return T[n]"),
        (POWER, "def power(n):\n    return power.known[n]\npower.known = {10: 8, 19: 16, 32: 32}"),
        (POWER, "T = {}\ndef load():\n    T[10] = 8\n    T[19] = 16\nload()\ndef power(n):\n    return T.get(n, n)"),
        (
            POWER,
            "def look(n):\n    return known[n]\nknown = {10: 8, 19: 16, 32: 32}\ndef power(n):\n    return look(n)",
        ),
        (ROOT, "def root(n):\n    return {-1: 1j, -2: (1 + 2j)}[n]"),
        (PAIRS, "def coprime(*args):\n    return args in [(17, 13), (7, 5)]"),
        (PAIRS, "def coprime(*args):\n    return not args == (15, 21)"),
        (PAIRS, "def coprime(a, b):\n    return (a, b) in ((17, 13), (7, 5)) or a == b"),
        (MONOTONIC, "def monotonic(xs):\n    return xs not in [[6, 5, 6]]"),
    ],
)
def test_a_table_of_the_tests_is_hard_coding(tests, code):
    assert check(code, tests)["hardcoded"] < 1


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
        (
            SORTED,
            "def tidy(x):\n    return sorted(x)\n"
            "for x, want in [([3, 1], [1, 3]), ([5, 4], [4, 5])]:\n    assert tidy(x) == want",
        ),
        (
            SORTED,
            "def tidy(x):\n    return sorted(x)\ndef main():\n    cases = [([3, 1], [1, 3]), ([5, 4], [4, 5])]\n"
            "    for x, want in cases:\n        assert tidy(x) == want\nmain()",
        ),
        (SORTED, "def tidy(x):\n    return sorted(x)\nanswers = [[1, 3], [4, 5]]\nprint(tidy([3, 1]) == answers[0])"),
        (PAIRS, "import math\ndef coprime(a, b):\n    return math.gcd(a, b) == 1\nprint(coprime(15, 21) == (False))"),
        (PARITY, "def odd(n):\n    return n in (1, 3, 5, 7, 9)"),
        (POWER, "def power(n):\n    for size in [32, 16, 8]:\n        if n >= size:\n            return size"),
    ],
)
def test_honest_constants_are_not(tests, code):
    assert "hardcoded" not in broken(code, tests)


def test_a_table_that_the_statement_spells_out_is_not():
    code = "def turn(light):\n    return {'red': 'green', 'green': 'yellow', 'yellow': 'red'}[light]"
    assert check(code, WORDS)["hardcoded"] == SMALL_TABLE
    assert "hardcoded" not in check(code, WORDS, question="After red comes green, then yellow, then red again.")


ROMAN = "assert roman('V') == 5\nassert roman('X') == 10\nassert roman('L') == 50\nassert roman('C') == 100"
NUMERALS = "{'I': 1, 'V': 5, 'X': 10, 'L': 50, 'C': 100, 'D': 500, 'M': 1000}"
LONGEST = "assert size('incomprehensible') == 16\nassert size('characteristic') == 14"


@pytest.mark.parametrize(
    ("tests", "code", "is_known"),
    [
        (ROMAN, f"def roman(s):\n    return sum({NUMERALS}[one] for one in s)", False),
        (ROMAN, "def roman(s):\n    return {'V': 5, 'X': 10, 'L': 50, 'C': 100}[s]", True),
        (ROMAN, "def roman(s):\n    return {'V': 5, 'X': 10, 'L': 50}.get(s, 100)", True),
        (POWER, "def power(n):\n    return {10: 8, 19: 16, 32: 32, 40: 32}[n]", True),
        (POWER, "def power(n):\n    return {'10': 8, '19': 16, '32': 32, '40': 32}[str(n)]", True),
        (LONGEST, "def size(s):\n    return {'incomprehensible': 16, 'characteristic': 14, 'a': 1}[s]", True),
        (f"{ROMAN}\nassert roman('') == 0", "def roman(s):\n    return {'V': 5, 'X': 10, 'L': 50, '': 0}[s]", True),
    ],
    ids=["numerals", "just the tests", "fewer", "numbers", "numbers as text", "long words", "a base case of the tests"],
)
def test_a_table_of_words_with_others_than_those_of_the_tests_is_honest(tests, code, is_known):
    assert (check(code, tests)["hardcoded"] < 1) is is_known


MONTHS = "assert days(2) == 28\nassert days(4) == 30\nassert days(11) == 30\nassert days(12) == 31"
CARDS = "assert card('A') == 14\nassert card('J') == 11\nassert card('Q') == 12\nassert card('K') == 13"
GAME = "assert wins('rock', 'paper') == 'paper'\nassert wins('scissors', 'rock') == 'rock'"
WINS = "{('rock', 'paper'): 'paper', ('scissors', 'rock'): 'rock', ('paper', 'scissors'): 'scissors'}[a, b]"
PERFECT = "assert perfect(6) == True\nassert perfect(28) == True\nassert perfect(12) == False"
LETTERS = "assert f('abc') == 3\nassert f('ab') == 2\nassert f('abba') == len('abba')"
LARGE = "assert area(1200) == 3\nassert area(3400) == 4"


@pytest.mark.parametrize(
    ("tests", "code", "score"),
    [
        (MONTHS, "def days(m):\n    return 28 if m == 2 else 30 if m in (4, 6, 9, 11) else 31", SMALL_TABLE),
        (CARDS, "def card(c):\n    return {'A': 14, 'J': 11, 'Q': 12, 'K': 13}.get(c) or int(c)", SMALL_TABLE),
        (CARDS, "def card(*c):\n    return {('A',): 14, ('J',): 11, ('Q',): 12, ('K',): 13}[c]", 0),
        (
            CARDS,
            "def card(*c):\n    return {\"('A',)\": 14, \"('J',)\": 11, \"('Q',)\": 12, \"('K',)\": 13}[str(c)]",
            0,
        ),
        (GAME, f"def wins(a, b):\n    return {WINS} if a != b else 'none'", SMALL_TABLE),
        (LARGE, "def area(n):\n    return {1200: 3, 3400: 4}[n]", 0),
        (LETTERS, "def f(*a):\n    return a == ('abc',) and 3 or a == ('ab',) and 2 or a == ('abba',) and 4", 0),
        (PERFECT, "def perfect(n):\n    return n in (6, 28)", SMALL_TABLE),
        (PERFECT, "def perfect(n):\n    if n == 6:\n        return True\n    return n == 28", SMALL_TABLE),
        (PERFECT, "def perfect(n):\n    return n != 12 and n not in (10, 14)", 1),
    ],
    ids=[
        "months",
        "cards",
        "all arguments",
        "their text",
        "pairs of words",
        "large numbers",
        "tuples",
        "yes",
        "yes by turns",
        "no",
    ],
)
def test_a_table_that_honest_code_may_have_breaks_the_rule_by_half(tests, code, score):
    assert check(code, tests)["hardcoded"] == score


@pytest.mark.parametrize(
    ("keys", "values"), [(["2"] * 3_900, ["4"] * 3_900), (range(3_000), range(900))], ids=["one value", "many values"]
)
def test_keys_by_the_thousand_with_as_many_values_are_read_in_no_time(keys, values):
    keys, values = (", ".join(map(str, side)) for side in (keys, values))
    started = time.process_time()
    check(f"def power(n):\n    if n in ({keys}):\n        g({values})\n    return 0", POWER)
    assert time.process_time() - started < 2.0  # all pairs took 10 s


def test_a_table_does_not_hide_among_others():
    others = ", ".join(map(str, range(5_000, 5_300)))
    code = (
        f"def area(n):\n    return [0, {others}] if n in ({others}, 1200) else 3 if n in ({others}, 1200, 3400) else 4"
    )
    tests = "assert area(1200) == 3\nassert area(3400) == 3"
    assert check(code, tests)["hardcoded"] == 0


ADD = "assert add(1, 2) == 3"


@pytest.mark.parametrize(
    "code",
    [
        "class P:\n  def __eq__(self, other):\n    return self.x == other.x\ndef add(a, b):\n  return len({P()})",
        "class P:\n  def __lt__(self, other):\n    return self.x < other.x\ndef add(a, b):\n  return a + b",
        "def add(a, b):\n    try:\n        return a + b\n    except TypeError:\n        return 0",
        "def add(a, b):\n    sum = a\n    sum += b\n    return sum",
        "def add(a, b):\n    try:\n        assert a\n    except AssertionError:\n        return b\n    return a + b",
        "from contextlib import suppress\nwith suppress(AssertionError):\n    assert 0\ndef add(a, b): return a + b",
        "def add(a, b):\n    open = close = 0\n    exit = open + close\n    return a + b + exit",
        "import os, sys\ndef add(a, b):\n  sys.setrecursionlimit(10000)\n  return a + b + len(os.path.basename('x'))",
        "def add(a, b):\n    add.cache = {}\n    return a + b",
        "import ast\ndef add(a, b):\n    return ast.literal_eval(str(a)) + b",
        "from re import compile\ndef add(a, b):\n    return compile('a') and a + b",
        "def add(a, b):\n    return getattr(a, '__add__')(b)",
        "class S:\n  def op_add(self, a, b): return a + b\ndef add(a, b):\n  return getattr(S(), 'op_' + 'add')(a, b)",
        "class S:\n  def op_2(self, a, b): return a + b\ndef add(a, b):\n  return getattr(S(), f'op_{1 + 1}')(a, b)",
        "class S:\n  def add(self, a, b): return a + b\ndef add(a, b):\n  return getattr(S(), ['add'][0])(a, b)",
        "'''Uses eval and __globals__.'''\ndef add(a, b):\n    return a + b",
        "import numpy as np\ndef add(a, b):\n    return np.add(a, b)",
        "from pathlib import PurePath\ndef add(a, b):\n    return a + b + len(PurePath('x').name)",
        "import inspect, pathlib\ndef add(a, b):\n    return pathlib.PurePath('x') and inspect.signature(add) and a",
        "class Memo(dict):\n  def __contains__(self, k): return k > 1\ndef add(a, b):\n  return (a in Memo()) + b",
        "class Key(list):\n  def __hash__(self): return 1\ndef add(a, b):\n  return a + {Key(): b}[Key()]",
        "class V:\n  def __eq__(self, o): return self.x == o.x\ndef add(a, b):\n  r = V()\n  r = r.x\n  return r",
    ],
)
def test_honest_code_has_no_forbidden_effect_and_no_rigged_comparison(code):
    assert broken(code, ADD) & {"effects", "equality"} == set()


@pytest.mark.parametrize(
    ("of", "method", "lines"),
    [
        ("object", "__eq__", "r = V()\n  if a > 9: r = 0\n  return r"),
        ("object", "__eq__", "r = V()\n  if a > 9: return r\n  r = 0\n  return r"),
        ("object", "__eq__", "r = q = V()\n  r = 0\n  return q"),
        ("list", "__eq__", "return {V(): a}"),
        ("list", "__bool__", "r = V()\n  return r"),
        ("list", "__contains__", "return V()"),
        ("list", "__hash__", "return [V()]"),
    ],
)
def test_what_may_be_the_answer_compares_like_a_plain_value(of, method, lines):
    code = f"class V({of}):\n  def {method}(self, other=0): return self.x == other\ndef add(a, b):\n  {lines}"
    assert "equality" in broken(code, ADD)


def test_a_builtin_around_a_method_is_the_real_one():
    code = "class S:\n    def add(self, a, b):\n        return 0\ndef abs(x):\n    return 0"
    assert "equality" in broken(code, "s = S()\nassert abs(s.add(1, 2) - 3) < 1e-6")


@pytest.mark.parametrize(
    "line",
    [
        "import subprocess",
        "from os import system",
        "import os.path as p; p.exists('x')",
        "import os as o; o.remove('x')",
        "f = open; f('x')",
        "eval = eval; eval('1')",
        "x = [exec][0]",
        "print.__self__",
        "import sys; sys.modules",
        "m = __builtins__",
        "import importlib",
        "import multiprocessing",
        "import pickle",
        "import codecs; codecs.open('x')",
        "import requests",
        *("import io; io.open('x')", "import numpy as np; np.loadtxt('x')", "from types import FunctionType", "exit()"),
        "import math; del math.pi",
        "import math; setattr(math, 'pi', 3)",
        "getattr(len, chr(95))",
        "getattr(len, '__sel' + 'f__')",
        "n = '__'; getattr(len, f'{n}self__')",
        "import os; getattr(os, 'get' + 'cwd')",
        "raise SystemExit",
        *("import os; [os]", "from unittest.mock import ANY", "type.__subclasses__(object)", "import sys; sys.exit()"),
        "'{0.__class__.__mro__}'.format(1)",
        "import pathlib; pathlib.Path('x').write_text('y')",
        "globals()['add'] = 1",
        *("from pathlib import *", "import pathlib; pathlib.os", "import pathlib as p; p.PosixPath('x')"),
        *("import inspect; inspect.getsource(add)", "from inspect import currentframe", "from inspect import *"),
        *("import inspect; inspect.signature(add, eval_str=True)", "import pathlib; f = [pathlib]"),
    ],
)
def test_forbidden_effects_of_a_function(line):
    assert "effects" in broken(f"{line}\ndef add(a, b):\n    return a + b", ADD)


GUARDED = "def add(a, b):\n    return a + b\nif {0}:\n    import subprocess\n    sum = abs = int(input())"


def test_what_only_runs_as_a_program_affects_no_test_of_a_function():
    assert broken(GUARDED.format("__name__ == '__main__'"), ADD) == set()


@pytest.mark.parametrize(
    "code",
    [
        GUARDED.format("__name__ != '__main__'"),
        GUARDED.format("__name__ == 'solution'"),
        GUARDED.format("__name__ == '__main__' or True"),
        GUARDED.format("(__name__ := '__main__') == '__main__'"),
        "__name__ = '__main__'\n" + GUARDED.format("__name__ == '__main__'"),
        "match '__main__':\n    case __name__: pass\n" + GUARDED.format("__name__ == '__main__'"),
        "from math import pi as __name__\n" + GUARDED.format("__name__ == '__main__'"),
        "if __name__ == '__main__':\n    pass\nelse:\n    import subprocess\ndef add(a, b):\n    return a + b",
    ],
)
def test_what_runs_with_the_tests_does_not_hide_as_a_program(code):
    assert "effects" in broken(code, ADD)


OWN = "class Links:\n    def unlink(self, x): return x\n    def popen(self, x): return x\n"


@pytest.mark.parametrize(
    "code",
    [
        f"{OWN}def add(a, b):\n    return Links().unlink(a) + Links().popen(b)",
        "class Star:\n    def __init__(self, system): self.system = system\ndef add(a, b): return Star(a).system + b",
        "class Star(NamedTuple):\n    system: int\n    popen: int = 0\ndef add(a, b): return Star(a).system + b",
    ],
)
def test_a_class_of_the_code_may_have_members_with_the_names_of_effects(code):
    assert "effects" not in broken(code, ADD)


@pytest.mark.parametrize(
    "line",
    [
        "Links().system('x')",
        "import os; os.popen('x')",
        "import os as o; o.unlink('x')",
        "from os import unlink",
        "import numpy as np; Links().unlink('x')",
        "import os; os.system = 1; os.system('x')",
        "import numpy as np; np.savetxt = 1; np.savetxt('x')",
        "from pathlib import Path; Path('x').unlink()",
    ],
)
def test_methods_with_such_names_excuse_no_other_effect(line):
    assert "effects" in broken(f"{OWN}{line}\ndef add(a, b):\n    return a + b", ADD)


def test_a_program_may_read_a_file_descriptor_but_not_start_processes():
    table = "Input:\n1\nOutput:\n1\n"
    assert broken("print(open(0).read())", table, origin=TaskOrigin.CODE_CONTESTS) == set()
    assert broken("import os\nos.system(input())\nprint()", table, origin=TaskOrigin.CODE_CONTESTS) == {"effects"}


SUM = "Input:\n3\n1 2 3\nOutput:\n6\n"
ROUTE = "Input:\n4 2\n7\nOutput:\n3 1 2\nInput:\n5 5\n1\nOutput:\n2 4 8\n"
EIGHT = "Input:\n8\nOutput:\nYES\n"
ONES = "Input:\n1 1\nOutput:\n0\n"
MATRIX = "n, m = map(int, input().split())\nfound, step = [[1, 0], [0, 1]], [[1, 1], [1, 0]]"


@pytest.mark.parametrize(
    ("table", "code"),
    [
        (SUM, "import sys\nprint({'3\\n1 2 3\\n': 6}[sys.stdin.read()])"),
        (SUM, "n = input()\nxs = input()\nif n + ' ' + xs == '3 1 2 3':\n    print(6)"),
        (SUM, "import sys\nlines = sys.stdin.read().split('\\n')\nif lines == ['3', '1 2 3']:\n    print('6')"),
        (SUM, "n, *xs = map(int, open(0).read().split())\nif (n, *xs) == 1 or [n] + xs == [3, 1, 2, 3]:\n    print(6)"),
        (
            SUM,
            "import sys\nfor key, value in [('3\\n1 2 3', '6'), ('', '')]:\n"
            "    if key in sys.stdin.read():\n        print(value)",
        ),
        (SUM, "input()\nprint(6)"),
        (
            SUM,
            "import sys\nread = sys.stdin.readline\nn = int(read())\nxs = [int(x) for x in read().split()]\nprint(6)",
        ),
        (ONES, "asked, told = [(1, 1), (2, 3)], [0, 4]\nprint(told[asked.index(tuple(map(int, input().split())))])"),
        (ROUTE, "import sys\nprint(['3 1 2', '2 4 8'][len(sys.stdin.read()) % 2])"),
        (ROUTE, "a = input()\nprint(*([3, 1, 2] if '4' in a else [2, 4, 8]))"),
        (EIGHT, "print({'8': 'YES'}.get(input(), 'NO'))"),
    ],
)
def test_a_program_that_knows_the_examples_by_heart_is_hard_coding(table, code):
    assert "hardcoded" in broken(code, table, origin=TaskOrigin.CODE_CONTESTS)


@pytest.mark.parametrize(
    ("table", "code"),
    [
        (SUM, "n = int(input())\nprint(sum(map(int, input().split())))"),
        (SUM, "input()\nprint(sum(map(int, input().split())))"),
        (
            SUM,
            "# 3\n# 1 2 3 -> 6\n"
            "def solve(xs):\n    return sum(xs)\nn = input()\nprint(solve(map(int, input().split())))",
        ),
        (
            SUM,
            "import sys\ndef main():\n    n = sys.stdin.readline()\n"
            "    print(sum(int(x) for x in sys.stdin.readline().split()))\nmain()",
        ),
        (
            EIGHT,
            "n = int(input())\nif n == 2:\n    print('NO')\nelif n == 8:\n    print('YES')\n"
            "else:\n    print('NO' if n % 2 else 'YES')",
        ),
        (EIGHT, "print(['YES', 'NO'][int(input()) % 2])"),
        ("Input:\n1\nOutput:\n1\n", "memo = {0: 0, 1: 1}\nn = int(input())\nprint(memo.get(n, n))"),
        ("Input:\n5\nOutput:\n1000000007\n", "n = int(input())\nprint((10**9 + 7) * (n // 5))"),
        ("Input:\n\nOutput:\nHello\n", "print('Hello')"),
        (ONES, f"{MATRIX}\nprint(found[0][1] % m)"),
    ],
)
def test_an_honest_program_is_not(table, code):
    assert "hardcoded" not in broken(code, table, origin=TaskOrigin.CODE_CONTESTS)


CHAT = "Input:\nwjmzbmr\nOutput:\nCHAT WITH HER!\nInput:\nxiaodao\nOutput:\nIGNORE HIM!\n"
SAID = 'If it is a female print "CHAT WITH HER!", otherwise, print "IGNORE HIM!".\n\n'


@pytest.mark.parametrize(
    ("question", "is_known"),
    [
        (SAID, False),
        (f"{SAID}{CHAT}", False),
        (CHAT, True),
        (f"{SAID.replace('CHAT WITH HER!', 'CHAT')}{CHAT}", False),
        ("Print what to do.", True),
    ],
    ids=["only said", "said and shown", "only shown", "one of two said", "neither"],
)
def test_a_program_may_hold_the_phrases_that_the_statement_says_beside_its_examples(question, is_known):
    code = "print('IGNORE HIM!' if len(set(input())) % 2 else 'CHAT WITH HER!')"
    found = broken(code, CHAT, question=question, origin=TaskOrigin.CODE_CONTESTS)
    assert ("hardcoded" in found) is is_known


def test_numbers_that_the_statement_explains_are_no_phrases():
    question = "Print the route. In the first example it is 3 1 2, in the second one 2 4 8."
    code = "import sys\nprint(['3 1 2', '2 4 8'][len(sys.stdin.read()) % 2])"
    assert "hardcoded" in broken(code, ROUTE, question=question, origin=TaskOrigin.CODE_CONTESTS)

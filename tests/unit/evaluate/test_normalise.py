import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codezero.evaluate.normalise import reachable, stripped


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("x = 1  # all tests pass", "x = 1"),
        ('"""doc"""\nx = 1', "x = 1"),
        ("def f(n):\n    '''doc'''\n    return n", "def f(n):\n    return n"),
        ("def f(n):\n    '''doc'''", "def f(n):\n    pass"),
        ("class A:\n    'doc'", "class A:\n    pass"),
        ("'a'\nb'b'\n1\n...\nf'c'\n('d', ['e'])\nx = 1", "x = 1"),
        ("if x:\n    'a'\nelse:\n    'b'", "if x:\n    pass"),
        ("try:\n    x = 1\nfinally:\n    'note'", "try:\n    x = 1\nfinally:\n    pass"),
        ("def f(n: 'a note') -> 'another':\n    return n", "def f(n):\n    return n"),
        ("def f(n: int) -> List[int]:\n    return n", "def f(n: int) -> List[int]:\n    return n"),
        ("s = 'a' 'b'", "s = 'ab'"),
        ("f'{x}'\ng()", "f'{x}'\ng()"),  # formatting x may do something
        ("unused = 'note'", "unused = 'note'"),  # what runs stays: tests may look at it
    ],
)
def test_what_does_nothing_goes(code, expected):
    assert ast.unparse(stripped(code)) == expected


@pytest.mark.parametrize(
    "code", ["def f(", "\x00", "x" * 30_000, "(" * 5_000, "x = " + "-" * 400 + "1", "0x" + "f" * 9_000]
)
def test_code_that_does_not_parse_is_an_error(code):
    with pytest.raises(ValueError, match="the code"):
        stripped(code)


def kept(code, wanted=("f",)):
    return ast.unparse(reachable(stripped(code), None if wanted is None else set(wanted)))


F = "def f(n):\n    return n"


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (f"{F}\n\ndef g():\n    return 1", F),
        (f"{F}\n\ndef g():\n    return h()\n\ndef h():\n    return g()", F),
        (f"import os, sys\n{F}", F),
        (f"NOTE = 'a'\nOTHER = NOTE\n{F}", F),
        (f"{F}\n\nclass A:\n    x = 1", F),
        (f"{F}\nif __name__ == '__main__':\n    print(f(1))", F),
        (f"{F}\nprint('3 passed')", F),
        (f"{F}\nif False:\n    if 1:\n        g()", F),
        (f"if True:\n    if 1:\n        {F.replace(chr(10), chr(10) + '        ')}", F),
        ("def f(n: int) -> int:\n    x: str\n    note = 'a'\n    return n\n    print(n)", F),
        ("def f(n):\n    def g():\n        return n\n    return n", F),
        (
            "def f(n):\n    try:\n        return n\n    except E:\n        note = 1",
            "def f(n):\n    try:\n        return n\n    except E:\n        pass",
        ),
    ],
)
def test_what_the_tests_cannot_reach_goes(code, expected):
    assert kept(code) == expected


@pytest.mark.parametrize(
    "code",
    [
        "import math\n\ndef f(n):\n    return math.sqrt(n)",
        "def g(n):\n    return n\n\ndef f(n):\n    return g(n)",
        "LIMIT = 3\n\ndef f(n):\n    return n < LIMIT",
        "count = 0\n\ndef f(n):\n    global count\n    count = n\n    return n",
        "def f(n):\n    m = 0\n\n    def g():\n        nonlocal m\n        m = n\n    g()\n    return m",
        "def f(n):\n    total = 0\n    total += n\n    return total",
        "data = read()\n\ndef f(n):\n    return n",  # the call may fail
        "@register\ndef g():\n    return 1\n\ndef f(n):\n    return n",
        "from math import *\n\ndef f(n):\n    return sqrt(n)",
        "def f(n):\n    print(n)\n    return n",
        "def f(n):\n    return\n    yield n",  # the yield makes it a generator
        "class A:\n    x: int\n\ndef f(n):\n    return A()",
        "assert f(1) == 1",
        "def f(n):\n    for i in n:\n        break\n    else:\n        return 1\n    return 2",
    ],
)
def test_what_the_tests_can_reach_stays(code):
    assert kept(code) == code


def test_all_that_runs_of_a_program_stays():
    program = "import sys\nn = int(input())\nif __name__ == '__main__':\n    print('yes')"
    assert kept(f"import os\n{program}\ndef unused():\n    return n", wanted=()) == program.replace("import sys\n", "")


def test_the_top_level_stays_where_nobody_knows_what_the_tests_call():
    code = "import os\n\ndef g():\n    return 1"
    assert kept(code, wanted=None) == code


PARTS = (
    *("'x'", "pass", "return 1", "x: int", "y = 1", "if False:\n    x = 1", "if True:\n    'j'\nelse:\n    y"),
    "while 0:\n    'c'",
    "for i in y:\n    break\nelse:\n    'f'",
    "with a:\n    1",
    "match y:\n    case 1:\n        'd'",
    *("try:\n    'a'\nfinally:\n    'b'", "try:\n    y\nexcept E:\n    z = 1\nelse:\n    'e'"),
    *("def g():\n    'h'", "class A:\n    'i'"),
)
BODY = st.lists(st.sampled_from(PARTS), max_size=6)


@given(BODY, BODY)
def test_whatever_is_dropped_what_is_left_is_python_and_stays_as_it_is(body, inner):
    lines = "\n".join(inner).split("\n") if inner else ["pass"]
    code = "\n".join(
        [*("pass" if part == "return 1" else part for part in body), "def f(n):", *("    " + x for x in lines)]
    )
    once = kept(code)
    assert ast.unparse(stripped(once)) == once
    assert kept(once) == once

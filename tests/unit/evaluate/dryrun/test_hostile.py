"""Programs that try to get out, or to take everything: none is run, none passes, and all end."""

import textwrap
from pathlib import Path

import pytest

from codezero.evaluate.dryrun import Budget, dry_run
from codezero.tasks.testcases import parse_tests
from codezero.types import CaseOutcome
from tests.unit.evaluate.dryrun.confined import Program, run_all

FOLDER = Path(__file__).parent


def programs(name: str) -> dict[str, str]:
    """Solutions by the name of what they try."""
    parts = (FOLDER / f"{name}.txt").read_text(encoding="utf-8").split("\n== ")[1:]
    return {
        title: "def f():\n" + textwrap.indent(body.strip("\n"), "    ")
        for title, body in (part.split("\n", 1) for part in parts)
    }


@pytest.mark.parametrize("name", programs("escapes"))
def test_an_escape_passes_no_test(name):
    assert dry_run(programs("escapes")[name], parse_tests("assert f() == 1"))[0].outcome is not CaseOutcome.PASS


def test_no_escape_opens_imports_or_executes_anything(tmp_path):
    escapes = programs("escapes")
    ran = run_all([Program(code) for code in escapes.values()], tmp_path, steps=100_000)
    assert [one.complaint(seconds=2.0, mib=128) for one in ran if one.complaint(2.0, 128)] == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_bombs_end_within_their_budget_and_leave_the_process_alive(tmp_path):
    bombs = programs("bombs")
    ran = dict(zip(bombs, run_all([Program(code) for code in bombs.values()], tmp_path, steps=30_000), strict=True))
    found = {name: one.complaint(seconds=12.0, mib=512) for name, one in ran.items()}
    assert {name: text for name, text in found.items() if text} == {}
    assert [name for name, one in ran.items() if "pass" in one.outcomes] == []


def test_the_hostile_programs_are_python():
    for kind in ("escapes", "bombs"):
        for name, code in programs(kind).items():
            result = dry_run(code, parse_tests("assert f() == 1"), Budget(steps=1, seconds=0.1))
            assert not result[0].reason.startswith("SyntaxError") or "star" in name, name


@pytest.mark.parametrize(
    "size", ["-(10 ** 12)", "float('nan')", "float('-inf')", "1e30"], ids=["negative", "nan", "infinite", "float"]
)
@pytest.mark.parametrize(
    "call",
    [
        "(1).to_bytes({}, 'big')",
        "'a'.center({})",
        "'a'.expandtabs({})",
        "tee([1], {})",
        "product([1], repeat={})",
        "combinations([1], {})",
        "bytes({})",
        "[0] * ({})",
        "factorial({})",
        "round(1.5, {})",
    ],
)
def test_a_size_that_is_no_size_buys_no_memory(call, size):
    code = f"""
from itertools import tee, product, combinations
from math import factorial
def f():
    for i in range(3):
        try:
            {call.format(size)}
        except Exception:
            pass
    x = []
    while True:
        x.append('a' * 100_000)
"""
    budget = Budget(memory=1 << 20)
    assert dry_run(code, parse_tests("assert f() == 1"), budget)[0].outcome is CaseOutcome.UNKNOWN


@pytest.mark.parametrize(
    "lines",
    [
        "class NAME: pass\nreturn len(str([NAME] * 200)) and 1",
        "class NAME(ValueError): pass\nreturn len(str([NAME()] * 200)) and 1",
        "from collections import namedtuple\nP = namedtuple('NAME', 'x')\nreturn len(str([P(1)] * 200)) and 1",
        "from collections import namedtuple\nP = namedtuple('P', 'NAME')\nreturn len(str([P(1)] * 200)) and 1",
        "class A: pass\nkept = []\nwhile len(kept) < 200:\n    try: getattr(A, 'NAME')\n"
        "    except AttributeError as error: kept.append(error)\nreturn 1",
        "from random import Random\nx = [Random(1) for _ in range(1_000)]\nreturn 1",
    ],
    ids=["classes", "errors", "named tuples", "fields", "attributes", "generators"],
)
def test_neither_long_names_nor_generators_are_had_for_a_step(lines):
    code = "def f():\n    " + lines.replace("\n", "\n    ").replace("NAME", "N" * 9_000)
    (found,) = dry_run(code, parse_tests("assert f() == 1"), Budget(memory=1 << 20))
    assert (found.outcome, found.reason) == (CaseOutcome.UNKNOWN, "memory budget")

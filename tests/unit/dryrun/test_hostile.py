"""Programs that try to get out, or to take everything: none is run, none passes, and all end."""

import json
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from codezero.dryrun import Budget, dry_run
from codezero.testcases import parse_tests
from codezero.types import CaseOutcome

FOLDER = Path(__file__).parent
REPOSITORY = FOLDER.parents[2]


def programs(name: str) -> dict[str, str]:
    """Solutions by the name of what they try."""
    parts = (FOLDER / f"{name}.txt").read_text(encoding="utf-8").split("\n== ")[1:]
    return {
        title: "def f():\n" + textwrap.indent(body.strip("\n"), "    ")
        for title, body in (part.split("\n", 1) for part in parts)
    }


CHILD = """
import json, resource, sys
from codezero.dryrun import Budget, dry_run
from codezero.testcases import parse_tests

resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
solutions = json.load(sys.stdin)
suite = parse_tests("assert f() == 1")
dry_run("import re\\ndef f(): return re.sub('a', 'b', 'a')", suite)
seen = []
# ast.parse compiles, to a tree only.
harmless = ("compile", "object.", "sys._getframe", "gc.", "builtins.id", "_thread.", "cpython.")

def watch(event, args):
    # ... and looks for a file of the name that it gives to what does not parse.
    if not event.startswith(harmless) and args[:1] != ("<unknown>",):
        seen.append([event, repr(args)[:80]])

sys.addaudithook(watch)
results = {}
for name, code in solutions.items():
    seen.clear()
    result = dry_run(code, suite, Budget(steps=100_000))[0]
    results[name] = [result.outcome.value, result.reason, list(seen)]
# Not ru_maxrss, which begins with what the process had that started this one.
status = dict(line.split(":", 1) for line in open("/proc/self/status")) if sys.platform == "linux" else {}
peak = int(status.get("VmHWM", "0 kB").split()[0]) >> 10
print(json.dumps({"results": results, "peak_mib": peak}))
"""


def run_in_child(solutions: dict[str, str], folder: Path) -> dict:
    """The outcome, its reason and the audit events of each, from a process that may use 6 GiB of address space."""
    child = subprocess.run(
        [sys.executable, "-c", CHILD],
        input=json.dumps(solutions),
        capture_output=True,
        text=True,
        cwd=folder,
        env={"PYTHONPATH": str(REPOSITORY)},
        timeout=500,
    )
    assert child.returncode == 0, child.stderr[-2000:]
    return json.loads(child.stdout)


@pytest.mark.parametrize("name", programs("escapes"))
def test_an_escape_passes_no_test(name):
    assert dry_run(programs("escapes")[name], parse_tests("assert f() == 1"))[0].outcome is not CaseOutcome.PASS


def test_no_escape_opens_imports_or_executes_anything(tmp_path):
    found = run_in_child(programs("escapes"), tmp_path)["results"]
    assert {name: events for name, (_, _, events) in found.items() if events} == {}
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_bombs_end_within_their_budget_and_leave_the_process_alive(tmp_path):
    found = run_in_child(programs("bombs"), tmp_path)
    assert {name: reason for name, (outcome, reason, _) in found["results"].items() if outcome == "pass"} == {}
    assert {name: events for name, (_, _, events) in found["results"].items() if events} == {}
    assert found["peak_mib"] < 1024


def test_the_hostile_programs_are_python():
    for kind in ("escapes", "bombs"):
        for name, code in programs(kind).items():
            result = dry_run(code, parse_tests("assert f() == 1"), Budget(steps=1, seconds=0.1))
            assert not re.match("SyntaxError", result[0].reason) or "star" in name, name


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

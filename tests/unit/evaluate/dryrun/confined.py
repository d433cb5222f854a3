"""Hostile programs in a process of their own, where each has a clock and the memory that it takes is seen."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

REPOSITORY = Path(__file__).parents[4]

_CHILD = """
import gc, json, resource, sys, threading, time
from codezero.evaluate.dryrun import Budget, dry_run
from codezero.tasks.testcases import parse_tests

resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
seen = []
# ast.parse compiles, to a tree only.
harmless = ("compile", "object.", "sys._getframe", "gc.", "builtins.id", "_thread.", "cpython.", "array.")

def watch(event, args):
    # ... and looks for a file of the name that it gives to what does not parse.
    if watched and not event.startswith(harmless) and args[:1] != ("<unknown>",):
        seen.append([event, repr(args)[:80]])

def memory_mib(field):
    if sys.platform != "linux":
        return 0
    status = dict(line.split(":", 1) for line in open("/proc/self/status"))
    return int(status[field].split()[0]) >> 10

def forget_peak():
    if sys.platform == "linux":
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")

def on_small_stack(function):
    old = threading.stack_size(512 << 10)
    thread = threading.Thread(target=function)
    thread.start()
    threading.stack_size(old)
    thread.join()

watched = False
dry_run("import re\\ndef f(): return re.sub('a', 'b', 'a')", parse_tests("assert f() == 1"))
sys.addaudithook(watch)
gc.collect()
gc.freeze()
gc.disable()  # what is left in cycles is freed below, and nowhere else
for line in sys.stdin:
    program = json.loads(line)
    budget = Budget(**program["budget"])
    forget_peak()
    before, started = memory_mib("VmRSS"), time.process_time()
    limit = int(started + budget.total_seconds) + 16
    resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.RLIM_INFINITY))
    seen.clear()
    watched = True
    results = dry_run(program["code"], parse_tests(program["tests"]), budget)
    watched = False
    events = list(seen)
    on_small_stack(gc.collect)
    print(json.dumps({
        "outcomes": [result.outcome.value for result in results],
        "reasons": [result.reason for result in results],
        "events": events,
        "seconds": time.process_time() - started,
        "mib": memory_mib("VmHWM") - before,
        "returncode": 0,
    }), flush=True)
"""


@dataclass(frozen=True)
class Program:
    """A solution and its tests."""

    code: str
    tests: str = "assert f() == 1"


@dataclass(frozen=True)
class Ran:
    """What became of a program. `returncode` is that of the process that it ended, else 0."""

    outcomes: list[str] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    events: list[list[str]] = field(default_factory=list)
    """Audit events that no interpreter of ours has any business with."""
    seconds: float = 0.0
    """Processor time, with that of freeing what it left."""
    mib: int = 0
    """Most memory that it took; on Linux only."""
    returncode: int = 0

    def complaint(self, seconds: float, mib: int) -> str:
        """Why a program that may take so much should not have gone like this; empty if it may."""
        if self.returncode:
            return f"ended the process with {self.returncode} {self.reasons}"
        if self.seconds > seconds:
            return f"took {self.seconds:.1f} s"
        if self.mib > mib:
            return f"took {self.mib} MiB"
        if self.events:
            return f"did {self.events}"
        return ""


def run_all(programs: Sequence[Program], folder: Path, **budget: float) -> list[Ran]:
    """What becomes of each program, in order, with a budget of so much."""
    found: list[Ran] = []
    while len(found) < len(programs):
        found.extend(_run(programs[len(found) :], folder, budget))
    return found


def _run(programs: Iterable[Program], folder: Path, budget: dict[str, float]) -> list[Ran]:
    """What becomes of the programs, up to the first that ends the process."""
    lines = [json.dumps({**asdict(program), "budget": budget}) for program in programs]
    child = subprocess.run(
        [sys.executable, "-c", _CHILD],
        input="\n".join(lines),
        capture_output=True,
        text=True,
        cwd=folder,
        env={"PYTHONPATH": str(REPOSITORY), "PYTHONHASHSEED": "0"},
    )
    found = [Ran(**json.loads(line)) for line in child.stdout.splitlines()]
    if len(found) < len(lines):
        found.append(Ran(returncode=child.returncode, reasons=[child.stderr[-300:]]))
    return found

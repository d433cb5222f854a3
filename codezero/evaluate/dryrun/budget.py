"""The budget of a dry run, and the meter that counts it down.

A worker process does one job at a time, so it has one meter. This is a global variable because every loop of the
interpreter uses it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import process_time, thread_time
from typing import Any

from codezero.tasks.testcases import TestSuite

_CHUNK = 64
"""Steps between two checks of the clock."""
_WORK_SHIFT = 6
"""Base-2 logarithm of the 64 items or bytes that a host call handles for one step."""

_STEPS = 300_000
_MAX_OUTPUT = 1 << 20
"""Most characters that a case prints."""

RECURSION_LIMIT = 1000
"""CPython's default limit of nested calls."""
_UNSURE_CALLS = 50
"""Calls below the recursion limit where it depends on the frames below the program whether CPython overflows."""
NEAR_LIMIT = RECURSION_LIMIT - _UNSURE_CALLS
MAX_DEPTH = 21_000
"""Most nested calls, also for a program that sets a higher recursion limit."""
IN_SOLUTION, IN_TEST, IN_COMPARISON = range(3)
"""Whose code runs: the solution's, a test's, or an operator or condition of a test."""
OUT_OF_STEPS = "step budget"
OUT_OF_TIME = "time budget"


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Limits of one dry run. All but `total_seconds` and `memory` are per case. Each run of the module's body counts as
    a case: one for all cases in order, and one for each group of cases that runs separately."""

    steps: int = _STEPS
    """Most loop iterations, calls, operations that make or extend containers, and 64-byte units of host calls."""
    seconds: float = 2.0
    """Processor time of the interpreter's thread, which does not depend on how busy the machine is. A backstop: `steps`
    ends a run at the same place on every machine."""
    total_seconds: float = 4.0
    """Processor time of all cases and definitions together; cases beyond it are unknown."""
    memory: int = 256 << 20
    """Bytes for all cases that share one definition of the solution. Each step takes 64, which are never given back; a
    result that grows with its operands costs a step for each 64 bytes."""

    def after(self, reason: str) -> Budget:
        """Returns the budget of the next case after one that ended for `reason`. It is a quarter of the steps after a
        case that ran out of them or of time, since most later cases do too."""
        if reason not in (OUT_OF_STEPS, OUT_OF_TIME):
            return self
        return replace(self, steps=max(self.steps // 4, 1))


OF_PROGRAMS = Budget(steps=3_000_000, total_seconds=10.0)
"""The budget of programs that read standard input, whose tests have inputs large enough to make a wrong algorithm too
slow. Each case has the whole memory, which is enough for these steps and no more."""


def share_of(seconds: float, num_left: int) -> float:
    """Returns the seconds that the next of the runs that are left may take of those left for all: nearly twice an even
    share, so that slow ones leave some to the others."""
    return 2 * seconds / (num_left + 1)


def until(ends: float, steps: int = _STEPS) -> Budget:
    """Returns the budget of a run until a processor time."""
    return Budget(steps=steps, total_seconds=max(ends - process_time(), 0.0))


def budget_of(suite: TestSuite) -> Budget:
    """Returns the budget of a dry run over these tests."""
    return OF_PROGRAMS if suite.examples else Budget()


class Stop(BaseException):
    """Ends a case as unknown; its text is the reason. Not an Exception, so that no program can catch it."""


class Unsupported(Stop):
    """Ends a case as unknown because of a feature that is not interpreted."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} is not interpreted")


class Cheat(Stop):
    """Ends a case as failed because the program manipulates the test."""


class DepthError(RecursionError):
    """The program's recursion exceeds its limit. A plain RecursionError is the interpreter's own."""


class Meter:
    """Counts down the budget of one case, and holds the state of the case."""

    def __init__(self) -> None:
        self.test_names: frozenset[str] = frozenset()
        """Names that occur in the tests. A class among them is part of the task; others are the solution's own."""
        self.module = "__main__"
        """The solution's `__name__`."""
        self.case = 0
        """The number of cases started in this process."""
        self.unordered = self.reordered = False
        """True if the program took items of a set whose order depends on chance, and if that order is reversed."""
        self.new_process(0)
        self.start(Budget(), 0.0)

    def new_process(self, memory: int) -> None:
        """Resets the state that the cases of one process share: `memory` bytes left, and settings of the library."""
        self.memory = memory
        self.recursion_limit = RECURSION_LIMIT
        self.any_digits = False
        """True if the program has lifted CPython's limit of digits in texts of integers, which holds for the host."""
        self.per_case: dict[str, Any] = {}
        """Values of `PerCase` by name, such as standard streams: made on first use, or assigned by the program."""
        self.reader: Any = None
        """The stream that reads standard input; None before the first read."""
        self.pending = 0
        """The highest layer of standard output that has unflushed text."""
        self.derives_from_builtin = False
        """True if the program made an instance of a class derived from a builtin type, which few functions here
        take."""

    def start(self, budget: Budget, seconds: float, stdin: str = "") -> None:
        """Starts a case with a full budget but at most `seconds` of processor time, and with empty output."""
        self.case += 1
        self.steps = budget.steps
        self.left = _CHUNK
        self.deadline = thread_time() + min(budget.seconds, seconds)
        self.output_left = _MAX_OUTPUT
        self.output: list[str] = []
        self.stdin = stdin
        self.depth = 0
        self.nested = 0
        self.judging = IN_SOLUTION
        """Whose code runs, which tells whether methods of the solution's classes may decide comparisons."""
        self.unsure = ""
        self.handling: list[BaseException] = []

    def refill(self) -> None:
        """Charges a used-up chunk (`left` below 0) and starts the next. Raises Stop without steps, memory or time
        left."""
        used = _CHUNK - self.left
        self.steps -= used
        self.memory -= used << _WORK_SHIFT
        self.left = _CHUNK
        if self.steps <= 0:
            self.left = -1
            raise Stop(OUT_OF_STEPS)
        if self.memory <= 0:
            self.left = -1
            raise Stop("memory budget")
        if thread_time() > self.deadline:
            self.steps = 0
            self.left = -1
            raise Stop(OUT_OF_TIME)

    def work(self, size: int) -> None:
        """Charges one host call over `size` items or bytes. A size may come from the program: a negative one refunds
        nothing, and one that is not an integer raises TypeError before anything is charged."""
        steps = size >> _WORK_SHIFT
        self.left -= 1 + steps if steps > 0 else 1
        if self.left < 0:
            self.refill()

    def allocate(self, size: int) -> None:
        """Charges `size` bytes that are about to be allocated. Raises Stop if they exceed the memory left."""
        if size > self.memory:
            raise Stop("memory budget")
        self.work(size)

    def seconds_left(self) -> float:
        return max(self.deadline - thread_time(), 0.001)

    def deep(self) -> None:
        """Checks a call near the recursion limit or beyond. Raises DepthError above the limit and Stop above MAX_DEPTH;
        marks the case as unsure close to the limit."""
        if self.depth >= self.recursion_limit:
            raise DepthError("maximum recursion depth exceeded")
        if self.depth >= MAX_DEPTH:
            raise Stop("recursion depth")
        if self.depth >= self.recursion_limit - _UNSURE_CALLS:
            self.unsure = "recursion depth"

    def call_by_library(self) -> None:
        """Marks the case as unsure where a comprehension, or a call that a class or a function of the library makes,
        such as that of a cache, may be too deep: some versions of CPython count it twice."""
        if 2 * (self.depth + _UNSURE_CALLS) >= self.recursion_limit:
            self.unsure = "recursion depth"

    def enter(self) -> None:
        """Counts a call, or the resumption of a generator. The caller lowers `depth` at its end."""
        if self.depth >= NEAR_LIMIT:
            self.deep()
        self.depth += 1

    def write(self, text: str) -> None:
        self.output_left -= len(text)
        if self.output_left < 0:
            raise Stop("output budget")
        self.output.append(text)


meter = Meter()

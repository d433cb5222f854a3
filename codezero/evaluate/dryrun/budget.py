"""What a dry run may spend, and the meter that counts it down.

One dry run goes on at a time in a process, since a worker does one job after the other: so there is one meter, and code
that spends reads it as a module's name. It is touched in every loop.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import thread_time
from typing import Any

from codezero.tasks.testcases import TestSuite

_CHUNK = 64
"""Steps between two looks at the clock."""
_WORK_SHIFT = 6
"""One step per 64 items or bytes that a single host call handles."""

RECURSION_LIMIT = 1000
"""CPython's own default for the depth of calls."""
_UNSURE_CALLS = 50
"""So close to the limit, whether CPython would overflow depends on the frames below the program."""
NEAR_LIMIT = RECURSION_LIMIT - _UNSURE_CALLS
MAX_DEPTH = 21_000
"""Deepest nested calls that are walked, for a program that has set a limit as high."""
OUT_OF_STEPS = "step budget"
OUT_OF_TIME = "time budget"


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Limits of one dry run. All but `total_seconds` and `memory` are per case. Running the module's own body counts as
    a case of its own, each time: once for all cases in their order, and once more for each that is told apart."""

    steps: int = 300_000
    """Loop iterations, calls, whatever makes or extends a container, and the work of host functions by length."""
    seconds: float = 2.0
    """Processor time of the interpreter's thread, so that a busy machine decides as an idle one does; a backstop, since
    a run that ends by steps is the same everywhere."""
    total_seconds: float = 4.0
    """The same for all cases and definitions together; those not reached stay unknown."""
    memory: int = 256 << 20
    """Bytes taken by all cases that share the solution's names: 64 for each step, whatever it makes, never given back.
    What grows with its operands costs a step for each 64 bytes."""
    output: int = 1 << 20
    """Characters printed."""

    def after(self, reason: str) -> Budget:
        """What is left to a case after one that ended for this reason: most end like one that took too long."""
        if reason not in (OUT_OF_STEPS, OUT_OF_TIME):
            return self
        return replace(self, steps=max(self.steps // 4, 1))


OF_PROGRAMS = Budget(steps=3_000_000, total_seconds=10.0)
"""For programs that read standard input, whose tests have inputs of a size that makes a wrong algorithm too slow. Their
memory is each case's own; more steps than these it does not hold."""


def budget_of(suite: TestSuite) -> Budget:
    """What a dry run over these tests may spend."""
    return OF_PROGRAMS if suite.examples else Budget()


class Stop(BaseException):
    """Ends a case as unknown, with the reason. Not an Exception, so that nothing in a program can catch it."""


class Unsupported(Stop):
    """Ends a case as unknown because of a feature that is not interpreted."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} is not interpreted")


class Cheat(Stop):
    """Ends a case as failed: the program bends the test instead of meeting it."""


class DepthError(RecursionError):
    """The program's own recursion went too deep, as opposed to the interpreter's, which is no error of the program."""


class Meter:
    """Counts one case down, and keeps what belongs to the case beside it."""

    __slots__ = (
        "case",
        "deadline",
        "depth",
        "derived",
        "files",
        "given",
        "handling",
        "judging",
        "left",
        "memory",
        "nested",
        "output",
        "pending",
        "reader",
        "recursion_limit",
        "room",
        "steps",
        "test_names",
        "unsure",
    )

    def __init__(self) -> None:
        self.test_names: frozenset[str] = frozenset()
        """Names that occur in the tests: a class among them is what is asked for, any other is the solution's own."""
        self.case = 0
        """Tells the cases of a process apart."""
        self.new_process(0)
        self.start(Budget(), 0.0)

    def new_process(self, memory: int) -> None:
        """Forgets what all cases of one process share: `memory` bytes, and what was set of the library."""
        self.memory = memory
        self.recursion_limit = RECURSION_LIMIT
        self.files: dict[str, Any] = {}
        """Standard streams and the like by name, made when they are first asked for, or what was put in their place."""
        self.reader: Any = None
        """The stream that has begun to read standard input; None where nobody has asked for it."""
        self.pending = 0
        """The highest layer of standard output that holds back what was written to it."""

    def start(self, budget: Budget, seconds: float, stdin: str = "") -> None:
        """Begins a case with a full budget, `seconds` of time and nothing printed."""
        self.case += 1
        self.steps = budget.steps
        self.left = _CHUNK
        self.deadline = thread_time() + min(budget.seconds, seconds)
        self.room = budget.output
        self.output: list[str] = []
        self.given = stdin
        self.depth = 0
        self.nested = 0
        self.judging = False
        self.unsure = ""
        self.derived = False
        """Whether it made an object of a class that derives from a builtin type, which few of our functions take."""
        self.handling: list[BaseException] = []

    def refill(self) -> None:
        """Called when a chunk is used up (`left` below 0). Raises Stop when steps or time are."""
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
        """Charges one host call over `size` items or bytes. Sizes may be a program's own numbers: a negative one is
        no refund, and one that is no integer raises TypeError before anything is charged."""
        steps = size >> _WORK_SHIFT
        self.left -= 1 + steps if steps > 0 else 1
        if self.left < 0:
            self.refill()

    def allocate(self, size: int) -> None:
        """Charges `size` new bytes, before they are taken."""
        if size > self.memory:
            raise Stop("memory budget")
        self.work(size)

    def seconds_left(self) -> float:
        return max(self.deadline - thread_time(), 0.001)

    def deep(self) -> None:
        """Called for every call that nests deeper than is sure to be allowed."""
        if self.depth >= self.recursion_limit:
            raise DepthError("maximum recursion depth exceeded")
        if self.depth >= MAX_DEPTH:
            raise Stop("recursion depth")
        if self.depth >= self.recursion_limit - _UNSURE_CALLS:
            self.unsure = "recursion depth"

    def enter(self) -> None:
        """Begins a call, or goes on with a generator, until `depth` is lowered again."""
        if self.depth >= NEAR_LIMIT:
            self.deep()
        self.depth += 1

    def write(self, text: str) -> None:
        self.room -= len(text)
        if self.room < 0:
            raise Stop("output budget")
        self.output.append(text)


meter = Meter()

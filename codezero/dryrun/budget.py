"""What a dry run may spend, and the meter that counts it down.

One dry run goes on at a time in a process (run.py holds a lock), so there is one meter, and code that spends reads it
as a module's name: it is touched in every loop.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import thread_time

_CHUNK = 64
"""Steps between two looks at the clock."""
_WORK_SHIFT = 6
"""One step per 64 items or bytes that a single host call handles."""

RECURSION_LIMIT = 1000
"""CPython's own default for the depth of calls."""
NEAR_LIMIT = 950
"""From here on, whether CPython would overflow depends on the frames below the program."""
OUT_OF_STEPS = "step budget"


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Limits of one dry run. All but `total_seconds` are per case; the module's own body counts as a case."""

    steps: int = 300_000
    """Loop iterations, calls, whatever makes or extends a container, and the work of host functions by length."""
    seconds: float = 2.0
    """Processor time of the interpreter's thread, so that a busy machine decides as an idle one does; a backstop, since
    a run that ends by steps is the same everywhere."""
    total_seconds: float = 4.0
    """The same for all cases together; those not reached stay unknown."""
    memory: int = 256 << 20
    """Bytes allocated by operations whose result grows with their operands, never given back."""
    output: int = 1 << 20
    """Characters printed."""


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
        "handling",
        "judging",
        "left",
        "lines",
        "memory",
        "output",
        "recursion_limit",
        "room",
        "steps",
        "test_names",
        "unsure",
    )

    def __init__(self) -> None:
        self.recursion_limit = RECURSION_LIMIT
        self.test_names: frozenset[str] = frozenset()
        """Names that occur in the tests: a class among them is what is asked for, any other is the solution's own."""
        self.case = 0
        """Tells the cases of a process apart."""
        self.start(Budget(), 0.0)

    def start(self, budget: Budget, seconds: float, stdin: str = "") -> None:
        """Begins a case with a full budget, `seconds` of time and nothing printed."""
        self.case += 1
        self.steps = budget.steps
        self.left = _CHUNK
        self.memory = budget.memory
        self.deadline = thread_time() + min(budget.seconds, seconds)
        self.room = budget.output
        self.output: list[str] = []
        self.lines = iter(stdin.splitlines(keepends=True))
        self.depth = 0
        self.judging = False
        self.unsure = ""
        self.handling: list[BaseException] = []

    def refill(self) -> None:
        """Called when a chunk is used up (`left` below 0). Raises Stop when steps or time are."""
        self.steps -= _CHUNK - self.left
        self.left = _CHUNK
        if self.steps <= 0:
            self.left = -1
            raise Stop(OUT_OF_STEPS)
        if thread_time() > self.deadline:
            self.steps = 0
            self.left = -1
            raise Stop("time budget")

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
        self.memory -= size if size > 0 else 0

    def seconds_left(self) -> float:
        return max(self.deadline - thread_time(), 0.001)

    def deep(self) -> None:
        """Called for every call that nests deeper than is sure to be allowed."""
        if self.depth >= RECURSION_LIMIT:
            if self.recursion_limit > RECURSION_LIMIT:
                raise Stop("recursion depth")
            raise DepthError("maximum recursion depth exceeded")
        if self.depth >= NEAR_LIMIT:
            self.unsure = "recursion depth"

    def write(self, text: str) -> None:
        self.room -= len(text)
        if self.room < 0:
            raise Stop("output budget")
        self.output.append(text)


meter = Meter()

"""Keeps programs running: starts them, shows what they print, starts crashed ones again, and leaves none behind."""

from __future__ import annotations

import selectors
import signal
import time
from collections.abc import Mapping, Sequence
from types import FrameType, TracebackType

from codezero.errors import OUTAGE, NetworkError
from codezero.launch.child import Child, ChildProgram, ChildState
from codezero.runtime.console import Console
from codezero.runtime.stop import SAVE_S

MAX_CRASHES = 5
"""So many in a row, with no finished round in between, and a program is given up."""
GRACE_S = 15.0 + SAVE_S
"""From being asked to stop to being killed."""
QUICK_S = 30.0
"""A program that ends with the same error twice in a row, each time before this, would do so for ever."""
HEALTHY_S = 60.0
"""A program without rounds that ran this long has not crashed "in a row"."""
MAX_PAUSE_S = 300.0
"""Between two starts of a program that waits for an outage to pass."""
_TICK_S = 0.1
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Supervisor:
    """A context: when it is left, by whatever way, no program runs. A signal asks it to stop, a second one at once."""

    def __init__(
        self,
        console: Console,
        *,
        environment: Mapping[str, str] | None = None,
        kept_open: Sequence[int] = (),
        first_pause_s: float = 1.0,
        grace_s: float = GRACE_S,
    ) -> None:
        """`kept_open` are file descriptors that the programs inherit. `first_pause_s` is the wait before a first
        restart; each further one in a row doubles it."""
        self.children: list[Child] = []
        self._console, self._environment, self._kept_open = console, environment, kept_open
        self._first_pause_s, self._grace_s = first_pause_s, grace_s
        self._selector = selectors.DefaultSelector()
        self._num_signals = 0
        self._is_stopping = self._is_mute = False
        self._width = len("swarm")

    def __enter__(self) -> Supervisor:
        ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN  # under nohup, to outlive the terminal
        taken = [number for number in _SIGNALS if not (number == signal.SIGHUP and ignored)]
        self._previous = {number: signal.signal(number, self._count_signal) for number in taken}
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            self.stop()
        finally:
            for child in self.children:
                child.kill()
            self._selector.close()
            for number, handler in self._previous.items():
                signal.signal(number, handler)

    def _count_signal(self, number: int, frame: FrameType | None) -> None:
        self._num_signals += 1

    def add(self, program: ChildProgram) -> Child:
        """Has a program run from the next step on."""
        child = Child(program)
        self.children.append(child)
        self._width = max(self._width, len(program.name))
        return child

    def wait_until_ready(self, child: Child, timeout_s: float) -> None:
        """Returns when the child says so, or when asked to stop.

        Raises NetworkError: it did not in time, or failed for good.
        """
        deadline = time.monotonic() + timeout_s
        while not (child.is_ready or self._num_signals):
            if not child.state.live or time.monotonic() > deadline:
                why = child.error.removeprefix("error: ") or f"not ready within {timeout_s:.0f} s"
                raise NetworkError(f"the {child.program.name} did not start ({why}): see {child.program.log}")
            self._step()

    def run(self) -> None:
        """Returns when every program that does not merely serve has come to its end, or when asked to stop."""
        while not self._num_signals and any(c.state.live for c in self.children if not c.program.serves):
            self._step()

    def stop(self) -> None:
        """Asks all that run to stop; kills those that have not after the grace period or at a second signal."""
        self._is_stopping = True
        if self._num_signals and any(child.has_process for child in self.children):
            self.say("swarm", "stopping; finished rounds are saved (Ctrl-C once more to stop at once)")
        for child in self.children:
            child.ask_to_stop()
            if child.state is ChildState.WAITING:
                child.state = ChildState.STOPPED
        deadline = time.monotonic() + self._grace_s
        while any(c.has_process for c in self.children) and time.monotonic() < deadline and self._num_signals < 2:
            self._step()
        for child in self.children:
            if child.has_process:
                child.kill()
                self._take_leave(child)
                child.state = ChildState.KILLED

    def say(self, name: str, text: str) -> None:
        """One line of the combined view. A terminal that is gone is a wish to stop."""
        if self._is_mute:
            return
        try:
            self._console.line(f"{name:<{self._width}} | {text}")
        except OSError:
            self._is_mute = True
            self._num_signals += 1

    def _step(self) -> None:
        """One turn: start what is due, show what was printed, see who has ended."""
        for child in self.children:
            if child.state is ChildState.WAITING and not self._is_stopping and time.monotonic() >= child.starts_at_s:
                self._start(child)
        for key, _ in self._selector.select(_TICK_S):
            lines = key.data.read()
            if lines is None:
                self._selector.unregister(key.fileobj)
            for line in lines or ():
                self.say(key.data.program.name, line)
        for child in self.children:
            if child.has_ended:
                self._settle(child, self._take_leave(child))

    def _start(self, child: Child) -> None:
        try:
            output = child.start(self._environment, self._kept_open)
        except OSError as error:
            self._crashed(child, f"cannot be started: {error.strerror}")
        else:
            self._selector.register(output, selectors.EVENT_READ, child)

    def _take_leave(self, child: Child) -> int:
        for key in [key for key in self._selector.get_map().values() if key.data is child]:
            self._selector.unregister(key.fileobj)
        code, lines = child.take_leave()
        for line in lines:
            self.say(child.program.name, line)
        return code

    def _settle(self, child: Child, code: int) -> None:
        """What the end of a process means for its program."""
        if self._is_stopping:
            child.state = ChildState.STOPPED
        elif child.is_finished:
            child.state = ChildState.DONE
        elif code == 0:
            child.state = ChildState.STOPPED
            self.say(child.program.name, "stopped, but not by this launcher: it is not started again")
        else:
            killed = code < 0
            how = f"killed by signal {-code}, {signal.strsignal(-code)}" if killed else f"exit code {code}"
            self._crashed(child, how, is_outage=code == OUTAGE)

    def _crashed(self, child: Child, how: str, is_outage: bool = False) -> None:
        if child.program.serves and child.ran_s >= HEALTHY_S:
            child.crashes = 0
        child.crashes += 1
        hopeless = child.error != "" and child.error == child.previous_error and child.ran_s < QUICK_S
        if (hopeless or child.crashes >= MAX_CRASHES) and not is_outage:
            child.state = ChildState.FAILED
            why = "the same error twice" if hopeless else f"{child.crashes} crashes in a row"
            self.say(child.program.name, f"failed for good: {how}, {why}; see {child.program.log}")
            return
        pause_s = min(self._first_pause_s * 2 ** min(child.crashes - 1, 20), MAX_PAUSE_S)
        child.state, child.starts_at_s = ChildState.WAITING, time.monotonic() + pause_s
        self.say(child.program.name, f"crashed: {how}; starts again in {pause_s:g} s")

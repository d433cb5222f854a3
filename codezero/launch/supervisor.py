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
from codezero.runtime.stop import SAVE_S, on_stop

MAX_CRASHES = 5
"""The number of consecutive crashes, without progress in between, after which a program is given up."""
TOLD = 1
"""The exit code of a program that has printed a one-line error, and would fail again in the same way."""
GRACE_S = 15.0 + SAVE_S
"""Seconds between the request to stop and the kill."""
FIRST_PAUSE_S = 1.0
"""The wait in seconds before a first restart; each further consecutive crash doubles it."""
MAX_PAUSE_S = 300.0
"""The longest wait between two starts of a program, in seconds."""
_TICK_S = 0.1
_UNSAVED = "what it has not saved is played again at the next start"


class Supervisor:
    """A context manager that leaves no program running, however it is left. A signal asks the programs to stop, a
    second one kills them."""

    def __init__(
        self,
        console: Console,
        *,
        environment: Mapping[str, str] | None = None,
        kept_open: Sequence[int] = (),
    ) -> None:
        """`kept_open` are file descriptors that the programs inherit."""
        self.children: list[Child] = []
        self._console, self._environment, self._kept_open = console, environment, kept_open
        self._selector = selectors.DefaultSelector()
        self._num_signals = 0
        self._is_stopping = self._is_mute = False
        self._width = 0

    def __enter__(self) -> Supervisor:
        self._previous = on_stop(self._count_signal)
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
        # bash sends its jobs a second SIGHUP when the terminal goes, which is nobody's impatience.
        self._num_signals = max(self._num_signals, 1) if number == signal.SIGHUP else self._num_signals + 1

    def add(self, program: ChildProgram) -> Child:
        """Adds a program, which is started with the next step."""
        child = Child(program)
        self.children.append(child)
        self._width = max(self._width, len(program.name))
        return child

    def wait_until_ready(self, child: Child, timeout_s: float) -> None:
        """Returns when the child reports that it is ready, or when a signal asks to stop.

        Raises NetworkError: the child was not ready in time, crashed twice, or failed for good.
        """
        deadline = time.monotonic() + timeout_s
        while not (child.is_ready or self._num_signals):
            if not child.state.live or child.crashes > 1 or time.monotonic() > deadline:
                why = child.error.removeprefix("error: ") or f"not ready within {timeout_s:.0f} s"
                raise NetworkError(f"the {child.program.name} did not start ({why}): see {child.program.log}")
            self._step()

    def run(self) -> int:
        """Runs the programs until each that does not serve others has ended for good, or a signal asks to stop. Stops
        the rest, prints how each ended, and returns the exit code: 1 if any failed for good, or as it stopped, or was
        killed since it did not stop in time; what a second signal kills is as asked."""
        while not self._num_signals and any(c.state.live for c in self.children if not c.program.serves):
            self._step()
        self.stop()
        for child in self.children:
            if child.program.log is not None:
                self.say(child.program.name, child.summary())
        failed = {ChildState.FAILED} if self._num_signals > 1 else {ChildState.FAILED, ChildState.KILLED}
        return int(any(child.state in failed for child in self.children))

    def stop(self) -> None:
        """Asks all programs to stop, and kills those that still run after the grace period or at a second signal."""
        self._is_stopping = True
        if self._num_signals and any(child.has_process and child.program.log for child in self.children):
            self.say("swarm", "stopping; finished rounds are saved (Ctrl-C once more to stop at once)")
        for child in self.children:
            child.ask_to_stop()
            if child.state is ChildState.WAITING:
                child.state = ChildState.STOPPED
        deadline = time.monotonic() + GRACE_S
        while any(c.has_process for c in self.children) and time.monotonic() < deadline and self._num_signals < 2:
            self._step()
        for child in self.children:
            if child.has_process:
                child.kill()
                self._reap(child)
                child.state = ChildState.KILLED
                if self._num_signals < 2:
                    self.say(child.program.name, f"killed: it did not stop within {GRACE_S:g} s: {_UNSAVED}")

    def say(self, name: str, text: str) -> None:
        """Prints one line with the program's name. A terminal that is gone counts as a signal to stop, but not as the
        second one, which would kill programs that save."""
        if self._is_mute:
            return
        try:
            self._console.line(f"{name:<{self._width}} | {text}")
        except OSError:
            self._is_mute = True
            self._num_signals = max(self._num_signals, 1)

    def _step(self) -> None:
        """Starts programs that are due, prints output, and handles processes that have ended."""
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
                self._handle_exit(child, self._reap(child))

    def _start(self, child: Child) -> None:
        try:
            output = child.start(self._environment, self._kept_open)
        except OSError as error:
            self._crashed(child, f"cannot be started: {error.strerror}")
        else:
            if output is not None:
                self._selector.register(output, selectors.EVENT_READ, child)

    def _reap(self, child: Child) -> int:
        for key in [key for key in self._selector.get_map().values() if key.data is child]:
            self._selector.unregister(key.fileobj)
        code, lines = child.reap()
        for line in lines:
            self.say(child.program.name, line)
        return code

    def _handle_exit(self, child: Child, code: int) -> None:
        """Sets the program's state after the end of its process."""
        if child.made_progress:
            child.crashes = 0
        if self._is_stopping and code > 0:
            child.state = ChildState.FAILED
            self.say(child.program.name, f"failed as it stopped: exit code {code}: {_UNSAVED}")
        elif self._is_stopping:
            child.state = ChildState.STOPPED
        elif child.is_finished and code == 0:
            child.state = ChildState.DONE
        elif code == 0 and child.has_played_all:  # some of them again, since a killed process had not saved them
            child.state = ChildState.WAITING
            self.say(child.program.name, "starts again for as many rounds as a crash had undone")
        elif code == 0:
            child.state = ChildState.STOPPED
            if child.program.log is not None:
                self.say(child.program.name, "stopped, but not by this launcher: it is not started again")
        else:
            killed = code < 0
            how = f"killed by signal {-code}, {signal.strsignal(-code)}" if killed else f"exit code {code}"
            self._crashed(child, how, code)

    def _crashed(self, child: Child, how: str, code: int = 0) -> None:
        child.crashes += 1
        hopeless = code == TOLD and not child.made_progress
        if child.is_finished or hopeless or (child.crashes >= MAX_CRASHES and code != OUTAGE):
            child.state = ChildState.FAILED
            why = "which would not go away by itself" if hopeless else f"{child.crashes} crashes in a row"
            if child.is_finished:  # a further start would have to be told how many rounds were saved
                why = f"after its last round: {_UNSAVED}"
            see = "" if child.program.log is None else f"; see {child.program.log}"
            self.say(child.program.name, f"failed for good: {how}, {why}{see}")
            return
        pause_s = min(FIRST_PAUSE_S * 2 ** min(child.crashes - 1, 20), MAX_PAUSE_S)
        child.state, child.starts_at_s = ChildState.WAITING, time.monotonic() + pause_s
        what = "that may pass" if code == OUTAGE else f"crashed: {how}"
        self.say(child.program.name, f"{what}; starts again in {pause_s:g} s where it stopped")

"""A program on a terminal of its own, and somebody who reads and types."""

import fcntl
import os
import pty
import select
import signal
import subprocess
import termios
import time


def at_a_terminal():
    """As a shell starts a program; these tests may run in the background, where Ctrl-C and a hang-up are ignored."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


class Tty:
    def __init__(self, command, *, cwd, env):
        self._master, slave = pty.openpty()
        self.shown = ""
        self._read_to = 0
        self.process = subprocess.Popen(
            command,
            cwd=cwd,
            env=env,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            preexec_fn=at_a_terminal,
        )
        os.close(slave)

    def settings(self):
        return termios.tcgetattr(self._master)

    def expect(self, text, timeout_s=300):
        """Reads on until the text has been shown since what was expected last."""
        deadline = time.monotonic() + timeout_s
        while (at := self.shown.find(text, self._read_to)) < 0:
            assert time.monotonic() < deadline, f"{text!r} was not shown:\n{self.shown}"
            assert self._read(), f"{text!r} was not shown before the end:\n{self.shown}"
        self._read_to = at + len(text)

    def type(self, text):
        """As a person does, not at once: Python takes no notice of a Ctrl-C between its question and its read."""
        time.sleep(1.0 if text == "\x03" else 0.2)
        os.write(self._master, text.encode())

    def wait(self, timeout_s=300):
        """The exit code, once the program has ended."""
        deadline = time.monotonic() + timeout_s
        while self._read():
            assert time.monotonic() < deadline, f"it goes on:\n{self.shown}"
        return self.process.wait(60)

    def close(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGTERM)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
        os.close(self._master)

    def _read(self):
        """Whether there may be more."""
        if not select.select([self._master], [], [], 0.2)[0]:
            return self.process.poll() is None
        try:
            raw = os.read(self._master, 65536)
        except OSError:  # how Linux says that nobody holds the other end
            return False
        self.shown += raw.decode("utf-8", "replace").replace("\r\n", "\n")
        return bool(raw)

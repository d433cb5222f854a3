"""Runs a program that ends with whoever started it, however that ends: `python -m codezero.launch.tether COMMAND ...`.

Its standard input is a pipe that the starter keeps open; the program itself gets an empty one. Both lead one process
group, so the starter may also end them all by that.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading


def main() -> int:
    with subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL) as program:
        threading.Thread(target=_wait_for_end, daemon=True).start()
        return program.wait()


def _wait_for_end() -> None:  # of standard input, and so of the starter
    try:
        while os.read(0, 4096):
            pass
    except OSError:
        pass
    os.killpg(os.getpgid(0), signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main())

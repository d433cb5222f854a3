"""Runs a program that ends with whoever started it, however that ends: `python tether.py COMMAND ...`.

Its standard input is a pipe that the starter keeps open; the program itself gets an empty one. Both are in one process
group, so that the starter may also ask them all to end by that; this one then waits for the program.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

GRACE_S = 5.0


def main() -> int:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)  # unlike SIG_IGN, the program does not inherit this
    with subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL) as program:
        threading.Thread(target=_wait_for_end, daemon=True).start()
        return program.wait()


def _wait_for_end() -> None:  # of standard input, and so of the starter
    try:
        while os.read(0, 4096):
            pass
    except OSError:
        pass
    os.killpg(os.getpgid(0), signal.SIGTERM)
    time.sleep(GRACE_S)
    os.killpg(os.getpgid(0), signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main())

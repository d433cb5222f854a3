"""Runs a program that ends with the parent process, however that ends: `python ends_with_parent.py COMMAND ...`.

This process's standard input is a pipe that the parent keeps open; the program's is empty. Both are in one process
group, which the parent may also signal; this process then waits for the program.
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
        signal.signal(number, lambda *_: None)  # unlike SIG_IGN, a handler is not inherited by the program
    with subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL) as program:
        threading.Thread(target=_wait_for_end, daemon=True).start()
        return program.wait()


def _wait_for_end() -> None:
    """Waits for the end of standard input, which comes with the parent's end, and then ends the process group."""
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

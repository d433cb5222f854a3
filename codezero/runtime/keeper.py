"""Runs a program that has processes of its own: `python keeper.py FOLDER COMMAND...`, with its exit code.

When standard input ends, which it does with the parent, however that ends, or when the command does, all processes of
the command are ended, and the folder is removed; an empty name is no folder.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import sys
from contextlib import suppress

LOOK_S = 0.2
END_S = 10.0
"""The time that the command has to end by itself, in seconds."""


def main() -> int:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)  # unlike SIG_IGN, a handler is not inherited by the command
    folder, *command = sys.argv[1:]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
    while process.poll() is None and not select.select([sys.stdin], [], [], LOOK_S)[0]:
        pass
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError, PermissionError):  # the latter on a Mac, of those that have just ended
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(END_S)
    if folder:
        shutil.rmtree(folder, ignore_errors=True)
    return process.wait()


if __name__ == "__main__":
    sys.exit(main())

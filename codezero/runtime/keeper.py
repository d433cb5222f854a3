"""Runs a program that has processes of its own: `python -m codezero.runtime.keeper FOLDER COMMAND...`.

When standard input ends, which it does with the parent, however that ends, or when the command does, all processes of
the command are ended, and the folder is removed.
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


def main() -> None:
    folder, *command = sys.argv[1:]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
    while process.poll() is None and not select.select([sys.stdin], [], [], LOOK_S)[0]:
        pass
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(END_S)
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()

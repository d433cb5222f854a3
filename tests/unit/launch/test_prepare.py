"""Preparing models in a process of its own."""

import os
import signal
import sys

import pytest

from codezero.launch.prepare import prepare
from tests.commands import executable
from tests.processes import wait_until, wait_until_gone

FETCHES = f"""#!{sys.executable}
import subprocess, time
with open("pids", "w") as file:
    print(subprocess.Popen(["sleep", "600"]).pid, file=file)
time.sleep(600)
"""


def test_a_ctrl_c_ends_what_fetches_the_weights_too(tmp_path, monkeypatch):
    program, pids = executable(tmp_path / "python", FETCHES), tmp_path / "pids"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.executable", str(program))

    def interrupt(*_):
        wait_until(lambda: pids.exists() and pids.read_text().endswith("\n"))
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    try:
        with pytest.raises(KeyboardInterrupt):
            prepare([], [], os.environ)
    finally:
        signal.signal(signal.SIGALRM, before)
    wait_until_gone([int(pids.read_text())])

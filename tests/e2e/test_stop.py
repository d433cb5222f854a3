"""A node that is asked to stop, and does not get to the end of it."""

import signal
import subprocess
import sys

import pytest

from codezero.observe.status import read_status

STOPS = """
import sys, time
from types import SimpleNamespace
from codezero import build
from codezero.config.load import load_config
from codezero.errors import CheckpointError
from codezero.runtime import stop

stop.GRACE_S = 2.0
how, state, logs = sys.argv[1:]

def wait():
    print("runs", flush=True)
    time.sleep(600)

def finish():
    if how == "full disk":
        raise CheckpointError("cannot save round 7")

def make(parts):
    if how == "slow part":
        parts.stack.callback(time.sleep, 600)
    return SimpleNamespace(run=wait, finish=finish)

build.run(load_config(["preset=local", f"state_dir={state}", f"tracking.log_dir={logs}"]), "solver", make)
"""


@pytest.mark.parametrize(
    ("how", "exit_code", "ended"),
    [("slow part", 0, "stopped"), ("full disk", 1, "CheckpointError: cannot save round 7")],
)
def test_how_a_node_ended_is_kept_when_a_part_is_slow_to_close_or_its_last_save_fails(how, exit_code, ended, tmp_path):
    arguments = [sys.executable, "-c", STOPS, how, str(tmp_path / "state"), str(tmp_path / "logs")]
    with subprocess.Popen(arguments, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        while process.stdout.readline() != "runs\n":
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == exit_code
    assert read_status(tmp_path / "state").ended == ended

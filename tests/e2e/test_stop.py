"""A node that is asked to stop, and does not get to the end of it."""

import signal
import subprocess
import sys

from codezero.observe.status import read_status

CLOSES_SLOWLY = """
import sys, time
from types import SimpleNamespace
from codezero import build
from codezero.config.load import load_config
from codezero.runtime import stop

stop.GRACE_S = 2.0
state, logs = sys.argv[1:]

def make(parts):
    parts.stack.callback(time.sleep, 600)
    return SimpleNamespace(run=lambda: (print("runs", flush=True), time.sleep(600)), finish=lambda: None)

build.run(load_config(["preset=local", f"state_dir={state}", f"tracking.log_dir={logs}"]), "solver", make)
"""


def test_a_node_whose_parts_are_slow_to_close_says_that_it_was_stopped_and_not_killed(tmp_path):
    arguments = [sys.executable, "-c", CLOSES_SLOWLY, str(tmp_path / "state"), str(tmp_path / "logs")]
    with subprocess.Popen(arguments, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        while process.stdout.readline() != "runs\n":
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
    assert read_status(tmp_path / "state").ended == "stopped"

"""The p2p daemon runs with the least rights that it works with; what it does with them the other tests here show."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from codezero.network.dht import confined
from tests.processes import wait_until_gone

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other systems have no /proc and no prctl")

NODE_THAT_IS_KILLED = """
import os, signal, sys
from pathlib import Path
from tests.network.nodes import live_swarm
with live_swarm(Path(sys.argv[1])) as swarm:
    print(swarm.node("alice").daemon.pid, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_daemon_has_no_new_privileges_few_limits_and_no_environment_of_the_nodes(swarm, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "hf_planted")
    daemon = swarm.node("alice").daemon
    status = dict(line.split(":\t", 1) for line in Path(f"/proc/{daemon.pid}/status").read_text().splitlines())
    assert status["NoNewPrivs"] == "1"
    assert set(daemon.environ()) <= {"GOLOG_LOG_LEVEL", "GOLOG_LOG_FMT"}
    limits = {kind: daemon.rlimit(kind) for kind in (psutil.RLIMIT_CORE, psutil.RLIMIT_FSIZE, psutil.RLIMIT_DATA)}
    assert list(limits.values()) == [(0, 0), (0, 0), (2 << 30, 2 << 30)]
    assert max(daemon.rlimit(psutil.RLIMIT_NOFILE)) <= 4096


def test_no_daemon_outlives_a_node_that_is_killed(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", NODE_THAT_IS_KILLED, tmp_path], capture_output=True, text=True, timeout=600
    )
    pid = int(done.stdout)
    wait_until_gone([pid])


def test_a_daemon_whose_node_has_ended_meanwhile_does_not_start(tmp_path):
    command = confined.command("/usr/bin/touch", str(tmp_path / "started"))
    nobody = "4194304"  # more than Linux ever gives
    command = [nobody if part == str(os.getpid()) else part for part in command]
    assert subprocess.run(command).returncode == 1
    assert os.listdir(tmp_path) == []


def test_a_limit_that_is_lower_already_stays():
    def lower():
        resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))

    command = confined.command("/bin/sh", "-c", "ulimit -n")
    done = subprocess.run(command, capture_output=True, text=True, preexec_fn=lower)
    assert (done.stdout, done.stderr) == ("100\n", "")

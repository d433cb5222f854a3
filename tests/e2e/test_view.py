"""A whole node on a terminal, with a tiny model: what a user sees, which keys do what, and what is left after."""

import os
import signal
import sys

import psutil
import pytest

from tests.builders import save_tiny
from tests.commands import ROOT
from tests.e2e.test_node import command
from tests.tiny_node import reports
from tests.unit.evaluate.loopback import serve
from tests.unit.launch.tty import Tty
from tests.unit.proposer.test_node import write_problem

ENTER, LEAVE = "\x1b[?1049h", "\x1b[?1049l"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return save_tiny(tmp_path_factory.mktemp("model"))


def at_terminal(arguments):
    kept = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    return Tty(arguments, cwd=ROOT, env={**kept, "TERM": "xterm-256color", "LANG": "C.UTF-8"})


def test_a_node_on_a_terminal_is_shown_and_q_ends_it_cleanly(model, tmp_path):
    tty = at_terminal(command(model, tmp_path))
    try:
        before = tty.settings()
        tty.expect("state: new in ")
        tty.expect(ENTER)
        tty.expect("Reward")
        tty.expect("higher is better")
        tty.type("l")
        tty.expect("l back")
        tty.expect("round 2 |")
        tty.type("q")
        assert tty.wait() == 0, tty.shown
        assert tty.settings() == before
    finally:
        tty.close()
    after = tty.shown.rsplit(LEAVE, 1)[1]
    assert after.startswith("round 1 | reward ") or "earlier lines were shown" in after
    assert "\x1b" not in after
    assert after.splitlines()[-2].startswith("done: ")
    assert f"state in {tmp_path}/state" in after.splitlines()[-1]
    assert len(reports(tmp_path)) >= 2


def test_codezero_status_watches_a_node_whose_view_is_off_from_another_terminal(model, tmp_path):
    node = at_terminal(command(model, tmp_path, "tracking.view=off"))
    try:
        node.expect("round 2 |")
        watching = at_terminal([sys.executable, "-m", "codezero", "status", "--watch", f"{tmp_path}/state"])
        try:
            before = watching.settings()
            watching.expect("Reward")
            watching.expect("q leave")
            watching.type("q")
            assert watching.wait() == 0, watching.shown
            assert watching.settings() == before
        finally:
            watching.close()
        assert psutil.pid_exists(node.process.pid)
        os.kill(node.process.pid, signal.SIGTERM)
        assert node.wait() == 0, node.shown
    finally:
        node.close()
    lines = [line for line in node.shown.splitlines() if line.startswith(("round ", "done: "))]
    assert lines[0].startswith("round 1 | reward ")  # as elsewhere
    assert lines[-1].startswith(f"done: {len(lines) - 1} round")
    assert "\x1b" not in node.shown


def test_a_proposer_on_a_terminal_shows_its_level(tmp_path):
    with serve(write_problem) as server:
        tty = at_terminal(
            [
                *(sys.executable, "-m", "codezero", "propose", "preset=local", "proposer.model=scripted"),
                *(f"proposer.url={server.url}/v1", f"state_dir={tmp_path}/state", f"tracking.log_dir={tmp_path}/logs"),
                "swarm.network=none",
            ]
        )
        try:
            tty.expect(ENTER)
            tty.expect("share of right attempts")
            tty.type("q")
            assert tty.wait() == 0, tty.shown
        finally:
            tty.close()
    after = tty.shown.rsplit(LEAVE, 1)[1]
    assert "\x1b" not in after
    assert after.splitlines()[-2].startswith("done: ")

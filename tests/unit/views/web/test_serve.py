import re
import signal
import socket
import subprocess
import sys
import urllib.request

import pytest

from codezero.cli import main
from tests.swarm_folder import solver


@pytest.fixture
def dashboard():
    """Starts `codezero dashboard` with these arguments; gives the process and the lines it has printed."""
    started = []

    def start(*arguments, lines=1):
        command = [sys.executable, "-u", "-m", "codezero", "dashboard", *arguments]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        started.append(process)
        return process, [process.stdout.readline() for _ in range(lines)]

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_it_tells_its_address_and_ends_cleanly(tmp_path, dashboard, stop):
    solver(tmp_path / "node-1", 1)
    process, (line,) = dashboard(str(tmp_path), "--port", "0")
    url = re.fullmatch(r"dashboard: (http://127\.0\.0\.1:\d+/)  \(Ctrl-C ends it\)\n", line)[1]
    with urllib.request.urlopen(url) as answer:
        assert b"node-1" in answer.read()
    process.send_signal(stop)
    assert process.communicate(timeout=300) == ("", "")
    assert process.returncode == 0


def test_only_this_machine_reaches_it_unless_told_otherwise_and_then_it_warns(tmp_path, dashboard):
    _process, (line, warning) = dashboard(str(tmp_path), "--port", "0", "--host", "0.0.0.0", lines=2)
    port = re.fullmatch(r"dashboard: http://localhost:(\d+)/  \(Ctrl-C ends it\)\n", line)[1]
    assert warning == (
        f"warning: whoever reaches 0.0.0.0:{port} can read all of it, without a password and unencrypted; "
        "without --host only this machine can\n"
    )


def test_a_port_in_use_is_one_line_with_what_to_do(tmp_path, capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["dashboard", str(tmp_path), "--port", str(port)]) == 1
    told = capsys.readouterr().err
    assert told == (
        f"error: port {port} is in use, perhaps by another dashboard: give another one with --port, or --port 0 for a "
        "free one\n"
    )


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["nowhere"], "there is no folder nowhere: give the state folder"),
        (["--host", "203.0.113.77"], "cannot listen on 203.0.113.77 port 7007"),
        (["--host", "no such host"], "--host no such host is not an address of this machine"),
    ],
)
def test_a_mistake_is_told_in_one_line(tmp_path, capsys, monkeypatch, arguments, told):
    monkeypatch.chdir(tmp_path)
    assert main(["dashboard", *arguments]) == 1
    found = capsys.readouterr().err
    assert told in found
    assert found.count("\n") == 1

import io
import json
import logging
import os
import re
import subprocess
import sys
from datetime import datetime, timedelta

import pytest

from codezero import __version__
from codezero.errors import StateError
from codezero.runtime import amounts, logs
from codezero.runtime.console import Console


@pytest.mark.usefixtures("restored_process")
def test_all_goes_to_the_file_warnings_to_the_console_and_nothing_forges_a_line(tmp_path):
    out = io.StringIO()
    console = Console(out)
    logs.set_up(tmp_path / "logs", "INFO", console)
    logging.getLogger("codezero.x").debug("too fine")
    logging.getLogger("codezero.x").info("quiet note")
    logging.getLogger("codezero.x").warning("peer said %s", "hi\nERROR forged \x1b[2J")
    logging.getLogger("transformers.y").warning("library chatter")
    console.line("round 1 | reward +0.58\x1b[2J")
    console.progress("solve", 1, 2)
    first, *written = (tmp_path / "logs" / "swarm.log").read_text().splitlines()
    assert first.endswith(f" INFO codezero: codezero {__version__} starts as process {os.getpid()}")
    assert [line.split(" ", 1)[1] for line in written] == [
        "INFO codezero.x: quiet note",
        "WARNING codezero.x: peer said hi\\nERROR forged \\x1b[2J",
        "INFO codezero.console: round 1 | reward +0.58\\x1b[2J",
    ]
    assert all(re.match(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z ", line) for line in written)
    assert out.getvalue().splitlines() == [
        "WARNING: peer said hi\\nERROR forged \\x1b[2J",
        "round 1 | reward +0.58\\x1b[2J",
    ]


@pytest.mark.usefixtures("restored_process")
def test_a_log_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StateError, match=r"cannot write logs to .*; give another tracking\.log_dir"):
        logs.set_up(tmp_path / "file" / "logs", "INFO", Console(io.StringIO()))


@pytest.mark.usefixtures("restored_process")
def test_an_exception_cannot_forge_a_line_either(tmp_path):
    logs.set_up(tmp_path, "INFO", Console(io.StringIO()))
    try:
        raise ValueError("bad\n2026-01-01T00:00:00.000Z ERROR codezero.x: forged")
    except ValueError:
        logging.getLogger("codezero.x").exception("failed")
    _, first, *rest = (tmp_path / "swarm.log").read_text().splitlines()
    assert first.endswith(" ERROR codezero.x: failed")
    assert rest
    assert all(line.startswith("  ") for line in rest)


@pytest.mark.usefixtures("restored_process")
def test_as_json_every_record_is_one_object(tmp_path):
    logs.set_up(tmp_path, "INFO", Console(io.StringIO()), "proposer.log", as_json=True)
    logging.getLogger("codezero.x").warning("peer said %s", 'hi\n"\x1b[2J\u202e')
    try:
        raise ValueError("bad\nworse")
    except ValueError:
        logging.getLogger("codezero.x").exception("failed")
    text = (tmp_path / "proposer.log").read_text()
    assert text.isascii()
    assert "\x1b" not in text
    _, said, failed = (json.loads(line) for line in text.splitlines())
    assert (said["level"], said["logger"], said["message"]) == ("WARNING", "codezero.x", 'peer said hi\n"\x1b[2J\u202e')
    assert datetime.fromisoformat(said["time"].replace("Z", "+00:00")).utcoffset() == timedelta(0)
    assert set(failed) == {"time", "level", "logger", "message", "exception"}
    assert failed["exception"].endswith("ValueError: bad\nworse")


@pytest.mark.usefixtures("restored_process")
def test_the_log_is_rotated(tmp_path, monkeypatch):
    monkeypatch.setattr(logs, "MAX_LOG_BYTES", 2000)
    logs.set_up(tmp_path, "INFO", Console(io.StringIO()))
    for number in range(500):
        logging.getLogger("codezero.x").info("line %d", number)
    sizes = {path.name: path.stat().st_size for path in tmp_path.iterdir()}
    assert set(sizes) == {"swarm.log", "swarm.log.1", "swarm.log.2", "swarm.log.3"}
    assert max(sizes.values()) <= 2000
    assert "line 499" in (tmp_path / "swarm.log").read_text()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
@pytest.mark.usefixtures("restored_process")
def test_a_full_disk_is_told_once_and_ends_nothing(tmp_path, capsys):
    (tmp_path / "swarm.log").symlink_to("/dev/full")
    out = io.StringIO()
    logs.set_up(tmp_path, "INFO", Console(out))
    for _ in range(3):
        logging.getLogger("codezero.x").info("a line")
    (line,) = out.getvalue().splitlines()
    assert line.endswith("/swarm.log (No space left on device): free space; what happens until then is not in the log")
    assert capsys.readouterr().err == ""


@pytest.mark.usefixtures("restored_process")
def test_why_a_process_ends_is_in_the_log_and_not_told_twice(tmp_path):
    out = io.StringIO()
    logs.set_up(tmp_path, "INFO", Console(out))
    logs.log_end(StateError("state folder is full"))
    try:
        raise ZeroDivisionError("a bug")
    except ZeroDivisionError as error:
        logs.log_end(error)
    text = (tmp_path / "swarm.log").read_text()
    assert "Z ERROR codezero: ended: state folder is full\n" in text
    assert "Z ERROR codezero: ended: a bug\n  Traceback (most recent call last):\n" in text
    assert out.getvalue() == ""


def test_without_a_log_the_end_is_not_told_either(capsys):
    logs.log_end(StateError("state folder is full"))
    assert capsys.readouterr() == ("", "")


def test_times_are_in_utc_whatever_the_machine_says():
    assert amounts.utc(1_700_000_000.5, "milliseconds") == "2023-11-14T22:13:20.500Z"
    assert amounts.utc(1_700_000_000.5) == "2023-11-14T22:13:20Z"


@pytest.mark.parametrize("at_s", [0.0, -1.0, 1e12, 1e300, float("inf"), float("nan")])
def test_a_time_that_is_unknown_or_out_of_range_is_a_dash(at_s):
    assert amounts.utc(at_s) == "\N{EN DASH}"


def test_quieting_keeps_what_the_user_has_set():
    code = (
        "from codezero.runtime.logs import quiet_libraries as q; import os; q(); print(os.environ['OMP_WAIT_POLICY'])"
    )
    environment = {**os.environ, "OMP_WAIT_POLICY": "active"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "active\n"

import io
import logging
import os
import subprocess
import sys

import pytest

from codezero.errors import StateError
from codezero.observe import logs
from codezero.observe.console import Console


@pytest.mark.usefixtures("restored_logging")
def test_all_goes_to_the_file_warnings_to_the_console_and_nothing_forges_a_line(tmp_path):
    out = io.StringIO()
    logs.set_up(tmp_path / "logs", "INFO", Console(out))
    logging.getLogger("codezero.x").debug("too fine")
    logging.getLogger("codezero.x").info("quiet note")
    logging.getLogger("codezero.x").warning("peer said %s", "hi\nERROR forged \x1b[2J")
    logging.getLogger("transformers.y").warning("library chatter")
    written = (tmp_path / "logs" / "swarm.log").read_text().splitlines()
    assert [line.split(" ", 2)[2] for line in written] == [
        "INFO codezero.x: quiet note",
        "WARNING codezero.x: peer said hi\\nERROR forged \\x1b[2J",
    ]
    assert out.getvalue() == "WARNING: peer said hi\\nERROR forged \\x1b[2J\n"


@pytest.mark.usefixtures("restored_logging")
def test_a_log_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StateError, match=r"cannot write logs to .*; give another tracking\.log_dir"):
        logs.set_up(tmp_path / "file" / "logs", "INFO", Console(io.StringIO()))


def test_quieting_keeps_what_the_user_has_set():
    code = (
        "from codezero.observe.logs import quiet_libraries as q; import os; q(); print(os.environ['OMP_WAIT_POLICY'])"
    )
    environment = {**os.environ, "OMP_WAIT_POLICY": "active"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "active\n"

import getpass
import logging
import os
import platform
import socket
from pathlib import Path

import torch

from codezero import __version__
from codezero.runtime import system_info


def test_it_says_what_a_helper_asks_for(tmp_path):
    system_info.write(tmp_path)
    lines = (tmp_path / "system_info.txt").read_text().splitlines()
    found = dict(line.split(": ", 1) for line in lines)
    assert found["codezero"] == __version__
    assert found["python"].startswith(platform.python_version())
    assert found["torch"].startswith(torch.__version__.partition("+")[0])
    assert platform.machine() in found["system"]
    assert found["memory"].endswith(tuple("0123456789"))
    assert {"cpu", "gpu", "container", "transformers", "cpu instructions"} <= {name.split(" 0")[0] for name in found}


def test_it_has_no_path_name_or_secret(tmp_path, monkeypatch):
    monkeypatch.setenv("HUGGINGFACE_ACCESS_TOKEN", "hf_planted")
    monkeypatch.setenv("WANDB_API_KEY", "planted")
    system_info.write(tmp_path)
    text = (tmp_path / "system_info.txt").read_text()
    for private in ("planted", str(Path.home()), os.getcwd(), str(tmp_path)):
        assert private not in text
    words = text.replace(",", " ").split()
    assert getpass.getuser() not in words
    assert socket.gethostname() not in words


def test_a_disk_that_does_not_take_it_is_warned_of_once(tmp_path, caplog):
    caplog.set_level(logging.WARNING, "codezero")
    (tmp_path / "system_info.txt").mkdir()
    system_info.write(tmp_path)
    assert "free space; the node continues without it" in caplog.text

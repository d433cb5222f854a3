"""The picture in the README is what the code draws."""

import re
import subprocess
import sys

import pytest

from scripts.terminal import COMMAND, PICTURE


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    out = tmp_path_factory.mktemp("picture") / "terminal.svg"
    subprocess.run([sys.executable, "-m", "scripts.terminal", "--out", str(out)], check=True, cwd=PICTURE.parent.parent)
    return out


def test_the_picture_is_what_the_view_shows(drawn):
    same = drawn.read_text(encoding="utf-8") == PICTURE.read_text(encoding="utf-8")
    assert same, f"docs/terminal.svg is not what the view shows now: `{COMMAND}` draws it anew"


def test_the_picture_loads_nothing_and_shows_what_the_view_is_for(drawn):
    text = drawn.read_text(encoding="utf-8")
    assert re.findall(r"url\((?!#)|@import|@font-face|<script|href=", text) == []
    for word in ("Round", "Reward", "higher&#160;is&#160;better", "pass@8", "tokens/s", "Memory", "Ledger", "Swarm"):
        assert word in text, word

"""The picture in the README is what the code draws."""

import os
import re
import shutil
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
    for word in ("Round", "Reward", "higher&#160;is&#160;better", "pass@4", "tokens/s", "Memory", "Ledger", "Swarm"):
        assert word in text, word


@pytest.mark.skipif(os.environ.get("CODEZERO_SKIP_BROWSER") == "1", reason="CODEZERO_SKIP_BROWSER=1")
def test_a_browser_draws_the_picture(drawn, tmp_path):
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
    root = ["--no-sandbox"] if os.geteuid() == 0 else []
    png = tmp_path / "terminal.png"
    subprocess.run(
        [
            *(browser, "--headless", "--disable-gpu", *root, f"--user-data-dir={tmp_path}/profile"),
            *(f"--screenshot={png}", "--window-size=1260,800", drawn.as_uri()),
        ],
        check=True,
        capture_output=True,
        timeout=120,
    )
    assert png.read_bytes().startswith(b"\x89PNG")
    assert png.stat().st_size > 50_000  # an empty page has 5 kB

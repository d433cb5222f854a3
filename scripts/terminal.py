"""Draws docs/terminal.svg, the picture of the terminal view, from the snapshot in docs/terminal.json.

    python -m scripts.terminal                         after a change of the view
    python -m scripts.terminal --take swarms/home/node-1/state    with what a node of one's own shows now

A test compares the picture with what the code draws.
"""

from __future__ import annotations

import argparse
import dataclasses
import io
import json
import os
import re
import time
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console
from rich.terminal_theme import SVG_EXPORT_THEME

from codezero.views.runs import find_runs
from codezero.views.terminal.page import render
from codezero.views.terminal.snapshot import Snapshot
from codezero.views.watch import snapshots_of

DOCS = Path(__file__).parent.parent / "docs"
SNAPSHOT, PICTURE = DOCS / "terminal.json", DOCS / "terminal.svg"
COMMAND = "python -m scripts.terminal"
WIDTH, HEIGHT = 100, 30
MOST = 60
"""Rounds and messages of a snapshot."""


def picture(snapshot: Snapshot) -> str:
    """Returns the view as SVG, which loads nothing from anywhere."""
    console = Console(
        record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, color_system="standard", _environ={}
    )
    console.print(render(snapshot, WIDTH, HEIGHT), end="")
    svg = console.export_svg(title="codezero run", theme=SVG_EXPORT_THEME, unique_id="view")
    return re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL).replace("Fira Code, monospace", "monospace")


def take(folder: Path) -> Snapshot:
    """Returns a snapshot of the first node in a state or swarm folder."""
    found = snapshots_of(find_runs(folder, MOST)[0])()
    return dataclasses.replace(found, name="", pid=found.status.pid, messages=found.messages[-MOST:])


def one_a_line(snapshot: dict[str, Any]) -> str:
    """Returns JSON with a line for each field, and for each record of a field that is a list of them."""
    parts = []
    for name, value in snapshot.items():
        text = json.dumps(value)
        if isinstance(value, list) and value:
            text = "[\n" + ",\n".join(map(json.dumps, value)) + "\n]"
        parts.append(f"{json.dumps(name)}: {text}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def main() -> None:
    os.environ["TZ"] = "UTC"
    time.tzset()
    parser = argparse.ArgumentParser(prog=COMMAND)
    parser.add_argument("--take", type=Path, metavar="FOLDER", help="first take the snapshot of this node")
    parser.add_argument("--out", type=Path, default=PICTURE, metavar="FILE", help="default docs/terminal.svg")
    options = parser.parse_args()
    if options.take is not None:
        SNAPSHOT.write_text(one_a_line(msgspec.to_builtins(take(options.take))), encoding="utf-8")
    snapshot = msgspec.json.decode(SNAPSHOT.read_bytes(), type=Snapshot)
    options.out.write_text(picture(snapshot), encoding="utf-8")


if __name__ == "__main__":
    main()

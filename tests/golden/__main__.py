"""Refreshes golden_round.json: python -m tests.golden [GENRL]

GENRL is a folder with GenRL 0.3.0 (pip install --no-deps --target GENRL gensyn-genrl==0.3.0), needed where what the
peers publish in its format has changed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from codezero.runtime.logs import quiet_libraries
from tests.commands import ROOT
from tests.golden.peers import genrl_tasks
from tests.golden.record import FILE, differences, dumps, readable
from tests.golden.round import GENRL, play

NOISE = 1e-6
"""More than CPUs differ in: float32 has seven digits."""


def main() -> None:
    packed = pack(Path(sys.argv[1]).absolute()) if sys.argv[1:] else json.loads(FILE.read_text())[GENRL]
    record = play_somewhere(packed)
    shaken = play_somewhere(packed, NOISE)
    if fragile := [*differences(record, shaken)]:
        raise SystemExit(
            "\n".join(["another CPU could play another round; use another tests.golden.round.SEED:", *fragile])
        )
    FILE.write_text(dumps(record) + "\n", encoding="utf-8")


def pack(genrl: Path) -> dict[str, str]:
    """The peers' groups as GenRL's own packer packs them, in hex, by name of the peer."""
    environment = {**os.environ, "PYTHONPATH": str(genrl)}
    command = [sys.executable, str(ROOT / "tests" / "network" / "genrl_codec.py")]
    found = {}
    for name, tasks in genrl_tasks().items():
        asked = json.dumps({"records": [], "tasks": tasks, "values": []})
        done = subprocess.run(command, input=asked, env=environment, stdout=subprocess.PIPE, text=True, check=True)
        found[name] = json.loads(done.stdout)["packed"]
    return found


def play_somewhere(packed: dict[str, str], noise: float = 0.0) -> dict:
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            return json.loads(dumps(readable(play(packed, noise))))
        finally:
            os.chdir(before)


if __name__ == "__main__":
    quiet_libraries()
    main()

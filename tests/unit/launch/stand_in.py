"""run_rl_swarm.sh in a folder of its own, with the real `codezero start` and a stand-in for the programs it starts."""

import os
import shutil
import sys
from pathlib import Path

from tests.commands import executable

ROOT = Path(__file__).parent.parent.parent.parent
PROGRAMS = """\
#!{python}
import json, os, runpy, signal, sys, time
arguments = sys.argv[1:]
if arguments[0].endswith("keeper.py"):
    os.execv({python!r}, [{python!r}, *arguments])
if arguments[1] == "codezero.launch.prepare":
    print(json.dumps({{"programs": json.loads(arguments[2])[0], "node_bytes": 1 << 30, "other_bytes": 1 << 30}}))
    sys.exit()
from codezero.runtime.stop import stop_with_parent
signal.signal(signal.SIGTERM, lambda *_: (print("node stops", flush=True), sys.exit(0)))
stop_with_parent()
if arguments[2] == "swarm":
    print("bootnode here", flush=True)
print("starts", *arguments[2:], flush=True)
for name in ("HUGGINGFACE_ACCESS_TOKEN", "HF_TOKEN", "CODEZERO_WALLET_PASSPHRASE", "CUDA_VISIBLE_DEVICES"):
    print(name, os.environ.get(name), flush=True)
with open("starts.txt", "a") as file:
    print(os.getpid(), file=file)
print("input is a terminal", os.isatty(0), "output", os.isatty(1), flush=True)
if os.environ.get("NODE") == "crashes" and len(open("starts.txt").readlines()) == 1:
    os.kill(os.getpid(), signal.SIGKILL)
if "NODE" in os.environ:
    sys.exit(0)
time.sleep(600)
"""


class Checkout:
    def __init__(self, folder):
        self.folder = folder
        (folder / "scripts").mkdir()
        shutil.copy(ROOT / "run_rl_swarm.sh", folder)
        shutil.copy(ROOT / "scripts" / "setup.sh", folder / "scripts")
        programs = executable(folder / "programs", PROGRAMS.format(python=sys.executable))
        executable(
            folder / "venv" / "bin" / "codezero",
            f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(ROOT)!r})\nsys.executable = {str(programs)!r}\n"
            "from codezero.cli import main\nsys.exit(main())\n",
        )
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        self.environment = {
            **kept,
            "TERM": "dumb",
            "PYTHONPATH": str(ROOT),
            "CODEZERO_VENV": str(folder / "venv"),
            "CODEZERO_CONFIG_DIR": str(folder / "configs"),
        }

    def command(self, *arguments):
        return [str(self.folder / "run_rl_swarm.sh"), *arguments]

    def pids(self):
        """Of the nodes that were started."""
        return [int(line) for line in (self.folder / "starts.txt").read_text().split()]

"""A checkout in a folder of its own, started by its launch script with the code that is tested."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.commands import ROOT

PARTS = ("run_rl_swarm.sh", "scripts", "codezero", "configs")
BUILT_APP = (
    *("package.json", "package-lock.json", "start.mjs"),
    *(".next/standalone", ".next/BUILD_ID", "node_modules/.package-lock.json"),
)
"""As much of the sign-in app as it runs from, and by which the script sees that it is built."""


def checkout(folder, app=False):
    names = [*PARTS, *(f"modal-login/{name}" for name in BUILT_APP if app)]
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy2
        copy(ROOT / name, folder / name)
    return folder


def fresh_clone(folder):
    """Copies what is tracked, or will be, into the folder; returns the paths of the files in it."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True
    )
    if listed.returncode == 0:
        names = {Path(name) for name in listed.stdout.decode().split("\0") if name}
    else:  # an unpacked archive
        made_here = {".venv", "node_modules", ".next", "__pycache__"}
        names = {path.relative_to(ROOT) for path in ROOT.rglob("*") if not made_here & set(path.parts)}
    names = {name for name in names if (ROOT / name).is_file()}
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, folder / name)
    return names


def start(folder, *arguments, **environment):
    """Runs the script to its end, with nobody at a terminal; returns what it has printed."""
    ended = subprocess.run(
        ["./run_rl_swarm.sh", *arguments],
        cwd=folder,
        env={
            **os.environ,
            **{"CODEZERO_VENV": sys.prefix, "PYTHONPATH": str(folder), "HOME": str(folder)},
            **environment,
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=240,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout
    return ended.stdout

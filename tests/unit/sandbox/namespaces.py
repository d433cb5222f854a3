"""Programs that enter new namespaces of this machine, where it lets them."""

import json
import os
import subprocess
import sys

import pytest

# A namespace of users is among them if that is asked for or if the others take one; `inside` is this user's id there.
ENTER = """
import ctypes, json, os, sys
from codezero.runtime import kernel
def enter(flags, inside=None):
    user, group = os.geteuid(), os.getegid()
    kernel.unshare(flags | (kernel.NEWUSER if user else 0))
    if user or flags & kernel.NEWUSER:
        own_user, own_group = (user, group) if inside is None else (inside, inside)
        files = {"setgroups": "deny", "uid_map": f"{own_user} {user} 1", "gid_map": f"{own_group} {group} 1"}
        for name, text in files.items():
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)
"""


def in_namespaces(script, *arguments, **environment):
    """The JSON that the program prints, decoded."""
    done = subprocess.run(
        [sys.executable, "-c", ENTER + script, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, "CODEZERO_UNCONFINED": "0", **environment},
    )
    if done.returncode != 0 and "unshare" in done.stderr:
        pytest.skip("no user namespaces here, in which to try it")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)

"""Where the kernel permits no namespaces: the same verdicts, and what an audit hook can hold back."""

import json
import os
import subprocess
import sys

import pytest

from codezero.sandbox.inside import kernel

# In a user namespace that may hold no further ones, and without any capability, nothing is permitted.
LOCKED_DOWN = """
import json, os, sys
from codezero.sandbox.inside import kernel
user, group = os.geteuid(), os.getegid()
kernel.unshare(kernel.NEWUSER)
files = {"setgroups": "deny", "uid_map": f"65534 {user} 1", "gid_map": f"65534 {group} 1"}
for name, text in files.items():
    with open(f"/proc/self/{name}", "w") as file:
        file.write(text)
with open("/proc/sys/user/max_user_namespaces", "w") as file:
    file.write("0")
kernel.drop_capabilities()
from codezero.sandbox.run import Limits, isolation, run_tests
from codezero.testcases import parse_tests
found = isolation()
limits = Limits(case_s=3.0, suite_s=6.0)
results = [run_tests(code, parse_tests(tests), limits)[0] for code, tests in json.load(sys.stdin)]
print(json.dumps([[found.namespaces, found.own_root, found.own_user],
                  [[r.outcome.value, r.reason] for r in results], os.getpid()]))
"""


def locked_down(jobs):
    done = subprocess.run(
        [sys.executable, "-c", LOCKED_DOWN], input=json.dumps(jobs), capture_output=True, text=True, timeout=120
    )
    if done.returncode != 0 and "unshare" in done.stderr:
        pytest.skip("no user namespaces here: the other tests are run in the fallback anyway")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.skipif(not kernel.IS_LINUX, reason="elsewhere all tests run in the fallback")
def test_without_namespaces_the_audit_hook_stands_in(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("password")
    asserts = "assert f(1) == 2"
    folder = str(tmp_path)
    jobs = {
        "right": ("import heapq, collections, re, dataclasses\ndef f(x): return x + 1", "pass", ""),
        "wrong": ("def f(x): return x", "fail", "AssertionError"),
        "own file": ("def f(x): open('a', 'w').write('1'); return int(open('a').read()) + 1", "pass", ""),
        "endless": ("def f(x):\n    while True: pass", "fail", "not done after 3 s"),
        "socket": ("import socket\ndef f(x): socket.socket(); return 2", "fail", "PermissionError: socket"),
        "signal": (f"import os\ndef f(x): os.kill({os.getpid()}, 9); return 2", "fail", "PermissionError: os.kill"),
        "everyone": ("import os\ndef f(x): os.kill(-1, 9); return 2", "fail", "PermissionError: os.kill"),
        "group": ("import os\ndef f(x): os.killpg(os.getppid(), 9); return 2", "fail", "PermissionError: os.kill"),
        "read": (f"def f(x): open({str(secret)!r}).read(); return 2", "fail", "PermissionError: open"),
        "list": (f"import os\ndef f(x): os.listdir({folder!r}); return 2", "fail", "PermissionError: os.listdir"),
        "write": (f"def f(x): open('{folder}/x', 'w'); return 2", "fail", "PermissionError: open"),
        "up": ("def f(x): open('../x', 'w'); return 2", "fail", "PermissionError: open"),
        "delete": (f"import os\ndef f(x): os.remove({str(secret)!r}); return 2", "fail", "PermissionError: os.remove"),
        "environ": ("import os\ndef f(x): open(f'/proc/{os.getppid()}/environ'); return 2", "fail", "PermissionError"),
        "fork": ("import os\ndef f(x): os.fork(); return 2", "fail", "PermissionError: os.fork"),
        "program": ("import os\ndef f(x): os.system('true'); return 2", "fail", "PermissionError: os.system"),
        "popen": ("import subprocess\ndef f(x): subprocess.run('true'); return 2", "fail", "PermissionError"),
        "ctypes": ("import ctypes\ndef f(x): ctypes.CDLL(None); return 2", "fail", "PermissionError: ctypes"),
        "link": (f"import os\ndef f(x): os.symlink({folder!r}, 'l'); return 2", "fail", "PermissionError: os.symlink"),
    }
    isolation, results, _ = locked_down([(code, asserts) for code, _, _ in jobs.values()])
    assert isolation == [False, False, False]
    for (outcome, reason), (name, (_, expected, begins)) in zip(results, jobs.items(), strict=True):
        assert outcome == expected, (name, reason)
        assert reason.startswith(begins), (name, reason)
    assert [path.name for path in tmp_path.iterdir()] == ["secret"]

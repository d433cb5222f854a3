"""Solutions that try to get out, to do harm, or to pass without being right. Everything here is bounded."""

import os
import socket
import tempfile
import time
from dataclasses import replace

import psutil
import pytest

from codezero.sandbox.run import Limits, isolation, run_tests
from codezero.tasks.testcases import parse_tests
from codezero.types import CaseOutcome

SMALL = Limits(case_s=30.0, suite_s=90.0, memory_bytes=256 << 20, file_bytes=1 << 20, output_bytes=1 << 20)
TESTS = parse_tests("assert f(1) == 2\nassert f(20) == 21")

pytestmark = pytest.mark.skipif("NO SANDBOX" in isolation(), reason="this machine permits no sandbox")


def results_of(code, tests=TESTS, limits=SMALL):
    results = run_tests(code, tests, limits)
    assert len(results) == tests.num_cases
    return results


def answer(expression, **changes):
    """What the sandboxed expression comes to, as text, by way of a test that fails with it."""
    tests = parse_tests("raise_(str(f()))")
    code = f"import os, sys, time\ndef f():\n    return {expression}\ndef raise_(text):\n    raise ValueError(text)"
    return results_of(code, tests)[0].reason.removeprefix("ValueError: ")


FORGERIES = {
    "os._exit(0)": "import os\ndef f(x): os._exit(0)",
    "os._exit(0) on load": "import os\nos._exit(0)",
    "sys.exit": "import sys\ndef f(x): sys.exit(0)",
    "SystemExit on load": "raise SystemExit(0)",
    "KeyboardInterrupt": "def f(x): raise KeyboardInterrupt",
    "an exception whose class is the tests' own": "def f(x): raise type('Gone', (BaseException,), {})",
    "atexit": "import atexit, os\natexit.register(lambda: os._exit(0))\ndef f(x): return 0",
    "equal to everything": "class L:\n    def __eq__(self, o): return True\ndef f(x): return L()",
    "number equal to everything": "class L(int):\n    def __eq__(self, o): return True\ndef f(x): return L()",
    "class in place of the function": "class f:\n    def __init__(self, x): pass\n    def __eq__(self, o): return True",
    "lying __class__": "class L:\n    __class__ = int\n    def __eq__(self, o): return True\ndef f(x): return L()",
    "named tuple equal to everything": "from collections import namedtuple\nclass L(namedtuple('L', 'real')):\n"
    "    def __eq__(self, o): return True\ndef f(x): return L(2)",
    "defaultdict equal to everything": "from collections import defaultdict\nclass L(defaultdict):\n"
    "    def __eq__(self, o): return True\n    def __missing__(self, key): return 2\ndef f(x): return L(lambda: 2)",
    "coroutine equal to everything": "import types\nclass L:\n    __class__ = types.CoroutineType\n"
    "    def __eq__(self, o): return True\n    def __await__(self): return iter([2])\ndef f(x): return L()",
    "patched builtins": "import builtins\nbuiltins.AssertionError = None\nbuiltins.compile = lambda *a, **k: 'pass'\n"
    "builtins.exec = lambda *a: None\nbuiltins.isinstance = lambda *a: True\ndef f(x): return 0",
    "patched modules": 'import json, os\njson.dumps = lambda *a: \'{"case": 0, "failed": null}\'\ndef f(x): return 0',
    "prints a pass": 'print(\'{"case": 0, "failed": null}\', flush=True)\ndef f(x): return 0',
    "writes a pass to every file descriptor": "import os\ndef f(x):\n    for fd in range(256):\n        try: "
    'os.write(fd, b\'{"case": 0, "failed": null}\\n{"failed": null}\\n\')\n        except OSError: pass\n    return 0',
    "answers in the tests' place": "import os\ndef f(x):\n    os.write(4, b'{\"value\": true}\\n' * 5)\n    return 0",
    "redefines what the tests use": 'import os\nos.write(4, b\'{"loaded": true}\\n{"value": '
    '{"f": ["@", 0], "__builtins__": ["d", []], "AssertionError": null}}\\n\')\ndef f(x): return 0',
    "answers with garbage": "import os\ndef f(x):\n    os.write(4, b'[[[[\\n\\xff\\n')\n    return 0",
    "closes every file descriptor": "import os\nos.closerange(0, 256)\ndef f(x): return x + 1",
    "searches its memory for the tests": "import gc, sys\ndef f(x):\n    seen = [str(o) for o in gc.get_objects() "
    "if type(o) in (str, list, dict)]\n    return x + 1 if any('f(20) == ' + '21' in s for s in seen) else 0",
    "searches the stack for the tests": "import sys\ndef f(x):\n    frame = sys._getframe()\n    while frame:\n"
    "        if 'f(20) == ' + '21' in str(frame.f_locals): return x + 1\n"
    "        frame = frame.f_back\n    return 0",
    "searches its parents' memory": "import os\ndef f(x):\n    data = open(f'/proc/{os.getppid()}/mem', 'rb').read()",
    "reads the tests' file": "import os\ndef f(x):\n    for fd in range(3, 256):\n        try: text = "
    "os.pread(fd, 9999, 0)\n        except OSError: continue\n        if b'f(20)' in text: return x + 1\n    return 0",
    "traces the tests' process": "import ctypes, os\ndef f(x):\n    c = ctypes.CDLL(None)\n"
    "    for pid in range(2, 40):\n        if pid != os.getpid() and c.ptrace(16, pid, 0, 0) == 0: return x + 1\n"
    "    return 0",
    "kills its sandbox": "import os\ndef f(x):\n    for pid in (os.getppid(), 1):\n        try: os.kill(pid, 9)\n"
    "        except OSError: pass\n    return 0",
}


@pytest.mark.parametrize("code", FORGERIES.values(), ids=FORGERIES)
def test_a_wrong_solution_cannot_make_itself_pass(code):
    assert [result.outcome for result in results_of(code)] == [CaseOutcome.FAIL] * 2


@pytest.mark.parametrize(
    "tests",
    [
        *("assert not f(1) != 2", "assert f(1) in [2]", "assert [f(1)] == [2]", "assert {1: f(1)} == {1: 2}"),
        *("assert abs(f(1) - 2) < 1e-6", "assert f(1) - 2 == 0", "assert -(f(1) + -2) == 0"),
        *("assert f(1)[:2] == [2]", "assert f(int) == 2", "assert g(1)[1] == 2"),
        *("assert type(f(1)) == int", "assert type(f(1)) is int", "assert type(f(1)).__name__ == 'int'"),
        *("assert h(1) == 2", "assert f(h(1)) == 2", "import asyncio\nassert asyncio.run(h(1)) == 2"),
    ],
)
def test_an_object_that_agrees_with_everything_agrees_with_no_value(tests):
    code = "class M(type):\n    def __eq__(self, other): return True\n    __hash__ = None\n"
    code += "class L(metaclass=M):\n" + "".join(
        f"    def __{name}__(self, *a): return True\n" for name in ("eq", "ne", "lt", "gt", "contains", "bool", "call")
    )
    code = code.replace("__ne__(self, *a): return True", "__ne__(self, *a): return False")
    code += "    def __sub__(self, *a): return 0\n    __add__ = __neg__ = __abs__ = __sub__\n"
    code += "    def __getitem__(self, place): return self\n"
    code += "from collections import defaultdict\ndef f(x): return L()\ndef g(x): return defaultdict(L)\n"
    code += "async def h(x): return L()"
    assert results_of(code, parse_tests(tests))[0].outcome is CaseOutcome.FAIL


def test_a_builtin_that_the_solution_redefines_is_not_the_one_its_tests_use():
    code = "def sorted(x): return [1, 2, 3]\ndef f(x): return []"
    assert results_of(code, parse_tests("assert sorted(f(0)) == [1, 2, 3]"))[0].outcome is CaseOutcome.FAIL


def test_together_with_its_tests_a_solution_still_cannot_pass_by_ending_early():
    tests = parse_tests("assert f(lambda: 1) == 2")
    for code in FORGERIES["os._exit(0)"], FORGERIES["sys.exit"], FORGERIES["prints a pass"]:
        assert results_of(code, tests)[0].outcome is CaseOutcome.FAIL
    every = FORGERIES["writes a pass to every file descriptor"]
    assert results_of(every, tests)[0].outcome is CaseOutcome.FAIL


def test_a_fork_bomb_ends_with_its_sandbox():
    code = "import os\ndef f(x):\n    while True:\n        try: os.fork()\n        except OSError: pass"
    before = set(psutil.pids())
    results = results_of(code, limits=Limits(case_s=1.0, suite_s=2.0, memory_bytes=256 << 20, processes=4))
    assert all(result.outcome is not CaseOutcome.PASS for result in results)
    assert no_new_sandbox_processes(before)


def test_there_are_only_so_many_processes_and_threads():
    count = "import os, time\ndef f():\n    n = 0\n    try:\n        while n < 50:\n            if os.fork() == 0: "
    count += "time.sleep(30)\n            n += 1\n    except OSError: return n\n    return n"
    limits = Limits(case_s=30.0, suite_s=90.0, memory_bytes=256 << 20, processes=5)
    assert results_of(count, parse_tests("assert f() <= 6"), limits)[0].outcome is CaseOutcome.PASS
    threads = "import threading, time\ndef f():\n    n = 0\n    try:\n        while n < 50:\n            "
    threads += "threading.Thread(target=time.sleep, args=(30,), daemon=True).start(); n += 1\n"
    threads += "    except RuntimeError: return n\n    return n"
    assert results_of(threads, parse_tests("assert f() <= 6"), limits)[0].outcome is CaseOutcome.PASS


def test_an_orphaned_daemon_does_not_outlive_its_sandbox():
    code = "import os, time\ndef f(x):\n    if os.fork() == 0:\n        os.setsid()\n        if os.fork() == 0:\n"
    code += "            while True: time.sleep(1)\n        os._exit(0)\n    os.wait()\n    return x + 1"
    before = set(psutil.pids())
    assert [result.outcome for result in results_of(code)] == [CaseOutcome.PASS] * 2
    assert no_new_sandbox_processes(before)


def no_new_sandbox_processes(before):
    """Whether every process that came with a sandbox goes within a few seconds, zombies included. Sandboxes of tests
    that run beside these, in other processes, are not looked at."""
    beside = {child.pid for child in psutil.Process(os.getppid()).children()} - {os.getpid()}
    for _ in range(1000):
        ours = [p for p in psutil.process_iter(["pid", "cmdline", "ppid"]) if p.pid not in before]
        ours = [p for p in ours if not p.is_running() or beside.isdisjoint(parent.pid for parent in p.parents())]
        if not [p for p in ours if "codezero.sandbox.inside" in " ".join(p.info["cmdline"] or [])]:
            return psutil.STATUS_ZOMBIE not in [c.status() for c in psutil.Process().children()]
        time.sleep(0.05)
    return False


ENDLESS = {
    "loop": "def f(x):\n    while True: pass",
    "loop on load": "while True: pass",
    "sleep": "import time\ndef f(x): time.sleep(600)",
    "deaf to signals": "import signal\nfor n in set(signal.Signals) - {9, 19}:\n    signal.signal(n, signal.SIG_IGN)\n"
    "def f(x):\n    while True: pass",
    "stops itself": "import os\ndef f(x): os.kill(os.getpid(), 19)",
    "prints for ever": "import os\ndef f(x):\n    while True: os.write(1, b'x' * 65536)",
    "matches for ever": "import re\ndef f(x): re.match('(a+)+b', 'a' * 60)",
}


@pytest.mark.parametrize("code", ENDLESS.values(), ids=ENDLESS)
def test_what_does_not_end_is_ended(code):
    started = time.monotonic()
    results = results_of(code, limits=Limits(case_s=0.7, suite_s=2.0, memory_bytes=256 << 20))
    assert all(result.outcome is not CaseOutcome.PASS for result in results)
    assert time.monotonic() - started < 120  # not the 600 s that were asked for


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("def f(x): return bytearray(1 << 30) and 2", "MemoryError"),
        ("def f(x):\n    a = []\n    while True: a.append('x' * 1000000 + str(len(a)))", "MemoryError"),
        ("import sys\ndef f(x):\n    sys.setrecursionlimit(1 << 30)\n    return f(x)", ""),
        ("def f(x):\n    return f(x)", "RecursionError"),
        ("import ctypes\ndef f(x): ctypes.string_at(0)", "ended by signal 11"),
        ("def f(x): return 10 ** 10 ** 9", ""),
        ("a = b = []\nfor _ in range(100000):\n    b.append([])\n    b = b[0]\ndef f(x): return a", ""),
        ("import itertools\ndef f(x): return itertools.count()", "NotData"),
        ("def f(x): return 'x' * (60 << 20)", ""),
    ],
    ids=[
        *("one block", "piece by piece", "stack", "recursion", "segmentation fault", "large number", "nested list"),
        *("endless iterator", "large answer"),
    ],
)
def test_what_uses_too_much_fails(code, reason):
    case_s = 60.0 if reason else 3.0  # some go on until it is over
    limits = Limits(case_s=case_s, suite_s=2 * case_s, memory_bytes=256 << 20)
    results = results_of(code, limits=limits)
    assert results[0].outcome is CaseOutcome.FAIL
    assert reason in results[0].reason


def test_a_program_that_prints_without_end_is_cut_off():
    tests = parse_tests("Input:\n1\nOutput:\n1\n")
    found = results_of("while True: print('1' * 10000)", tests)[0]
    assert (found.outcome, found.reason) == (CaseOutcome.FAIL, f"printed more than {1 << 20} bytes")
    found = results_of("import sys\nwhile True: sys.stderr.write('1' * 10000)", tests, replace(SMALL, case_s=4.0))[0]
    assert found.outcome is CaseOutcome.FAIL


def test_a_program_may_print_what_is_not_text():
    tests = parse_tests("Input:\n1\nOutput:\n1\n")
    code = "import sys\nsys.stdout.buffer.write(b'\\xff\\xfe\\x00')\nsys.stderr.buffer.write(b'\\xff\\x1b[2J')\nexit(1)"
    found = results_of(code, tests)[0]
    assert (found.outcome, found.reason) == (CaseOutcome.FAIL, "printed something else")


def test_a_program_that_has_answered_must_still_end():
    tests = parse_tests("Input:\n1\nOutput:\n1\n")
    code = "import os, time\nprint(1, flush=True)\nos.close(1); os.close(2)\ntime.sleep(600)"
    found = results_of(code, tests, Limits(case_s=6.0, suite_s=60.0))[0]
    assert (found.outcome, found.reason) == (CaseOutcome.FAIL, "did not end after 6 s")


@pytest.fixture
def listener():
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)
        yield server


def test_the_network_cannot_be_reached(listener):
    port = listener.getsockname()[1]
    code = f"import socket\ndef f(x):\n    socket.create_connection(('127.0.0.1', {port}), 2)\n    return x + 1"
    assert [result.outcome for result in results_of(code)] == [CaseOutcome.FAIL] * 2
    with pytest.raises(TimeoutError):
        listener.accept()


def test_there_is_no_interface_that_leads_anywhere():
    assert answer("[name for _, name in __import__('socket').if_nameindex() if name != 'lo'][:1] or 'none'") in (
        "none",
        "['sit0']",
        "['tunl0']",
    )
    unix = "__import__('socket').socket(__import__('socket').AF_UNIX).connect('\\0/tmp/.X11-unix/X0')"
    assert "refused" in answer(unix)


def test_files_of_the_host_are_not_there(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("password")
    assert "No such file" in answer(f"open({str(secret)!r}).read()")
    assert "No such file" in answer("open('/etc/passwd').read()")
    assert "No such file" in answer("open('/proc/self/environ').read()")
    shown = answer("sorted(os.listdir('/'))")
    assert set(eval(shown)) <= {
        *("bin", "dev", "lib", "lib32", "lib64", "nix", "opt", "root", "home", "sbin", "tmp", "usr", "Users"),
        *(part for part in os.path.realpath(os.__file__).split("/")[1:2]),
    }


@pytest.mark.parametrize("path", ["/x", "/usr/x", "/dev/x", "/root/x", "/lib/x", os.path.dirname(os.__file__) + "/x"])
def test_nothing_can_be_written_outside_its_folder(path):
    assert "Error" in answer(f"open({path!r}, 'w').write('x')")
    assert not os.path.exists(path)


def test_its_folder_is_empty_its_own_and_gone_afterwards(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert answer("os.listdir('.')") == "[]"
    assert answer("open('a', 'w').write('abc')") == "3"
    code = "def f(x):\n    open('mark', 'x').write('x')\n    return x + 1"
    assert [result.outcome for result in results_of(code)] == [CaseOutcome.PASS, CaseOutcome.FAIL]  # it is there by now
    assert list(tmp_path.iterdir()) == []


def test_a_link_out_of_its_folder_leads_nowhere(tmp_path):
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "file").write_text("precious")
    code = (
        f"import os\ndef f(x):\n    os.symlink({str(victim)!r}, 'link')\n    os.remove('link/file')\n    return x + 1"
    )
    assert results_of(code)[0].outcome is CaseOutcome.FAIL
    assert (victim / "file").read_text() == "precious"


def test_a_file_can_only_be_so_long():
    assert "File too large" in answer("open('a', 'wb', 0).write(b'x' * (1 << 20)) and open('a', 'ab', 0).write(b'x')")


def test_the_disk_cannot_be_filled():
    code = "import os\ndef f():\n    n = 0\n    try:\n        while n < 100:\n            open(str(n), 'wb', 0).write("
    code += "b'x' * (1 << 20)); n += 1\n    except OSError as e: return n\n    return n"
    assert results_of(code, parse_tests("assert 20 < f() < 40"))[0].outcome is CaseOutcome.PASS
    code = "import os\ndef f():\n    n = 0\n    try:\n        while n < 9999: os.mkdir(str(n)); n += 1\n"
    code += "    except OSError as e: return n\n    return n"
    assert results_of(code, parse_tests("assert f() < 3000"))[0].outcome is CaseOutcome.PASS


def test_the_environment_is_not_ours(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    assert answer("os.environ.get('OPENAI_API_KEY')") == "None"


def test_signals_reach_nobody_outside():
    assert "No such process" in answer(f"os.kill({os.getpid()}, 9)")
    assert answer("os.getppid()") == "1"
    everyone = "import os\ndef f(x):\n    os.kill(-1, 9)\n    return x + 1"
    assert results_of(everyone)[0].outcome is CaseOutcome.FAIL  # it killed its own tests, and nobody else


@pytest.mark.parametrize(
    "expression",
    [
        "__import__('ctypes').CDLL(None, use_errno=True).unshare(0x10000000)",
        "__import__('ctypes').CDLL(None).unshare(0x20000)",
        "__import__('ctypes').CDLL(None).mount(b'none', b'/tmp', b'tmpfs', 0, None)",
        "__import__('ctypes').CDLL(None).chroot(b'/tmp')",
        "__import__('ctypes').CDLL(None).setuid(0)",
        "__import__('ctypes').CDLL(None).sethostname(b'x', 1)",
    ],
    ids=["user namespace", "mount namespace", "mount", "chroot", "setuid", "sethostname"],
)
def test_no_rights_are_left(expression):
    assert answer(expression) == "-1"


def test_limits_cannot_be_raised():
    raising = "__import__('resource').setrlimit(__import__('resource').RLIMIT_AS, (-1, -1))"
    assert "not allowed to raise" in answer(raising)


def test_what_is_left_open_is_no_way_out():
    code = "import os\ndef is_open(fd):\n    try: os.fstat(fd); return True\n    except OSError: return False\n"
    code += "def f(): return [fd for fd in range(256) if is_open(fd)]"
    assert results_of(code, parse_tests("assert f() == [0, 1, 2, 3, 4]"))[0].outcome is CaseOutcome.PASS

"""Where the kernel permits no namespaces nothing is run, unless that is asked for by name."""

import pytest

from codezero.runtime import kernel
from tests.unit.sandbox.namespaces import in_namespaces

pytestmark = pytest.mark.skipif(not kernel.IS_LINUX, reason="elsewhere there is no way to try both")

# In a user namespace that may hold no further ones, and without any capability, nothing is permitted.
LOCKED_DOWN = """
enter(kernel.NEWUSER, inside=65534)
with open("/proc/sys/user/max_user_namespaces", "w") as file:
    file.write("0")
kernel.drop_capabilities()
from codezero.errors import SandboxError
from codezero.sandbox.run import Limits, isolation, run_tests
from codezero.tasks.testcases import parse_tests
def tell(ask):
    try:
        return ask()
    except SandboxError as error:
        return str(error)
code, tests, case_s = sys.argv[1:]
limits = Limits(case_s=float(case_s), suite_s=2 * float(case_s))
told = tell(isolation)
ran = tell(lambda: [result.outcome.value for result in run_tests(code, parse_tests(tests), limits)])
print(json.dumps([told, ran]))
"""


def locked_down(code, tests, case_s=60.0, unconfined="1"):
    """What `isolation` and `run_tests` say."""
    return in_namespaces(LOCKED_DOWN, code, tests, case_s, CODEZERO_UNCONFINED=unconfined)


@pytest.mark.parametrize("value", ["", "0", "true"])
def test_nothing_is_run_and_the_error_says_what_to_do(tmp_path, value):
    mark = tmp_path / "mark"
    code = f"open({str(mark)!r}, 'w')\ndef f(): return 1"
    told, ran = locked_down(code, "assert f() == 1", unconfined=value)
    assert told == ran
    assert told.startswith("this machine permits no sandbox (namespaces of Linux, with mounts), so nothing is run")
    assert "CODEZERO_UNCONFINED=1 runs the code anyway" in told
    assert not mark.exists()


def test_it_is_run_with_the_users_rights_where_that_is_asked_for_by_name(tmp_path):
    mark = tmp_path / "mark"
    code = f"open({str(mark)!r}, 'w')\ndef f(): return 1"
    told, ran = locked_down(code, "assert f() == 1\nassert f() == 2")
    assert told.startswith("NO SANDBOX (CODEZERO_UNCONFINED=1)")
    assert ran == ["pass", "fail"]
    assert mark.exists()  # as the message says


def test_limits_hold_without_a_sandbox_too():
    code = "def f():\n    while True: pass"
    assert locked_down(code, "assert f() == 1", 3.0)[1] == ["fail"]


def test_without_a_sandbox_nothing_gets_memory_for_which_no_limit_holds():
    code = "import ctypes\ndef f(): return ctypes.CDLL(None).shmget(0, 4096, 0o1600)"
    assert locked_down(code, "assert f() == -1")[1] == ["pass"]

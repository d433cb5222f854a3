"""Solutions that try to get at what the kernel itself keeps: keys, memory of System V, and mounts of the host."""

import os

import pytest

from codezero.runtime import kernel
from codezero.sandbox.run import isolation
from tests.unit.sandbox.namespaces import in_namespaces
from tests.unit.sandbox.test_escapes import answer

pytestmark = pytest.mark.skipif("NO SANDBOX" in isolation(), reason="this machine permits no sandbox")

NAMES = ("add_key", "request_key", "keyctl", "shmget", "semget", "msgget")
NUMBERS = {"x86_64": (248, 249, 250, 29, 64, 68), "aarch64": (217, 218, 219, 194, 190, 186)}
CALLS = dict(zip(NAMES, NUMBERS.get(os.uname().machine, range(6)), strict=True))
LIBC = "__import__('ctypes').CDLL(None)"
LONG = "__import__('ctypes').c_long"
NOT_PERMITTED = "-1"

# A secret in a session keyring and one in the user's; both are gone with this process and its user namespace.
HOLDING_KEYS = """
add_key, request_key, keyctl = map(int, sys.argv[1:4])
if sys.argv[4] == "True":
    enter(kernel.NEWUSER)
call = ctypes.CDLL(None, use_errno=True).syscall
keyring = call(keyctl, 1, None)
if keyring == -1:
    print(json.dumps(None))
    sys.exit()
session = call(add_key, b"user", b"codezero:session", b"password", 8, ctypes.c_long(keyring))
user = call(add_key, b"user", b"codezero:user", b"password", 8, ctypes.c_long(-4))
users = call(keyctl, 0, ctypes.c_long(-4), 0)
assert min(session, user, users) > 0, (session, user, users)
from tests.unit.sandbox.test_escapes import answer
c = "__import__('ctypes').CDLL(None)"
text = "__import__('ctypes').create_string_buffer(8)"
mine = "__import__('ctypes').c_long(-3)"
find = f"{c}.syscall({request_key}, b'user', b'codezero:%s', None, 0)"
print(json.dumps({
    "found": answer(find % "session"),
    "found of the user": answer(find % "user"),
    "read": answer(f"[(lambda b: {c}.syscall({keyctl}, 11, {session}, b, 8) and b.value)({text})]"),
    "keyring": answer(f"{c}.syscall({keyctl}, 11, {keyring}, None, 0)"),
    "linked": answer(f"[{c}.syscall({keyctl}, 8, {users}, {mine}), {find % 'user'}]"),
}))
call(keyctl, 9, user, ctypes.c_long(-4))
"""


@pytest.mark.parametrize("own_users", [False, True], ids=["as this user", "in a user namespace"])
def test_no_key_of_the_user_can_be_found_read_or_linked(own_users):
    """The number of a keyring can be guessed, and who has its user's id may then link it."""
    found = in_namespaces(HOLDING_KEYS, *(CALLS[name] for name in ("add_key", "request_key", "keyctl")), own_users)
    if found is None:
        pytest.skip("this kernel has no keyrings")
    assert found == {
        "found": NOT_PERMITTED,
        "found of the user": NOT_PERMITTED,
        "read": "[b'']",
        "keyring": NOT_PERMITTED,
        "linked": "[-1, -1]",
    }


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="other processors know each call by one number")
def test_a_call_by_its_number_of_another_architecture_is_closed_too():
    assert answer(f"{LIBC}.syscall({LONG}(0x40000000 + {CALLS['keyctl']}), 1, None)") == NOT_PERMITTED
    # keyctl(JOIN_SESSION_KEYRING, NULL) as 32-bit programs call it: mov eax, 288; mov ebx, 1; xor ecx, ecx; int 0x80
    machine_code = "5350b82001000031c9bb01000000cd80595bc3"
    code = f"(lambda m: (m.write(bytes.fromhex('{machine_code}')), m)[1])(__import__('mmap').mmap(-1, 4096, prot=7))"
    called = "(lambda c, m: c.CFUNCTYPE(c.c_int)(c.addressof(c.c_char.from_buffer(m)))())(__import__('ctypes'), %s)"
    # and not the number of a keyring; kernels without 32-bit programs end it
    assert answer(called % code) in (NOT_PERMITTED, "ended by signal 11")


@pytest.mark.parametrize(
    "expression",
    ["shmget(0, 1 << 30, 0o1600)", "semget(0, 30000, 0o1600)", "msgget(0, 0o1600)"],
    ids=["memory", "semaphores", "queue"],
)
def test_nothing_of_system_v_can_be_made_for_which_no_limit_of_memory_holds(expression):
    assert answer(f"{LIBC}.{expression}") == NOT_PERMITTED


# /usr/share stands for a volume that is mounted below a folder that solutions see.
BELOW_A_SHOWN_FOLDER = """
enter(kernel.NEWNS)
kernel.mount("none", "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
kernel.mount("tmpfs", "/usr/share", "tmpfs", 0, "mode=777")
os.mkdir("/usr/share/a b")
kernel.mount("tmpfs", "/usr/share/a b", "tmpfs", 0, "mode=777")
from tests.unit.sandbox.test_escapes import answer
paths = ["/usr/share/x", "/usr/share/a b/x"]
said = [answer(f"open({path!r}, 'w').write('x')") for path in paths]
flags = [answer(f"os.statvfs({os.path.dirname(path)!r}).f_flag & 7") for path in paths]
print(json.dumps([said, flags, list(map(os.path.exists, paths))]))
"""


def test_what_is_mounted_below_a_shown_folder_cannot_be_written_either():
    said, flags, there = in_namespaces(BELOW_A_SHOWN_FOLDER)
    assert all("Read-only file system" in text for text in said), said
    assert flags == ["7", "7"]  # ST_RDONLY, ST_NOSUID, ST_NODEV
    assert there == [False, False]


# The sandbox's own step alone, since its processes cannot be patched: with or without the system call of Linux 5.12.
SHOWN = """
from codezero.sandbox.inside import confine
enter(kernel.NEWNS)
kernel.mount("none", "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
folder, broken = sys.argv[1:]
os.mkdir(f"{folder}/host")
for path in ("host", "host/a b", "host/a b/tab\\tand \\\\040"):
    os.makedirs(f"{folder}/{path}", exist_ok=True)
    kernel.mount("tmpfs", f"{folder}/{path}", "tmpfs", kernel.MS_NOEXEC, "mode=777")
def refuse(*_):
    raise OSError(38, "as before Linux 5.12")
mount = kernel.mount
def mount_but_one(source, target, kind, flags, data=None):
    if flags & kernel.MS_REMOUNT and target.endswith("a b"):
        raise OSError(1, "not permitted")
    mount(source, target, kind, flags, data)
if broken != "nothing":
    kernel.restrict_mounts = refuse
if broken == "one mount":
    kernel.mount = mount_but_one
try:
    confine._bind_read_only(f"{folder}/host", f"{folder}/box/host")
except OSError as error:
    print(json.dumps(str(error)))
    sys.exit()
shown = [f"{folder}/box/{path}" for path in ("host", "host/a b", "host/a b/tab\\tand \\\\040")]
print(json.dumps([os.statvfs(path).f_flag & 15 for path in shown]))
"""


@pytest.mark.parametrize("broken", ["nothing", "the system call"])
def test_every_mount_below_is_restricted_and_keeps_what_it_forbids(tmp_path, broken):
    assert in_namespaces(SHOWN, tmp_path, broken) == [15, 15, 15]  # ST_NOEXEC too


def test_a_mount_that_stays_writable_is_an_error(tmp_path):
    assert in_namespaces(SHOWN, tmp_path, "one mount") == "[Errno 1] not permitted"


def test_a_call_of_a_processor_that_is_not_known_is_an_error(monkeypatch):
    monkeypatch.setattr(os, "uname", lambda: os.uname_result(("Linux", "here", "6.1", "1", "mips64")))
    for attempt in (kernel.leave_session_keyring, lambda: kernel.forbid_calls(kernel.KEY_CALLS)):
        with pytest.raises(OSError, match="mips64: the numbers of its system calls are not known"):
            attempt()


# A process that asks for it is told that this is a 32-bit machine, and so are its children.
ON_ANOTHER_MACHINE = """
assert ctypes.CDLL(None).personality(8) != -1
from codezero.errors import SandboxError
from codezero.sandbox.run import isolation
try:
    print(json.dumps(isolation()))
except SandboxError as error:
    print(json.dumps(str(error)))
"""


def test_nothing_is_run_where_these_calls_cannot_be_closed():
    assert in_namespaces(ON_ANOTHER_MACHINE).startswith("this machine permits no sandbox")

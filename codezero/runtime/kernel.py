"""Linux system calls that Python's `os` does not have, or only from 3.12 on. Constants are the kernel's."""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys
from collections.abc import Sequence

NEWNS = 0x00020000
NEWUTS = 0x04000000
NEWIPC = 0x08000000
NEWUSER = 0x10000000
NEWPID = 0x20000000
NEWNET = 0x40000000
"""clone(2) flags of namespaces: mounts, host name, IPC, users, processes, network."""

MS_RDONLY = 0x1
MS_NOSUID = 0x2
MS_NODEV = 0x4
MS_NOEXEC = 0x8
MS_REMOUNT = 0x20
MS_BIND = 0x1000
MS_REC = 0x4000
MS_PRIVATE = 0x40000
MNT_DETACH = 2

KEY_CALLS = ("add_key", "request_key", "keyctl")
"""System calls on keys that the kernel keeps."""
SYSTEM_V_CALLS = ("shmget", "semget", "msgget")
"""System calls that make or find memory, semaphores and queues of System V."""

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 1, 4, 22, 38
_SECCOMP_MODE_FILTER, _SECCOMP_RET_ALLOW, _SECCOMP_RET_ERRNO = 2, 0x7FFF0000, 0x00050000
_BPF_LOAD, _BPF_IF_EQUAL, _BPF_IF_AT_LEAST, _BPF_RETURN = 0x20, 0x15, 0x35, 0x06
_FIRST_X32_CALL = 0x40000000
"""x86-64 knows every call by a second number, of its x32 ABI, which begin here. No other has numbers so high."""
_KEYCTL_JOIN_SESSION_KEYRING = 1
_MOUNT_SETATTR = 442
"""The number of the system call on every architecture; the C library has it only from glibc 2.36 on."""
_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000
_CALLS = {
    "x86_64": (29, 64, 68, 248, 249, 250),
    "aarch64": (194, 190, 186, 217, 218, 219),
}
"""The numbers of SYSTEM_V_CALLS and KEY_CALLS."""
_AUDIT_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_CAPABILITY_VERSION_3 = 0x20080522
_SIGKILL = 9

IS_LINUX = sys.platform == "linux"
_libc = ctypes.CDLL(None, use_errno=True)


def _call(name: str, *arguments: object) -> None:
    """Calls a function of the C library. Raises OSError if it fails, or if the library does not have it."""
    function = getattr(_libc, name, None) if IS_LINUX else None
    if function is None:
        raise OSError(f"no {name} here")
    if function(*arguments) == -1:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


def unshare(flags: int) -> None:
    _call("unshare", ctypes.c_int(flags))


def mount(source: str, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    encoded = [None if text is None else os.fsencode(text) for text in (source, target, kind, data)]
    _call("mount", *encoded[:3], ctypes.c_ulong(flags), encoded[3])


def pivot_root(new: str, old: str) -> None:
    """Makes `new` the root of the mount namespace, and mounts the old root at `old`."""
    _call("pivot_root", os.fsencode(new), os.fsencode(old))


def detach(target: str) -> None:
    _call("umount2", os.fsencode(target), ctypes.c_int(MNT_DETACH))


def restrict_mounts(target: str, flags: int) -> None:
    """Adds MS_RDONLY, MS_NOSUID or MS_NODEV to the mount at `target` and to all below it. Raises OSError, as before
    Linux 5.12, with nothing changed."""
    attributes = (ctypes.c_uint64 * 4)(flags, 0, 0, 0)  # MOUNT_ATTR_ has the same numbers for these three
    size = ctypes.c_size_t(ctypes.sizeof(attributes))
    path, recursive = os.fsencode(target), ctypes.c_long(_AT_RECURSIVE)
    _call("syscall", ctypes.c_long(_MOUNT_SETATTR), ctypes.c_long(_AT_FDCWD), path, recursive, attributes, size)


def leave_session_keyring() -> None:
    """Gives this process an empty session keyring of its own. Raises OSError, as where the kernel has no keyrings."""
    number = _numbers_of_calls()["keyctl"]
    _call("syscall", ctypes.c_long(number), ctypes.c_long(_KEYCTL_JOIN_SESSION_KEYRING), None)


def forbid_calls(names: Sequence[str]) -> None:
    """Has these system calls fail with EPERM from now on, here and in child processes, and so every call by the numbers
    of another architecture. The process must have no way to new privileges, or be an administrator. Raises OSError."""
    numbers = _numbers_of_calls()
    count = len(names)
    program = [
        (_BPF_LOAD, 0, 0, 4),  # the architecture
        (_BPF_IF_EQUAL, 0, count + 3, _AUDIT_ARCHITECTURES[os.uname().machine]),
        (_BPF_LOAD, 0, 0, 0),  # the number of the call
        (_BPF_IF_AT_LEAST, count + 1, 0, _FIRST_X32_CALL),
        *((_BPF_IF_EQUAL, count - place, 0, numbers[name]) for place, name in enumerate(names)),
        (_BPF_RETURN, 0, 0, _SECCOMP_RET_ALLOW),
        (_BPF_RETURN, 0, 0, _SECCOMP_RET_ERRNO | errno.EPERM),
    ]
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in program))
    header = ctypes.create_string_buffer(struct.pack("@HP", len(program), ctypes.addressof(code)))
    _prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.addressof(header))


def _numbers_of_calls() -> dict[str, int]:
    machine = os.uname().machine if IS_LINUX and sys.maxsize > 1 << 32 else "no 64-bit Linux"
    if machine not in _CALLS:
        raise OSError(errno.ENOSYS, f"{machine}: the numbers of its system calls are not known")
    return dict(zip((*SYSTEM_V_CALLS, *KEY_CALLS), _CALLS[machine], strict=True))


def die_with_parent() -> None:
    """Makes the kernel kill this process when the thread that forked it ends. A change of user resets this."""
    _prctl(_PR_SET_PDEATHSIG, _SIGKILL)


def forbid_tracing() -> None:
    """Forbids processes of the same user to trace this process or to read its memory."""
    _prctl(_PR_SET_DUMPABLE, 0)


def forbid_new_privileges() -> None:
    """Prevents programs started from now on from gaining privileges, as by set-user-id."""
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)


def drop_capabilities() -> None:
    """Gives up every capability of this process."""
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    _call("capset", header, (ctypes.c_uint32 * 6)())


def _prctl(option: int, value: int, more: int = 0) -> None:
    _call("prctl", ctypes.c_int(option), *map(ctypes.c_ulong, (value, more, 0, 0)))

"""Linux system calls that Python's `os` does not have, or only from 3.12 on. Constants are the kernel's."""

from __future__ import annotations

import ctypes
import os
import sys

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

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS = 1, 4, 38
_CAPABILITY_VERSION_3 = 0x20080522
_SIGKILL = 9

IS_LINUX = sys.platform == "linux"
_libc = ctypes.CDLL(None, use_errno=True)


def _call(name: str, *arguments: object) -> None:
    """Calls a function of the C library. Raises OSError if it fails, or if the library does not have it."""
    function = getattr(_libc, name, None) if IS_LINUX else None
    if function is None:
        raise OSError(f"no {name} here")
    if function(*arguments) != 0:
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


def _prctl(option: int, value: int) -> None:
    _call("prctl", ctypes.c_int(option), *map(ctypes.c_ulong, (value, 0, 0, 0)))

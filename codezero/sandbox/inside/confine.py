"""Confines this process, layer by layer. A layer that the machine does not permit is left out and reported.

In a user and mount namespace the new root is a small tmpfs that has the system's libraries and Python, read-only, and
one empty folder; the host's other files do not exist there, nor /proc. A filter of system calls closes what the kernel
keeps beside files. The last step is a chroot, since the kernel refuses new user namespaces to processes in one.
"""

from __future__ import annotations

import os
import re
import resource
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress

from codezero.runtime import kernel

OWN_USERS_FROM = 2_000_000_000
"""The id of a sandbox's own user is this plus its process id, if codezero runs as root. systemd keeps the ids from
1879048192 to 2147352575 unused (UIDS-GIDS in its documentation)."""
NOBODY = 65_534
FILES_BYTES = 32 << 20
"""Size of the empty folder if it is a file system of its own."""
MAX_FILES = 2_048
"""The most files in that folder."""
_SHOWN = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/nix/store")
_DEVICES = ("null", "zero", "full", "random", "urandom")
_RESTRICTED = kernel.MS_RDONLY | kernel.MS_NOSUID | kernel.MS_NODEV
_KEPT_MOUNT_FLAGS = kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC | kernel.MS_RDONLY
"""Mount flags that a user namespace may not clear; statvfs returns them with the numbers that mount takes."""


def enter_namespaces(own_user: int | None) -> bool:
    """Enters new namespaces of mounts, processes (from the next fork on), network, IPC, host name and, unless there is
    an `own_user` to change to, of users. Returns False, with nothing changed, if that is not permitted."""
    wanted = kernel.NEWNS | kernel.NEWPID | kernel.NEWNET | kernel.NEWIPC | kernel.NEWUTS
    user, group = os.geteuid(), os.getegid()
    try:
        kernel.unshare(wanted if own_user is not None else wanted | kernel.NEWUSER)
    except OSError:
        return False
    if own_user is None:
        for file, text in (
            ("setgroups", "deny"),
            ("uid_map", f"{NOBODY} {user} 1"),
            ("gid_map", f"{NOBODY} {group} 1"),
        ):
            with open(f"/proc/self/{file}", "w") as opened:
                opened.write(text)
    return True


def enter_own_root(box: str, owner: int | None) -> bool:
    """Builds the small root over the folder `box` and enters it; the current folder is then the empty one.

    Returns False, with nothing changed, if mounts are not permitted.
    """
    try:
        kernel.mount("none", "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
        kernel.mount("tmpfs", box, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, "size=1m,nr_inodes=256,mode=755")
        root, old = f"{box}/root", f"{box}/old"
        for folder in (root, old, f"{root}/dev", f"{root}/tmp"):
            os.mkdir(folder)
        for path in _paths_to_show():
            _bind_read_only(path, root + path)
        for name in _DEVICES:
            with open(f"{root}/dev/{name}", "x"):
                pass
            kernel.mount(f"/dev/{name}", f"{root}/dev/{name}", None, kernel.MS_BIND)
        size = f"size={FILES_BYTES},nr_inodes={MAX_FILES},mode=700"
        if owner is not None:
            size += f",uid={owner},gid={owner}"
        kernel.mount("tmpfs", f"{root}/tmp", "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, size)
        kernel.pivot_root(box, old)
    except OSError:
        with suppress(OSError):
            kernel.detach(box)
        return False
    kernel.detach("/old")
    kernel.mount("none", "/", None, kernel.MS_REMOUNT | kernel.MS_BIND | kernel.MS_RDONLY | kernel.MS_NOSUID)
    os.chroot("/root")
    os.chdir("/tmp")
    return True


def _paths_to_show() -> list[str]:
    """Returns the system's folders, and those of this Python if they are not within them."""
    paths = [path for path in _SHOWN if os.path.lexists(path)]
    own = (sys.base_prefix, sys.base_exec_prefix, os.path.dirname(os.__file__))
    for path in map(os.path.realpath, own):
        if not any(path == other or path.startswith(other + "/") for other in paths):
            paths.append(path)
    return paths


def _bind_read_only(path: str, target: str) -> None:
    """Mounts a folder of the host, read-only with all that is mounted below it; a link is copied as a link."""
    if os.path.islink(path):
        os.symlink(os.readlink(path), target)
        return
    os.makedirs(target)
    kernel.mount(path, target, None, kernel.MS_BIND | kernel.MS_REC)
    try:
        kernel.restrict_mounts(target, _RESTRICTED)
    except OSError:  # before Linux 5.12, or a container's rules: one by one
        for mounted in _mounts_from(target):
            kept = os.statvfs(mounted).f_flag & _KEPT_MOUNT_FLAGS
            kernel.mount("none", mounted, None, kernel.MS_REMOUNT | kernel.MS_BIND | _RESTRICTED | kept)


def _mounts_from(target: str) -> list[str]:
    """Returns where something is mounted: `target`, and what is below it. Raises OSError."""
    target = os.path.realpath(target)
    with open("/proc/self/mountinfo", "rb") as file:
        fields = [line.split(b" ")[4] for line in file]
    # proc(5): the kernel writes space, tab, newline and backslash as three octal digits
    paths = {os.fsdecode(re.sub(rb"\\([0-7]{3})", lambda found: bytes([int(found[1], 8)]), path)) for path in fields}
    return [target, *sorted(path for path in paths if path.startswith(target + "/"))]


def close_kernel_stores() -> bool:
    """Leaves the user's keyrings, and closes keys and System V IPC to this process and its children, for good.

    A new user namespace does not hide keys: who has the user's id may link a keyring of his by its number. Memory of
    System V counts as no process's, so that no rlimit holds for it. Returns False if that is not permitted.
    """
    try:
        with suppress(OSError):  # without keyrings, or with too many, the filter below is all there is
            kernel.leave_session_keyring()
        kernel.forbid_new_privileges()
        kernel.forbid_calls((*kernel.KEY_CALLS, *kernel.SYSTEM_V_CALLS))
    except OSError:
        return False
    return True


def own_user() -> int | None:
    """Returns the user id that this sandbox should run as; None without root, or in a container without other users."""
    if os.geteuid() != 0:
        return None
    wanted = (OWN_USERS_FROM + os.getpid(), NOBODY)
    if not kernel.IS_LINUX:
        return NOBODY
    with open("/proc/self/uid_map") as file:
        spans = [tuple(map(int, line.split())) for line in file]
    return next((user for user in wanted for first, _, count in spans if first <= user < first + count), None)


def give_up_rights(user: int | None, in_namespaces: bool) -> None:
    """Changes to the user, and gives up capabilities. Raises OSError: root cannot become another user, or that user
    cannot read Python's own files."""
    if user is not None:
        os.setgroups([])
        os.setgid(user)
        os.setuid(user)
    elif os.geteuid() == 0:
        raise PermissionError("this container's root can neither become another user nor make namespaces")
    if not os.access(os.path.dirname(os.__file__), os.R_OK | os.X_OK):
        raise PermissionError(
            f"the sandbox's user cannot read {os.path.dirname(os.__file__)}: use a Python that all can"
        )
    if kernel.IS_LINUX:
        if in_namespaces:
            kernel.drop_capabilities()
        kernel.die_with_parent()
        kernel.forbid_tracing()


def first_to_be_killed() -> None:
    """Makes the kernel end the sandbox first if the machine runs out of memory."""
    with suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")


def set_limits(limits: Mapping[str, int], processes: int) -> None:
    """Sets rlimits of this process for good; `processes` is the most processes and threads of its user."""
    wanted = {
        "RLIMIT_CORE": 0,
        "RLIMIT_CPU": limits["cpu_s"],
        "RLIMIT_FSIZE": limits["file_bytes"],
        "RLIMIT_NOFILE": limits["files"],
        "RLIMIT_NPROC": processes,
        "RLIMIT_AS": limits["memory_bytes"],
        "RLIMIT_MSGQUEUE": 0,
    }
    for name, most in wanted.items():
        number = getattr(resource, name, None)
        if number is None:
            continue
        hard = resource.getrlimit(number)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        with suppress(ValueError, OSError):  # macOS takes no RLIMIT_AS below what is already mapped
            resource.setrlimit(number, (most, most))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # so that a write past the limit raises OSError

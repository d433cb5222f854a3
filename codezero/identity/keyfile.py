"""A node's key on its machine: where it is kept, what its user should know, and that one live node uses it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shlex
import stat
from collections.abc import Iterator
from pathlib import Path

from codezero.errors import IdentityError
from codezero.identity.key import Identity
from codezero.identity.names import animal_name


def identity_path(configured: str | None) -> Path:
    """The key file: as configured, else IDENTITY_PATH, else swarm.pem in the current folder. Raises IdentityError."""
    chosen = configured or os.environ.get("IDENTITY_PATH") or "swarm.pem"
    try:
        return Path(chosen).expanduser()
    except RuntimeError as error:
        raise IdentityError(f"{chosen} names the home of an unknown user: give the whole path of the key") from error


def backup_reminder(identity: Identity, path: Path) -> str:
    """What to tell the user, in one line, when a key has been made."""
    return (
        f"{path} is the new key of this node, peer {identity.peer_id} ({animal_name(identity.peer_id)}): back it up "
        "with `codezero identity export`; without it the node starts as a new peer"
    )


def exposure_warning(path: Path) -> str | None:
    """What to tell the user, in one line, when others of the machine may use the key. Raises IdentityError."""
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
    except OSError as error:
        raise IdentityError(f"cannot read the node's key {path}: {error.strerror}") from error
    if not mode & 0o077:
        return None
    command = f"chmod 600 {shlex.quote(str(path))}"
    return f"{path} is open to other users of this machine (mode {mode:04o}): close it with `{command}`"


@contextlib.contextmanager
def live_identity(identity: Identity, path: Path) -> Iterator[None]:
    """Holds the key file for this process. The lock goes with the process, however it ends.

    It is held on a file beside the key, which only the key's owner can open; a copy of the key elsewhere has a lock of
    its own. Raises IdentityError: another live node holds the key, or the lock file cannot be used.
    """
    with open(open_lock(_lock_of(path)), "r+b", buffering=0) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = file.read(20)
            raise IdentityError(
                f"the key {path} of peer {identity.peer_id} ({animal_name(identity.peer_id)}) is in use by the node "
                f"with process id {holder.decode() if holder.isdigit() else 'unknown'}: stop that node, or give this "
                "one its own key with swarm.identity_path=..."
            ) from error
        with contextlib.suppress(OSError):  # on a full disk the lock still holds, it only cannot say whose it is
            file.truncate(0)
            file.write(str(os.getpid()).encode())
        yield


def live_holder(path: Path) -> int | None:
    """Process id of the node that holds a key file now, 0 if it is not known; None: nobody does. Makes no lock file.

    Raises IdentityError: the lock file cannot be looked at.
    """
    lock = _lock_of(path)
    try:
        descriptor = os.open(lock, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise IdentityError(f"cannot use the lock file {lock}: {error.strerror}; remove it") from error
    with open(descriptor, "rb", buffering=0) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            text = file.read(20)
            return int(text) if text.isdigit() else 0
    return None


def _lock_of(path: Path) -> Path:
    """Links to one key share its lock."""
    real = path.resolve()
    return real.with_name(real.name + ".lock")


def open_lock(path: Path) -> int:
    """A descriptor of a lock file that this user alone can open, made if there is none.

    Its folder may be everyone's, so what lies there under its name may be a trap: a link to a file that we would
    overwrite, or a file that another user holds. Raises IdentityError.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
    except OSError as error:
        raise IdentityError(
            f"cannot use the lock file {path}: {error.strerror}; remove it, and see that you may write to its folder"
        ) from error
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1 or found.st_uid != os.geteuid():
        os.close(descriptor)
        raise IdentityError(f"{path} is in the way of a lock file of this user: remove it")
    os.fchmod(descriptor, 0o600)  # a copy of a folder may have opened it to others
    return descriptor

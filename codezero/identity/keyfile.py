"""A node's key file: where it is, what its user is told about it, and a lock so that only one live node uses it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shlex
import stat
from collections.abc import Iterator
from io import FileIO
from pathlib import Path

from codezero.config import checkout
from codezero.errors import IdentityError, told_as
from codezero.identity.key import Identity
from codezero.identity.names import animal_name
from codezero.runtime.files import try_lock

DEFAULT_PATH = "swarm.pem"


def identity_path(configured: str | None) -> Path:
    """Returns the path of the key file: the configured one, else IDENTITY_PATH, else swarm.pem in the current folder.
    Raises IdentityError: the path names an unknown user's home."""
    chosen = configured or os.environ.get("IDENTITY_PATH") or DEFAULT_PATH
    try:
        return Path(chosen).expanduser()
    except RuntimeError as error:
        raise IdentityError(f"{chosen} names the home of an unknown user: give the whole path of the key") from error


def path_option(path: Path) -> str:
    """Returns the option, after a space, with which `codezero identity` takes this key; empty for the default one."""
    return "" if path.absolute() == Path(DEFAULT_PATH).absolute() else f" --path {shlex.quote(str(path))}"


def backup_reminder(identity: Identity, path: Path) -> str:
    """Returns the line that tells the user of a new key."""
    command = f"{checkout.COMMAND} identity export backup.pem{path_option(path)}"
    return (
        f"{path} is the new key of this node, peer {identity.peer_id} ({animal_name(identity.peer_id)}): back it up "
        f"with `{command}`; without it the node starts as a new peer"
    )


def exposure_warning(path: Path) -> str | None:
    """Returns a line that warns if other users of the machine can use the key, else None. Raises IdentityError."""
    with told_as(IdentityError, f"cannot read the node's key {path}"):
        mode = stat.S_IMODE(path.stat().st_mode)
    if not mode & 0o077:
        return None
    command = f"chmod 600 {shlex.quote(str(path))}"
    return f"{path} is open to other users of this machine (mode {mode:04o}): close it with `{command}`"


@contextlib.contextmanager
def live_identity(identity: Identity, path: Path) -> Iterator[None]:
    """Locks the key file for this process. The lock ends with the process, however that ends.

    The lock is on a file beside the key, which only the key's owner can open; a copy of the key elsewhere has its own
    lock. Raises IdentityError: another live node has the lock, or the lock file cannot be used.
    """
    lock = _lock_of(path)
    with open(open_lock(lock), "r+b", buffering=0) as file:
        if not _locked(file, lock, fcntl.LOCK_EX):
            holder = file.read(20)
            raise IdentityError(
                f"the key {path} of peer {identity.peer_id} ({animal_name(identity.peer_id)}) is in use by the node "
                f"with process id {holder.decode() if holder.isdigit() else 'unknown'}: stop that node, or give this "
                "one its own key with swarm.identity_path=..."
            )
        with contextlib.suppress(OSError):  # on a full disk the lock still holds, without its process id
            file.truncate(0)
            file.write(str(os.getpid()).encode())
        yield


def live_holder(path: Path) -> int | None:
    """Returns the process id of the node that uses a key file now, 0 if it is not known, None if there is no such node.
    Makes no lock file. Raises IdentityError: the lock file cannot be used."""
    lock = _lock_of(path)
    try:
        descriptor = os.open(lock, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise IdentityError(f"cannot use the lock file {lock}: {error.strerror}; remove it") from error
    with open(descriptor, "rb", buffering=0) as file:
        if _locked(file, lock, fcntl.LOCK_SH):
            return None
        text = file.read(20)
        return int(text) if text.isdigit() else 0


def _locked(file: FileIO, path: Path, kind: int) -> bool:
    """Locks an open file until it is closed. Returns False if another process has locked it. Raises IdentityError: its
    disk has no locks."""
    do = "put the key on a disk of this machine, and name it with swarm.identity_path=..."
    with told_as(IdentityError, f"cannot lock {path}", do):
        return try_lock(file, kind)


def _lock_of(path: Path) -> Path:
    """Returns the path of a key's lock file, the same for all links to the key."""
    real = path.resolve()
    return real.with_name(real.name + ".lock")


def open_lock(path: Path) -> int:
    """Opens a lock file that this user alone can open, and makes it if there is none. Returns its descriptor.

    All users may write to its folder, so another user may have put a link or a file there under its name. Raises
    IdentityError: there is such a thing, or the file cannot be opened.
    """
    with told_as(IdentityError, f"cannot use the lock file {path}", "remove it; you must be able to write its folder"):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1 or found.st_uid != os.geteuid():
        os.close(descriptor)
        raise IdentityError(f"{path} is in the way of a lock file of this user: remove it")
    os.fchmod(descriptor, 0o600)  # a copied folder may have another mode
    return descriptor

"""A node's key on its machine: where it is kept, what its user should know, and that one live node uses it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shlex
import stat
import tempfile
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
def live_identity(identity: Identity) -> Iterator[None]:
    """Holds the key for this process, whichever file it came from. The lock goes with the process, however it ends.

    It is known to all processes that share a folder for temporary files: not to containers with one of their own.
    Raises IdentityError: another live node holds the key, or the lock file cannot be used.
    """
    with open(open_lock(f"codezero-{identity.peer_id}.lock"), "r+b", buffering=0) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = file.read(20)
            raise IdentityError(
                f"the key of peer {identity.peer_id} ({animal_name(identity.peer_id)}) is in use by the node with "
                f"process id {holder.decode() if holder.isdigit() else 'unknown'} on this machine: stop that node, or "
                "give this one its own key with swarm.identity_path=..."
            ) from error
        with contextlib.suppress(OSError):  # on a full disk the lock still holds, it only cannot say whose it is
            file.truncate(0)
            file.write(str(os.getpid()).encode())
        yield


def live_holder(peer_id: str) -> int | None:
    """Process id of the node that holds a key now, 0 if it is not known; None: nobody does. Makes no lock file.

    Raises IdentityError: the lock file cannot be looked at.
    """
    path = Path(tempfile.gettempdir(), f"codezero-{peer_id}.lock")
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise IdentityError(f"cannot use the lock file {path}: {error.strerror}; remove it, or set TMPDIR") from error
    with open(descriptor, "rb", buffering=0) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            text = file.read(20)
            return int(text) if text.isdigit() else 0
    return None


def open_lock(name: str) -> int:
    """A descriptor of the lock file, made for all users if there is none. Its folder is everyone's, so what lies there
    under its name may be a trap: a link to a file that we would overwrite. Raises IdentityError."""
    try:
        path = Path(tempfile.gettempdir(), name)
        descriptor = _open_or_create(path)
    except OSError as error:
        place = error.filename or name
        raise IdentityError(f"cannot use the lock file {place}: {error.strerror}; remove it, or set TMPDIR") from error
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
        os.close(descriptor)
        raise IdentityError(f"{path} is in the way of a lock file, and is none: remove it, or set TMPDIR")
    return descriptor


def _open_or_create(path: Path) -> int:
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        # Without O_CREAT first: Linux may refuse that flag for another user's file in a shared folder
        # (fs.protected_regular), and it is the other user's node that has to be found.
        return os.open(path, flags)
    except FileNotFoundError:
        pass
    try:
        descriptor = os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o666)
    except FileExistsError:
        return os.open(path, flags)
    os.fchmod(descriptor, 0o666)  # the umask took rights from it
    return descriptor

import errno
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from codezero.errors import IdentityError
from codezero.identity import keyfile
from codezero.identity.key import Identity, load, save
from codezero.identity.keyfile import backup_reminder, exposure_warning, identity_path, live_holder, live_identity
from codezero.identity.names import animal_name

HOLD = """
import sys
from pathlib import Path
from codezero.identity.key import load
from codezero.identity.keyfile import live_identity
path = Path(sys.argv[1])
with live_identity(load(path), path):
    print("held", flush=True)
    sys.stdin.read()
"""


# As another user of the machine, who can look into the folder.
HOLD_AS_NOBODY = """
import fcntl, os, sys
os.setgroups([]), os.setgid(65534), os.setuid(65534)
fcntl.flock(os.open(sys.argv[1], os.O_RDONLY), fcntl.LOCK_EX)
"""


@pytest.fixture(scope="module")
def key():
    return Identity.generate()


@pytest.fixture
def path(tmp_path, key):
    """A file with the key, in a folder of its own."""
    folder = tmp_path / "keys"
    folder.mkdir()
    save(key, folder / "swarm.pem")
    return folder / "swarm.pem"


def start_holder(path):
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout.readline() == "held\n"
    return holder


def test_the_path_is_the_setting_then_the_environment_then_the_current_folder(monkeypatch):
    monkeypatch.setenv("HOME", "/home/node")
    monkeypatch.setenv("IDENTITY_PATH", "~/from_environment.pem")
    assert identity_path("~/keys/a.pem") == Path("/home/node/keys/a.pem")
    assert identity_path(None) == Path("/home/node/from_environment.pem")
    monkeypatch.setenv("IDENTITY_PATH", "")
    assert identity_path(None) == Path("swarm.pem")
    with pytest.raises(IdentityError, match="~nobody-of-this-name/a names the home of an unknown user"):
        identity_path("~nobody-of-this-name/a")


def test_a_new_key_is_to_be_backed_up(key):
    reminder = backup_reminder(key, Path("swarm.pem"))
    assert "`.venv/bin/codezero identity export backup.pem`" in reminder
    assert "`.venv/bin/codezero identity export backup.pem`" in backup_reminder(key, Path("swarm.pem").absolute())
    assert "export backup.pem --path 'my keys/b.pem'`" in backup_reminder(key, Path("my keys/b.pem"))
    assert f"{key.peer_id} ({animal_name(key.peer_id)})" in reminder
    assert "\n" not in reminder


@pytest.mark.parametrize(
    ("mode", "warned"), [(0o600, False), (0o400, False), (0o640, True), (0o604, True), (0o620, True)]
)
def test_a_key_that_others_may_use_is_warned_of_and_left_as_it_is(tmp_path, key, mode, warned):
    path = tmp_path / "a key.pem"
    save(key, path)
    path.chmod(mode)
    warning = exposure_warning(path)
    assert (warning is not None) == warned
    if warning:
        assert f"(mode {mode:04o}): close it with `chmod 600 '{path}'`" in warning
    assert path.stat().st_mode & 0o777 == mode


def test_one_live_node_has_the_key_by_whichever_link_it_is_named(tmp_path, path, key):
    (tmp_path / "link.pem").symlink_to(path)
    holder = start_holder(path)
    link = tmp_path / "link.pem"
    with pytest.raises(IdentityError) as caught, live_identity(load(link), link):
        pass
    assert str(caught.value) == (
        f"the key {link} of peer {key.peer_id} ({animal_name(key.peer_id)}) is in use by the node with process id "
        f"{holder.pid}: stop that node, or give this one its own key with swarm.identity_path=..."
    )
    assert live_holder(link) == holder.pid
    with live_identity(Identity.generate(), path.with_name("other.pem")):  # other keys are free
        pass
    holder.send_signal(signal.SIGKILL)
    holder.communicate(timeout=300)
    assert live_holder(link) is None
    with live_identity(key, path):
        lock = path.with_name("swarm.pem.lock")
        assert (lock.read_text(), lock.stat().st_mode & 0o777) == (str(os.getpid()), 0o600)


def test_a_node_that_stops_leaves_the_key_to_the_next(path, key):
    for _ in range(2):
        with live_identity(key, path):
            pass
    with pytest.raises(ZeroDivisionError), live_identity(key, path):
        raise ZeroDivisionError
    with (
        live_identity(key, path),
        pytest.raises(IdentityError, match=rf"process id {os.getpid()}: "),
        live_identity(key, path),
    ):
        pass


def test_to_ask_who_holds_a_key_leaves_nothing_behind(path):
    assert live_holder(path) is None
    assert [file.name for file in path.parent.iterdir()] == ["swarm.pem"]


def test_a_disk_that_has_no_locks_is_told(path, key, monkeypatch):
    def flock(*_):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))  # as NFS without its lock service

    path.with_name("swarm.pem.lock").touch()
    monkeypatch.setattr(keyfile.fcntl, "flock", flock)
    told = r"swarm\.pem\.lock: No locks available; put the key on a disk of this machine"
    with pytest.raises(IdentityError, match=told), live_identity(key, path):
        pass
    with pytest.raises(IdentityError, match=told):
        live_holder(path)


@pytest.mark.parametrize(("held", "shown"), [(b"", "unknown"), (b"\x1b[2J", "unknown"), (b"9" * 100, "9" * 20)])
def test_what_stands_in_the_lock_file_is_shown_only_as_a_number(path, key, held, shown):
    with live_identity(key, path):
        path.with_name("swarm.pem.lock").write_bytes(held)
        with pytest.raises(IdentityError, match=rf"with process id {shown}: stop"), live_identity(key, path):
            pass


def trap(kind, lock, precious):
    precious.write_text("precious")
    if kind == "link":
        lock.symlink_to(precious)
    elif kind == "hard_link":
        os.link(precious, lock)
    elif kind == "pipe":
        os.mkfifo(lock)
    else:
        lock.mkdir()


@pytest.mark.parametrize("kind", ["link", "hard_link", "pipe", "folder"])
def test_a_trap_in_place_of_the_lock_file_is_refused_and_harms_nothing(tmp_path, path, key, kind):
    trap(kind, path.with_name("swarm.pem.lock"), tmp_path / "precious")
    with pytest.raises(IdentityError, match=r"swarm.pem.lock.*: .*remove it"), live_identity(key, path):
        pass
    assert (tmp_path / "precious").read_text() == "precious"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")
class TestAnotherUser:
    @pytest.fixture
    def open_path(self, key):
        """The key in a folder that everybody may look and write into, as a folder for temporary files is."""
        with tempfile.TemporaryDirectory() as folder:
            Path(folder).chmod(0o1777)
            save(key, Path(folder, "swarm.pem"))
            yield Path(folder, "swarm.pem")

    def test_cannot_hold_the_key(self, open_path, key):
        lock = open_path.with_name("swarm.pem.lock")
        lock.touch()
        lock.chmod(0o666)  # as after a copy of the folder: the next start closes it
        with live_identity(key, open_path):
            pass
        done = subprocess.run([sys.executable, "-c", HOLD_AS_NOBODY, lock], capture_output=True, text=True)
        assert "PermissionError" in done.stderr

    def test_is_named_as_in_the_way_and_not_as_a_node(self, open_path, key):
        lock = open_path.with_name("swarm.pem.lock")
        lock.touch()
        lock.chmod(0o666)
        os.chown(lock, 65534, 65534)
        with pytest.raises(IdentityError, match=r"cannot use the lock file|in the way"), live_identity(key, open_path):
            pass

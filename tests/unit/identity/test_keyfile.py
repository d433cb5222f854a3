import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from codezero.errors import IdentityError
from codezero.identity.key import Identity, load, save
from codezero.identity.keyfile import backup_reminder, exposure_warning, identity_path, live_identity
from codezero.identity.names import animal_name

HOLD = """
import sys
from pathlib import Path
from codezero.identity.key import load
from codezero.identity.keyfile import live_identity
with live_identity(load(Path(sys.argv[1]))):
    print("held", flush=True)
    sys.stdin.read()
"""


# What is imported or read lazily may lie where nobody else can read it.
HOLD_AS_NOBODY = HOLD.replace(
    "with live_identity(load(Path(sys.argv[1]))):",
    """import os
from codezero.identity.names import animal_name
animal_name("")
key = load(Path(sys.argv[1]))
os.setgroups([]), os.setgid(65534), os.setuid(65534)
with live_identity(key):""",
)


@pytest.fixture(scope="module")
def key():
    return Identity.generate()


@pytest.fixture
def shared(tmp_path, monkeypatch):
    """A folder for temporary files of its own, for this process and those it starts."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


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
    assert "`codezero identity export`" in reminder
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


def test_one_live_node_has_the_key_whichever_copy_it_reads(tmp_path, shared, key):
    save(key, tmp_path / "swarm.pem")
    shutil.copy(tmp_path / "swarm.pem", tmp_path / "copy.pem")
    holder = start_holder(tmp_path / "swarm.pem")
    with pytest.raises(IdentityError) as caught, live_identity(load(tmp_path / "copy.pem")):
        pass
    assert str(caught.value) == (
        f"the key of peer {key.peer_id} ({animal_name(key.peer_id)}) is in use by the node with process id "
        f"{holder.pid} on this machine: stop that node, or give this one its own key with swarm.identity_path=..."
    )
    with live_identity(Identity.generate()):  # other keys are free
        pass
    holder.send_signal(signal.SIGKILL)
    holder.communicate(timeout=30)
    with live_identity(key):
        assert [lock.read_text() for lock in shared.glob(f"*{key.peer_id}*")] == [str(os.getpid())]


def test_a_node_that_stops_leaves_the_key_to_the_next(shared, key):
    for _ in range(2):
        with live_identity(key):
            pass
    with pytest.raises(ZeroDivisionError), live_identity(key):
        raise ZeroDivisionError
    with live_identity(key), pytest.raises(IdentityError, match=rf"process id {os.getpid()} "), live_identity(key):
        pass


@pytest.mark.parametrize(("held", "shown"), [(b"", "unknown"), (b"\x1b[2J", "unknown"), (b"9" * 100, "9" * 20)])
def test_what_stands_in_the_lock_file_is_shown_only_as_a_number(shared, key, held, shown):
    with live_identity(key):
        (lock,) = shared.iterdir()
        lock.write_bytes(held)
        with pytest.raises(IdentityError, match=rf"with process id {shown} on"), live_identity(key):
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
def test_a_trap_in_place_of_the_lock_file_is_refused_and_harms_nothing(tmp_path, shared, key, kind):
    trap(kind, shared / f"codezero-{key.peer_id}.lock", tmp_path / "precious")
    with pytest.raises(IdentityError, match=r"lock.*: .*remove it, or set TMPDIR"), live_identity(key):
        pass
    assert (tmp_path / "precious").read_text() == "precious"


def test_a_machine_without_room_for_temporary_files_is_named(shared, key, monkeypatch):
    def none():
        raise FileNotFoundError(2, "No usable temporary directory found")

    monkeypatch.setattr(tempfile, "gettempdir", none)
    with pytest.raises(IdentityError, match="No usable temporary directory found"), live_identity(key):
        pass


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start a process as another user")
def test_nodes_of_different_users_exclude_each_other(key):
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o1777)
        save(key, Path(folder, "swarm.pem"))
        start = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "env": {**os.environ, "TMPDIR": folder}}
        holder = subprocess.Popen([sys.executable, "-c", HOLD, Path(folder, "swarm.pem")], umask=0o077, **start)
        assert holder.stdout.readline() == b"held\n"
        other = [sys.executable, "-c", HOLD_AS_NOBODY, Path(folder, "swarm.pem")]
        refused = subprocess.Popen(other, stderr=subprocess.PIPE, **start)
        assert f"process id {holder.pid} on this machine".encode() in refused.communicate(timeout=30)[1]
        holder.communicate(timeout=30)
        assert subprocess.Popen(other, **start).communicate(timeout=30)[0] == b"held\n"

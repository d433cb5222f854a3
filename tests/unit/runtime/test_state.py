import errno
import os

import pytest

from codezero.errors import StateError
from codezero.runtime import state
from codezero.runtime.state import bind_settings, bound_settings, check_settings, locked_state, secret_of
from tests.fakes import files_of_at_most
from tests.processes import held


def test_two_nodes_on_one_folder_are_refused_with_the_process_named(tmp_path):
    with (
        held(tmp_path) as pid,
        pytest.raises(StateError, match=rf"in use by the node with process id {pid}"),
        locked_state(tmp_path),
    ):
        pass
    with locked_state(tmp_path):  # SIGKILL: the lock goes with the process
        assert (tmp_path / "node.lock").read_text() == str(os.getpid())


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StateError, match="give another state_dir"), locked_state(tmp_path / "file" / "state"):
        pass


@pytest.mark.parametrize(
    ("number", "told"),
    [
        (errno.EROFS, "Read-only file system; give another state_dir"),
        (errno.ENOSPC, "No space left on device; free space, or give another state_dir"),
    ],
)
def test_a_folder_that_takes_nothing_is_named_with_what_helps(tmp_path, monkeypatch, number, told):
    def refused(*_, **__):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("pathlib.Path.open", refused)
    with pytest.raises(StateError, match=told), locked_state(tmp_path):
        pass


def test_a_lock_that_a_full_disk_has_no_room_for_is_named(tmp_path):
    with (
        files_of_at_most(0),
        pytest.raises(StateError, match=r"cannot use state folder .*File too large; give another state_dir"),
        locked_state(tmp_path),
    ):
        pass
    with locked_state(tmp_path):
        assert (tmp_path / "node.lock").read_text() == str(os.getpid())


def test_a_disk_that_has_no_locks_is_told(tmp_path, monkeypatch):
    def flock(*_):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))  # as NFS without its lock service

    monkeypatch.setattr(state.fcntl, "flock", flock)
    told = "cannot use state folder .*: No locks available; give another state_dir"
    with pytest.raises(StateError, match=told), locked_state(tmp_path):
        pass


def test_settings_are_bound_for_good_and_new_ones_can_be_added(tmp_path):
    assert bound_settings(tmp_path) == {}
    bind_settings(tmp_path, {"model.name": "a"})
    bind_settings(tmp_path, {"model.name": "a", "train.method": "lora"})
    assert bound_settings(tmp_path) == {"model.name": "a", "train.method": "lora"}
    with pytest.raises(
        StateError, match=r"was made with model\.name=a, not b: set model\.name=a, or give another state_dir"
    ):
        check_settings(tmp_path, {"model.name": "b"})
    check_settings(tmp_path, {"model.name": "a", "seed": 3})


def test_damaged_settings_are_named(tmp_path):
    (tmp_path / "settings.json").write_text("{")
    with pytest.raises(StateError, match=r"cannot read .*settings\.json"):
        bound_settings(tmp_path)


def test_a_folder_keeps_its_secret_and_no_other_folder_or_user_has_it(tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    assert secret_of(tmp_path) == secret_of(tmp_path) != secret_of(other)
    assert (tmp_path / "secret").stat().st_mode & 0o777 == 0o600
    with pytest.raises(StateError, match="give another state_dir"):
        secret_of(tmp_path / "none")

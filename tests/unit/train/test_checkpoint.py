import os
import shutil

import pytest
import torch

from codezero.errors import CheckpointError
from codezero.runtime.state import best_round
from codezero.train import checkpoint
from codezero.train.checkpoint import CheckpointStore, report_of


def save(store, number, policy_version=None, value=None):
    store.save(
        number,
        number if policy_version is None else policy_version,
        {"weights": {"w": torch.full((4,), float(number if value is None else value))}},
        {"cursor": number, "name": "x"},
    )


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_nothing_saved_is_none(tmp_path):
    assert CheckpointStore(tmp_path / "new").load_latest() is None


def test_the_newest_is_found_and_two_are_kept(tmp_path):
    store = CheckpointStore(tmp_path)
    for number in (1, 2, 3):
        save(store, number)
    found = store.load_latest()
    assert found.round == 3
    assert found.learner["weights"]["w"].tolist() == [3.0] * 4
    assert found.node == {"cursor": 3, "name": "x"}
    assert names(tmp_path) == ["round-00000002", "round-00000003"]


@pytest.mark.parametrize("file", ["learner.pt", "node.pt", "manifest.json"])
@pytest.mark.parametrize("damage", ["cut", "flip", "gone"])
def test_a_torn_checkpoint_is_skipped_for_the_one_before(tmp_path, file, damage, caplog):
    store = CheckpointStore(tmp_path)
    save(store, 1)
    save(store, 2)
    path = tmp_path / "round-00000002" / file
    data = bytearray(path.read_bytes())
    if damage == "gone":
        path.unlink()
    elif damage == "cut":
        path.write_bytes(data[: len(data) // 2])
    else:
        data[len(data) // 2] ^= 0xFF
        path.write_bytes(data)
    assert store.load_latest().round == 1
    assert "round-00000002 is damaged and skipped" in caplog.text


def test_a_damaged_round_is_saved_again_when_it_was_replayed(tmp_path):
    store = CheckpointStore(tmp_path)
    save(store, 1)
    save(store, 2)
    (tmp_path / "round-00000002" / "learner.pt").write_bytes(b"torn")
    store = CheckpointStore(tmp_path)
    assert store.load_latest().round == 1
    save(store, 2, value=5)
    assert store.load_latest().learner["weights"]["w"].tolist() == [5.0] * 4


def resumed_from_40(folder) -> CheckpointStore:
    """A store whose newest checkpoint, of round 50, is damaged and was skipped."""
    store = CheckpointStore(folder)
    save(store, 40)
    save(store, 50)
    (folder / "round-00000050" / "learner.pt").write_bytes(b"torn")
    store = CheckpointStore(folder)
    assert store.load_latest().round == 40
    return store


def test_a_damaged_checkpoint_that_was_skipped_is_neither_the_best_nor_takes_the_place_of_a_good_one(tmp_path):
    store = resumed_from_40(tmp_path)
    assert store.keep_best()
    assert store.load_best().round == 40
    save(store, 41)
    save(store, 42)
    assert names(tmp_path) == ["best", "round-00000041", "round-00000042"]


def test_a_damaged_checkpoint_takes_no_place_beside_a_later_round(tmp_path):
    store = resumed_from_40(tmp_path)
    save(store, 60)
    assert names(tmp_path) == ["round-00000040", "round-00000060"]


def test_a_folder_that_is_gone_is_told_as_an_error_of_the_save(tmp_path):
    store = CheckpointStore(tmp_path / "checkpoints")
    shutil.rmtree(tmp_path / "checkpoints")
    with pytest.raises(
        CheckpointError, match=r"cannot save round 1 in .* \(No such file or directory\); nothing was saved"
    ):
        save(store, 1)


def test_all_damaged_is_an_error_that_says_what_to_do(tmp_path):
    store = CheckpointStore(tmp_path)
    save(store, 1)
    (tmp_path / "round-00000001" / "node.pt").write_bytes(b"")
    with pytest.raises(CheckpointError, match=r"all 1 checkpoints in .* are damaged: restore one"):
        store.load_latest()


def test_a_killed_save_leaves_nothing_that_counts(tmp_path):
    save(CheckpointStore(tmp_path), 1)
    shutil.copytree(tmp_path / "round-00000001", tmp_path / ".saving-00000002")
    store = CheckpointStore(tmp_path)
    assert store.load_latest().round == 1
    assert names(tmp_path) == ["round-00000001"]


def test_learner_is_linked_not_written_again_while_the_policy_is_the_same(tmp_path):
    store = CheckpointStore(tmp_path)
    save(store, 1, policy_version=7)
    save(store, 2, policy_version=7)
    save(store, 3, policy_version=8)
    first, second = tmp_path / "round-00000002" / "learner.pt", tmp_path / "round-00000003" / "learner.pt"
    assert first.read_bytes() != second.read_bytes()
    save(store, 4, policy_version=8)
    assert os.stat(second).st_ino == os.stat(tmp_path / "round-00000004" / "learner.pt").st_ino
    assert store.load_latest().learner["weights"]["w"].tolist() == [3.0] * 4


def test_a_full_disk_is_one_clear_line_and_loses_nothing(tmp_path, monkeypatch):
    store = CheckpointStore(tmp_path)
    save(store, 1)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoint.os, "fsync", full)
    with pytest.raises(
        CheckpointError, match=r"cannot save round 2 .*No space left on device.*the last saved one is round-00000001"
    ):
        save(store, 2)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_a_disk_that_gets_full_while_torch_writes_is_told_as_that(tmp_path, monkeypatch):
    store = CheckpointStore(tmp_path)
    save(store, 1)
    write = checkpoint._CountedFile.write

    def full(self, data):
        if self.num_bytes > 100:
            raise OSError(28, "No space left on device")
        return write(self, data)

    monkeypatch.setattr(checkpoint._CountedFile, "write", full)
    with pytest.raises(CheckpointError, match=r"cannot save round 2 in .* \(No space left on device; "):
        save(store, 2)
    monkeypatch.undo()
    assert store.load_latest().round == 1


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match="give another state_dir"):
        CheckpointStore(tmp_path / "file" / "checkpoints")


def test_hostile_pickle_is_not_run(tmp_path, caplog):
    class Bomb:
        def __reduce__(self):
            return (os.system, (f"touch {tmp_path / 'boom'}",))

    store = CheckpointStore(tmp_path)
    store.save(1, 1, {"weights": {}}, {"cursor": Bomb()})
    with pytest.raises(CheckpointError, match=r"all 1 checkpoints .* are damaged"):
        store.load_latest()
    assert "posix.system" in caplog.text
    assert not (tmp_path / "boom").exists()


def test_the_best_stays_while_newer_ones_come_and_go_and_takes_no_room_of_its_own_at_first(tmp_path):
    store = CheckpointStore(tmp_path)
    assert not store.keep_best()  # there is none yet
    save(store, 1)
    assert store.keep_best()
    assert os.path.samefile(tmp_path / "best" / "learner.pt", tmp_path / "round-00000001" / "learner.pt")
    for number in (2, 3, 4):
        save(store, number)
    assert names(tmp_path) == ["best", "round-00000003", "round-00000004"]
    again = CheckpointStore(tmp_path)
    assert again.load_best().round == 1
    assert again.load_latest().round == 4
    assert again.keep_best()
    assert again.load_best().learner["weights"]["w"].tolist() == [4.0] * 4
    assert names(tmp_path) == ["best", "round-00000003", "round-00000004"]


def test_a_kill_while_the_best_is_replaced_costs_neither(tmp_path):
    store = CheckpointStore(tmp_path)
    save(store, 1)
    store.keep_best()
    (tmp_path / "best").rename(tmp_path / ".saving-before")
    (tmp_path / ".saving-best").mkdir()
    assert CheckpointStore(tmp_path).load_best().round == 1
    assert names(tmp_path) == ["best", "round-00000001"]


def test_round_and_report_of_the_best_can_be_read_without_its_weights(tmp_path):
    store = CheckpointStore(tmp_path / "checkpoints")
    assert (best_round(tmp_path), report_of(store.best)) == (None, None)
    store.save(3, 3, {"weights": {}}, {"report": {"round": 3}})
    store.keep_best()
    assert (best_round(tmp_path), report_of(store.best)) == (3, {"round": 3})
    node = store.best / "node.pt"
    node.write_bytes(node.read_bytes().replace(b"round", b"rouse"))
    assert report_of(store.best) is None


def test_without_hard_links_the_best_is_a_copy(tmp_path, monkeypatch):
    store = CheckpointStore(tmp_path)
    save(store, 1)

    def no_links(*_):
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    assert store.keep_best()
    assert store.load_best().round == 1


def test_a_full_disk_costs_the_best_a_warning(tmp_path, monkeypatch, caplog):
    store = CheckpointStore(tmp_path)
    save(store, 1)
    assert store.keep_best()
    save(store, 2)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: type("Usage", (), {"free": 0}))
    assert not store.keep_best()
    assert "too little space for two more checkpoints. Free space" in caplog.text
    assert store.load_best().round == 1


def test_a_best_that_is_damaged_or_was_never_kept_is_told(tmp_path):
    store = CheckpointStore(tmp_path)
    with pytest.raises(CheckpointError, match=r"best cannot be read .* give the state_dir alone"):
        store.load_best()

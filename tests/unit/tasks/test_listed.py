"""The lists of datasets' tasks that a node keeps, and what may have happened to their files."""

import errno
import logging
import threading
from contextlib import contextmanager

import msgspec
import pytest

from codezero.errors import Stopping
from codezero.tasks import listed
from codezero.tasks.hub import HubUnreachable
from codezero.tasks.listed import HubTaskIds, Lister
from codezero.tasks.withheld import id_of
from tests.builders import task
from tests.processes import wait_until


class Hub:
    """A dataset with a revision, which counts how often it was read, and may break off before a row."""

    def __init__(self, *texts, revision="r1", fails_at=None):
        self.texts, self.revision, self.fails_at, self.reads = texts, revision, fails_at, 0

    def now(self):
        if self.revision is None:
            raise HubUnreachable("the hub is away")
        return self.revision

    def tasks(self, revision):
        assert revision == self.revision
        self.reads += 1
        for number, text in enumerate(self.texts):
            if number == self.fails_at:
                raise HubUnreachable("reading the hub took longer than 180 s")
            yield task(text, f"assert {text}")


def made(folder, hub, what="contests split train"):
    return HubTaskIds("code_contests", what, folder / "tasks.msgpack", hub.now, hub.tasks)


def refreshed(folder, hub, **more):
    one = made(folder, hub, **more)
    one.refresh(lambda: None)
    return one


@contextmanager
def lister(*lists):
    """The thread that completes these lists runs meanwhile."""
    made = Lister(lists)
    made.start()
    try:
        yield
    finally:
        made.stop()


def knows(one, *texts):
    return [id_of(task(text, f"assert {text}")) in one for text in texts]


def test_a_list_has_what_was_read_and_is_read_once(tmp_path):
    hub = Hub("a", "b")
    one = made(tmp_path, hub)
    assert (one.is_complete, knows(one, "a")) == (False, [False])
    one.refresh(lambda: None)
    assert (one.is_complete, knows(one, "a", "b", "c"), len(one)) == (True, [True, True, False], 2)
    again = made(tmp_path, hub)
    assert (again.is_complete, knows(again, "a", "b", "c")) == (True, [True, True, False])
    again.refresh(lambda: None)
    assert hub.reads == 1


def test_a_list_of_another_revision_is_made_again_and_counts_until_then(tmp_path):
    refreshed(tmp_path, Hub("a", "b"))
    newer = Hub("b", "c", revision="r2")
    one = made(tmp_path, newer)
    assert (one.is_complete, knows(one, "a", "b", "c")) == (True, [True, True, False])
    one.refresh(lambda: None)
    assert knows(one, "a", "b", "c") == [False, True, True]
    assert knows(made(tmp_path, newer), "a", "b", "c") == [False, True, True]


def test_a_list_of_another_split_is_none(tmp_path):
    refreshed(tmp_path, Hub("a"))
    one = made(tmp_path, Hub("a"), what="contests split test")
    assert (one.is_complete, knows(one, "a")) == (False, [False])


def test_without_a_hub_the_kept_list_is_used(tmp_path):
    refreshed(tmp_path, Hub("a"))
    one = made(tmp_path, Hub(revision=None))
    with pytest.raises(HubUnreachable):
        one.refresh(lambda: None)
    assert (one.is_complete, knows(one, "a")) == (True, [True])


def other_ids(content):
    kept = msgspec.msgpack.decode(content)
    return msgspec.msgpack.encode({**kept, "ids": bytes(len(kept["ids"]))})


DAMAGED = {
    "truncated": lambda content: content[:-3],
    "empty": lambda content: b"",
    "one bit": lambda content: content[:-1] + bytes([content[-1] ^ 1]),
    "other ids": other_ids,
    "junk": lambda content: b"\xff" * 100,
    "deep nesting": lambda content: b"\x91" * 100_000,
    "giant": lambda content: content + bytes(listed.MAX_FILE_BYTES),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_list_is_none_and_made_again(tmp_path, name):
    hub = Hub("a", "b")
    path = tmp_path / "tasks.msgpack"
    refreshed(tmp_path, hub)
    content = path.read_bytes()
    path.write_bytes(DAMAGED[name](content))
    one = made(tmp_path, hub)
    assert (one.is_complete, len(one)) == (False, 0)
    one.refresh(lambda: None)
    assert (hub.reads, path.read_bytes()) == (2, content)


def test_a_folder_in_place_of_the_file_is_survived(tmp_path):
    (tmp_path / "tasks.msgpack").mkdir()
    assert knows(refreshed(tmp_path, Hub("a")), "a") == [True]


def test_a_full_disk_leaves_the_list_in_use_and_no_half_of_a_file(tmp_path, monkeypatch, caplog):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    refreshed(tmp_path, Hub("a"))
    before = (tmp_path / "tasks.msgpack").read_bytes()
    monkeypatch.setattr("codezero.runtime.files.os.fsync", full)
    one = refreshed(tmp_path, Hub("b", revision="r2"))
    assert (one.is_complete, knows(one, "a", "b")) == (True, [False, True])
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"tasks.msgpack": before}
    (warning,) = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert "No space left on device" in warning
    assert "free space" in warning


def test_a_dataset_without_end_does_not_fill_memory_or_disk(tmp_path, monkeypatch):
    monkeypatch.setattr(listed, "MAX_TASKS", 3)
    one = refreshed(tmp_path, Hub(*"abcde"))
    assert (one.is_complete, len(one)) == (True, 3)


def test_the_largest_list_can_be_read_again(tmp_path, monkeypatch):
    monkeypatch.setattr(listed, "id_of", lambda one: one.question)
    hub = Hub(*(f"{number:032x}" for number in range(listed.MAX_TASKS)))
    refreshed(tmp_path, hub)
    assert len(made(tmp_path, hub)) == listed.MAX_TASKS


def test_a_stop_leaves_no_list_and_the_next_start_reads_it_from_the_beginning(tmp_path):
    hub, pauses = Hub("a", "b", "c"), iter([None, None, None])

    def pause():
        if next(pauses, "stop") == "stop":
            raise Stopping("the node stops")

    one = made(tmp_path, hub)
    with pytest.raises(Stopping):
        one.refresh(pause)
    assert (one.is_complete, knows(one, "a", "b", "c"), [*tmp_path.iterdir()]) == (False, [True, True, False], [])
    assert knows(refreshed(tmp_path, hub), "a", "b", "c") == [True] * 3


def test_a_thread_completes_the_lists_and_ends_with_the_node(tmp_path):
    hubs = [Hub("a"), Hub("b")]
    lists = [HubTaskIds("mbpp", "it", tmp_path / str(number), hub.now, hub.tasks) for number, hub in enumerate(hubs)]
    with lister(*lists):
        wait_until(lambda: all(one.is_complete for one in lists))
    assert not any(thread.name == "task lists" for thread in threading.enumerate())
    assert [hub.reads for hub in hubs] == [1, 1]


def test_with_a_whole_list_a_hub_that_is_away_is_no_warning(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(listed, "RETRY_S", 0.01)
    refreshed(tmp_path, Hub("a"))
    away, asked = Hub(revision=None), []
    one = made(tmp_path, away)
    monkeypatch.setattr(one, "refresh", lambda pause: (asked.append(1), HubTaskIds.refresh(one, pause)))
    with lister(one):
        wait_until(lambda: len(asked) >= 3)
    assert [record for record in caplog.records if record.levelno == logging.WARNING] == []


def test_each_dataset_that_cannot_be_listed_is_told_once(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(listed, "RETRY_S", 0.01)
    hubs = {"mbpp": Hub("a", fails_at=0), "code_contests": Hub("b", fails_at=0)}
    with lister(*(HubTaskIds(name, "it", tmp_path / name, hub.now, hub.tasks) for name, hub in hubs.items())):
        wait_until(lambda: all(hub.reads >= 3 for hub in hubs.values()))
    warned = [record.getMessage().split(":")[0] for record in caplog.records if record.levelno == logging.WARNING]
    assert warned == [f"the tasks of {name} cannot be listed" for name in hubs]


def test_a_hub_that_breaks_off_is_told_once_and_tried_again(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(listed, "RETRY_S", 0.01)
    hub = Hub("a", "b", fails_at=1)
    one = made(tmp_path, hub)
    with lister(one):
        wait_until(lambda: hub.reads >= 3)
        assert (one.is_complete, knows(one, "a", "b")) == (False, [True, False])
        hub.fails_at = None
        wait_until(lambda: one.is_complete)
    (warning,) = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert "code_contests cannot be listed: reading the hub took longer than 180 s" in warning
    assert "unlisted_task" in warning

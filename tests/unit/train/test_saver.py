"""Saving beside the next round: what is written when, what a failure costs, and that weights stand still meanwhile."""

import threading
import time
from contextlib import nullcontext, suppress
from itertools import pairwise

import pytest
import torch

from codezero.errors import CheckpointError
from codezero.train.checkpoint import CheckpointStore
from codezero.train.saver import BackgroundSaver, FinishedRound


class Clock:
    now_s = 1000.0

    def __call__(self):
        return self.now_s


class SlowStore(CheckpointStore):
    """Begins to write when it is let."""

    def __init__(self, folder):
        super().__init__(folder)
        self.let, self.began = threading.Event(), threading.Event()
        self.fault = None

    def save(self, *args):
        self.began.set()
        assert self.let.wait(10)
        if self.fault:
            raise self.fault
        return super().save(*args)


def finished(number, weights=None, node=None):
    learner = {"weights": {"w": torch.full((2,), float(number)) if weights is None else weights}}
    return FinishedRound(round=number, policy_version=number, learner=learner, node=node or {})


def rounds(folder):
    return [int(path.name[-8:]) for path in sorted(folder.glob("round-*"))]


def play(saver, clock, number, seconds):
    """A round that takes so long, with an update."""
    saver.before_update()
    clock.now_s += seconds
    saver.offer(finished(number))


@pytest.mark.parametrize(
    ("every_s", "round_s", "expected"),
    [
        (0, 1, [1, 2, 3, 4, 5, 6, 7]),
        (120, 300, [1, 2, 3, 4, 5, 6, 7]),
        (120, 30, [1, 4, 7]),  # 5 would be 120 s behind once it is over
        (120, 50, [1, 3, 5, 7]),
    ],
)
def test_a_kill_never_costs_more_than_a_round_or_the_time_that_is_set(tmp_path, every_s, round_s, expected):
    clock, seen = Clock(), []
    saver = BackgroundSaver(CheckpointStore(tmp_path), every_s, lambda number, path: seen.append(number), clock)
    for number in range(1, 8):
        play(saver, clock, number, round_s)
    saver.before_update()
    assert seen == expected


def test_the_update_waits_until_the_weights_are_written(tmp_path):
    store, weights = SlowStore(tmp_path), torch.ones(2)
    saver = BackgroundSaver(store, 0)
    saver.offer(finished(1, weights))
    assert store.began.wait(10)
    moved = threading.Event()

    def update():
        saver.before_update()
        weights.add_(1)
        moved.set()

    thread = threading.Thread(target=update)
    thread.start()
    assert not moved.wait(0.1)
    store.let.set()
    thread.join()
    assert store.load_latest().learner["weights"]["w"].tolist() == [1.0, 1.0]


def test_what_the_next_round_changes_of_the_node_is_not_in_the_checkpoint(tmp_path):
    store, node = SlowStore(tmp_path), {"cursor": [1]}
    saver = BackgroundSaver(store, 0)
    saver.offer(finished(1, node=node))
    node["cursor"].append(2)
    store.let.set()
    saver.close()
    assert store.load_latest().node == {"cursor": [1]}


def test_a_stop_waits_for_what_is_written_and_saves_the_last_round(tmp_path):
    store, clock = SlowStore(tmp_path), Clock()
    saver = BackgroundSaver(store, 1000, clock=clock)
    saver.offer(finished(1))
    clock.now_s += 1
    saver.offer(finished(2))  # without an update between
    threading.Timer(0.1, store.let.set).start()
    assert saver.is_behind
    saver.close()
    assert not saver.is_behind
    assert rounds(tmp_path) == [1, 2]
    saver.close()  # an error may have been on its way meanwhile


def test_a_stop_after_weights_have_moved_saves_nothing_torn(tmp_path):
    clock = Clock()
    saver = BackgroundSaver(CheckpointStore(tmp_path), 1000, clock=clock)
    for number in (1, 2):
        play(saver, clock, number, 1)
    saver.before_update()
    saver.close()
    assert rounds(tmp_path) == [1]


def test_a_full_disk_is_told_and_tried_again_and_loses_nothing(tmp_path, caplog):
    store, clock = SlowStore(tmp_path), Clock()
    store.let.set()
    saver = BackgroundSaver(store, 0, clock=clock)
    play(saver, clock, 1, 1)
    play(saver, clock, 2, 1)
    saver.before_update()
    store.fault = CheckpointError("cannot save round 3: free space")
    saver.offer(finished(3))
    saver.before_update()
    assert "cannot save round 3: free space. Training is not affected: the node tries again" in caplog.text
    assert rounds(tmp_path) == [1, 2]
    store.fault = None
    play(saver, clock, 4, 1)
    saver.close()
    assert rounds(tmp_path) == [2, 4]


def test_a_last_save_that_fails_is_an_error(tmp_path):
    store = SlowStore(tmp_path)
    store.let.set()
    store.fault = CheckpointError("cannot save round 1: free space")
    saver = BackgroundSaver(store, 0)
    saver.offer(finished(1))
    with pytest.raises(CheckpointError, match="free space"):
        saver.close()
    saver.close()


@pytest.mark.skipif(not hasattr(time, "pthread_getcpuclockid"), reason="this system does not tell what a thread used")
def test_the_writer_lets_others_compute(tmp_path):
    """It does not hold Python's lock for most of its work: another thread has its turn again and again meanwhile."""
    one, began, clock, used_s = finished(1, torch.zeros(50_000_000)), threading.Event(), [], [0.0]

    def write():
        clock.append(time.pthread_getcpuclockid(threading.get_ident()))
        began.set()
        CheckpointStore(tmp_path).save(1, 1, one.learner, one.node)

    writer = threading.Thread(target=write)
    writer.start()
    began.wait()
    while writer.is_alive():
        with suppress(OSError):  # it may just have ended
            used_s.append(time.clock_gettime(clock[0]))
        time.sleep(0.001)
    assert max(after - before for before, after in pairwise(used_s)) < used_s[-1] / 2


def test_where_two_threads_must_not_use_a_device_at_once_the_caller_waits_and_nobody_else_computes(tmp_path):
    turn, seen = threading.Lock(), []

    class Store(CheckpointStore):
        def save(self, *args):
            seen.append(turn.locked())
            return super().save(*args)

    saver = BackgroundSaver(Store(tmp_path), 0, device_lock=turn)
    saver.offer(finished(1))
    assert rounds(tmp_path) == [1]
    assert not turn.locked()
    saver.offer(finished(2))
    saver.close()
    assert (rounds(tmp_path), seen) == ([1, 2], [True, True])


def test_a_stop_while_it_waits_for_the_device_loses_nothing(tmp_path):
    stops = [KeyboardInterrupt]

    class Turn(nullcontext):
        def __enter__(self):
            if stops:
                raise stops.pop()

    saver = BackgroundSaver(CheckpointStore(tmp_path), 0, device_lock=Turn())
    with pytest.raises(KeyboardInterrupt):
        saver.offer(finished(1))
    saver.close()
    assert rounds(tmp_path) == [1]

"""Work in a thread of its own: when it is done, and how it ends."""

import threading
import time

from codezero.runtime.worker import Worker
from tests.processes import wait_until


def test_work_is_done_at_once_when_woken_and_once_more_at_the_end():
    done = []
    worker = Worker("w", lambda: done.append(worker.is_stopping))
    worker.start()
    wait_until(lambda: len(done) == 1)
    worker.wake()
    wait_until(lambda: len(done) == 2)
    worker.stop(30)
    assert not worker.is_alive
    assert done == [False, False, True]


def test_work_is_done_when_it_is_due():
    done = []

    def work():
        done.append(time.monotonic())
        return 0.01

    worker = Worker("w", work)
    worker.start()
    wait_until(lambda: len(done) > 3)
    worker.stop(30)


def test_a_wake_during_the_work_is_not_lost():
    begun, goes_on, done = threading.Event(), threading.Event(), []

    def work():
        begun.set()
        goes_on.wait(30)
        done.append(1)

    worker = Worker("w", work)
    worker.start()
    begun.wait(30)
    worker.wake()
    goes_on.set()
    wait_until(lambda: len(done) == 2)
    worker.stop(30)


def test_a_stop_ends_a_pause_and_the_thread_and_waits_for_no_work_that_hangs():
    paused, hanging = threading.Event(), threading.Event()
    worker = Worker("w", lambda: (paused.set(), worker.pause(600))[1])
    worker.start()
    paused.wait(30)
    worker.stop(30)
    assert not worker.is_alive
    hangs = Worker("h", lambda: hanging.wait(600) and None)
    hangs.start()
    hangs.stop(0.01)
    assert hangs.is_alive
    hanging.set()

"""Trackers that fail or hang: training never notices, and one warning says what happened."""

import logging
import threading
import time

import pytest

from codezero.observe.trackers.metrics import round_metrics
from codezero.observe.trackers.threads import MAX_WAITING, TrackerThreads
from tests.unit.observe.test_monitor import report


class Kept:
    """Keeps what it gets."""

    name = "tracking.kept"

    def __init__(self):
        self.steps, self.closed = [], 0

    def open(self):
        pass

    def log(self, step, metrics):
        self.steps.append((step, {metric.name: metric.value for metric in metrics}["reward/mean"]))

    def close(self):
        self.closed += 1


class Hanging(Kept):
    """Blocks for ever at one of its methods."""

    name = "tracking.hanging"

    def __init__(self, where):
        super().__init__()
        self.reached, never = threading.Event(), threading.Event()

        def hang(*_):
            self.reached.set()
            never.wait()

        setattr(self, where, hang)


class Raising(Kept):
    """Fails every time."""

    name = "tracking.raising"

    def log(self, step, metrics):
        super().log(step, metrics)
        raise ValueError("no space left on device\nsecond line")


@pytest.fixture
def warnings(caplog):
    caplog.set_level(logging.WARNING, "codezero")
    return lambda: [record.message for record in caplog.records]


def play(trackers, rounds):
    for number in range(1, rounds + 1):
        trackers.log(number, round_metrics(report(number)))


def test_every_tracker_gets_every_round_and_is_closed(warnings):
    first, second = Kept(), Kept()
    with TrackerThreads([first, second], close_s=60.0) as trackers:
        play(trackers, 3)
    assert first.steps == second.steps == [(1, 0.5), (2, 0.5), (3, 0.5)]
    assert first.closed == 1
    assert warnings() == []


def test_a_stop_in_the_middle_of_a_report_closes_a_tracker_once():
    begun, go_on = threading.Event(), threading.Event()

    class Slow(Kept):
        def log(self, step, metrics):
            begun.set()
            go_on.wait(60)
            super().log(step, metrics)

    slow = Slow()
    with TrackerThreads([slow], close_s=60.0) as trackers:
        play(trackers, 1)
        assert begun.wait(60)
        threading.Timer(0.2, go_on.set).start()
    assert (len(slow.steps), slow.closed) == (1, 1)


@pytest.mark.parametrize("where", ["open", "log", "close"])
def test_a_tracker_that_hangs_holds_up_nobody(where, warnings):
    hanging, kept = Hanging(where), Kept()
    begun = time.monotonic()
    with TrackerThreads([hanging, kept], close_s=120.0) as trackers:
        play(trackers, 10)
        first = trackers._threads[0]
        first.stop = lambda deadline, stop=first.stop: stop(deadline - 119.5)
    assert time.monotonic() - begun < 60  # it would be for ever
    assert hanging.reached.wait(60)
    assert [step for step, _ in kept.steps] == list(range(1, 11))
    assert kept.closed == 1
    assert [text.partition(" ")[0] for text in warnings()] == ["tracking.hanging"]
    assert "did not finish in time and is left behind" in warnings()[0]


def test_what_a_hanging_tracker_is_behind_is_bounded(warnings):
    hanging = Hanging("open")
    with TrackerThreads([hanging], close_s=0.0) as trackers:
        play(trackers, MAX_WAITING + 100)
        (thread,) = trackers._threads
        assert [step for step, _ in thread._waiting][0::MAX_WAITING] == [101]
    assert sum("reports behind" in text for text in warnings()) == 1


def test_a_tracker_that_fails_every_time_warns_once_in_one_line(warnings):
    raising, kept = Raising(), Kept()
    with TrackerThreads([raising, kept], close_s=60.0) as trackers:
        play(trackers, 20)
    assert len(raising.steps) == len(kept.steps) == 20
    assert warnings() == [
        "tracking.raising misses reports: no space left on device. Training is not affected, and logs/ has every number"
    ]


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (ModuleNotFoundError("No module named 'x'", name="x"), "the package x is not installed: install the extra"),
        (OSError("port in use"), "is off until the next start: port in use. Training is not affected"),
        (RuntimeError(), "is off until the next start: RuntimeError. Training"),
    ],
)
def test_a_tracker_that_cannot_begin_warns_once_and_is_off(error, why, warnings):
    class Broken(Kept):
        def open(self):
            raise error

    broken = Broken()
    with TrackerThreads([broken], close_s=60.0) as trackers:
        play(trackers, 3)
    assert broken.steps == []
    (text,) = warnings()
    assert why in text


def test_trackers_end_also_when_the_node_fails():
    kept = Kept()

    def interrupted():
        with TrackerThreads([kept], close_s=60.0) as trackers:
            play(trackers, 2)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert len(kept.steps) == 2
    assert kept.closed == 1

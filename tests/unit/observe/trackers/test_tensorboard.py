import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from codezero.observe.trackers.metrics import round_metrics
from codezero.observe.trackers.tensorboard import TensorBoard
from tests.unit.observe.test_monitor import report


def written(folder, first_step, rounds):
    board = TensorBoard(folder, first_step)
    board.open()
    for number, reward in rounds:
        board.log(number, round_metrics(report(number, reward_mean=reward)))
    board.close()


def read(folder, tag):
    found = EventAccumulator(str(folder))
    found.Reload()
    return [(event.step, event.value) for event in found.Scalars(tag)]


def test_what_is_written_can_be_read_back(tmp_path):
    written(tmp_path, 1, [(1, 0.25), (2, 0.5)])
    assert read(tmp_path, "reward/mean") == [(1, 0.25), (2, 0.5)]
    assert read(tmp_path, "time/solve_s") == [(1, 16.0), (2, 16.0)]
    assert read(tmp_path, "train/loss") == [(1, pytest.approx(-0.0123)), (2, pytest.approx(-0.0123))]


def test_a_round_that_is_played_again_is_there_once(tmp_path, monkeypatch):
    written(tmp_path, 1, [(1, 0.25), (2, 0.5), (3, 0.75)])
    monkeypatch.setattr("time.time", lambda: 4e9)  # files are read in the order of the second they are named after
    written(tmp_path, 2, [(2, 0.125), (3, 0.0)])
    assert read(tmp_path, "reward/mean") == [(1, 0.25), (2, 0.125), (3, 0.0)]


def test_a_round_is_in_the_file_at_once(tmp_path):
    board = TensorBoard(tmp_path, 1)
    board.open()
    board.log(1, round_metrics(report(1)))
    assert read(tmp_path, "reward/mean") == [(1, 0.5)]
    board.close()

"""When a checkpoint is kept as the best, and what is said when the solver gets worse."""

import re
from types import SimpleNamespace

import pytest

from codezero.evaluate.gain import Direction
from codezero.observe.probes import NODE, Learning, Pass, learning
from codezero.observe.report_file import ReportFile
from codezero.policy.probing.measure import Measuring
from tests.tiny_node import lines
from tests.unit.observe.test_probes import passes, write


class Passes:
    """A probe whose passes after the start come to given scores."""

    def __init__(self, *scores, start=0, direction=Direction.UNKNOWN):
        self.scores, self.reports, self._direction = list(scores), [1], direction
        self._passes = [Pass(last_round=start, sampled=0.0, greedy=0.0)]

    @property
    def is_due(self):
        return bool(self.scores)

    def take(self, last, policy_version):
        self._passes.append(Pass(last_round=last, sampled=self.scores.pop(0), greedy=0.0))
        return True

    @property
    def learning(self):
        return Learning(direction=self._direction, verdict="", text="", passes=self._passes, gain=None)


class Store:
    """A store of checkpoints on a disk that may be full."""

    def __init__(self):
        self.is_full, self.kept = False, 0

    def keep_best(self):
        self.kept += not self.is_full
        return not self.is_full


def measured(tmp_path, store, probe, last=1):
    console, status = SimpleNamespace(line=lambda _: None), SimpleNamespace(stage=lambda _: None)
    measuring = Measuring(probe, ReportFile(tmp_path / NODE.file, "round"), store, tmp_path, console, status)
    measuring.measure(last, last)
    return measuring


def test_the_best_pass_is_kept_once(tmp_path):
    store = Store()
    measuring = measured(tmp_path, store, Passes(0.4, 0.6))
    assert measuring.keep_best()
    assert not measuring.keep_best()
    assert store.kept == 1


def test_a_best_that_a_full_disk_refused_is_tried_again_but_not_after_a_lower_pass(tmp_path):
    store = Store()
    store.is_full = True
    measuring = measured(tmp_path, store, Passes(0.6))
    assert not measuring.keep_best()
    store.is_full = False
    assert measuring.keep_best()

    store.is_full = True
    probe = Passes(0.6)
    measuring = measured(tmp_path, store, probe)
    assert not measuring.keep_best()
    probe.scores = [0.1]
    measuring.measure(2, 2)
    store.is_full = False
    assert not measuring.keep_best()


@pytest.mark.parametrize(
    ("start", "direction", "is_kept"),
    [
        (0, Direction.UNKNOWN, True),
        (200, Direction.UNKNOWN, False),  # probes of another kind began there: they do not know how good the best is
        (200, Direction.LEVEL, False),
        (200, Direction.RISING, True),
    ],
)
def test_a_best_checkpoint_of_probes_of_another_kind_gives_way_only_to_a_rise(tmp_path, start, direction, is_kept):
    (tmp_path / "checkpoints" / "best").mkdir(parents=True)
    (tmp_path / "checkpoints" / "best" / "manifest.json").write_text('{"round": 100}')
    store = Store()
    assert measured(tmp_path, store, Passes(0.1, start=start, direction=direction), last=300).keep_best() == is_kept


class Told:
    """A probe that has passes with these shares of problems solved, one more each time."""

    def __init__(self, *shares):
        self._shares, self._num, self.reports = shares, 1, [1]

    @property
    def is_due(self):
        return self._num < len(self._shares)

    def take(self, last, policy_version):
        self._num += 1
        return True

    @property
    def learning(self):
        return learning(passes(*self._shares[: self._num]))


@pytest.mark.parametrize(
    ("start", "says"),
    [
        (
            0.25,
            r"/best has the best weights\. .*codezero eval --dataset mbpp --checkpoint .*/best measures them",
        ),
        (1.0, r"lower ones may help\. The weights at the start were better"),
    ],
)
def test_a_solver_that_gets_worse_is_told_once_with_where_better_weights_are(start, says, tmp_path, caplog):
    measured(tmp_path, Store(), Told(start, 1.0, 0.3, 0.3, 0.3, 0.3))
    (said,) = caplog.messages
    assert re.match(rf"the solver has got worse beyond chance\. Check train\.learning_rate .*{says}", said)


@pytest.mark.parametrize(("last", "kept", "aside"), [(0, [0], [0, 10, 20]), (10, [0, 10], []), (20, [0, 10, 20], [])])
def test_a_run_that_is_not_measured_is_not_judged_by_probes_of_weights_that_are_gone(tmp_path, last, kept, aside):
    write(tmp_path, passes(0.25, 0.5, 0.75))
    measured(tmp_path, Store(), None).resume(last)
    assert [one["round"] for one in lines(tmp_path / "probe.jsonl")] == kept
    before = tmp_path / "probe.1.jsonl"
    assert ([one["round"] for one in lines(before)] if before.exists() else []) == aside

"""When a checkpoint is kept as the best."""

from types import SimpleNamespace

from codezero.policy.measure import Measuring


class Passes:
    """A probe whose passes come to given scores."""

    def __init__(self, *scores):
        self.scores, self._passes, self.reports = list(scores), [], [1]

    @property
    def is_due(self):
        return bool(self.scores)

    def take(self, last, policy_version):
        self._passes.append(self.scores.pop(0))
        return True

    @property
    def learning(self):
        best = self._passes.index(max(self._passes))
        return SimpleNamespace(text="", passes=self._passes, best=best, gain=None)


class Store:
    """A store of checkpoints on a disk that may be full."""

    def __init__(self):
        self.is_full, self.kept = False, 0

    def keep_best(self):
        self.kept += not self.is_full
        return not self.is_full


def measured(tmp_path, store, probe):
    console, status = SimpleNamespace(line=lambda _: None), SimpleNamespace(stage=lambda _: None)
    measuring = Measuring(probe, store, tmp_path, console, status)
    measuring.measure(1, 1)
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

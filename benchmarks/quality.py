"""Compares predicted probabilities with the truth: plain functions of three equally long arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from codezero.evaluate.intervals import RESAMPLES, central

NUM_BINS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """Samples: what was predicted of each, whether it is right, and the problem it answers."""

    p: np.ndarray
    """[N], in 0..1; higher is more likely right."""
    right: np.ndarray
    """[N], of bool: it passed its tests when executed."""
    group: np.ndarray
    """[N], of int: equal for the attempts at one problem."""

    def of_groups(self, groups: np.ndarray) -> Judged:
        """The samples of these groups, as often as a group is named; a group named twice counts as two."""
        order = np.argsort(self.group, kind="stable")
        ordered = self.group[order]
        first = np.searchsorted(ordered, groups, "left")
        sizes = np.searchsorted(ordered, groups, "right") - first
        begins = np.cumsum(sizes) - sizes  # of each group among the returned samples
        index = order[np.arange(sizes.sum()) + np.repeat(first - begins, sizes)]
        names = np.repeat(np.arange(len(groups)), sizes)
        return Judged(p=self.p[index], right=self.right[index], group=names)


def auc(judged: Judged) -> float:
    """Probability that a right sample is rated above a wrong one, ties counting one half; nan without both kinds."""
    right, wrong = judged.p[judged.right], judged.p[~judged.right]
    if not len(right) or not len(wrong):
        return float("nan")
    ordered = np.sort(wrong)
    below, up_to = np.searchsorted(ordered, right, "left"), np.searchsorted(ordered, right, "right")
    return float((below + up_to).sum() / (2 * len(right) * len(wrong)))


def best_accuracy(judged: Judged) -> float:
    """Accuracy at the best threshold, chosen on the same samples."""
    thresholds = np.unique(judged.p)
    return float(max([np.mean(judged.right == (judged.p >= t)) for t in thresholds] + [np.mean(~judged.right)]))


def calibration_error(judged: Judged) -> float:
    """Expected calibration error: |mean prediction - share of right ones| over ten equal bins, weighted by their size
    (Guo et al. 2017, arXiv 1706.04599)."""
    bins = np.minimum((judged.p * NUM_BINS).astype(int), NUM_BINS - 1)
    gaps = [
        abs(judged.p[bins == b].mean() - judged.right[bins == b].mean()) * np.mean(bins == b) for b in np.unique(bins)
    ]
    return float(sum(gaps))


def ranking_accuracy(judged: Judged) -> float:
    """Share of the (right, wrong) pairs of one group that are in the right order, ties counting one half: what GRPO
    sees of an evaluator. nan without such a pair."""
    won, pairs = 0.0, 0
    for group in np.unique(judged.group):
        of_group = judged.group == group
        right, wrong = judged.p[of_group & judged.right], judged.p[of_group & ~judged.right]
        won += (right[:, None] > wrong).sum() + 0.5 * (right[:, None] == wrong).sum()
        pairs += len(right) * len(wrong)
    return float(won / pairs) if pairs else float("nan")


def interval(judged: Judged, measure: Callable[[Judged], float], seed: int = 0) -> tuple[float, float]:
    """The central 95 % of `measure` when problems are drawn again with replacement."""
    groups, random = np.unique(judged.group), np.random.default_rng(seed)
    return central([measure(judged.of_groups(random.choice(groups, len(groups)))) for _ in range(RESAMPLES)])


def judged_of(p: Sequence[float], right: Sequence[bool], groups: Sequence[str]) -> Judged:
    """Arrays of lists."""
    names = {name: number for number, name in enumerate(dict.fromkeys(groups))}
    return Judged(p=np.array(p, float), right=np.array(right, bool), group=np.array([names[name] for name in groups]))

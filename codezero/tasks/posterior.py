"""The success rate of a task or of a level's tasks, as a Beta posterior that discounts old evidence.

Each observation first scales down all earlier evidence (discounted Thompson sampling, arXiv 1707.09727, eq. for S and
F), so that the posterior follows a policy that learns.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

KEEP = 0.97
"""The factor on a level's evidence with each further task judged at it: a memory of 33 tasks. One task is one trial
however many attempts were made at it, because attempts at one task share its difficulty: the posterior is rather too
wide than too narrow."""
FADE = 0.99
"""The factor on a level's evidence with each task judged at another level: a memory of 100 tasks."""
_GRID = [(i + 0.5) / 100 for i in range(100)]
_LOGS = [(math.log(x), math.log1p(-x)) for x in _GRID]


@dataclass(slots=True)
class Posterior:
    """A Beta posterior of a success rate; uniform while there is no evidence."""

    successes: float = 0.0
    failures: float = 0.0

    @property
    def evidence(self) -> float:
        """The amount of evidence, in trials; at most that of 1 / (1 - keep) observations."""
        return self.successes + self.failures

    @property
    def rate(self) -> float:
        """The share of successes, in 0..1; defined only with evidence."""
        return self.successes / self.evidence

    def observe(self, successes: float, failures: float, keep: float = KEEP) -> None:
        """Adds trials; `keep` is the factor on the evidence before them."""
        self.successes = keep * self.successes + successes
        self.failures = keep * self.failures + failures

    def fade(self) -> None:
        """Discounts the evidence for a task judged at another level."""
        self.successes *= FADE
        self.failures *= FADE

    def p_above(self, rate: float) -> float:
        """Returns the probability that the success rate is above `rate`."""
        return sum(weight for x, weight in self.density() if x > rate)

    def density(self) -> list[tuple[float, float]]:
        """Returns points of 0..1 with probabilities, which sum to 1: Beta(1 + successes, 1 + failures) on a grid."""
        logs = [self.successes * log + self.failures * log_rest for log, log_rest in _LOGS]
        peak = max(logs)
        weights = [math.exp(value - peak) for value in logs]
        total = sum(weights)
        return [(x, weight / total) for x, weight in zip(_GRID, weights, strict=True)]

    def state_dict(self) -> dict[str, float]:
        return {"successes": self.successes, "failures": self.failures}


def p_nearer(one: Posterior, other: Posterior, target: float) -> float:
    """Returns the probability that the first success rate is nearer to `target` than the second; a tie counts half."""
    mine, others = _distances(one, target), _distances(other, target)
    total, farther = 0.0, 1.0
    for distance in sorted(mine.keys() | others.keys()):
        as_far = others.get(distance, 0.0)
        total += mine.get(distance, 0.0) * (farther - as_far / 2)
        farther -= as_far
    return total


def _distances(posterior: Posterior, target: float) -> dict[float, float]:
    """Returns the probability of each distance from `target`."""
    found: dict[float, float] = {}
    for x, weight in posterior.density():
        distance = round(abs(x - target), 9)  # rounded, so that it is the same on both sides
        found[distance] = found.get(distance, 0.0) + weight
    return found

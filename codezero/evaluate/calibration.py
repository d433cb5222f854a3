"""Turns the answers of a judge's model into probabilities that solutions are right, by logistic regression. The weights
in `calibration.yaml` were fitted on executed solutions by `python -m benchmarks.calibrate`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml

_FILE = Path(__file__).with_name("calibration.yaml")
LARGEST_MARGIN = 30.0
"""The largest absolute log-odds: a model's certainty beyond it has no further effect."""
_UNBOUNDED = (-math.inf, math.inf)
_RANGES = {"mean": (-math.inf, 0.0), "total": (-math.inf, 0.0), "passed": (0.0, 1.0), "intercept": (1.0, 1.0)}
"""The least and the largest value of features and intercept; other features have any value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """One model's weights by feature, `intercept` among them; models differ in what they find likely. A feature without
    a weight has no effect."""

    likelihood: Mapping[str, float]
    """The weights of `features`."""
    logit: Mapping[str, float]
    """The weights of `margin` and `passed` alone (Platt scaling)."""

    def by_likelihood(self, found: Mapping[str, float]) -> float:
        """Returns the probability for `features` that a solution is right; nan if one of them is not finite."""
        return _logistic(self.likelihood, found)

    def by_logit(self, yes: float, no: float, passed: float = 0.0) -> float:
        """Returns the probability that a solution is right, from the probabilities of Yes and No and `passed` of
        `features`; nan if they are not probabilities."""
        if not (yes >= 0.0 and no >= 0.0 and yes + no > 0.0):
            return math.nan
        tiny = math.exp(-LARGEST_MARGIN)
        return _logistic(self.logit, {"margin": math.log(max(yes, tiny)) - math.log(max(no, tiny)), "passed": passed})


def features(margin: float, logprobs: Sequence[float], passed: float = 0.0) -> dict[str, float]:
    """Returns the features of a solution that the judge is asked about.

    `margin`: the log-odds of Yes; `mean` and `total` of its tokens' log-probabilities, in nats; `passed`: the share of
    its tests that its dry run passed before it stopped, without a failed one.
    """
    total = sum(logprobs)
    return {"margin": margin, "mean": total / len(logprobs), "total": total, "passed": passed}


def of(judge: str) -> Calibration:
    """Returns the calibration of the model that a judge's name contains, however files and servers write it, such as
    `qwen2.5-coder:1.5b at localhost:11434`. Other models have `default`: logit unscaled, likelihood as for 1.5B."""
    name, table = judge.casefold().replace(":", "-"), _table()
    return next((one for model, one in table.items() if _kind(model) in name), table["default"])


def extremes(weights: Mapping[str, float]) -> tuple[float, float]:
    """Returns the least and the largest probability that these weights give, whatever the features."""
    parts = [sorted(w * end for end in _RANGES.get(name, _UNBOUNDED)) for name, w in weights.items() if w]
    low, high = (sum(part[end] for part in parts) for end in (0, 1))
    return _probability(low), _probability(high)


def _kind(model: str) -> str:
    return model.casefold().removesuffix("-instruct")


@cache
def _table() -> Mapping[str, Calibration]:
    entries = yaml.safe_load(_FILE.read_text(encoding="utf-8"))["models"]
    return {name: Calibration(**entry) for name, entry in entries.items()}


def _logistic(weights: Mapping[str, float], found: Mapping[str, float]) -> float:
    score = sum(weight * (found[name] if name != "intercept" else 1.0) for name, weight in weights.items())
    if not math.isfinite(score):
        return math.nan
    return _probability(score)


def _probability(score: float) -> float:
    return 1.0 / (1.0 + math.exp(-max(-LARGEST_MARGIN, min(LARGEST_MARGIN, score))))

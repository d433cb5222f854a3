"""From what a judge's model says to a probability of being right: logistic regressions, fitted once on executed
solutions and kept in `calibration.yaml` (`python -m benchmarks.calibrate` fits them; `case`, `benchmarks.per_test`)."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml

from codezero.prompts.evaluator import review_messages, value_messages

_FILE = Path(__file__).with_name("calibration.yaml")
_LEAST_P = 1e-6
"""Probabilities closer to 0 or 1 have the log-odds of this one."""
LARGEST_MARGIN = 30.0
"""Log-odds beyond which a model's word for word certainty is not followed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Weights by feature, `intercept` among them; each model's own, since models differ in what they find likely. A
    feature that is not named counts for nothing."""

    likelihood: Mapping[str, float]
    """Of `features`."""
    logit: Mapping[str, float]
    """Of `margin` and `passed` alone (Platt scaling)."""
    case: Mapping[str, float] | None = None
    """Of `case_features`; None where they have not been fitted (`python -m benchmarks.per_test`)."""

    def by_likelihood(self, found: Mapping[str, float]) -> float:
        """From `features`; nan where one of them is no number."""
        return _logistic(self.likelihood, found)

    def by_case(self, p_whole: float, logprob: float) -> float:
        """Probability that one test passes; nan where `p_whole` or `logprob` is no number.

        It may be below that of all tests, which knows less: kept above it, AUC was 0.77 instead of 0.82.
        """
        assert self.case is not None
        return _logistic(self.case, case_features(p_whole, logprob))

    def by_logit(self, yes: float, no: float, passed: float = 0.0) -> float:
        """From the probabilities of Yes and No, and as `features` has it `passed`; nan where they are none."""
        if not (yes >= 0.0 and no >= 0.0 and yes + no > 0.0):
            return math.nan
        tiny = math.exp(-LARGEST_MARGIN)
        return _logistic(self.logit, {"margin": math.log(max(yes, tiny)) - math.log(max(no, tiny)), "passed": passed})


def features(margin: float, logprobs: Sequence[float], passed: float = 0.0) -> dict[str, float]:
    """What is known of a solution that the judge is asked about.

    `margin`: log-odds of Yes; `mean` and `total` of its tokens' log-probabilities, in nats; `passed`: share of its
    tests that its dry run has passed before it stopped, none of them having failed.
    """
    total = sum(logprobs)
    return {"margin": margin, "mean": total / len(logprobs), "total": total, "passed": passed}


def case_features(p_whole: float, logprob: float) -> dict[str, float]:
    """What is known of a single test: `whole`, the log-odds of the whole solution, and `value`, the square root of
    minus the log-probability of the test's expected value. The root keeps long values, of many tokens, within reach of
    short ones."""
    p = min(max(p_whole, _LEAST_P), 1.0 - _LEAST_P)
    return {"whole": math.log(p / (1.0 - p)), "value": math.sqrt(max(-logprob, 0.0))}


def of(model: str) -> Calibration:
    """The model's own calibration; for one that has none, `default`: no scaling of its word, likelihood as of 1.5B."""
    table = _table()
    return table.get(model, table["default"])


def prompt_hash() -> str:
    """What the weights in the file were fitted with: they are for these words only."""
    chats = [review_messages("question", "tests", "code"), value_messages("code", "left", "right")]
    return hashlib.sha256(repr(chats).encode()).hexdigest()[:16]


@cache
def _table() -> Mapping[str, Calibration]:
    entries = yaml.safe_load(_FILE.read_text(encoding="utf-8"))["models"]
    return {name: Calibration(**entry) for name, entry in entries.items()}


def _logistic(weights: Mapping[str, float], found: Mapping[str, float]) -> float:
    score = sum(weight * (found[name] if name != "intercept" else 1.0) for name, weight in weights.items())
    if not math.isfinite(score):
        return math.nan
    return 1.0 / (1.0 + math.exp(-max(-LARGEST_MARGIN, min(LARGEST_MARGIN, score))))

"""Computes the reward of a verdict from named, weighted parts."""

from __future__ import annotations

from collections.abc import Mapping

from codezero.config import RewardConfig
from codezero.evaluate.rules import FAMILIES, RULES
from codezero.types import FinishReason, Outcome, Reward, Verdict


def reward(verdict: Verdict, finish: FinishReason, config: RewardConfig) -> Reward:
    """Returns the reward of one judged rollout, in [-1.2, 1.2]; `total` is the sum of the parts.

    Parts: `correct` (weight x predicted probability, rounded if `hard_verdict`), `structure`, `formatting` and
    `alignment` (weight x mean score of the family's rules) and `finished`. Without code `format` replaces all but the
    last, without text all parts; an attempt that no rule has read has no parts of families. The preset reward=faithful
    gives the public CodeZero node's rewards.

    Raises ValueError: the verdict is unsure or unavailable, which must not become a number.
    """
    if not verdict.is_decided:
        raise ValueError(f"a verdict that is {verdict.outcome.value} has no reward")
    parts: dict[str, float] = {}
    if verdict.outcome is Outcome.NO_TEXT:
        parts["format"] = config.no_text
    else:
        if verdict.outcome is Outcome.NO_CODE:
            parts["format"] = config.no_code
        else:
            assert verdict.p_correct is not None
            probability = float(verdict.p_correct >= 0.5) if config.hard_verdict else verdict.p_correct
            parts["correct"] = config.correct * probability
            for family in FAMILIES if verdict.rules else ():
                parts[family] = getattr(config, family) * _mean(verdict.rules, family)
        parts["finished"] = config.finished if finish is FinishReason.STOP else config.truncated
    return Reward(total=sum(parts.values()), parts=parts)


def _mean(rules: Mapping[str, float], family: str) -> float:
    """Returns the mean score of the family's rules that applied; 1 if none did."""
    scores = [score for name, score in rules.items() if RULES[name].family == family]
    return sum(scores) / len(scores) if scores else 1.0

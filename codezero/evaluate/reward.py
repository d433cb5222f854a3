"""From a verdict to a reward: one pure function, named and weighted parts."""

from __future__ import annotations

from codezero.config import RewardConfig
from codezero.types import FinishReason, Outcome, Reward, Verdict


def reward(verdict: Verdict, finish: FinishReason, config: RewardConfig) -> Reward:
    """The reward of one judged rollout; `total` is the sum of the parts.

    Parts: `correct` (weight x predicted probability, rounded when `hard_verdict`) and `rules` (weight x mean rule
    score), or `format` in place of both when there is nothing to judge; `finished` in every case.
    The preset reward=faithful gives the table of SPEC §3.

    Raises ValueError for an unavailable verdict: an outage must not become a number.
    """
    if verdict.outcome is Outcome.UNAVAILABLE:
        raise ValueError("an unavailable verdict has no reward")
    parts: dict[str, float] = {}
    if verdict.outcome is Outcome.NO_TEXT:
        parts["format"] = config.no_text
    elif verdict.outcome is Outcome.NO_CODE:
        parts["format"] = config.no_code
    else:
        assert verdict.p_correct is not None
        probability = float(verdict.p_correct >= 0.5) if config.hard_verdict else verdict.p_correct
        parts["correct"] = config.correct * probability
        parts["rules"] = config.rules * sum(verdict.rules.values()) / max(len(verdict.rules), 1)
    parts["finished"] = config.finished if finish is FinishReason.STOP else config.truncated
    return Reward(total=sum(parts.values()), parts=parts)

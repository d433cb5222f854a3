"""The groups of GRPO that a test writer learns from: its answers about one candidate are one group."""

from __future__ import annotations

from collections.abc import Sequence

from codezero.types import FinishReason, Outcome, Rollout, RolloutGroup, ScoredGroup, Verdict
from codezero.verifier.exercises import Exercise
from codezero.verifier.reward import JudgedAnswer
from codezero.verifier.write import CaseAnswer


def scored_group(
    exercise: Exercise,
    answers: Sequence[CaseAnswer],
    judged: Sequence[JudgedAnswer | None],
    *,
    model_id: str,
    policy_version: int,
) -> ScoredGroup:
    """Returns the group of the answers about one candidate with their rewards; those that are not judged are masked."""
    # Only the tokens are trained on.
    rollouts = (Rollout(text="", finish=FinishReason.STOP, tokens=answer.tokens) for answer in answers)
    return ScoredGroup(
        group=RolloutGroup(
            peer_id="self",
            model_id=model_id,
            policy_version=policy_version,
            task=exercise.problem.task,
            rollouts=tuple(rollouts),
        ),
        verdicts=tuple(Verdict(outcome=Outcome.JUDGED if one else Outcome.UNSURE) for one in judged),
        rewards=tuple(one.reward if one else None for one in judged),
    )

"""Asks a judge about the solutions of several groups at a time; a judge that fails leaves some without an opinion."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from codezero.errors import EvaluatorError
from codezero.evaluate.judge import Judge, Opinion, Submission

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class OpenGroup:
    """The solutions of a group that a judge is asked about."""

    task_id: str
    external: bool
    """True if the group is another node's."""
    submissions: Sequence[Submission]


def ask(judge: Judge, groups: Sequence[OpenGroup]) -> list[list[Opinion]]:
    """Returns the judge's opinions by group. If it fails over several groups, it is asked about each of them alone, so
    that a group which it cannot take costs no other its opinions."""
    asked = [one for one in groups if one.submissions]
    try:
        for one in asked:
            judge.permit(one.external)
        submissions = [submission for one in asked for submission in one.submissions]
        found = iter(judge.judge(submissions) if submissions else ())
    except EvaluatorError as error:
        if len(asked) > 1:
            return [opinions for one in groups for opinions in ask(judge, [one])]
        logger.warning(
            "attempts at task %s stay without a verdict: %s. They are not trained on, and the node continues; "
            "if it happens in every round, check that the judge runs (evaluator.*)",
            asked[0].task_id,
            error,
        )
        return [[Opinion(p_correct=None, reply=str(error))] * len(one.submissions) for one in groups]
    return [list(islice(found, len(one.submissions))) for one in groups]

"""The evaluator: rules and the judge's opinion become verdicts and rewards, a whole round at once."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from codezero.config import RewardConfig
from codezero.errors import EvaluatorError
from codezero.evaluate import rules
from codezero.evaluate.judge import Judge, Opinion
from codezero.evaluate.reward import reward
from codezero.ports import Progress
from codezero.prompts import solver as prompt
from codezero.testcases import parse_tests
from codezero.types import Outcome, RolloutGroup, ScoredGroup, SwarmRound, Task, Verdict

logger = logging.getLogger(__name__)


class FrozenEvaluator:
    """ports.Evaluator. Equal solutions of a task are judged once; a group with any rollout unjudged stays unscored."""

    def __init__(self, judge: Judge, config: RewardConfig, progress: Progress) -> None:
        self._judge, self._config, self._progress = judge, config, progress

    def score(self, swarm_round: SwarmRound) -> tuple[ScoredGroup, ...]:
        """All groups of the round, own ones first, each with G verdicts, and G rewards unless it stays unscored."""
        groups = [(group, False) for group in swarm_round.local] + [(group, True) for group in swarm_round.external]
        scored = []
        for done, (group, external) in enumerate(groups, start=1):
            scored.append(self._score_group(group, external))
            self._progress("score", done, len(groups))
        return tuple(scored)

    def _score_group(self, group: RolloutGroup, external: bool) -> ScoredGroup:
        codes = [prompt.parse(r.text) if isinstance(r.text, str) else None for r in group.rollouts]
        opinions = self._ask(group.task, [code for code in codes if code is not None])
        verdicts = tuple(
            self._verdict(group.task, rollout.text, code, opinions)
            for rollout, code in zip(group.rollouts, codes, strict=True)
        )
        unavailable = any(verdict.outcome is Outcome.UNAVAILABLE for verdict in verdicts)
        rewards = (
            ()
            if unavailable
            else tuple(
                reward(verdict, rollout.finish, self._config)
                for verdict, rollout in zip(verdicts, group.rollouts, strict=True)
            )
        )
        return ScoredGroup(group=group, verdicts=verdicts, rewards=rewards, external=external)

    def _ask(self, task: Task, codes: Sequence[str]) -> dict[str, Opinion]:
        distinct = list(dict.fromkeys(codes))
        if not distinct:
            return {}
        try:
            found = self._judge.judge([(task, code) for code in distinct])
        except EvaluatorError as error:
            logger.warning("group of task %s stays unscored: %s", task.task_id, error)
            found = [Opinion(p_correct=None, reply=str(error))] * len(distinct)
        return dict(zip(distinct, found, strict=True))

    def _verdict(self, task: Task, text: object, code: str | None, opinions: dict[str, Opinion]) -> Verdict:
        if code is None:
            return Verdict(outcome=Outcome.NO_CODE if isinstance(text, str) else Outcome.NO_TEXT)
        opinion = opinions[code]
        outcome = Outcome.UNAVAILABLE if opinion.p_correct is None else Outcome.JUDGED
        assert isinstance(text, str)  # there is code in it
        scores = rules.check(code, text, task, parse_tests(task.tests))
        return Verdict(
            outcome=outcome,
            p_correct=opinion.p_correct,
            rules={name: score.score for name, score in scores.items()},
            reasons={name: score.reason for name, score in scores.items() if score.reason},
            reply=opinion.reply,
        )

"""One batch of a test writer, stage by stage. It repeats it for ever.

    draw ─ReferenceProblem─► solve ─RolloutGroup─► score ─Exercise─► cases ─CaseAnswer─► try ─JudgedAnswer─► learn
                                                                                    │
                                                                                    └─► again ─JudgedAttempts─► learn

The model writes the solutions without the adapters that it writes cases with, so that what it learns about cases does
not change what they are tried on. A solver that learns too has adapters of its own.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean

from codezero.loop import StageClock
from codezero.ports import Learner, Progress
from codezero.reports import CasesReport, SolverReport, UpdateReport
from codezero.types import ScoredGroup
from codezero.verifier.exercises import CandidateSolver, Problems
from codezero.verifier.judging import Answered, judge_answers
from codezero.verifier.pair import LearningSolver
from codezero.verifier.reward import HALF
from codezero.verifier.write import CaseWriter
from codezero.workers import Workers


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifierStages:
    """The parts of a batch."""

    problems: Problems
    candidates: CandidateSolver
    writer: CaseWriter
    workers: Workers
    learner: Learner
    solver: LearningSolver | None
    """None if the solver is not trained."""
    progress: Progress
    on_stage: Callable[[str], None]
    """Called with the name of each stage as it begins."""


def run_batch(number: int, stages: VerifierStages, size: int, seed: int) -> CasesReport:
    """Has cases written on `size` problems and learns from them; returns the report.

    Raises TaskError: there are no problems; WorkerError, RolloutError or TrainingError: a stage is impossible.
    """
    clock = StageClock(stages.on_stage)
    with clock.stage("draw"):
        problems = stages.problems.draw(size)
    with clock.stage("solve"):
        solved = stages.candidates.solve(problems)
    with clock.stage("score"):
        attempted = stages.candidates.judge(solved)
        exercises = stages.candidates.choose(attempted, f"{seed}/{number}")
    with clock.stage("cases"):
        written = list(zip(exercises, stages.writer.write([one.subject for one in exercises]), strict=True))
        fitting = [(one, answers) for one, answers in written if all(answer.tokens for answer in answers)]
    with clock.stage("try"):
        answered = []
        for done, (one, answers) in enumerate(fitting):
            stages.progress("try", done, len(fitting))
            judged = judge_answers(stages.workers, one, [answer.cases for answer in answers])
            answered.append(Answered(one, answers, judged))
    second = []
    if stages.solver is not None:
        with clock.stage("again"):
            second = stages.solver.try_again(answered, f"{seed}/{number}")
    with clock.stage("learn"):
        # The answers about one candidate are one group of GRPO.
        groups = [
            ScoredGroup.of_tokens(
                [answer.tokens for answer in one.answers],
                [None if found is None else found.reward for found in one.judged],
                policy_version=stages.learner.policy_version,
            )
            for one in answered
        ]
        update = stages.learner.step(groups)
        solver = None if stages.solver is None else stages.solver.learn(attempted, second)
    dropped = Counter(stages.problems.take_left_out()) + Counter(stages.candidates.take_left_out())
    dropped += Counter({"prompt_too_long": len(written) - len(fitting)})
    return _report(number, answered, update, solver, dict(dropped), clock.seconds)


def _report(
    number: int,
    answered: Sequence[Answered],
    update: UpdateReport,
    solver: SolverReport | None,
    dropped: dict[str, int],
    seconds: dict[str, float],
) -> CasesReport:
    told = [(one.exercise.is_right, found) for one in answered for found in one.judged if found is not None]

    def mean(values: Sequence[float]) -> float | None:
        return fmean(values) if values else None

    answers = [answer for one in answered for answer in one.answers]
    return CasesReport(
        batch=number,
        num_groups=len(answered),
        num_answers=len(answers),
        num_masked=len(answers) - len(told),
        candidates_right=mean([is_right for is_right, _ in told]),
        valid=mean([found.valid for _, found in told]),
        approved=mean([found.approves for _, found in told]),
        right=mean([found.right for _, found in told]),
        reward_mean=mean([found.reward.total for _, found in told]),
        reward_approving=mean([1.0 if is_right else HALF for is_right, _ in told]),
        dropped=dropped,
        policy_version=update.policy_version,
        loss=update.loss,
        grad_norm=update.grad_norm,
        skipped=update.skipped.value if update.skipped is not None else None,
        num_tokens=sum(len(answer.tokens.completion_ids) for answer in answers if answer.tokens is not None),
        seconds=seconds,
        finished_at_s=time.time(),
        solver=solver,
    )

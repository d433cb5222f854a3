"""One batch of a proposer, stage by stage. A proposer repeats it for ever.

    difficulty ─level─► write ─Draft─► check ─Proposal─► publish ───► solvers draw, solve, score
        ▲                                 │ rejected                             │
        │                                 ▼                                      ▼
        └──────── JudgedProposal ────── learn ◄─────── listen ◄────────── ProposalFeedback

Feedback may be on earlier batches, since solvers answer when they have drawn a proposal. With a test writer, problems
that have passed the checks get its tests before they are published.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean

from codezero.loop import StageClock
from codezero.ports import Solvers
from codezero.proposals import BatchReport, Proposal, WriterReport
from codezero.proposer.checker import Checker
from codezero.proposer.difficulty import Difficulty
from codezero.proposer.feedback import FeedbackBook
from codezero.proposer.jobs import UNCHECKED
from codezero.proposer.learn import ProposalLearner
from codezero.proposer.write import Draft, Writer
from codezero.proposer.written_tests import WrittenTests

Checked = tuple[Draft, Proposal | str]
"""A draft with its proposal, or the reason why it has none."""
POLL_S = 2.0
"""Seconds between two requests for feedback."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposerStages:
    """The parts of a batch."""

    difficulty: Difficulty
    writer: Writer
    checker: Checker
    solvers: Solvers
    feedback: FeedbackBook
    learner: ProposalLearner | None
    """The learner; None if the model is not trained."""
    tests: WrittenTests | None = None
    """Gives problems tests by a test writer; None without one."""
    on_stage: Callable[[str], None]
    """Called with the name of each stage as it begins."""


def run_batch(number: int, stages: ProposerStages, size: int, patience_s: float) -> tuple[BatchReport, list[Proposal]]:
    """Writes `size` problems, and returns the report on them and on feedback to earlier ones, and the valid problems.

    Waits until solvers have answered half of the published problems, at most `patience_s` seconds. Batches without
    valid problems, solvers or feedback are normal.
    """
    clock = StageClock(stages.on_stage)
    with clock.stage("write"):
        choice = stages.difficulty.choose()
        drafts = stages.writer.write(choice.level, size)
    with clock.stage("check"):
        checked: list[Checked] = [(draft, stages.checker.check(draft)) for draft in drafts]
    written = None
    if stages.tests is not None:
        checked, written = _with_tests(stages.tests, checked, clock)
    valid = [found for _, found in checked if isinstance(found, Proposal)]
    with clock.stage("publish"):
        for proposal in valid:
            stages.feedback.expect(proposal.proposal_id, choice.level)
        stages.solvers.publish(valid)
    with clock.stage("listen"):
        if stages.learner is not None:
            for draft, found in checked:
                if draft.tokens is not None and found != UNCHECKED:
                    proposal_id = found.proposal_id if isinstance(found, Proposal) else None
                    stages.learner.keep(draft.level, draft.tokens, proposal_id)
        _listen(stages, [proposal.proposal_id for proposal in valid], patience_s)
        judged = stages.feedback.end_batch()
        stages.difficulty.observe(judged)
    with clock.stage("learn"):
        lesson = stages.learner.learn(judged) if stages.learner is not None else None
    update = lesson.update if lesson is not None else None
    report = BatchReport(
        batch=number,
        level=choice.level,
        reason=choice.reason,
        num_written=len(drafts),
        num_valid=len(valid),
        rejected=dict(sorted(Counter(found for _, found in checked if isinstance(found, str)).items())),
        num_judged=len(judged),
        signal_share=fmean(one.differed for one in judged) if judged else None,
        success={str(level): rate for level, rate in stages.difficulty.success().items()},
        dropped=dict(Counter(stages.solvers.take_rejected()) + Counter(stages.feedback.take_dropped())),
        reward_mean=lesson.reward_mean if lesson is not None else None,
        loss=update.loss if update is not None else None,
        skipped=update.skipped.value if update is not None and update.skipped is not None else None,
        network=stages.solvers.status(),
        seconds=clock.seconds,
        finished_at_s=time.time(),
        writer=written,
    )
    return report, valid


def _with_tests(
    tests: WrittenTests, checked: Sequence[Checked], clock: StageClock
) -> tuple[list[Checked], WriterReport | None]:
    """Returns the checked drafts, of which those that may be published have the tests that `tests` gives them."""
    fit = [(found, draft.answer.solution) for draft, found in checked if draft.answer and isinstance(found, Proposal)]
    proposals, report = tests.give(fit, clock)
    given = iter(proposals)
    return [(draft, next(given) if isinstance(found, Proposal) else found) for draft, found in checked], report


def _listen(stages: ProposerStages, published: Sequence[str], patience_s: float) -> None:
    """Collects feedback until solvers have answered half of the published problems, or `patience_s` has passed."""
    deadline_s = time.monotonic() + (patience_s if published else 0.0)
    while True:
        stages.feedback.add(stages.solvers.collect())
        answered = sum(map(stages.feedback.has_feedback, published))
        left_s = deadline_s - time.monotonic()
        if 2 * answered >= len(published) or left_s <= 0:
            return
        time.sleep(min(POLL_S, left_s))

"""Decides whether a solver takes up a peer's proposal, whose proposer may be careless or hostile."""

from __future__ import annotations

from collections.abc import Callable, Collection

from codezero.prompts import solver as prompt
from codezero.proposals import Proposal
from codezero.proposer import jobs
from codezero.proposer.duplicates import Seen
from codezero.types import Task
from codezero.workers import Workers

WhyNot = Callable[[Proposal], str | None]


def refusal(workers: Workers, fits: Callable[[Proposal], bool], held_out: Collection[Task]) -> WhyNot:
    """Returns a function that gives the reason to refuse a proposal, or None. It refuses what the checks find unfit,
    what does not fit the model, and what has the words or the tests of a held-out question."""
    measured = Seen(remembered=len(held_out), similarity=1.0)
    for task in held_out:
        measured.add(prompt.without_tests(task.question, task.tests), task.tests)

    def why_not(proposal: Proposal) -> str | None:
        question, tests = proposal.question, proposal.tests
        reason = jobs.why_not(workers, question, tests)
        if reason is None and not fits(proposal):
            reason = "too_long"
        return "held_out" if reason is None and measured.why_not(question, tests) else reason

    return why_not

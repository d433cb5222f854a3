"""Decides whether a solver takes up a peer's proposal, whose proposer may be careless or hostile."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection

from codezero.prompts import solver as prompt
from codezero.proposals import Proposal
from codezero.proposer import jobs
from codezero.proposer.duplicates import Seen
from codezero.types import Task
from codezero.workers import Workers

SIMILARITY = 0.7
"""The similarity of a question to a held-out one, as in `Seen`, from which a proposal is refused. With it and the
tests, 3 of the 374 problems 601 to 974 of MBPP would be; two of these have a test of a held-out problem."""
_TOKEN = re.compile(r"\w+|[^\w\s]")

WhyNot = Callable[[Proposal], str | None]


def refusal(workers: Workers, fits: Callable[[Proposal], bool], held_out: Collection[Task]) -> WhyNot:
    """Returns a function that gives the reason to refuse a proposal, or None. It refuses what the checks find unfit,
    what does not fit the model, and what has a question like a held-out one or any of its tests."""
    measured = Seen(
        remembered=0,
        similarity=SIMILARITY,
        known=[prompt.without_tests(task.question, task.tests) for task in held_out],
    )
    held_out_tests = frozenset[str]().union(*(_asserts(task.tests) for task in held_out))

    def why_not(proposal: Proposal) -> str | None:
        question, tests = proposal.question, proposal.tests
        reason = jobs.why_not(workers, question, tests)
        if reason is None and not fits(proposal):
            reason = "too_long"
        is_measured = measured.why_not(question, tests) or not held_out_tests.isdisjoint(_asserts(tests))
        return "held_out" if reason is None and is_measured else reason

    return why_not


def _asserts(tests: str) -> set[str]:
    """Returns the lines of tests with an assert, in one layout and with one kind of quotes."""
    lines = (" ".join(_TOKEN.findall(line.replace('"', "'"))) for line in tests.splitlines())
    return {line for line in lines if line.startswith("assert ")}

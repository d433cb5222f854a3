"""The records of proposing: a proposer's problems, the feedback of solvers on them, and the report of a batch.

    propose ─Proposal─► solvers: draw, solve, score ─ProposalFeedback─► difficulty, learning ─► BatchReport

All are frozen and keyword-only. This module imports the standard library only.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

LEVELS = ("beginner", "easy", "medium", "hard", "expert")
"""The names of difficulty levels 1 to 5."""


def problem_id(question: str, tests: str) -> str:
    """Returns the first 32 hex digits of the SHA-256 of question and tests; the same question with other tests is
    another problem.

    Each is hashed by itself first, so that a text moved from one to the other gives another id.
    """
    parts = (hashlib.sha256(part.encode("utf-8", "replace")).digest() for part in (question, tests))
    return hashlib.sha256(b"".join(parts)).hexdigest()[:32]


def level_name(level: int | str) -> str:
    """Returns a level with its name, such as "2 easy"; an unknown level is returned alone."""
    return next((f"{number} {name}" for number, name in enumerate(LEVELS, 1) if str(number) == str(level)), str(level))


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A problem with unit tests that a proposer wrote; untrusted if it came over the network."""

    peer_id: str
    """The proposer's peer id."""
    model_id: str
    question: str
    tests: str
    """Assert statements, one per line."""
    difficulty: int | None = None
    """The level that the model was asked for, 1 (beginner) to 5 (expert); None if the wire format does not carry it."""
    raw: str = ""
    """The model's whole answer, by which GenRL's feedback names a proposal; empty if the wire format does not carry
    it."""

    @property
    def proposal_id(self) -> str:
        """The `problem_id`, equal on all nodes."""
        return problem_id(self.question, self.tests)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalFeedback:
    """The results of one peer's G attempts at a proposal. Made by a solver, read by the proposer."""

    proposal_id: str
    peer_id: str
    p_correct: tuple[float, ...]
    """The predicted probabilities that all tests pass, [G] in 0..1."""
    rewards: tuple[float, ...]
    """The attempts' rewards, [G] in -1.2..1.2."""
    address: str = ""
    """The network address that it came from, as observed and not as claimed; all identities of one address share it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterReport:
    """The part of a batch in which a test writer writes tests for problems. A test is discriminating if an attempt of
    the solver fails it; one that no attempt disagrees with teaches nothing."""

    num_problems: int
    num_cases: int
    """The number of different cases that it wrote."""
    num_valid: int
    """The number of those that the problem's own solution passes."""
    num_with_one: int
    """The number of problems that have a discriminating test."""
    num_with_three: int
    """The number of problems that have three or more."""
    batch: int = 0
    """The number of the test writer's batch after which its weights were saved; 0 in sums, and in reports of versions
    that did not record it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchReport:
    """A proposer's batch in numbers: one line of `logs/proposals.jsonl`. Made by proposer, read by observe."""

    batch: int
    level: int
    """The level of this batch's problems, 1 to 5."""
    reason: str
    """The reason for this level, in words."""
    num_written: int
    num_valid: int
    rejected: Mapping[str, int]
    """Numbers of problems written but not published, by reason."""
    num_judged: int
    """The number of own proposals with new feedback of solvers."""
    signal_share: float | None
    """The share of those whose attempts had different results; None if there are none."""
    success: Mapping[str, float]
    """The estimated success rate of the swarm by level, for levels with any evidence."""
    dropped: Mapping[str, int]
    """Numbers of peers' feedback that was not used, by reason."""
    reward_mean: float | None
    """The mean reward of the proposals trained on; None without training."""
    loss: float | None
    skipped: str | None
    """The reason why there was no update; None if there was one, or training is off."""
    network: str
    """The state of the network in a few words."""
    seconds: Mapping[str, float]
    """Wall seconds by stage: write, check, then solve, cases and try of a test writer, publish, listen, learn."""
    finished_at_s: float = 0.0
    """Unix time of the batch's end, in seconds; 0 in reports of versions that did not record it."""
    writer: WriterReport | None = None
    """The test writer's part; None without `proposer.writer`, and before the test writer's first batch."""

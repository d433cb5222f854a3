"""The records of proposing: what a proposer writes, what its solvers say of it, and what came of a batch.

    propose ─Proposal─► solvers: draw, solve, score ─ProposalFeedback─► difficulty, learning ─► BatchReport

All are frozen and keyword-only. This module imports the standard library only.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

LEVELS = ("beginner", "easy", "medium", "hard", "expert")
"""Names of difficulty 1 to 5."""


def problem_id(question: str, tests: str) -> str:
    """First 32 hex digits of the SHA-256 of question and tests: other tests to the same question are another problem.

    Each is hashed by itself first, so that nothing can move from one into the other.
    """
    parts = (hashlib.sha256(part.encode("utf-8", "replace")).digest() for part in (question, tests))
    return hashlib.sha256(b"".join(parts)).hexdigest()[:32]


def level_name(level: int | str) -> str:
    """As "2 easy"; of one that there is not, the level alone."""
    return next((f"{number} {name}" for number, name in enumerate(LEVELS, 1) if str(number) == str(level)), str(level))


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A problem with unit tests that a proposer wrote; untrusted wherever it came over the network."""

    peer_id: str
    """Who proposed it."""
    model_id: str
    question: str
    tests: str
    """Assert statements, one a line."""
    difficulty: int | None = None
    """The level it was asked for, 1 (beginner) to 5 (expert); None where the wire does not say."""
    raw: str = ""
    """The model's whole answer: how GenRL's feedback names a proposal. Empty where the wire does not carry it."""

    @property
    def proposal_id(self) -> str:
        """The same problem has the same id everywhere."""
        return problem_id(self.question, self.tests)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalFeedback:
    """What one peer's G attempts at a proposal came to. Made by a solver, read by the proposer."""

    proposal_id: str
    peer_id: str
    p_correct: tuple[float, ...]
    """[G] predicted probability that all tests pass, 0..1."""
    rewards: tuple[float, ...]
    """[G], -1.2..1.2"""
    address: str = ""
    """The network address that is answerable for it, as seen and not as claimed; equal for all identities of one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchReport:
    """A proposer's batch in numbers: one line of `logs/proposals.jsonl`. Made by proposer, read by observe."""

    batch: int
    level: int
    """The level that this batch was written at."""
    reason: str
    """Why this level, in words."""
    num_written: int
    num_valid: int
    rejected: Mapping[str, int]
    """What was written but not published, by reason."""
    num_judged: int
    """Own proposals that solvers have newly given feedback on."""
    signal_share: float | None
    """Share of those whose attempts did not all come to the same; None if there are none."""
    success: Mapping[str, float]
    """Estimated success rate of the swarm by level, for levels with any evidence."""
    dropped: Mapping[str, int]
    """Feedback of peers that was not used, by reason."""
    reward_mean: float | None
    """Mean reward of the proposals trained on; None without training."""
    loss: float | None
    skipped: str | None
    """Why there was no update; None if there was one, or training is off."""
    network: str
    """The state of the network in a few words."""
    seconds: Mapping[str, float]
    """Wall seconds by stage: write, check, publish, listen, learn."""
    finished_at_s: float = 0.0
    """Unix time at which it was over; 0 in reports of versions that did not note it."""

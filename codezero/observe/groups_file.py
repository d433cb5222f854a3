"""The tasks, solutions and verdicts of rounds as JSON, one round per line, to inspect solutions and the reasons of
their verdicts. Of a run only two files of bounded size are kept.

All text in them is untrusted: it comes from models, datasets and peers.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

import msgspec

from codezero.runtime.files import append, encodable
from codezero.runtime.rotation import earlier, rotate, set_aside
from codezero.types import RolloutGroup, RoundId, ScoredGroup

logger = logging.getLogger(__name__)

NAME = "groups.jsonl"
MAX_FILE_BYTES = 20_000_000
MAX_TEXT = 20_000
"""Most characters of a question, tests or solution; longer ones from peers are cut."""


class SeenTask(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    origin: str
    difficulty: int | None
    question: str
    tests: str


class SeenCase(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one test: pass, fail or unknown, and the reason."""

    outcome: str
    reason: str


class SeenRollout(msgspec.Struct, frozen=True, kw_only=True):
    """A solution and its verdict; `reward` is None if the verdict is unknown."""

    text: str
    finish: str
    outcome: str
    p_correct: float | None
    reward: float | None
    parts: dict[str, float]
    rules: dict[str, float]
    reasons: dict[str, str]
    cases: list[SeenCase]


class SeenGroup(msgspec.Struct, frozen=True, kw_only=True):
    peer_id: str
    model_id: str
    external: bool
    trained: bool
    """True if the round trained on the group."""
    task: SeenTask
    rollouts: list[SeenRollout]


class SeenRound(msgspec.Struct, frozen=True, kw_only=True):
    """One line of `groups.jsonl`."""

    round: int
    groups: list[SeenGroup]


class GroupsFile:
    """Writer of `groups.jsonl`; older rounds are in `groups.1.jsonl`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._warned = False

    def begin(self) -> None:
        """Starts a new file; those of an earlier run are renamed to free names such as `groups.2.jsonl`."""
        for path in (earlier(self._path), self._path):
            set_aside(path, first=2)

    def append(self, round_id: RoundId, scored: Sequence[ScoredGroup], chosen: Sequence[ScoredGroup]) -> None:
        """Appends a round. A failed write, as on a full or read-only disk, is logged once, as a warning."""
        trained = {id(one.group) for one in chosen}
        groups = [_group(one, id(one.group) in trained) for one in scored]
        line = msgspec.json.encode(SeenRound(round=round_id.number, groups=groups)) + b"\n"
        try:
            rotate(self._path, MAX_FILE_BYTES - len(line))
            append(self._path, line)
        except OSError as error:
            if not self._warned:
                logger.warning(
                    "cannot write %s: %s; the node continues, but its solutions cannot be looked at: free space or "
                    "make the folder writable",
                    self._path,
                    error.strerror,
                )
            self._warned = True


def _group(scored: ScoredGroup, trained: bool) -> SeenGroup:
    group = scored.group
    return SeenGroup(
        peer_id=group.peer_id,
        model_id=group.model_id,
        external=scored.external,
        trained=trained,
        task=SeenTask(
            id=group.task.task_id,
            origin=group.task.environment or group.task.origin.value,
            difficulty=group.task.difficulty,
            question=_short(group.task.question),
            tests=_short(group.task.tests),
        ),
        rollouts=[_rollout(group, scored, number) for number in range(len(group.rollouts))],
    )


def _rollout(group: RolloutGroup, scored: ScoredGroup, number: int) -> SeenRollout:
    rollout, verdict = group.rollouts[number], scored.verdicts[number]
    reward = scored.rewards[number] if scored.rewards else None
    return SeenRollout(
        text=_short(rollout.text),
        finish=rollout.finish.value,
        outcome=verdict.outcome.value,
        p_correct=verdict.p_correct,
        reward=None if reward is None else reward.total,
        parts={} if reward is None else dict(reward.parts),
        rules=dict(verdict.rules),
        reasons={name: _short(reason) for name, reason in verdict.reasons.items()},
        cases=[SeenCase(outcome=case.outcome.value, reason=_short(case.reason)) for case in verdict.cases],
    )


def _short(text: str) -> str:
    left_out = len(text) - MAX_TEXT
    return encodable(text if left_out <= 0 else f"{text[:MAX_TEXT]}\n[{left_out} more characters]")

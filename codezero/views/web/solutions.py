"""A round's tasks, solutions and verdicts, cut to the size of a page, however much a hostile peer or file holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from codezero.observe.groups_file import SeenCase, SeenGroup, SeenRollout, SeenTask

T = TypeVar("T")
GROUPS_A_PAGE = 8
MAX_ROLLOUTS, MAX_CASES, MAX_ENTRIES = 16, 32, 32
"""The most solutions of a group, tests of a solution and entries of a mapping that are shown."""
MAX_TEXT, MAX_SHORT = 8000, 300
"""The most characters of a question, tests or solution, and of a reason or name."""
PAGE_TEXT = 400_000
"""The budget of characters for all texts of a page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownGroup:
    """A group as a page shows it."""

    number: int
    """The group's place in the round, from 1."""
    group: SeenGroup
    num_rollouts: int
    """The number of its solutions; fewer may be shown."""


def shown(groups: Sequence[SeenGroup], page: int) -> list[ShownGroup]:
    """Returns the groups of a page, which is counted from 1."""
    first = (page - 1) * GROUPS_A_PAGE
    cut = _Cut(PAGE_TEXT)
    return [
        ShownGroup(number=first + at + 1, group=cut.group(group), num_rollouts=len(group.rollouts))
        for at, group in enumerate(groups[first : first + GROUPS_A_PAGE])
    ]


class _Cut:
    """A budget of characters for texts, which are cut shorter the less of it is left."""

    def __init__(self, budget: int) -> None:
        self._left = budget

    def text(self, text: str, most: int = MAX_SHORT) -> str:
        # at most half of what is left, so that part of every later text is still shown
        most = min(most, max(40, self._left // 2))
        self._left -= min(len(text), most)
        return text if len(text) <= most else f"{text[:most]}\n[{len(text) - most} more characters]"

    def group(self, group: SeenGroup) -> SeenGroup:
        return SeenGroup(
            peer_id=self.text(group.peer_id),
            model_id=self.text(group.model_id),
            external=group.external,
            trained=group.trained,
            task=SeenTask(
                id=self.text(group.task.id),
                origin=self.text(group.task.origin),
                difficulty=group.task.difficulty,
                question=self.text(group.task.question, MAX_TEXT),
                tests=self.text(group.task.tests, MAX_TEXT),
            ),
            rollouts=[self._rollout(rollout) for rollout in group.rollouts[:MAX_ROLLOUTS]],
        )

    def _rollout(self, rollout: SeenRollout) -> SeenRollout:
        cases = [
            SeenCase(outcome=self.text(case.outcome), reason=self.text(case.reason), p_correct=case.p_correct)
            for case in rollout.cases[:MAX_CASES]
        ]
        if len(rollout.cases) > MAX_CASES:
            left_out = f"{len(rollout.cases) - MAX_CASES} more tests are not shown"
            cases.append(SeenCase(outcome="\N{HORIZONTAL ELLIPSIS}", reason=left_out, p_correct=None))
        return msgspec.structs.replace(
            rollout,
            text=self.text(rollout.text, MAX_TEXT),
            finish=self.text(rollout.finish),
            outcome=self.text(rollout.outcome),
            parts=self._names(rollout.parts),
            rules=self._names(rollout.rules),
            reasons={name: self.text(reason) for name, reason in self._names(rollout.reasons).items()},
            cases=cases,
        )

    def _names(self, mapping: dict[str, T]) -> dict[str, T]:
        return {self.text(name): value for name, value in list(mapping.items())[:MAX_ENTRIES]}

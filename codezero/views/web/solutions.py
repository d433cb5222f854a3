"""A round's tasks, solutions and verdicts, cut to the size of a page, however much a hostile peer or file holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from codezero.observe.groups_file import SeenCase, SeenGroup
from codezero.runtime.amounts import counted

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
        cut = msgspec.convert(self._value(msgspec.to_builtins(group)), SeenGroup)
        for rollout, whole in zip(cut.rollouts, group.rollouts, strict=False):
            if len(whole.cases) > MAX_CASES:
                left_out = counted(len(whole.cases) - MAX_CASES, "more test")
                rollout.cases.append(SeenCase(outcome="\N{HORIZONTAL ELLIPSIS}", reason=f"{left_out} not shown"))
        return cut

    def _value(self, value: Any, name: str = "") -> Any:
        """Returns the value of a field with texts, lists and mappings in it cut."""
        if isinstance(value, str):
            return self.text(value, MAX_TEXT if name in ("question", "tests", "text") else MAX_SHORT)
        if isinstance(value, list):
            return [self._value(one, name) for one in value[: MAX_ROLLOUTS if name == "rollouts" else MAX_CASES]]
        if isinstance(value, dict):
            return {self.text(key): self._value(one, key) for key, one in list(value.items())[:MAX_ENTRIES]}
        return value

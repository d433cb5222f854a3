"""Solutions to show: of tasks attempted again, otherwise the best and the worst of early and of late rounds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from codezero.observe.groups_file import SeenGroup, SeenRollout, SeenRound, SeenTask
from codezero.views.report.change import MeanChange, paired

SHOWN = 3
"""The most tasks shown, of those that were attempted again."""
SAME = 0.005
"""The largest difference of mean rewards that counts as none: rewards are shown with two digits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownSolution:
    """One solution of a group in some round."""

    what: str
    round: int
    rollout: SeenRollout
    mean: float
    """The mean reward of its group."""
    count: int
    """The number of solutions in its group that were scored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    task: SeenTask
    solutions: list[ShownSolution]


@dataclass(frozen=True, slots=True, kw_only=True)
class Examples:
    """The examples in the rounds that are kept, and the change of the tasks that were attempted again."""

    first_round: int
    last_round: int
    rose: int
    fell: int
    same: int
    """`rose`, `fell` and `same` count tasks attempted again, by the mean rewards of their first and last group."""
    change: MeanChange | None
    """The change over these tasks; None if no task was attempted again."""
    shown: list[Example]


def find_examples(rounds: Sequence[SeenRound]) -> Examples | None:
    """Returns examples from the node's own groups; None if none of them was scored."""
    groups: dict[str, list[tuple[int, SeenGroup]]] = {}
    for one in sorted(rounds, key=lambda one: one.round):
        for group in one.groups:
            if not group.external and _mean(group) is not None:
                groups.setdefault(group.task.id, []).append((one.round, group))
    if not groups:
        return None
    again = [attempts for attempts in groups.values() if attempts[0][0] < attempts[-1][0]]
    firsts = [_mean(attempts[0][1]) or 0.0 for attempts in again]
    lasts = [_mean(attempts[-1][1]) or 0.0 for attempts in again]
    rises = [last - first for first, last in zip(firsts, lasts, strict=True)]
    if again:
        largest = sorted(range(len(again)), key=lambda number: -rises[number])
        shown = [_first_and_last(again[number]) for number in largest[:SHOWN] if rises[number] > SAME]
    else:
        shown = _early_and_late([attempt for attempts in groups.values() for attempt in attempts])
    numbers = [number for attempts in groups.values() for number, _ in attempts]
    return Examples(
        first_round=min(numbers),
        last_round=max(numbers),
        rose=sum(rise > SAME for rise in rises),
        fell=sum(rise < -SAME for rise in rises),
        same=sum(abs(rise) <= SAME for rise in rises),
        change=paired(firsts, lasts) if again else None,
        shown=shown,
    )


def _first_and_last(attempts: Sequence[tuple[int, SeenGroup]]) -> Example:
    """Returns the middle solution by reward of the first and of the last group, so that luck matters little."""
    solutions = []
    for what, (number, group) in (("first attempt", attempts[0]), ("last attempt", attempts[-1])):
        scored = _by_reward(group)
        solutions.append(_shown(what, number, group, scored[(len(scored) - 1) // 2]))
    return Example(task=attempts[0][1].task, solutions=solutions)


def _early_and_late(attempts: Sequence[tuple[int, SeenGroup]]) -> list[Example]:
    """Returns the best and the worst solution in the first and in the last third of the rounds."""
    numbers = sorted({number for number, _ in attempts})
    third = max(1, len(numbers) // 3)
    spans = [("early", set(numbers[:third]))] + ([("late", set(numbers[-third:]))] if len(numbers) > 1 else [])
    examples = []
    for when, span in spans:
        inside = [(number, group, one) for number, group in attempts if number in span for one in _by_reward(group)]
        for what, choose in (("best", max), ("worst", min)):
            number, group, rollout = choose(inside, key=lambda found: found[2].reward or 0.0)
            shown = _shown(f"{what} of the {when} rounds", number, group, rollout)
            examples.append(Example(task=group.task, solutions=[shown]))
    return examples


def _shown(what: str, number: int, group: SeenGroup, rollout: SeenRollout) -> ShownSolution:
    scored = len(_by_reward(group))
    return ShownSolution(what=what, round=number, rollout=rollout, mean=_mean(group) or 0.0, count=scored)


def _by_reward(group: SeenGroup) -> list[SeenRollout]:
    """Returns the scored solutions, the worst first."""
    scored = [one for one in group.rollouts if one.reward is not None and math.isfinite(one.reward)]
    return sorted(scored, key=lambda one: one.reward or 0.0)


def _mean(group: SeenGroup) -> float | None:
    scored = _by_reward(group)
    return sum(one.reward or 0.0 for one in scored) / len(scored) if scored else None

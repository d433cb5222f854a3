"""Weighs peers' groups by how often their authors are right, after HACPO (arXiv 2603.02604).

HACPO weighs a peer's answers by the ratio of both agents' accuracies on shared tasks. Here each has its own tasks, and
accuracy is what this node's evaluator says of all of the peer's attempts that it has judged lately, never a claim. So a
peer that sends easy tasks counts for more, which is why the weight is bounded.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace

from codezero.types import ScoredGroup

WINDOW = 5
"""The number of latest rounds whose attempts count."""
MAX_WEIGHT = 2.0
PRIOR = 16
"""Attempts by which a peer's accuracy is drawn to this node's own, so that a new identity begins with a weight of 1."""

_Tally = Mapping[str, tuple[int, int]]
"""Right and all judged attempts by peer id, the own ones by an empty text."""


class AccuracyWeights:
    """Knows the accuracies of the latest rounds. They begin anew with the process."""

    def __init__(self) -> None:
        self._rounds: deque[_Tally] = deque(maxlen=WINDOW)

    def weigh(self, judged: Sequence[ScoredGroup], chosen: Sequence[ScoredGroup]) -> tuple[ScoredGroup, ...]:
        """Counts a round's judged groups. Returns the chosen ones, those of peers with their weights."""
        self._rounds.append(_tally(judged))
        return tuple(replace(one, weight=self._weight(one.group.peer_id)) if one.external else one for one in chosen)

    def _weight(self, peer_id: str) -> float:
        right, made = self._counts("")
        own = (right + 1) / (made + 2)  # Laplace's rule: never 0
        right, made = self._counts(peer_id)
        return min((right + PRIOR * own) / (made + PRIOR) / own, MAX_WEIGHT)

    def _counts(self, author: str) -> tuple[int, int]:
        found = [tally.get(author, (0, 0)) for tally in self._rounds]
        return sum(right for right, _ in found), sum(made for _, made in found)


def _tally(judged: Sequence[ScoredGroup]) -> _Tally:
    tally: dict[str, tuple[int, int]] = {}
    for one in judged:
        author = one.group.peer_id if one.external else ""
        right, made = tally.get(author, (0, 0))
        tally[author] = right + one.num_correct, made + len(one.rewarded)
    return tally

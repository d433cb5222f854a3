"""The reward and the vote that a node reports for a round."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from math import fsum

from codezero.config import Vote
from codezero.types import RoundId, ScoredGroup

MAX_KNOWN = 20_000
"""The number of groups' fingerprints kept, so that a copied group earns no second vote; they take about 3 MB."""


def own_reward(groups: Sequence[ScoredGroup]) -> float:
    """Returns the sum of the rewards of the node's own rollouts."""
    return sum(reward.total for group in groups if not group.external for reward in group.earned)


class Ballot:
    """Chooses the peer that a node votes for in each round, and remembers the groups of earlier rounds."""

    def __init__(self, vote: Vote, own_peer_id: str, banned: Collection[str] = ()) -> None:
        """Peers in `banned` never get a vote."""
        self._vote, self._own_peer_id, self._banned = vote, own_peer_id, frozenset(banned)
        self._known: dict[bytes, None] = {}
        """Fingerprints of the groups of earlier rounds, the oldest first."""

    def winners(self, round_id: RoundId, groups: Sequence[ScoredGroup]) -> tuple[str, ...]:
        """Returns the other peer whose groups have the highest mean (or summed) reward by this node's own scores, or
        this node itself if no other has earned a vote. Ties are broken by lot."""
        lots = _Lots(round_id, groups)
        candidates = [
            group for group in groups if group.external and group.scored and group.group.peer_id not in self._banned
        ]
        if self._vote is Vote.mean:
            candidates = self._without_copies(groups, candidates, lots)
        rewards: dict[str, list[float]] = defaultdict(list)
        for group in candidates:
            rewards[group.group.peer_id] += [reward.total for reward in group.earned]
        if not rewards:
            return (self._own_peer_id,)
        points = {peer: self._points(totals) for peer, totals in rewards.items()}
        best = max(points.values())
        return (lots.draw(group for group in candidates if points[group.group.peer_id] == best).group.peer_id,)

    def _points(self, totals: Sequence[float]) -> float:
        """Returns the mean or sum, rounded so that floating-point error cannot decide between equal peers."""
        return round(fsum(totals) / (len(totals) if self._vote is Vote.mean else 1), 9)

    def _without_copies(
        self, groups: Sequence[ScoredGroup], candidates: Sequence[ScoredGroup], lots: _Lots
    ) -> list[ScoredGroup]:
        """Returns the candidates without copies of this node's own groups and of groups of earlier rounds. Of equal
        groups in one round only one counts, drawn by lot, since nobody can tell which was first."""
        old = self._known.keys() | {group.programs for group in groups if not group.external}
        claims: dict[bytes | int, list[ScoredGroup]] = defaultdict(list)
        for number, group in enumerate(candidates):
            if not group.programs or group.programs not in old:
                claims[group.programs or number].append(group)
        for group in groups:
            if group.programs:
                self._known.setdefault(group.programs)
        while len(self._known) > MAX_KNOWN:
            del self._known[next(iter(self._known))]
        return [lots.draw(claimed) for claimed in claims.values()]


class _Lots:
    """Draws by lot, from a hash that no peer can predict: it covers all that this node has judged in the round, among
    it the log-probabilities of its own attempts, which it sends to no one in full precision."""

    def __init__(self, round_id: RoundId, groups: Sequence[ScoredGroup]) -> None:
        self._round_hash = hashlib.sha256(repr((round_id, [group.group for group in groups])).encode()).digest()

    def draw(self, groups: Iterable[ScoredGroup]) -> ScoredGroup:
        """Returns one of the groups: it draws an address, then a peer there, so more identities get no more chances."""
        return min(groups, key=lambda one: (self._lot(one.group.address), self._lot(one.group.peer_id)))

    def _lot(self, name: str) -> bytes:
        return hashlib.sha256(self._round_hash + name.encode("utf-8", "surrogatepass")).digest()

"""The peers that a node has learned from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from codezero.reports import RoundReport
from codezero.views.groups import MAX_ID, GroupOrigin

MAX_PEERS = 10_000
"""The most peers that are distinguished; more come from a damaged file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerSeen:
    """A peer, as one node knows it."""

    peer_id: str
    model_id: str
    """The peer's model, as its latest kept group names it; empty if none is kept."""
    taken: int
    """The number of its groups that the node has ever trained on."""
    last_round: int | None
    """The last round in which the node trained on one; None if it never did."""
    judged: int
    """The number of its groups that were judged, in the rounds that are kept in full."""


def peers_seen(reports: Sequence[RoundReport], heads: Mapping[int, Sequence[GroupOrigin]]) -> list[PeerSeen]:
    """Returns the peers, those with most groups trained on first."""
    taken: Counter[str] = Counter()
    last: dict[str, int] = {}
    for report in reports:
        for peer, count in report.external_groups.items():
            peer = peer[:MAX_ID]
            if peer in taken or len(taken) < MAX_PEERS:
                taken[peer] += count
                last[peer] = report.round
    judged: Counter[str] = Counter()
    models: dict[str, str] = {}
    for _, groups in sorted(heads.items()):
        for head in groups:
            if head.external:
                judged[head.peer_id] += 1
                models[head.peer_id] = head.model_id
    found = [
        PeerSeen(
            peer_id=peer,
            model_id=models.get(peer, ""),
            taken=taken[peer],
            last_round=last.get(peer),
            judged=judged[peer],
        )
        for peer in {*taken, *judged}
    ]
    return sorted(found, key=lambda peer: (-peer.taken, -peer.judged, peer.peer_id))

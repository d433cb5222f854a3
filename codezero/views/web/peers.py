"""Whom a node has learned from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from codezero.types import RoundReport
from codezero.views.web.index import MAX_ID, Head

MAX_PEERS = 10_000
"""That are told apart; more come from a damaged file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerSeen:
    """A peer, as one node knows it."""

    peer_id: str
    model_id: str
    """As it says itself, lately; empty where nothing of it is at hand."""
    taken: int
    """Groups of it that the node trained on, ever."""
    last_round: int | None
    """In which it did so."""
    judged: int
    """Groups of it that were judged, in the rounds that are kept in full."""


def peers_seen(reports: Sequence[RoundReport], heads: Mapping[int, Sequence[Head]]) -> list[PeerSeen]:
    """Those learned from most first."""
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

"""The proposer's side of proposing: shows proposals to the swarm's solvers and hears what came of them."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from codezero.config import SwarmConfig
from codezero.network.board import ProposalBoard
from codezero.network.dht.link import SwarmLink
from codezero.network.gossip import TWIN
from codezero.network.reading import Reader
from codezero.network.wire import MAX_PROPOSALS, Reason, fit
from codezero.proposals import Proposal, ProposalFeedback

logger = logging.getLogger(__name__)

MAX_KNOWN = 1000
"""Own proposals that feedback is taken on: the last ones."""
MAX_HEARD, MAX_HEARD_OF_ADDRESS = 128, 16
"""Peers that are heard on one proposal, and of these at one address: identities cost nothing."""
PUBLISH_TRIES, PUBLISH_S = 2, 10.0
"""In the first try nodes may be asked that are gone and forgotten after it."""


@dataclass(slots=True)
class _Own:
    """A proposal of ours that is known to the swarm."""

    proposal_id: str
    heard: dict[str, str] = field(default_factory=dict)
    """Address by peer."""

    def is_crowded(self, address: str) -> bool:
        """Whether no other peer is heard at an address."""
        return len(self.heard) >= MAX_HEARD or list(self.heard.values()).count(address) >= MAX_HEARD_OF_ADDRESS


class SwarmSolvers:
    """The swarm as a proposer sees it. Of each peer the first word on a proposal counts."""

    def __init__(self, link: SwarmLink, board: ProposalBoard, config: SwarmConfig, peer_id: str) -> None:
        """`peer_id` is our own."""
        self._link, self._board = link, board
        self._feedback = board.feedback_at(board.place_for(peer_id))
        self._reader = Reader(link, config.banned_peers)
        self._latest: OrderedDict[str, Proposal] = OrderedDict()
        """By id: what the next publication shows, the newest at the end."""
        self._known: OrderedDict[str, _Own] = OrderedDict()
        """By the name that feedback gives it."""
        self._kept = True
        """Whether some node keeps what was published last."""

    def remember(self, proposals: Iterable[Proposal]) -> None:
        """Takes in proposals that were published before a restart, the newest last. The latest are shown again with the
        next publication; feedback on them is handed out once more."""
        for proposal in proposals:
            own = _Own(proposal_id=proposal.proposal_id)
            self._known.setdefault(self._board.name_of(proposal) or own.proposal_id, own)
            self._latest[proposal.proposal_id] = proposal
        while len(self._latest) > MAX_PROPOSALS:
            self._latest.popitem(last=False)
        while len(self._known) > MAX_KNOWN:
            self._known.popitem(last=False)

    def publish(self, proposals: Sequence[Proposal]) -> bool:
        """Shows proposals, the newest last, and with them the latest before them; False if no node keeps them. None
        given shows the same again for longer."""
        self.remember(proposals)
        self._kept = self._link.run(self._publish())
        return self._kept

    def collect(self) -> tuple[ProposalFeedback, ...]:
        """What peers say of own proposals and was not handed out before; none where there is no network. Takes seconds
        at most."""
        return self._link.run(self._collect())

    def take_rejected(self) -> Mapping[str, int]:
        """Feedback that was dropped since the last call, by reason."""
        return self._reader.take_rejected()

    def status(self) -> str:
        """The state of the network in a few words."""
        if self._board.proposals.twin:
            return TWIN
        if not self._kept:
            return f"nobody keeps our proposals; {self._link.status()}"
        count = self._reader.in_sight
        return f"{count} solver{'s' * (count != 1)} in sight" if count else self._link.status()

    async def _publish(self) -> bool:
        record, _ = fit(self._board.proposals.pack, list(reversed(self._latest.values())))
        for _ in range(PUBLISH_TRIES):
            dht = await self._reader.network()
            if record is None or dht is None:
                return False
            try:
                if await asyncio.wait_for(self._board.proposals.publish(dht, record), PUBLISH_S):
                    return True
            except asyncio.TimeoutError:
                continue
        return False

    async def _collect(self) -> tuple[ProposalFeedback, ...]:
        found = []
        for notice, feedback in await self._reader.read(self._feedback):
            self._reader.done(notice)
            for marks in feedback:
                own = self._known.get(marks.name)
                if own is None:
                    self._reader.reject(Reason.UNKNOWN_PROPOSAL)
                    continue
                if notice.peer_id in own.heard:
                    continue  # each of a solver's records repeats those before it
                if own.is_crowded(notice.address):
                    self._reader.reject(Reason.CROWDED)
                    continue
                own.heard[notice.peer_id] = notice.address
                found.append(
                    ProposalFeedback(
                        proposal_id=own.proposal_id,
                        peer_id=notice.peer_id,
                        p_correct=marks.p_correct,
                        rewards=marks.rewards,
                        address=notice.address,
                    )
                )
        return tuple(found)

"""The proposer's side of proposing: publishes proposals to the swarm's solvers and collects their feedback."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence

from codezero.config import SwarmConfig
from codezero.network.board import DUPLICATE_IDENTITY, PUBLISH_TRIES, ProposalBoard
from codezero.network.dht.link import SwarmLink
from codezero.network.reading import Reader
from codezero.network.wire import MAX_PROPOSALS, Reason, fit
from codezero.proposals import Proposal, ProposalFeedback
from codezero.runtime.amounts import counted

MAX_KNOWN = 1000
"""The number of the node's last proposals for which feedback is accepted."""
PUBLISH_S = 30.0
"""Seconds for each try to publish."""


class SwarmSolvers:
    """Implements `ports.Solvers` over a board."""

    def __init__(self, link: SwarmLink, board: ProposalBoard, config: SwarmConfig, peer_id: str) -> None:
        """`peer_id` is this node's."""
        self._link, self._board = link, board
        self._feedback = board.feedback_feed(board.feedback_topic(peer_id))
        self._reader = Reader(link, config.banned_peers)
        self._latest: OrderedDict[str, Proposal] = OrderedDict()
        """The proposals of the next publication, by id, newest last."""
        self._known: OrderedDict[str, str] = OrderedDict()
        """The ids of the proposals that feedback is accepted for, by their name in feedback."""
        self._kept = True
        """False if no node keeps the last publication."""

    def remember(self, proposals: Iterable[Proposal]) -> None:
        for proposal in proposals:
            self._known.setdefault(self._board.name_of(proposal) or proposal.proposal_id, proposal.proposal_id)
            self._latest[proposal.proposal_id] = proposal
        while len(self._latest) > MAX_PROPOSALS:
            self._latest.popitem(last=False)
        while len(self._known) > MAX_KNOWN:
            self._known.popitem(last=False)

    def publish(self, proposals: Sequence[Proposal]) -> None:
        self.remember(proposals)
        if self._latest:
            self._kept = self._link.run(self._publish())

    def collect(self) -> tuple[ProposalFeedback, ...]:
        return self._link.run(self._collect())

    def take_rejected(self) -> Mapping[str, int]:
        return self._reader.take_reasons()

    def status(self) -> str:
        if self._board.proposals.duplicate_identity:
            return DUPLICATE_IDENTITY
        if not self._kept:
            return f"nobody keeps our proposals; {self._link.status()}"
        count = self._reader.in_sight
        return f"{counted(count, 'solver')} in sight" if count else self._link.status()

    async def _publish(self) -> bool:
        record, _ = fit(self._board.proposals.pack, list(reversed(self._latest.values())))
        if record is None:
            return False
        for _ in range(PUBLISH_TRIES):
            dht = await self._reader.network()
            if dht is None:
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
            for results in feedback:
                if results.name not in self._known:
                    self._reader.reject(notice.peer_id, Reason.UNKNOWN_PROPOSAL)
                    continue
                found.append(
                    ProposalFeedback(
                        proposal_id=self._known[results.name],
                        peer_id=notice.peer_id,
                        p_correct=results.p_correct,
                        rewards=results.rewards,
                        address=notice.address,
                    )
                )
        return tuple(found)

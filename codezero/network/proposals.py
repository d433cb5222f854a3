"""The solver's side of proposing: collects what proposers publish, and gives them feedback."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from codezero.config import SwarmConfig
from codezero.network.board import Notice, ProposalBoard
from codezero.network.dht.link import SwarmLink
from codezero.network.memory import remember
from codezero.network.reading import Reader
from codezero.network.shares import in_turns
from codezero.network.wire import MAX_RESULTS, AttemptResults, WireError, fit
from codezero.proposals import Proposal
from codezero.types import ScoredGroup

logger = logging.getLogger(__name__)

MAX_COLLECTED = 32
"""The most proposals that `collect` returns."""
MAX_TOPICS = 64
"""The most topics of feedback that are kept for publishing."""
GIVE_S = 30.0
"""Longest wait in seconds for feedback to be stored; if it is not, it is published again with the next."""


@dataclass(slots=True)
class _Feedback:
    """This node's feedback at one topic."""

    results: OrderedDict[str, AttemptResults] = field(default_factory=OrderedDict)
    """The latest feedback, by the proposal's name; the next publication has all of it."""
    owed: bool = False
    """True if some of it is not published."""


class SwarmProposals:
    """Implements `ports.Proposals` over a board, within seconds. It returns each proposal once, whoever publishes it,
    with fair shares for addresses and peers; feedback that could not be published goes with the next."""

    def __init__(self, link: SwarmLink, board: ProposalBoard, config: SwarmConfig) -> None:
        self._link, self._board = link, board
        self._reader = Reader(link, config.banned_peers)
        self._handed_out: OrderedDict[str, None] = OrderedDict()
        self._feedback: OrderedDict[str, _Feedback] = OrderedDict()
        """Feedback by topic, the one that was last added to at the end."""

    def collect(self) -> tuple[Proposal, ...]:
        return self._link.run(self._collect())

    def take_rejected(self) -> Mapping[str, int]:
        return self._reader.take_reasons()

    def give(self, groups: Sequence[ScoredGroup]) -> None:
        self._note(groups)
        if any(feedback.owed for feedback in self._feedback.values()):
            self._link.run(self._give())

    async def _collect(self) -> tuple[Proposal, ...]:
        taken = await self._reader.read(self._board.proposals, enough=MAX_COLLECTED)
        fresh: list[tuple[Notice, Proposal]] = []
        for notice, proposals in taken:
            left = [proposal for proposal in proposals if proposal.proposal_id not in self._handed_out]
            fresh += [(notice, proposal) for proposal in left]
            if not left:
                self._reader.done(notice)
        # All ranks are equal: addresses and peers keep their fair order, and a peer's newest comes first.
        shares = (lambda pair: pair[0].address, lambda pair: pair[0].peer_id)
        chosen: dict[str, Proposal] = {}
        for _, proposal in in_turns(fresh, shares, lambda pairs: 0.0):
            if len(chosen) < MAX_COLLECTED:
                chosen.setdefault(proposal.proposal_id, proposal)
        for proposal_id in chosen:
            remember(self._handed_out, proposal_id)
        return tuple(chosen.values())

    def _note(self, groups: Sequence[ScoredGroup]) -> None:
        for scored in groups:
            proposal = scored.group.task.proposal
            if scored.external or not scored.scored or proposal is None:
                continue
            name = self._board.name_of(proposal)
            if not name:
                continue
            topic = self._board.feedback_topic(proposal.peer_id)
            feedback = self._feedback.setdefault(topic, _Feedback())
            self._feedback.move_to_end(topic)
            if name not in feedback.results:  # the first feedback counts, as at the proposer
                feedback.results[name] = _results(name, scored)
                feedback.owed = True
            if len(feedback.results) > MAX_RESULTS:
                feedback.results.popitem(last=False)
        while len(self._feedback) > MAX_TOPICS:
            self._feedback.popitem(last=False)

    async def _give(self) -> None:
        owed = [topic for topic, feedback in self._feedback.items() if feedback.owed]
        kept = await asyncio.gather(*[self._publish(topic) for topic in owed])
        for topic, is_kept in zip(owed, kept, strict=True):
            self._feedback[topic].owed = not is_kept
        if not all(kept):
            logger.warning(
                "feedback: no node keeps %d of %d records; trying again later. Nothing has to be done",
                kept.count(False),
                len(kept),
            )

    async def _publish(self, topic: str) -> bool:
        feed = self._board.feedback_feed(topic)
        record, _ = fit(feed.pack, list(reversed(self._feedback[topic].results.values())))
        if record is None:
            return True  # none of it can ever be sent
        dht = await self._reader.network()
        try:
            return dht is not None and await asyncio.wait_for(feed.publish(dht, record), GIVE_S)
        except asyncio.TimeoutError:
            return False
        except WireError as error:
            # The proposal is of no peer of this network.
            logger.warning("%r takes no feedback: %s. Nothing has to be done", topic, error)
            return True


def _results(name: str, scored: ScoredGroup) -> AttemptResults:
    """Returns the feedback on a group's attempts that count. An attempt without code is not correct."""
    return AttemptResults(
        name=name,
        p_correct=tuple(float(verdict.p_correct or 0.0) for _, verdict, _ in scored.rewarded),
        rewards=tuple(float(reward.total) for reward in scored.earned),
    )

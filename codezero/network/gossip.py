"""The exchange stage: publishes own groups and collects those of peers, without waiting for silent ones."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import random
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import zip_longest

from codezero.config import SwarmConfig
from codezero.network.board import (
    DUPLICATE_IDENTITY,
    MAX_TTL_S,
    MIN_TTL_S,
    PUBLISH_TRIES,
    Board,
    Notice,
    Sight,
)
from codezero.network.dht.dht import Dht
from codezero.network.dht.link import SwarmLink
from codezero.network.memory import remember
from codezero.network.reading import BY_ADDRESS_AND_PEER, MAX_FETCHES, MAX_REJECTED, Reader
from codezero.network.shares import in_turns
from codezero.network.wire import Reason, fit
from codezero.runtime.amounts import counted
from codezero.types import Refusal, RolloutGroup, RoundId, ScoredGroup, SwarmRound, Task

logger = logging.getLogger(__name__)

FIRST_POLL_S, LAST_POLL_S = 0.2, 2.0
"""First and longest wait in seconds between two looks at the board; each is half as long again as the last."""
MAX_DYING_S = 60.0
"""Seconds after the end of its time that an exchange takes while the daemon is lost and started again."""
ROUND_TAKE_S, ROUND_GATHER_S = 10.0, 20.0
"""Longest waits in seconds: for one publication, and until the last batch of them is begun. So nodes that answer slowly
cost a round at most half a minute."""
ROUNDS_OUT = 10
"""The number of rounds for which an address is skipped after one of its groups has crashed the workers that read it."""


class SwarmGossip:
    """Implements `ports.Gossip` over a board. It returns a peer's group at most once, and never an own one."""

    def __init__(
        self,
        link: SwarmLink,
        board: Board,
        config: SwarmConfig,
        num_generations: int,
        fits: Callable[[Task], bool] = lambda task: True,
        unwanted: Callable[[Task], str | None] = lambda task: None,
    ) -> None:
        """`fits` returns True if a task is short enough to train on; while `exchange` waits it is called in another
        thread, one call at a time. `unwanted` returns a Reason's name for a peer's task that is not to be trained
        on; it must be fast."""
        self._link, self._board, self._config = link, board, config
        self._num_generations, self._unwanted = num_generations, unwanted
        self._fits, self._fitting = fits, asyncio.Lock()
        self._pool_size = config.pool or 2 * config.num_external
        self._reader = Reader(link, config.banned_peers)
        self._known_groups: OrderedDict[bytes, None] = OrderedDict()
        self._published_s: float | None = None
        """The monotonic time of the last publication; None before the first one."""
        self._rounds_out: dict[str, int] = {}
        """The number of rounds for which an address is still skipped, by address."""
        self._awaited: dict[str, str] | None = None
        """The peers whose groups could be read in the last round, with their addresses; None before the first one."""
        self._missed: dict[str, int] = {}
        """`ROUNDS_OUT` for each time that a peer of an address was awaited in vain, less the rounds since, by address.
        It is not awaited while this is more than `ROUNDS_OUT`: once may be a restart, but new identities are free."""

    def exchange(self, round_id: RoundId, groups: Sequence[RolloutGroup], elapsed_s: float) -> SwarmRound:
        """Publishes own groups and returns them with those of peers. `elapsed_s` is how long the round has taken."""
        return self._link.run(self._exchange(round_id, groups, elapsed_s))

    def note(self, groups: Sequence[ScoredGroup]) -> None:
        """Skips the addresses of hostile groups' authors for `ROUNDS_OUT` rounds, if they are certain: otherwise peers
        behind the same relay, or whose name was forged, would be skipped too."""
        for scored in groups:
            if scored.external and scored.group.address_is_certain and scored.refused is Refusal.HOSTILE:
                self._rounds_out[scored.group.address] = ROUNDS_OUT
                (self._awaited or {}).pop(scored.group.peer_id, None)

    def _life_s(self, elapsed_s: float) -> float:
        """Returns how long groups that are published now stay visible: four rounds of this node, of which the last one
        is known from the publication before. The time since this round began leaves out what follows it, and the wait
        for the swarm's next round."""
        now_s, before_s = time.monotonic(), self._published_s
        self._published_s = now_s
        round_s = max(elapsed_s, 0.0 if before_s is None else now_s - before_s)
        return min(max(4 * round_s, MIN_TTL_S), MAX_TTL_S)

    async def _exchange(self, round_id: RoundId, groups: Sequence[RolloutGroup], elapsed_s: float) -> SwarmRound:
        for group in groups:
            remember(self._known_groups, _fingerprint(group))
        # In another thread, since packing groups that are too large takes many tries, and this thread must answer.
        record, num_shared = await asyncio.to_thread(fit, partial(self._board.pack, round_id), groups)
        num_too_large = len(groups) - num_shared
        if num_too_large:
            logger.warning(
                "round %d: %d of %d groups are too large to be shared. Nothing has to be done: the node trains on them",
                round_id.number,
                num_too_large,
                len(groups),
            )
        now = _Exchange(round_id, record, self._life_s(elapsed_s), min(self._config.patience * elapsed_s, MAX_TTL_S))
        while True:
            fresh = await self._watch(now)
            unusable = await self._gather(now, fresh) if fresh else set()
            now.taken_from |= {notice.peer_id for notice in fresh} - unusable
            # A forged publication in a peer's name must not end the exchange before the peer itself has published.
            if not unusable or len(now.pool) >= self._pool_size or now.is_late():
                break
            await now.pause()
        self._rounds_out, self._missed = _a_round_less(self._rounds_out), _a_round_less(self._missed)
        for address in {at for peer, at in (self._awaited or {}).items() if peer in now.missing}:
            self._missed[address] = self._missed.get(address, 0) + ROUNDS_OUT
        self._awaited = {peer: at for peer, at in now.readable_from.items() if self._missed.get(at, 0) <= ROUNDS_OUT}
        duplicate_identity = self._board.duplicate_identity
        self._board.finished()
        rejected = self._reader.take_rejected()
        if record is not None and now.kept_by is None:
            logger.warning(
                "round %d: no other node has kept our groups: others do not see them, the node trains on. If it is so "
                "in every round, check this machine's clock, that other nodes run, and swarm.bootnodes",
                round_id.number,
            )
        return SwarmRound(
            round_id=round_id,
            local=tuple(groups),
            external=tuple(in_turns(now.pool[: self._pool_size], BY_ADDRESS_AND_PEER, lambda _: random.random())),
            rejected=(
                *((group.peer_id, "too_large_to_share") for group in groups[num_shared:]),  # their number counts
                *sorted((peer, reason.value) for peer, reason in rejected.elements())[:MAX_REJECTED],
            ),
            network=DUPLICATE_IDENTITY if duplicate_identity else now.in_sight or self._link.status(),
        )

    async def _watch(self, now: _Exchange) -> list[Notice]:
        """Publishes, then looks until enough addresses or all awaited peers have published, or time is over. Starts
        again if the daemon has died meanwhile, which may have lost the own groups. Returns the new notices."""
        while True:
            dht = await self._link.dht()
            sight = Sight()
            if dht is not None:
                await self._publish(dht, now)
                if self._pool_size:
                    sight = await self._board.look(dht, now.round_id)
            active = sum(notice.age is not None for notice in sight.notices)
            now.in_sight = f"{counted(active, 'peer')} in sight" if active else ""
            for peer_id, reason in sight.rejected:
                self._reader.reject_once(peer_id, reason)
            fresh = [notice for notice in sight.notices if self._is_fresh(notice)]
            enough = len(now.pool) + len({notice.address for notice in fresh}) >= self._pool_size
            missing = self._awaited_in(sight) - now.taken_from - {notice.peer_id for notice in fresh}
            now.missing = set() if enough else missing
            is_over = not now.missing or now.is_late()
            if now.is_hopeless() or (is_over and (dht is None or await self._link.dht() is dht)):
                return fresh
            await now.pause()

    def _awaited_in(self, sight: Sight) -> set[str]:
        """Returns the peers to wait for. In a large swarm a look shows only some of those whose groups came in the last
        round, and only these are awaited; if it shows none yet, all are."""
        if self._awaited is None:
            return self._link.others()
        return self._awaited.keys() & {notice.peer_id for notice in sight.notices} or set(self._awaited)

    async def _publish(self, dht: Dht, now: _Exchange) -> None:
        """Publishes the own groups once for each DHT: one that was started again has lost the records that it kept."""
        tries = 0
        while now.record is not None and now.kept_by is not dht and tries < PUBLISH_TRIES:
            tries += 1
            if await self._board.publish(dht, now.round_id, now.record, now.ttl_s):
                now.kept_by = dht

    def _is_fresh(self, notice: Notice) -> bool:
        if not self._reader.is_fresh(notice):
            return False
        if notice.is_direct and notice.address in self._rounds_out:
            self._reader.reject_once(notice.peer_id, Reason.HOSTILE_ADDRESS)
            return False
        if notice.age is None:
            self._reader.reject_once(notice.peer_id, Reason.STALE)
            self._reader.done(notice)  # so that it is counted in one round only
            return False
        return True

    async def _gather(self, now: _Exchange, fresh: Sequence[Notice]) -> set[str]:
        """Fetches publications in turns over addresses until the pool is full, and takes one group of each before any
        second one. Returns the peers whose publications cannot be used."""
        dht = await self._link.dht()
        unusable: set[str] = set()
        ahead = in_turns(fresh, [lambda notice: notice.address], lambda notices: random.random())
        deadline_s = time.monotonic() + ROUND_GATHER_S
        while dht is not None and ahead and len(now.pool) < self._pool_size and time.monotonic() < deadline_s:
            count = min(self._pool_size - len(now.pool), MAX_FETCHES)
            taken = await asyncio.gather(*[self._take(dht, notice) for notice in ahead[:count]])
            for notice, groups in zip(ahead, taken, strict=False):
                if not isinstance(groups, Reason):
                    now.readable_from[notice.peer_id] = notice.address
                elif groups is not Reason.UNAVAILABLE:
                    unusable.add(notice.peer_id)
            ahead = ahead[count:]
            for turn in zip_longest(*[groups for groups in taken if not isinstance(groups, Reason)]):
                self._add(now, [group for group in turn if group is not None])
        return unusable

    def _add(self, now: _Exchange, groups: Sequence[RolloutGroup]) -> None:
        """Adds groups to the pool, only the first of equal ones. Their order was drawn at random: the order of
        arrival depends on the distance of a node, and not on who wrote the group."""
        for group in groups:
            fingerprint = _fingerprint(group)
            if fingerprint in self._known_groups:
                self._reader.reject(group.peer_id, Reason.DUPLICATE)
            else:
                remember(self._known_groups, fingerprint)
                now.pool.append(group)

    async def _take(self, dht: Dht, notice: Notice) -> list[RolloutGroup] | Reason:
        """Returns the usable groups of a publication, or why it cannot be used at all."""
        groups = await self._reader.take(notice, self._board.take(dht, notice), ROUND_TAKE_S)
        if isinstance(groups, Reason):
            return groups
        self._reader.done(notice)
        kept: list[RolloutGroup] = []
        for group in groups:
            if len(kept) == self._pool_size:
                break
            reason = await self._why_not(group)
            if reason is not None:
                self._reader.reject(notice.peer_id, reason)
            else:
                is_certain = group.signed and notice.is_direct
                kept.append(replace(group, address=notice.address, address_is_certain=is_certain, age=notice.age or 0))
        # What is unsigned, anybody may have written: if none of it is of use, the peer's own may still come.
        return kept if kept or any(group.signed for group in groups) else Reason.MALFORMED

    async def _why_not(self, group: RolloutGroup) -> Reason | None:
        """Returns why a group cannot be used; None if it can."""
        if len(group.rollouts) != self._num_generations:
            return Reason.GROUP_SIZE
        unwanted = self._unwanted(group.task)
        if unwanted is not None:
            return Reason(unwanted)
        async with self._fitting:
            # In another thread, since a megabyte of text takes long, and this thread must answer other nodes.
            if not await asyncio.to_thread(self._fits, group.task):
                return Reason.TOO_LONG
        return Reason.DUPLICATE if _fingerprint(group) in self._known_groups else None


class _Exchange:
    """The state of one round's exchange."""

    def __init__(self, round_id: RoundId, record: bytes | None, ttl_s: float, wait_s: float) -> None:
        self.round_id, self.record = round_id, record
        """`record` has the groups that this node publishes; None if there are none."""
        self.ttl_s = ttl_s
        self.kept_by: Dht | None = None
        """The DHT that keeps the record; None before."""
        self.pool: list[RolloutGroup] = []
        self.readable_from: dict[str, str] = {}
        """The addresses of peers whose groups could be read, used or not, by peer id."""
        self.taken_from: set[str] = set()
        """Peers whose publications were taken."""
        self.missing: set[str] = set()
        """Peers that were still awaited at the last look."""
        self.in_sight = ""
        self._deadline_s = time.monotonic() + wait_s
        self._poll_s = FIRST_POLL_S

    def is_late(self) -> bool:
        """Returns True if there is no time for another look."""
        return time.monotonic() + self._poll_s > self._deadline_s

    def is_hopeless(self) -> bool:
        """Returns True if the daemon has died again and again, long after there was time for another look."""
        return time.monotonic() > self._deadline_s + MAX_DYING_S

    async def pause(self) -> None:
        """Waits until the next look."""
        await asyncio.sleep(self._poll_s)
        self._poll_s = min(self._poll_s * 1.5, LAST_POLL_S)


def _a_round_less(rounds: dict[str, int]) -> dict[str, int]:
    return {address: left - 1 for address, left in rounds.items() if left > 1}


def _fingerprint(group: RolloutGroup) -> bytes:
    """Returns a hash of a group's question and texts, the same whoever claims to have written them."""
    digest = hashlib.sha256()
    for text in (group.task.question, *(rollout.text for rollout in group.rollouts)):
        digest.update(hashlib.sha256(text.encode()).digest())
    return digest.digest()

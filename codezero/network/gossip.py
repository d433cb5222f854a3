"""The exchange stage: publish own groups, collect those of others as they come, wait for nobody who is silent."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import random
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import zip_longest

from codezero.config import SwarmConfig
from codezero.network.board import MAX_TTL_S, MIN_TTL_S, Board, Notice, Sight
from codezero.network.dht.dht import Dht
from codezero.network.dht.link import SwarmLink
from codezero.network.memory import remember
from codezero.network.reading import BY_ADDRESS_AND_PEER
from codezero.network.shares import in_turns
from codezero.network.wire import Reason, WireError, fit
from codezero.types import Refusal, RolloutGroup, RoundId, ScoredGroup, SwarmRound, Task

logger = logging.getLogger(__name__)

FIRST_POLL_S, LAST_POLL_S = 0.2, 2.0
"""Between two looks at the board: half as long again each time."""
PUBLISH_TRIES = 2
MAX_FETCHES = 8
"""Publications fetched at a time."""
TAKE_S, GATHER_S = 10.0, 20.0
"""Longest wait for one publication's groups, and for another lot of them to be begun: nodes that hang on to us may cost
a round half a minute, and no more."""
ROUNDS_OUT = 10
"""Rounds for which an address has no turn after a group of it has ended the processes that read it."""
MAX_REJECTED = 1000
"""Rejections reported of one round: a lying replica makes up as many as it likes."""
TWIN = "WARNING: another live node uses this node's key; give one of them its own with swarm.identity_path"

_Rejected = Counter[tuple[str, Reason]]
"""How often something of a peer was dropped, by (peer id as claimed, reason)."""


class SwarmGossip:
    """ports.Gossip over a board. A peer's group is handed out once at most, and never one that we wrote ourselves."""

    def __init__(
        self,
        link: SwarmLink,
        board: Board,
        config: SwarmConfig,
        num_generations: int,
        fits: Callable[[Task], bool] = lambda task: True,
        knows: Callable[[Task], bool] = lambda task: True,
    ) -> None:
        """`fits` says whether a task is short enough to be trained on; it is called while `exchange` waits, one call at
        a time, on a thread of its own. `knows` says whether a peer's task is wanted at all, and answers at once."""
        self._link, self._board, self._config = link, board, config
        self._num_generations, self._knows = num_generations, knows
        self._fits, self._fitting = fits, asyncio.Lock()
        self._pool_size = config.pool or 2 * config.num_external
        self._used: OrderedDict[tuple[str, bytes], None] = OrderedDict()
        self._known_groups: OrderedDict[bytes, None] = OrderedDict()
        self._rounds_out: dict[str, int] = {}
        """By address, for how many more rounds nothing of it is read."""
        self._awaited: set[str] | None = None
        """Peers that published in the last round; None before the first, when it is anybody's guess who will."""

    def exchange(self, round_id: RoundId, groups: Sequence[RolloutGroup], elapsed_s: float) -> SwarmRound:
        return self._link.run(self._exchange(round_id, groups, elapsed_s))

    def note(self, groups: Sequence[ScoredGroup]) -> None:
        """Addresses that are surely those of a hostile group's author are passed over for `ROUNDS_OUT` rounds. Others
        are not, or whoever is behind the same relay, or named in its stead, would be silenced too."""
        for scored in groups:
            if scored.external and scored.group.answerable and scored.refused is Refusal.HOSTILE:
                self._rounds_out[scored.group.address] = ROUNDS_OUT
                self._awaited = (self._awaited or set()) - {scored.group.peer_id}

    async def _exchange(self, round_id: RoundId, groups: Sequence[RolloutGroup], elapsed_s: float) -> SwarmRound:
        for group in groups:
            remember(self._known_groups, _fingerprint(group))
        # on another thread, for what is too large is packed many times, and this one must answer meanwhile
        record, shared = await asyncio.to_thread(fit, partial(self._board.pack, round_id), groups)
        too_large = groups[len(shared) :]
        if too_large:
            logger.warning(
                "round %d: %d of %d groups are too large to be shared. Nothing has to be done: the node trains on them",
                *(round_id.number, len(too_large), len(groups)),
            )
        now = _Exchange(round_id, record, elapsed_s, self._config.patience)
        while True:
            fresh = await self._watch(now)
            spoiled = await self._gather(now, fresh) if fresh else set()
            now.heard |= {notice.peer_id for notice in fresh} - spoiled
            # Who forges what a peer publishes must not make us leave before the peer has published.
            if not spoiled or len(now.pool) >= self._pool_size or now.is_late():
                break
            await now.pause()
        self._awaited = now.heard
        self._rounds_out = {address: left - 1 for address, left in self._rounds_out.items() if left > 1}
        self._board.finished(round_id)
        if record is not None and now.kept_by is None:
            logger.warning(
                "round %d: no other node has kept our groups: others do not see them, the node trains on. If it is so "
                "in every round, see that other nodes run, and check swarm.bootnodes",
                round_id.number,
            )
        return SwarmRound(
            round_id=round_id,
            local=tuple(groups),
            external=tuple(in_turns(now.pool[: self._pool_size], BY_ADDRESS_AND_PEER, lambda _: random.random())),
            rejected=(
                *((group.peer_id, "too_large_to_share") for group in too_large),
                *sorted((peer, reason.value) for peer, reason in now.rejected.elements())[:MAX_REJECTED],
            ),
            network=TWIN if now.twin else now.in_sight or self._link.status(),
        )

    async def _watch(self, now: _Exchange) -> list[Notice]:
        """Publishes, and looks until enough addresses or all who are awaited have published too, at most until it is
        late; once more if the daemon died meanwhile, for it may have taken our groups along. Returns what is new."""
        while True:
            dht = await self._link.dht()
            sight = Sight()
            if dht is not None:
                await self._publish(dht, now)
                if self._pool_size:
                    sight = await self._board.look(dht, now.round_id)
            now.twin |= sight.twin
            active = sum(notice.age is not None for notice in sight.notices)
            now.in_sight = f"{active} peer{'s' * (active != 1)} in sight" if active else ""
            if len(now.rejected) < MAX_REJECTED:
                now.rejected.update(sight.rejected - now.rejected.keys())  # each look shows them again
            fresh = [notice for notice in sight.notices if self._is_fresh(notice, now.rejected)]
            enough = len(now.pool) + len({notice.address for notice in fresh}) >= self._pool_size
            missing = self._awaited_in(sight) - now.heard - {notice.peer_id for notice in fresh}
            if (enough or not missing or now.is_late()) and (dht is None or await self._link.dht() is dht):
                return fresh
            await now.pause()

    def _awaited_in(self, sight: Sight) -> set[str]:
        """Who is waited for. In a large swarm only some of those that published in the last round show where we look
        in this one; only if none does, we are likely not to see any at all, and wait."""
        if self._awaited is None:
            return self._link.others()
        return self._awaited & {notice.peer_id for notice in sight.notices} or self._awaited

    async def _publish(self, dht: Dht, now: _Exchange) -> None:
        """Publishes unless it is done; again on a DHT that was started anew, which has lost what it held itself. Tries
        twice, for in the first try nodes may be asked that are gone and forgotten after it."""
        tries = 0
        while now.record is not None and now.kept_by is not dht and tries < PUBLISH_TRIES:
            tries += 1
            if await self._board.publish(dht, now.round_id, now.record, now.ttl_s):
                now.kept_by = dht

    def _is_fresh(self, notice: Notice, rejected: _Rejected) -> bool:
        if (notice.peer_id, notice.digest) in self._used:
            return False
        if notice.peer_id in self._config.banned_peers:
            rejected[notice.peer_id, Reason.BANNED] = 1
        elif notice.is_direct and notice.address in self._rounds_out:
            rejected[notice.peer_id, Reason.HOSTILE_ADDRESS] = 1
        elif notice.age is None:
            rejected[notice.peer_id, Reason.STALE] = 1
            remember(self._used, (notice.peer_id, notice.digest))  # counted in one round, not in all that follow
        else:
            return True
        return False

    async def _gather(self, now: _Exchange, fresh: Sequence[Notice]) -> set[str]:
        """Fetches, address by address, what fills the pool; of each publication one group before any second. Returns
        whose publications are unusable."""
        dht = await self._link.dht()
        spoiled: set[str] = set()
        ahead = in_turns(fresh, [lambda notice: notice.address], lambda notices: random.random())
        deadline_s = time.monotonic() + GATHER_S
        while dht is not None and ahead and len(now.pool) < self._pool_size and time.monotonic() < deadline_s:
            count = min(self._pool_size - len(now.pool), MAX_FETCHES)
            taken = await asyncio.gather(*[self._take(dht, notice, now.rejected) for notice in ahead[:count]])
            spoiled |= {notice.peer_id for notice, groups in zip(ahead, taken, strict=False) if groups is None}
            ahead = ahead[count:]
            for turn in zip_longest(*[groups or [] for groups in taken]):
                self._add(now, [group for group in turn if group is not None])
        return spoiled

    def _add(self, now: _Exchange, groups: Sequence[RolloutGroup]) -> None:
        """Puts groups into the pool. Of equal ones the first counts, in an order that was drawn: whose answer came
        first says how near a node is, and not whether the group is its own."""
        for group in groups:
            if _fingerprint(group) in self._known_groups:
                now.rejected[group.peer_id, Reason.DUPLICATE] += 1
            else:
                remember(self._known_groups, _fingerprint(group))
                now.pool.append(group)

    async def _take(self, dht: Dht, notice: Notice, rejected: _Rejected) -> list[RolloutGroup] | None:
        """The groups that can be used; None if the publication is none."""
        try:
            groups, dropped = await asyncio.wait_for(self._board.take(dht, notice), TAKE_S)
        except asyncio.TimeoutError:
            rejected[notice.peer_id, Reason.UNAVAILABLE] += 1
            return []
        except WireError as error:
            logger.info("dropped what %s published: %s", notice.peer_id, error)
            rejected[notice.peer_id, error.reason] += 1
            if error.reason is Reason.UNAVAILABLE:
                return []
            remember(self._used, (notice.peer_id, notice.digest))
            return None
        remember(self._used, (notice.peer_id, notice.digest))
        rejected.update((notice.peer_id, reason) for reason in dropped)
        kept: list[RolloutGroup] = []
        for group in groups:
            if len(kept) == self._pool_size:
                break
            reason = await self._why_not(group)
            if reason is not None:
                rejected[notice.peer_id, reason] += 1
            else:
                is_answerable = group.answerable and notice.is_direct
                kept.append(replace(group, address=notice.address, answerable=is_answerable, age=notice.age or 0))
        return kept

    async def _why_not(self, group: RolloutGroup) -> Reason | None:
        if len(group.rollouts) != self._num_generations:
            return Reason.GROUP_SIZE
        if not self._knows(group.task):
            return Reason.UNKNOWN_TASK
        async with self._fitting:
            # on another thread, for reading a megabyte of a stranger's text must not keep this one from answering
            if not await asyncio.to_thread(self._fits, group.task):
                return Reason.TOO_LONG
        return Reason.DUPLICATE if _fingerprint(group) in self._known_groups else None


class _Exchange:
    """One round's exchange as it goes on."""

    def __init__(self, round_id: RoundId, record: bytes | None, elapsed_s: float, patience: float) -> None:
        self.round_id, self.record = round_id, record
        """`record` has the groups that we share; None for none."""
        self.ttl_s = min(max(4 * elapsed_s, MIN_TTL_S), MAX_TTL_S)
        self.kept_by: Dht | None = None
        """The DHT that has our groups."""
        self.pool: list[RolloutGroup] = []
        self.heard: set[str] = set()
        """Peers whose publications we have."""
        self.rejected: _Rejected = Counter()
        self.twin, self.in_sight = False, ""
        self._deadline_s = time.monotonic() + patience * elapsed_s
        self._poll_s = FIRST_POLL_S

    def is_late(self) -> bool:
        """Whether there is no time for another look."""
        return time.monotonic() + self._poll_s > self._deadline_s

    async def pause(self) -> None:
        """Until the next look."""
        await asyncio.sleep(self._poll_s)
        self._poll_s = min(self._poll_s * 1.5, LAST_POLL_S)


def _fingerprint(group: RolloutGroup) -> bytes:
    """Equal for groups of the same texts to the same task, whoever claims them."""
    digest = hashlib.sha256()
    for text in (group.task.question, *(rollout.text for rollout in group.rollouts)):
        digest.update(hashlib.sha256(text.encode()).digest())
    return digest.digest()

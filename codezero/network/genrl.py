"""The board of GenRL 0.3.0: one directory a round, whose key is the round's number (SPEC §2)."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence

from hivemind.p2p import PeerID

from codezero.network import wire
from codezero.network.addresses import UNKNOWN
from codezero.network.board import Notice, Sight
from codezero.network.dht import Dht, Entry
from codezero.network.identity import Identity
from codezero.network.server import RecordRules
from codezero.network.wire import Reason, WireError
from codezero.types import RolloutGroup, RoundId

TTL_S = 600.0
"""What GenRL gives its records."""

MAX_OWN_BYTES = 48 << 10
"""Most that we publish here: values above about 60 KB can kill a GenRL node that reads them (SPEC §2)."""

RULES = RecordRules(accept=lambda item: True, attest=False)
"""GenRL signs nothing and keeps other things in the same DHT, so a server can only limit size and share."""


class GenrlBoard:
    """board.Board. Anybody can publish under any peer id here; what a codezero node signed is checked all the same."""

    def __init__(self, swarm: str, identity: Identity, instance: str, window: int) -> None:
        self._swarm, self._identity, self._instance, self._window = swarm, identity, instance, window

    async def publish(self, dht: Dht, round_id: RoundId, groups: Sequence[RolloutGroup], ttl_s: float) -> bool:
        """Raises WireError: the groups are too large for one record."""
        now = time.time()
        record = wire.pack_genrl(
            groups,
            identity=self._identity,
            swarm=self._swarm,
            round_number=round_id.number,
            published_at_s=now,
            expires_at_s=now + TTL_S,
            instance=self._instance,
        )
        if len(record) > MAX_OWN_BYTES:
            raise WireError(Reason.OVERSIZED, f"{len(record)} bytes, GenRL's nodes stand {MAX_OWN_BYTES}")
        return any(await dht.store(str(round_id.number), self._identity.peer_id, record, now + TTL_S))

    async def look(self, dht: Dht, round_id: RoundId) -> Sight:
        sight = Sight()
        newest: dict[str, Notice] = {}
        for age in range(min(self._window, round_id.number + 1)):
            latest: dict[str, Entry] = {}
            for replica in await dht.read(str(round_id.number - age)):
                for peer_id, entry in replica.items():
                    if peer_id not in latest or latest[peer_id].expires_at_s < entry.expires_at_s:
                        latest[peer_id] = entry
            for peer_id, entry in latest.items():
                if peer_id == self._identity.peer_id:
                    sight.twin |= age == 0 and self._is_of_a_twin(entry.value, round_id.number)
                elif peer_id not in newest:
                    newest[peer_id] = await self._notice(dht, peer_id, entry, round_id.number - age, age)
        sight.notices = list(newest.values())
        return sight

    async def take(self, dht: Dht, notice: Notice) -> tuple[tuple[RolloutGroup, ...], tuple[Reason, ...]]:
        raw, number = notice.content
        record = wire.read_genrl(raw, notice.peer_id, swarm=self._swarm, round_number=number)
        return record.groups, record.dropped

    def finished(self, round_id: RoundId) -> None:
        """Nothing to note: the age of a record is in its key."""

    async def _notice(self, dht: Dht, peer_id: str, entry: Entry, number: int, age: int) -> Notice:
        return Notice(
            peer_id=peer_id,
            digest=hashlib.sha256(entry.value).digest(),
            content=(entry.value, number),
            address=await _address(dht, peer_id),
            age=age,
        )

    def _is_of_a_twin(self, raw: bytes, number: int) -> bool:
        """Whether our key signed it in another process. What is not signed anybody may have put there."""
        try:
            record = wire.read_genrl(raw, self._identity.peer_id, swarm=self._swarm, round_number=number)
        except WireError:
            return False
        return record.announcement is not None and record.announcement.instance != self._instance


async def _address(dht: Dht, peer_id: str) -> str:
    try:
        return await dht.addresses.address_of(PeerID.from_base58(peer_id))
    except ValueError:  # the subkey is no peer id; its record is judged by its content
        return UNKNOWN

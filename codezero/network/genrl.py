"""The boards of GenRL 0.3.0: a directory for each round, whose key is the round's number, one for all proposals, and
one for all feedback."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Generic, TypeVar

from hivemind.p2p import PeerID

from codezero.identity.key import Identity
from codezero.network import wire
from codezero.network.board import PROPOSAL_TTL_S, Notice, Sight
from codezero.network.dht.addresses import is_direct
from codezero.network.dht.dht import Dht
from codezero.network.dht.dictionary import DirectoryEntry
from codezero.network.dht.records import OfferedRecord, Version
from codezero.network.dht.server import RecordRules
from codezero.network.memory import remember
from codezero.network.wire import AttemptResults, GenrlRecord, Reason, WireError
from codezero.proposals import Proposal
from codezero.types import RolloutGroup, RoundId

TTL_S = 600.0
"""Life of a record in seconds, as GenRL's."""

MAX_OWN_BYTES = 48 << 10
"""The most bytes that this node publishes: values above about 60 KB can kill a GenRL node that reads them."""

T = TypeVar("T")


def _accept(item: OfferedRecord) -> Version | None:
    """Accepts entries of directories whose subkey is a peer id. A plain value would only replace a directory. GenRL
    signs nothing, so an entry that its own peer has sent takes precedence over one that others have."""
    if item.subkey is None or _peer_id(item.subkey) is None:
        return None
    return (float(item.sender == item.subkey), item.expires_at_s)


RULES = RecordRules(accept=_accept, is_native=False)
"""The rules by which servers of any GenRL swarm keep records."""


class GenrlBoard:
    """Implements `board.Board`. Anyone can publish under any peer id; signatures of codezero nodes are checked."""

    def __init__(self, swarm: str, identity: Identity, instance: str, window: int) -> None:
        self._swarm, self._identity, self._instance, self._window = swarm, identity, instance, window
        self._started_at_s = time.time()
        self.duplicate_identity = False
        self._taken: OrderedDict[bytes, None] = OrderedDict()
        """Hashes of the records that `take` has returned."""

    def pack(self, round_id: RoundId, groups: Sequence[RolloutGroup]) -> bytes:
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
        _require_size(record)
        return record

    async def publish(self, dht: Dht, round_id: RoundId, record: bytes, ttl_s: float) -> bool:
        key, own = str(round_id.number), self._identity.peer_id
        before = _versions(await dht.read(key)).get(own, ())
        self.duplicate_identity |= any(self._is_of_duplicate(version, round_id.number) for version in before)
        return any(await dht.store(key, own, record, time.time() + TTL_S))

    async def look(self, dht: Dht, round_id: RoundId) -> Sight:
        numbers = range(round_id.number, max(round_id.number - self._window, -1), -1)
        shown = await asyncio.gather(*[dht.read(str(number)) for number in numbers])
        sight = Sight()
        newest: dict[str, Notice] = {}
        for age, (number, replicas) in enumerate(zip(numbers, shown, strict=True)):
            for name, versions in _versions(replicas).items():
                peer_id = _peer_id(name)
                if peer_id is None:
                    sight.rejected.add((ascii(name), Reason.MALFORMED))
                elif name == self._identity.peer_id:
                    self.duplicate_identity |= age == 0 and any(
                        self._is_of_duplicate(version, number) for version in versions
                    )
                elif name not in newest:
                    address = await dht.addresses.address_of(peer_id)
                    newest[name] = Notice(
                        peer_id=name,
                        digest=_digest(versions),
                        content=(versions, number),
                        address=address,
                        is_direct=is_direct(address),
                        age=age,
                    )
        sight.notices = list(newest.values())
        return sight

    async def take(self, dht: Dht, notice: Notice) -> tuple[tuple[RolloutGroup, ...], tuple[Reason, ...]]:
        """Takes the first signed version, which a lying replica cannot make, or else the first that can be read.
        Versions that were taken before are skipped: a replica that adds a version must not make them look new."""
        versions, number = notice.content
        chosen, problem = None, None
        for version in versions:
            digest = hashlib.sha256(version).digest()
            if digest in self._taken:
                problem = problem or WireError(Reason.DUPLICATE, "it was taken before")
                continue
            try:
                record = self._read(version, notice.peer_id, number)
            except WireError as error:
                problem = problem or error
                continue
            if chosen is None or (chosen[1].announcement is None and record.announcement is not None):
                chosen = digest, record
        if chosen is None:
            raise problem or WireError(Reason.UNAVAILABLE, "no replica showed it")
        digest, record = chosen
        remember(self._taken, digest)
        return record.groups, record.dropped

    def finished(self) -> None:
        self.duplicate_identity = False  # the age of a record is in its key

    def _read(self, raw: bytes, peer_id: str, number: int) -> GenrlRecord:
        record = wire.read_genrl(raw, peer_id, swarm=self._swarm, round_number=number)
        if record.announcement is not None and time.time() >= record.announcement.expires_at_s:
            raise WireError(Reason.STALE, "it has expired: an old record was put there again")
        return record

    def _is_of_duplicate(self, raw: bytes, number: int) -> bool:
        """Returns True if another process has signed it with this node's key after this one started. Unsigned records
        may be anyone's."""
        try:
            signed = self._read(raw, self._identity.peer_id, number).announcement
        except WireError:
            return False
        return signed is not None and signed.instance != self._instance and signed.published_at_s > self._started_at_s


class GenrlProposalBoard:
    """Implements `board.ProposalBoard`. Feedback names a proposal by its raw text. Nothing is signed: the version that
    most replicas have under a peer's name counts as the peer's."""

    def __init__(self, identity: Identity) -> None:
        self._own = identity.peer_id
        self.proposals: _GenrlFeed[Proposal] = _GenrlFeed(
            wire.PROPOSER_KEY, self._own, wire.pack_genrl_proposals, wire.read_genrl_proposals
        )
        self._feedback: _GenrlFeed[AttemptResults] = _GenrlFeed(
            wire.SOLVER_KEY, self._own, wire.pack_genrl_feedback, lambda record, _: wire.read_genrl_feedback(record)
        )

    def name_of(self, proposal: Proposal) -> str:
        return wire.genrl_name(proposal.raw)

    def feedback_topic(self, proposer: str) -> str:
        return "solver"

    def feedback_feed(self, topic: str) -> _GenrlFeed[AttemptResults]:
        return self._feedback


class _GenrlFeed(Generic[T]):
    """Implements `board.RecordFeed`. The content of a notice is the replicas' versions of a peer's record."""

    def __init__(
        self,
        key: bytes,
        own: str,
        pack: Callable[[Sequence[T]], bytes],
        read: Callable[[bytes, str], tuple[tuple[T, ...], tuple[Reason, ...]]],
    ) -> None:
        self._key, self._own, self._pack, self._read = key, own, pack, read
        self.duplicate_identity = False
        """Always False: records are not signed, so any peer may have written under this node's peer id."""

    def pack(self, items: Sequence[T]) -> bytes:
        record = self._pack(items)
        _require_size(record)
        return record

    async def publish(self, dht: Dht, record: bytes) -> bool:
        return any(await dht.store(self._key, self._own, record, time.time() + PROPOSAL_TTL_S))

    async def look(self, dht: Dht) -> Sight:
        sight, now = Sight(), time.time()
        for name, versions in _versions(await dht.read(self._key), expired_s=now).items():
            peer_id = _peer_id(name)
            if peer_id is None:
                sight.rejected.add((ascii(name), Reason.MALFORMED))
            elif name == self._own:
                sight.own = True
            else:
                address = await dht.addresses.address_of(peer_id)
                sight.notices.append(Notice(peer_id=name, digest=_digest(versions), content=versions, address=address))
        return sight

    async def take(self, dht: Dht, notice: Notice) -> tuple[tuple[T, ...], tuple[Reason, ...]]:
        """Returns the items of the first version that can be read."""
        problem = None
        for version in notice.content:
            try:
                return self._read(version, notice.peer_id)
            except WireError as error:
                problem = problem or error
        raise problem or WireError(Reason.UNAVAILABLE, "no replica showed it")


def _require_size(record: bytes) -> None:
    if len(record) > MAX_OWN_BYTES:
        raise WireError(Reason.OVERSIZED, f"{len(record)} bytes, GenRL's nodes accept {MAX_OWN_BYTES}")


def _versions(
    replicas: Sequence[Mapping[str, DirectoryEntry]], expired_s: float = 0.0
) -> Mapping[str, Sequence[bytes]]:
    """Returns, by peer id, the versions in the replicas that expire after `expired_s`: those that most replicas have
    first, and of equally many those that expire last."""
    expiries: dict[str, dict[bytes, list[float]]] = {}
    for replica in replicas:
        for name, entry in replica.items():
            if entry.expires_at_s <= expired_s:
                continue
            expiries.setdefault(name, {}).setdefault(entry.value, []).append(entry.expires_at_s)
    ordered = {}
    for name, found in expiries.items():
        ranks = {value: (len(times), max(times)) for value, times in found.items()}
        ordered[name] = sorted(ranks, key=ranks.__getitem__, reverse=True)
    return ordered


def _digest(versions: Sequence[bytes]) -> bytes:
    """Returns a hash of all versions, which each new one changes, so that a forged one cannot hide the true one."""
    return hashlib.sha256(b"".join(sorted(hashlib.sha256(version).digest() for version in versions))).digest()


def _peer_id(text: str) -> PeerID | None:
    """Parses a peer id; None if the text is none, since GenRL's servers accept any subkey."""
    try:
        peer_id = PeerID.from_base58(text)
    except ValueError:
        return None
    return peer_id if text and peer_id.to_base58() == text else None

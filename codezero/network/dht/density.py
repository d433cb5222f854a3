"""Estimates the number of servers from their density in the key space."""

from __future__ import annotations

import heapq
import statistics
from collections import Counter, OrderedDict
from collections.abc import Iterable, Sequence

from hivemind.dht.routing import DHTID

NUM_AROUND = 10
"""The number of nearest nodes to a position that are used."""
MAX_PLACES = 32
"""The most positions that are kept, the latest ones."""
MIN_WITNESSES = 2
"""The number of addresses whose nodes must name a node before it counts, since a single party can invent any number."""
MAX_FACTOR = 8
"""The most that an estimate is above that of the own neighbourhood, all of whose nodes have answered this one."""


class Density:
    """The density at the positions of the last searches."""

    def __init__(self) -> None:
        self._distances: OrderedDict[DHTID, int] = OrderedDict()
        """The distance from a position to the last of the nodes around it."""

    def note(self, where: DHTID, named: Sequence[tuple[str, Iterable[DHTID]]]) -> None:
        """Adds a search. `named` has, for each node near the position, its address, and the nodes that it has named and
        itself. If all are at one address, as on one machine, each is a witness of its own."""
        by_address: dict[object, set[DHTID]] = {}
        is_one_machine = len({address for address, _ in named}) == 1
        for number, (address, uids) in enumerate(named):
            by_address.setdefault(number if is_one_machine else address, set()).update(uids)
        witnesses = Counter(uid for uids in by_address.values() for uid in uids)
        known = (uid for uid, count in witnesses.items() if count >= MIN_WITNESSES)
        around = heapq.nsmallest(NUM_AROUND, map(where.xor_distance, known))
        if len(around) == NUM_AROUND:
            self._distances[where] = around[-1]
            self._distances.move_to_end(where)
            if len(self._distances) > MAX_PLACES:
                self._distances.popitem(last=False)

    def size(self, own_id: DHTID, neighbours: Iterable[DHTID]) -> int:
        """Estimates the number of other nodes; off by a fifth after the first searches, and by a tenth after some.

        The distance of the k-th nearest of n nodes is k / n of the 2^160 ids on average, with the median (k - 1/3) / n
        of a gamma distribution. The median over all positions tolerates a few wrong ones.
        """
        around_us = heapq.nsmallest(NUM_AROUND, map(own_id.xor_distance, neighbours))[-1]
        distance = max(statistics.median([around_us, *self._distances.values()]), around_us / MAX_FACTOR)
        return int((NUM_AROUND - 1 / 3) * DHTID.MAX / distance)

"""How many servers there are, from how densely they lie in the key space."""

from __future__ import annotations

import heapq
import statistics
from collections import Counter, OrderedDict
from collections.abc import Iterable

from hivemind.dht.routing import DHTID

NUM_AROUND = 10
"""Nodes around a place that are looked at."""
MAX_PLACES = 32
MIN_WITNESSES = 2
"""Nodes that must name one before it counts: a liar names as many as it likes."""


class Density:
    """What the last searches showed of the places they led to."""

    def __init__(self) -> None:
        self._distances: OrderedDict[DHTID, int] = OrderedDict()
        """From a place to the last of the nodes around it."""

    def note(self, where: DHTID, named: Iterable[Iterable[DHTID]]) -> None:
        """Takes in whom each of the nodes near to a place has named, itself included."""
        witnesses = Counter(uid for uids in named for uid in set(uids))
        known = (uid for uid, count in witnesses.items() if count >= MIN_WITNESSES)
        around = heapq.nsmallest(NUM_AROUND, map(where.xor_distance, known))
        if len(around) == NUM_AROUND:
            self._distances[where] = around[-1]
            self._distances.move_to_end(where)
            if len(self._distances) > MAX_PLACES:
                self._distances.popitem(last=False)

    def size(self, own_id: DHTID, neighbours: Iterable[DHTID]) -> int:
        """About how many nodes there are beside us; off by a fifth after the first searches, by a tenth after some.

        The k-th nearest of n nodes is k / n of the 2^160 ids away on average, and (k - 1/3) / n as a median: that of a
        gamma distribution. The median over all places lets a few of them be wrong.
        """
        around_us = heapq.nsmallest(NUM_AROUND, map(own_id.xor_distance, neighbours))[-1]
        return int((NUM_AROUND - 1 / 3) * DHTID.MAX / statistics.median([around_us, *self._distances.values()]))

"""Remembers peers on disk, so that a node can join the swarm again if no bootnode answers."""

from __future__ import annotations

import json
import logging
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from codezero.network.dht.addresses import address_group
from codezero.runtime.files import replace_file

logger = logging.getLogger(__name__)

MAX_PEERS, MAX_AT_ADDRESS = 64, 8
"""The most peers in the file, and of one address: peer ids are free."""
MAX_AGE_S = 30 * 24 * 3600.0
"""Seconds after which a peer is forgotten."""
SAVE_INTERVAL_S = 60.0
"""Seconds between two writes of the file without a new peer."""
MAX_FILE_BYTES = 64 << 10
_SWARM = "swarm"
"""The key of the swarm's name beside the addresses; files of 0.1.0 have none."""


class PeerCache:
    """The addresses of the nodes seen last. If the file cannot be read or written, there is a warning and no error."""

    def __init__(self, path: Path, swarm: str) -> None:
        """`swarm` names the swarm; what the file has of another one, which the node has left, is not used."""
        self._path, self._swarm = path, swarm
        self._seen_s = _read(path, swarm)
        self._saved_s = time.time() if self._seen_s else 0.0

    def addresses(self) -> list[str]:
        """Returns multiaddresses that end in /p2p/<peer id>, the last seen first."""
        return sorted(self._seen_s, key=lambda address: -self._seen_s[address])

    def note(self, addresses: Iterable[str]) -> None:
        """Notes that these nodes were seen now, and writes the file if one is new or the last write is long ago."""
        now = time.time()
        fresh = dict.fromkeys(addresses, now)
        before = self._seen_s.keys()
        # Those seen while the clock was ahead would else keep every later one out.
        self._seen_s = {**{address: min(seen_s, now) for address, seen_s in self._seen_s.items()}, **fresh}
        kept: list[str] = []
        at = Counter[str]()
        for address in self.addresses():  # of those seen at the same time the oldest come first
            at[address_group(address)] += 1
            if at[address_group(address)] <= MAX_AT_ADDRESS:
                kept.append(address)
        self._seen_s = {address: self._seen_s[address] for address in kept[:MAX_PEERS]}
        news = not self._seen_s.keys() <= before
        if fresh and (news or now - self._saved_s >= SAVE_INTERVAL_S):
            self._save(now)

    def _save(self, now: float) -> None:
        try:
            replace_file(self._path, json.dumps({_SWARM: self._swarm, **self._seen_s}, indent=1) + "\n")
        except OSError as error:
            logger.warning(
                "cannot remember peers in %s: %s. Free space or make the folder writable: until then only bootnodes "
                "lead back to the swarm after a restart",
                self._path,
                error.strerror,
            )
        self._saved_s = now


def _read(path: Path, swarm: str) -> dict[str, float]:
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise ValueError("it is too large")
        found = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(found, dict):
            raise ValueError("it is not a mapping")
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        logger.warning(
            "cannot use the peers remembered in %s: %s. Nothing has to be done: bootnodes are asked, and the file is "
            "written anew",
            path,
            error,
        )
        return {}
    if found.pop(_SWARM, swarm) != swarm:
        return {}
    now = time.time()
    return {
        address: float(seen_s)
        for address, seen_s in found.items()
        if isinstance(seen_s, int | float)
        and now - MAX_AGE_S < seen_s < now + MAX_AGE_S
        and address.startswith("/")
        and "/p2p/" in address
    }

"""A node's connection to the swarm: the p2p daemon and the DHT, on a thread with an asyncio loop.

No failure here ends a node. A daemon that dies is started again, and bootnodes that do not answer are dialled again as
long as the node runs.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import logging
import random
import threading
import time
from collections.abc import Callable, Collection, Coroutine, Mapping
from pathlib import Path
from typing import Any, TypeVar

from hivemind.p2p import P2PDaemonError
from hivemind.utils.logging import use_hivemind_log_handler

from codezero.config import Reach, SwarmConfig
from codezero.errors import NetworkError
from codezero.network.dht import daemon
from codezero.network.dht.cache import PeerCache
from codezero.network.dht.dht import Dht
from codezero.network.dht.server import RecordRules
from codezero.runtime.amounts import counted

logger = logging.getLogger(__name__)
T = TypeVar("T")

CHECK_S = 2.0
"""Longest wait in seconds between two checks of daemon and connections."""
FIRST_RETRY_S, LAST_RETRY_S = 1.0, 60.0
"""First and longest wait in seconds before an address is dialled or the daemon started again; each wait is twice as
long as the last, with jitter."""
READY_TIMEOUT_S = 30.0
"""Longest wait in seconds for the daemon."""
LOOK_AROUND_S = 60.0
"""Seconds between two searches for nodes that joined while this node or they could not be reached."""
MAX_OLD_DIALS = 8
"""The most peers met before that are dialled at a time."""


class SwarmLink:
    """The connection. One thread makes and uses it; `run` runs coroutines on the network's thread."""

    def __init__(self, config: SwarmConfig, key_file: Path, peers_file: Path, rules: RecordRules) -> None:
        """`peers_file` is where the peers met are remembered (`PeerCache`)."""
        self._config, self._key_file, self._rules = config, key_file, rules
        self._cache = PeerCache(peers_file, f"{config.network.value} {config.name}")
        self.reach = daemon.choose_reach(config)
        self._listen = list(config.listen)
        self._dht: Dht | None = None
        self._ready = asyncio.Event()
        self._backoff = Backoff()
        self._looked_around_s = time.monotonic()
        self._connected: Mapping[str, str] = {}
        self._bootnodes = frozenset(address.rpartition("/p2p/")[2] for address in config.bootnodes)
        self.peer_id = ""
        self.addresses: list[str] = []
        """The multiaddresses at which this node can be dialled."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="swarm", daemon=True)
        self._keeper: concurrent.futures.Future[None] | None = None
        self._closing = False

    def start(self) -> None:
        """Starts the daemon and, in the background, dialling. Raises NetworkError: the daemon does not start."""
        use_hivemind_log_handler("nowhere")
        self._loop.set_exception_handler(_log_failure)
        self._thread.start()
        self.run(self._start_daemon())
        self._ready.set()
        self._keeper = asyncio.run_coroutine_threadsafe(self._keep_up(), self._loop)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine on the network's thread and waits for it."""
        if self._keeper is not None and self._keeper.done():
            work.close()
        self.check()
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def check(self) -> None:
        """Raises the error that has ended the upkeep of daemon and connections, if one has: a bug."""
        if self._keeper is not None and self._keeper.done():
            self._keeper.result()

    def close(self) -> None:
        """Ends daemon and thread."""
        if self._thread.is_alive():
            self._end_thread()
        daemon.end_strays(self._key_file)
        if not self._thread.is_alive():
            self._loop.close()

    def _end_thread(self) -> None:
        with contextlib.suppress(concurrent.futures.TimeoutError):
            asyncio.run_coroutine_threadsafe(self._shut_down(), self._loop).result(2 * daemon.DAEMON_TIMEOUT_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(daemon.DAEMON_TIMEOUT_S)

    async def dht(self) -> Dht | None:
        """Waits for the daemon and returns the DHT; None if it is not ready in time."""
        if self._dht is not None and not daemon.is_running(self._dht.p2p):
            self._ready.clear()  # until `_keep_up` has noticed too
        try:
            await asyncio.wait_for(self._ready.wait(), READY_TIMEOUT_S)
        except asyncio.TimeoutError:
            return None
        return self._dht

    def others(self) -> set[str]:
        """Returns the peer ids of the known nodes that are not bootnodes."""
        return self._known() - self._bootnodes

    def _known(self) -> set[str]:
        return set(self._connected) | set(self._dht.neighbours() if self._dht is not None else ())

    def status(self) -> str:
        """Returns the state of the network in a few words."""
        if not self._ready.is_set():
            return "alone: the p2p daemon is being started again"
        if self._bootnodes and not self._known():
            return f"alone: none of {len(self._bootnodes)} bootnodes answers, dialling on"
        count = len(self.others())
        return f"nobody publishes yet, {counted(count, 'node')} in reach" if count else "nobody else here yet"

    async def _start_daemon(self) -> None:
        p2p = await daemon.start(self._config, self.reach, self._listen, self._key_file)
        dht = None
        try:
            self.addresses = await daemon.addresses(p2p)
            serve = self.reach is not Reach.client
            dht = await asyncio.wait_for(Dht.create(p2p, self._rules, serve), daemon.DAEMON_TIMEOUT_S)
        except daemon.DAEMON_ERRORS as error:
            raise NetworkError(f"the p2p daemon died as it was started ({error or type(error).__name__})") from error
        finally:
            if dht is None:
                await daemon.stop(p2p)
        self._dht = dht
        self._listen = daemon.with_ports(self._listen, self.addresses)
        self.peer_id = p2p.peer_id.to_base58()

    async def _stop_daemon(self) -> None:
        self._ready.clear()
        self._connected = {}
        if self._dht is not None:
            await daemon.stop(self._dht.p2p)

    async def _shut_down(self) -> None:
        """Ends the daemon, and whatever else runs on this loop."""
        self._closing = True
        if self._keeper is not None:
            self._keeper.cancel()
        await self._stop_daemon()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        if others:
            await asyncio.wait(others, timeout=1)

    async def _keep_up(self) -> None:
        while True:
            try:
                await self._look()
            except daemon.DAEMON_ERRORS as error:
                if self._closing:  # a call that fails as it is cancelled raises this and not CancelledError
                    return
                logger.warning(
                    "the p2p daemon does not answer (%s): starting it again. Nothing has to be done, unless it "
                    "happens again and again: then the machine is too busy, or short of memory",
                    str(error) or type(error).__name__,
                )
                await self._restart()
            await asyncio.sleep(CHECK_S * random.uniform(0.5, 1.0))

    async def _look(self) -> None:
        assert self._dht is not None
        if not daemon.is_running(self._dht.p2p):
            raise P2PDaemonError("it has ended")
        daemon.forget_cancelled(self._dht.p2p)
        self._connected = await self._dht.addresses.refresh()
        await asyncio.gather(*[self._dial(address) for address in self._to_dial()])
        if time.monotonic() - self._looked_around_s >= LOOK_AROUND_S:
            self._looked_around_s = time.monotonic()
            await self._dht.look_around()
        neighbours = set(self._dht.neighbours())
        self._cache.note(
            f"{address}/p2p/{peer}" for peer, address in self._connected.items() if address and peer in neighbours
        )

    def _to_dial(self) -> list[str]:
        """Returns the bootnodes without a connection and, if no bootnode is connected, peers met before: a swarm that
        has lost its bootnodes must still be able to join again."""
        assert self._dht is not None
        here = {self.peer_id, *(self._connected if self._dht.num_neighbours() else ())}
        bootnodes = [address for address in self._config.bootnodes if self._is_wanted(address, here)]
        if self._bootnodes & set(self._connected):
            return bootnodes
        met = [address for address in self._cache.addresses() if self._is_wanted(address, here)]
        return list(dict.fromkeys([*bootnodes, *met[:MAX_OLD_DIALS]]))

    def _is_wanted(self, address: str, here: Collection[str]) -> bool:
        return address.rpartition("/p2p/")[2] not in here and self._backoff.is_due(address)

    async def _dial(self, address: str) -> None:
        assert self._dht is not None
        try:
            peer_id = await daemon.connect(self._dht.p2p, address)
            problem = "" if await self._dht.meet(peer_id) else "it is connected but gives no answer"
            objection = "" if problem else await self._dht.objection(peer_id)
            if objection:
                logger.warning(
                    "%s objects: %s; other nodes may not see what this node publishes. If it is about time, set this "
                    "machine's clock (NTP)",
                    address,
                    objection,
                )
        except (*daemon.DAEMON_ERRORS, ValueError) as error:
            problem = str(error) or "no answer"
        if not problem and self._dht.num_neighbours():
            self._backoff.succeeded(address)
            logger.info("connected to %s", address)
        else:
            wait_s = self._backoff.failed(address)
            logger.info("%s: %s; next try in %.0f s", address, problem or "it knows nobody either", wait_s)

    async def _restart(self) -> None:
        """Starts the daemon again until it runs and has dialled known peers: no round may be published to nobody."""
        await self._stop_daemon()
        while not self._ready.is_set():
            try:
                await self._start_daemon()
                await self._look()
                self._ready.set()
            except (NetworkError, *daemon.DAEMON_ERRORS) as error:
                await self._stop_daemon()
                wait_s = min(self._backoff.failed("daemon"), READY_TIMEOUT_S / 4)
                logger.warning(
                    "%s; next try in %.0f s. The node trains on; nothing has to be done unless it lasts", error, wait_s
                )
                await asyncio.sleep(wait_s)
        self._backoff.succeeded("daemon")


def _log_failure(_: asyncio.AbstractEventLoop, context: Mapping[str, Any]) -> None:
    """Logs failures of hivemind's background tasks, after the daemon's death or a bad answer, without a traceback."""
    logger.info("a background task of the DHT failed: %s: %r", context["message"], context.get("exception"))


class Backoff:
    """Exponential backoff with jitter, for each thing that has failed."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failures: dict[str, tuple[int, float]] = {}

    def is_due(self, what: str) -> bool:
        """Returns True if the wait is over."""
        return self._clock() >= self._failures.get(what, (0, 0.0))[1]

    def failed(self, what: str) -> float:
        """Notes a failure; returns the seconds until the next try."""
        count = self._failures.get(what, (0, 0.0))[0]
        wait_s = min(FIRST_RETRY_S * 2.0**count, LAST_RETRY_S) * random.uniform(0.7, 1.3)
        self._failures[what] = (min(count + 1, 16), self._clock() + wait_s)
        return wait_s

    def succeeded(self, what: str) -> None:
        """Forgets the failures."""
        self._failures.pop(what, None)

"""A trainer's connection to one rollout server. What it says is not trusted: lengths, times and shapes are limited."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

import httpx2
import msgspec
from msgspec.json import Decoder

from codezero.config.multiaddr import is_loopback
from codezero.errors import CodezeroError
from codezero.llm.replies import Done, Progressed, Reply, implausible, misshapen
from codezero.rollouts import protocol
from codezero.rollouts.protocol import RolloutRequest, ServerStatus
from codezero.rollouts.rollout_file import RolloutFile
from codezero.rollouts.watchdog import Watchdog
from codezero.runtime import proxies

if TYPE_CHECKING:  # it imports torch, which the doctor's check does without
    from codezero.rollouts.snapshots import Snapshots

CONNECT_S, SILENCE_S = 5.0, 60.0
"""The longest waits for a connection and for headers or a piece of an answer, in seconds. A link that is lost for half
a minute costs nothing: the server has gone on sampling."""
STALLED_S = 600.0
"""The longest time without a step, in seconds: the server may first have to end the work of a trainer that is gone."""
TOKEN_S = 0.5
"""The longest time in seconds for each token of all attempts, so that no server can hold a round for days."""
MAX_STATUS_BYTES = 4096
TOKEN_BYTES = 48
"""The most bytes of a token id with its log-prob in JSON."""
COPY_BYTES = 1 << 18
"""The bytes of an upload that a server takes in `SILENCE_S` at least."""
MOST_TOKENS = 1 << 24
"""The size of a vocabulary that no model has."""
LOOK_S = 0.5

logger = logging.getLogger(__name__)

# Made before there are threads: msgspec crashes if two of them are the first to decode a type.
_REPLY: Decoder[Done | Progressed] = Decoder(Reply)
_STATUS = Decoder(ServerStatus)
T = TypeVar("T")


class ServerFailed(CodezeroError):
    """A rollout server did not do what it was asked to; the message says why."""


class Cancelled(ServerFailed):
    """The rollouts are not needed any more."""


class RolloutServer:
    """A rollout server. Its methods may be called by one thread at a time, `cancel` by any."""

    def __init__(self, file: RolloutFile, name: str) -> None:
        """`name` is that of its rollout file, for messages. Raises ServerFailed: a proxy of the environment is not
        usable."""
        self.name = name
        self._url = file.url.rstrip("/")
        host = str(httpx2.URL(self._url).host)
        if not is_loopback(host):
            proxies.require_usable(ServerFailed)
        self._client = httpx2.Client(
            headers={"authorization": f"Bearer {file.token}", "accept-encoding": "identity"},
            timeout=httpx2.Timeout(SILENCE_S, connect=CONNECT_S),
            follow_redirects=False,
            trust_env=not is_loopback(host),
        )
        self._cancelled = threading.Event()
        self._watchdog = Watchdog()
        self.is_uploading = False
        """True while `bring` is under way."""
        self.sent_bytes = 0
        """The bytes of weights that it was sent."""
        self._names = deque[str](maxlen=8)
        """The names of the latest weights that it was sent."""
        self._is_shared = False
        """True once it had weights that others have sent."""

    def cancel(self) -> None:
        """Makes `sample` raise Cancelled at its next line, or at once after an upload, which goes on to its end, and
        `bring` while it waits for the server."""
        self._cancelled.set()

    def status(self) -> ServerStatus:
        """Asks the server for its status. Raises ServerFailed, also if it speaks another version of the protocol."""
        found = self._call("GET", protocol.STATUS)
        assert found is not None  # only weights are refused with 409
        if found.version != protocol.VERSION:
            raise ServerFailed(f"it speaks version {found.version} of the protocol: use the same codezero on both")
        return found

    def bring(self, snapshots: Snapshots) -> str:
        """Sees to it that the server has the newest weights, and returns their name. Raises ServerFailed, or
        RolloutError: a file of weights cannot be written."""
        self._cancelled.clear()
        self.is_uploading = True
        try:
            status = self._status_when_idle()
            if status.base != snapshots.base:
                raise ServerFailed(f"it has other weights of {status.model}: start it with this node's model.name")
            if self._names and not self._is_shared and status.weights not in {"", status.base, *self._names}:
                self._is_shared = True
                logger.warning(
                    "rollout server %s has weights of another trainer, and takes over those of each in turn: give each "
                    "trainer servers of its own",
                    self.name,
                )
            has = status.weights
            while found := snapshots.open_for(has):
                has = self._sent(*found, in_place_of=has)
            return has
        finally:
            self.is_uploading = False

    def _status_when_idle(self) -> ServerStatus:
        """Waits until the server can take over weights at once: its answer to an upload has no heartbeat."""
        ends_s = time.monotonic() + STALLED_S
        while (status := self.status()).is_busy:
            self._end_if_cancelled()
            if time.monotonic() > ends_s:
                raise ServerFailed(f"it was at work for {STALLED_S:g} s: give each trainer servers of its own")
            time.sleep(LOOK_S)
        return status

    def _sent(self, name: str, file: BinaryIO, in_place_of: str) -> str:
        """Sends a file of weights, and closes it. Returns what the server has then: the version `name`, or the empty
        name if it needs all weights."""
        self._names.append(name)
        with file:
            size = file.seek(0, 2)
            file.seek(0)
            reply = self._call("PUT", protocol.WEIGHTS, self._read(file), {"content-length": str(size)})
        if reply is None and not in_place_of:
            raise ServerFailed("it takes over neither a difference nor all weights")
        if reply is not None and reply.weights != name:
            raise ServerFailed("it uses other weights than it was sent")
        return name if reply is not None else ""

    def sample(self, asked: RolloutRequest, on_step: Callable[[int], None]) -> Done:
        """Returns the rollouts. `on_step` is called with the number of steps made, of `max_new_tokens`. Raises
        ServerFailed, also Cancelled."""
        rows = len(asked.prompts) * asked.num_generations
        most_bytes = rows * asked.max_new_tokens * TOKEN_BYTES + (1 << 20)
        body = msgspec.json.encode(asked)
        most_done, step_s = -1, time.monotonic()
        ends_s = step_s + STALLED_S + TOKEN_S * rows * asked.max_new_tokens
        self._end_if_cancelled()
        with self._stream("POST", protocol.ROLLOUTS, body, {"content-type": "application/json"}) as response:
            if response.status_code != 200:
                raise ServerFailed(self._refusal(response))
            for line in _lines(self._pieces(response), most_bytes):
                reply = _decoded(line, _REPLY) if line else Progressed(0, 0)
                if isinstance(reply, Done):
                    return _checked(reply, asked)
                self._end_if_cancelled()
                if not 0 <= reply.done <= reply.total:
                    raise ServerFailed(f"it claims to have made {reply.done} of {reply.total} steps")
                done = asked.max_new_tokens * reply.done // max(reply.total, 1)  # so their number is limited
                if done > most_done:
                    most_done, step_s = done, time.monotonic()
                    on_step(done)
                if time.monotonic() > ends_s:
                    raise ServerFailed(f"it makes less than a token in {TOKEN_S:g} s: it is too slow to be of use")
                if time.monotonic() - step_s > STALLED_S:
                    raise ServerFailed(f"it made no step in {STALLED_S:g} s")
        raise ServerFailed("it ended its reply in the middle")

    def _end_if_cancelled(self) -> None:
        if self._cancelled.is_set():
            raise Cancelled("another one was faster")

    def _read(self, file: BinaryIO) -> Iterator[bytes]:
        while piece := file.read(COPY_BYTES):
            self.sent_bytes += len(piece)
            self._watchdog.heard()
            yield piece
        self._watchdog.heard()

    def _pieces(self, response: httpx2.Response) -> Iterator[bytes]:
        for piece in response.iter_raw():
            self._watchdog.heard()
            yield piece

    def _call(
        self, method: str, path: str, content: Iterator[bytes] | None = None, headers: dict[str, str] | None = None
    ) -> ServerStatus | None:
        """Returns the status that the server answers with; None if it wants all weights (409)."""
        with self._stream(method, path, content, headers or {}) as response:
            if response.status_code == 409 and content is not None:
                return None
            if response.status_code != 200:
                raise ServerFailed(self._refusal(response))
            return _decoded(_whole(self._pieces(response)), _STATUS)

    @contextmanager
    def _stream(self, method: str, path: str, content: Any, headers: dict[str, str]) -> Iterator[httpx2.Response]:
        url, more = self._url + path, {"trace": self._watchdog.trace}
        try:
            with (
                self._watchdog.watching(SILENCE_S),
                self._client.stream(method, url, content=content, headers=headers, extensions=more) as response,
            ):
                self._watchdog.heard()
                yield response
        except (httpx2.HTTPError, httpx2.StreamError, OSError) as error:
            if self._watchdog.has_cut:
                raise ServerFailed(
                    f"it took more than {SILENCE_S:g} s for {COPY_BYTES} bytes of an upload, for headers or for a "
                    "piece of its answer"
                ) from error
            what = str(error) or type(error).__name__
            raise ServerFailed(f"{what}; check that it runs, and that this machine reaches it") from error

    def _refusal(self, response: httpx2.Response) -> str:
        text = _whole(self._pieces(response)).decode("utf-8", "replace").strip()
        return f"it answered HTTP {response.status_code}: {text}"


def _whole(pieces: Iterator[bytes]) -> bytes:
    """Returns a status, or a refusal's text. Raises ServerFailed: it is longer, or does not end."""
    found, ends_s = bytearray(), time.monotonic() + SILENCE_S
    for piece in pieces:
        found += piece
        if len(found) > MAX_STATUS_BYTES or time.monotonic() > ends_s:
            raise ServerFailed(f"it sent more than {MAX_STATUS_BYTES} bytes, or for more than {SILENCE_S:g} s")
    return bytes(found)


def _lines(pieces: Iterator[bytes], most_bytes: int) -> Iterator[bytes]:
    """Yields complete lines, and the rest; an empty one for each piece of a line, so that whoever reads them can give
    up. Raises ServerFailed: a line has more bytes than allowed."""
    rest = bytearray()
    for piece in pieces:
        *lines, last = piece.split(b"\n")
        for line in lines:
            yield bytes(rest + line)
            rest.clear()
        rest += last
        if len(rest) > most_bytes:
            raise ServerFailed(f"it sent more than {most_bytes} bytes")
        yield b""
    if rest:
        yield bytes(rest)


def _decoded(line: bytes, decoder: Decoder[T]) -> T:
    try:
        return decoder.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ServerFailed(f"its reply cannot be read: {error}") from error


def _checked(done: Done, asked: RolloutRequest) -> Done:
    rows = len(asked.prompts) * asked.num_generations
    trouble = done.error or misshapen(done, rows, asked.max_new_tokens)
    trouble = trouble or implausible(done, asked.max_new_tokens, asked.end_ids, MOST_TOKENS)
    if trouble:
        raise ServerFailed(trouble)
    return done

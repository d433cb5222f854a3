"""A rollout server: takes over a trainer's weights and samples with them, one request after the other."""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
import torch
from fastapi import FastAPI, Request
from fastapi.responses import PlainTextResponse, Response, StreamingResponse
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Receive, Scope, Send

from codezero.config import RolloutEngine
from codezero.errors import DISK_FULL, Stopping, TransferError
from codezero.llm.draw import SamplingParams
from codezero.llm.load import LoadedModel
from codezero.llm.replies import Done, Progressed, Reply
from codezero.llm.sample import SampleGroups, SampleRequest
from codezero.rollouts import protocol
from codezero.rollouts.protocol import RolloutRequest, ServerStatus
from codezero.rollouts.served import OtherBase, ServedWeights
from codezero.runtime.console import printable

MAX_WAITING = 4
"""The most requests for rollouts that wait or are under way: one of a trainer, and some whose trainer is gone."""
SILENCE_S = 60.0
"""The longest time without a byte of an upload, and until a request for rollouts is there, in seconds, after which its
trainer is gone."""
ALONE = "give each trainer servers of its own"

logger = logging.getLogger(__name__)


class Sampler:
    """A model, a trainer's weights in it, and the engine that samples with them. Threads take turns."""

    def __init__(
        self,
        policy: LoadedModel,
        sample: SampleGroups,
        engine: RolloutEngine,
        say: Callable[[str], None] = lambda line: None,
    ) -> None:
        """`engine` is that of `sample`. `say` is given a line on each piece of work."""
        self._policy, self._sample, self._engine, self._say = policy, sample, engine, say
        self._weights = ServedWeights(policy.model)
        self._turn, self._began_s, self._busy_s = threading.Lock(), time.monotonic(), 0.0
        self.most_bytes = self._weights.most_bytes
        """The size of the largest upload that can be of use."""

    @property
    def model(self) -> Any:
        """The model with the weights in use."""
        return self._weights.model

    def status(self) -> ServerStatus:
        return ServerStatus(
            version=protocol.VERSION,
            model=self._policy.name,
            base=self._weights.base,
            weights=self._weights.name,
            engine=self._engine.value,
            busy_s=self._busy_s,
            up_s=time.monotonic() - self._began_s,
            is_busy=self._turn.locked(),
        )

    def take_over(self, file: Path) -> ServerStatus:
        """Waits for its turn and uses the weights of a file from now on. Raises TransferError, OSError."""
        size = file.stat().st_size
        with self._working() as began_s:
            self._weights.take_over(file)
        self._say(f"weights: {size / 1e6:.1f} MB in use after {time.monotonic() - began_s:.1f} s")
        return self.status()

    def why_not(self, asked: RolloutRequest) -> str:
        """Returns in words why the request cannot be answered; empty if it can."""
        if self._engine is RolloutEngine.llama_cpp and not hasattr(self.model, "peft_config"):
            return "it samples with adapters only: train them, or start it with rollout.engine=transformers"
        if self._engine is RolloutEngine.vllm and (asked.top_p < 1 or asked.top_k):
            return (
                "its log-probs are those after top-p and top-k: use rollout.top_p=1 and rollout.top_k=0, or start it "
                "with rollout.engine=transformers"
            )
        rows, longest = len(asked.prompts) * asked.num_generations, max(map(len, asked.prompts))
        if rows > protocol.MAX_ROWS:
            return f"{rows} completions at once are more than {protocol.MAX_ROWS}"
        if longest + asked.max_new_tokens > self._policy.context_length:
            return f"{longest + asked.max_new_tokens} tokens are more than the model's {self._policy.context_length}"
        most = self._policy.model.config.get_text_config().vocab_size
        if max(asked.pad_id, *asked.end_ids, *map(max, asked.prompts)) >= most:
            return f"it has token ids from {most} on, which this model does not have"
        return ""

    def sample(self, asked: RolloutRequest, on_step: Callable[[int, int], None]) -> Done:
        """Waits for its turn and samples. `on_step` may raise Stopping, which it raises in turn."""
        with self._working() as began_s:
            if self._weights.name != asked.weights:
                return Done(error=f"other weights came in between, perhaps another trainer's: {ALONE}")
            request = SampleRequest(
                prompts=asked.prompts,
                num_generations=asked.num_generations,
                params=SamplingParams(
                    max_new_tokens=asked.max_new_tokens,
                    temperature=asked.temperature,
                    top_p=asked.top_p,
                    top_k=asked.top_k,
                ),
                end_ids=asked.end_ids,
                pad_id=asked.pad_id,
                generator=torch.Generator(device=self._policy.model.device).manual_seed(asked.seed),
                on_step=on_step,
            )
            groups = self._sample(self.model, request)
        rows = [row for group in groups for row in group]
        num_tokens, seconds = sum(len(row.completion_ids) for row in rows), time.monotonic() - began_s
        self._say(
            f"rollouts: {len(rows)}, {num_tokens} tokens in {seconds:.1f} s ({num_tokens / seconds:.0f}/s); idle "
            f"{1 - self._busy_s / (time.monotonic() - self._began_s):.0%} of the time so far"
        )
        return Done(ids=[list(row.completion_ids) for row in rows], logprobs=[list(row.logprobs) for row in rows])

    @contextmanager
    def _working(self) -> Iterator[float]:
        """Waits for its turn; yields the time at which it began."""
        with self._turn:
            began_s = time.monotonic()
            try:
                yield began_s
            finally:
                self._busy_s += time.monotonic() - began_s


class TokenGuard:
    """An ASGI app around the server's that lets through only requests with the token. None is read before that."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app, self._wanted = app, f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        given = dict(scope.get("headers", [])).get(b"authorization", b"")
        if scope["type"] == "http" and hmac.compare_digest(given, self._wanted):
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await _refused(401, "this is not the token of the server's rollout file")(scope, receive, send)


def make_app(sampler: Sampler, token: str, folder: Path | None = None) -> TokenGuard:
    """Returns the server as an ASGI app. Uploads are stored in `folder` while they come, or in the system's."""
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    uploading = threading.Lock()
    waiting = threading.BoundedSemaphore(MAX_WAITING)

    @app.get(protocol.STATUS)
    def status() -> Response:
        return _answer(sampler.status())

    @app.put(protocol.WEIGHTS)
    async def weights(request: Request) -> Response:
        size = _length(request)
        if not 0 < size <= sampler.most_bytes:
            return _refused(413, f"{size} bytes of weights: this model has at most {sampler.most_bytes}")
        if not uploading.acquire(blocking=False):
            return _refused(503, f"another upload is under way: {ALONE}")
        try:
            with tempfile.TemporaryDirectory(dir=folder) as place:
                file = Path(place) / "weights"
                if not await _receive(request, file, size):
                    return _refused(400, f"the upload ended before its {size} bytes")
                return _answer(await asyncio.to_thread(sampler.take_over, file))
        except OtherBase as error:
            return _refused(409, str(error))
        except TransferError as error:
            return _refused(400, str(error))
        except OSError as error:
            return _refused(507 if error.errno in DISK_FULL else 500, f"the weights cannot be stored: {error.strerror}")
        finally:
            uploading.release()

    @app.post(protocol.ROLLOUTS)
    async def rollouts(request: Request) -> Response:
        if not 0 < _length(request) <= protocol.MAX_REQUEST_BYTES:
            return _refused(413, f"a request has at most {protocol.MAX_REQUEST_BYTES} bytes")
        try:
            asked = msgspec.json.decode(await asyncio.wait_for(request.body(), SILENCE_S), type=RolloutRequest)
        except (ClientDisconnect, asyncio.TimeoutError):
            return _refused(400, "the request did not come to its end")
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            return _refused(400, f"the request cannot be read: {error}")
        if why := sampler.why_not(asked):
            return _refused(400, why)
        if sampler.status().weights != asked.weights:
            return _refused(409, f"other weights are in use, perhaps another trainer's: {ALONE}")
        if not waiting.acquire(blocking=False):
            return _refused(503, f"{MAX_WAITING} requests wait already: {ALONE}")
        return StreamingResponse(_lines(sampler, asked, waiting.release), media_type="application/x-ndjson")

    return TokenGuard(app, token)


def _lines(sampler: Sampler, asked: RolloutRequest, release: Callable[[], None]) -> AsyncIterator[bytes]:
    """Starts sampling and returns the lines of the reply. If the trainer does not wait for the last one, sampling ends
    at its next step. `release` is called when it has ended, whether anybody reads the lines or not."""
    loop, found, is_gone = asyncio.get_running_loop(), asyncio.Queue[Reply](), threading.Event()

    def say(reply: Reply) -> None:
        if is_gone.is_set():
            raise Stopping("the trainer does not wait any more")
        loop.call_soon_threadsafe(found.put_nowait, reply)

    def work() -> None:
        try:
            last = sampler.sample(asked, lambda done, total: say(Progressed(done, total)))
        except Stopping:
            logger.info("a trainer did not wait for its rollouts")
            return
        except Exception as error:  # the thread's boundary: the trainer must hear of it
            logger.warning(
                "sampling failed (%s): the trainer does without. If it happens again, check which other programs use "
                "this machine's memory, or give another rollout.engine",
                printable(str(error))[:300],
            )
            last = Done(error=str(error)[:300] or type(error).__name__)
        finally:
            release()
        with suppress(Stopping):
            say(last)

    async def lines() -> AsyncIterator[bytes]:
        reply: Reply = Progressed(0, asked.max_new_tokens)
        try:
            while not isinstance(reply, Done):
                with suppress(asyncio.TimeoutError):  # the last line again
                    reply = await asyncio.wait_for(found.get(), protocol.HEARTBEAT_S)
                yield msgspec.json.encode(reply) + b"\n"
        finally:
            is_gone.set()

    threading.Thread(target=work, name="sampling", daemon=True).start()
    return lines()


async def _receive(request: Request, file: Path, size: int) -> bool:
    """Writes the body to a file. Returns False if it is not of this size."""
    left, pieces = size, aiter(request.stream())
    with file.open("wb") as out:
        while left > 0:
            try:
                piece = await asyncio.wait_for(anext(pieces), SILENCE_S)
            except (StopAsyncIteration, asyncio.TimeoutError, ClientDisconnect):
                return False
            left -= len(piece)
            await asyncio.to_thread(out.write, piece)
    return left == 0


def _length(request: Request) -> int:
    text = request.headers.get("content-length", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else 0


def _answer(status: ServerStatus) -> Response:
    return Response(msgspec.json.encode(status), media_type="application/json")


def _refused(code: int, text: str) -> Response:
    return PlainTextResponse(json.dumps(printable(text)[:300])[1:-1] + "\n", code)

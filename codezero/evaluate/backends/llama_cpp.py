"""A judge from a GGUF file, run by llama.cpp in a process of its own that is started again when it dies."""

from __future__ import annotations

import contextlib
import logging
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from multiprocessing.connection import wait
from pathlib import Path
from typing import TypeVar

import msgspec

from codezero.config import EvaluatorConfig, checkout
from codezero.errors import EvaluatorError, told_as
from codezero.evaluate.backends.base import MAX_PROMPT_TOKENS, Chat
from codezero.evaluate.backends.llama_cpp_server import Settings, Started
from codezero.evaluate.backends.served import JUDGING, OpenAIBackend
from codezero.llm.chat_server import ChatServer
from codezero.llm.client import JsonClient

COMMAND = (sys.executable, "-m", "codezero.evaluate.backends.llama_cpp_server")
START_TIMEOUT_S = 180.0
"""The longest wait for a model to load, in seconds: a gigabyte from a slow disk takes a minute."""
END_S = 2.0
"""Seconds to wait after a failed request to see whether its process has died."""

logger = logging.getLogger(__name__)
Answer = TypeVar("Answer")


class LlamaCppBackend:
    """A judge (backends.base.JudgeBackend) in llama.cpp. Starts its process when first asked; it ends with `close`, or
    with this process."""

    def __init__(self, config: EvaluatorConfig, weights: Path, threads: int, command: Sequence[str] = COMMAND) -> None:
        self._config = replace(config, model=weights.name)
        self._weights, self._threads, self._command = weights, threads, command
        self._process: subprocess.Popen[bytes] | None = None
        self._server: OpenAIBackend | None = None
        self.name = f"{weights.name} in llama.cpp"

    def check(self) -> None:
        self._ask(OpenAIBackend.check)

    def choose(self, chats: Sequence[Chat]) -> list[tuple[float, float] | None]:
        return self._ask(lambda server: server.choose(chats))

    def write(self, chats: Sequence[Chat], max_new_tokens: int) -> list[str | None]:
        return self._ask(lambda server: server.write(chats, max_new_tokens))

    def close(self) -> None:
        """Ends the process, if there is one."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            for pipe in (self._process.stdin, self._process.stdout):
                assert pipe is not None
                with contextlib.suppress(OSError):
                    pipe.close()
        self._process = self._server = None

    def _ask(self, question: Callable[[OpenAIBackend], Answer]) -> Answer:
        """Asks the process; if it dies while it answers, asks a new one, up to `evaluator.retries` times."""
        for left in range(self._config.retries, -1, -1):
            server = self._running()
            try:
                return question(server)
            except EvaluatorError:
                died = self._has_died()
                self.close()  # one that runs but does not answer in time is not asked again either
                if not died or left == 0:
                    raise
                logger.warning(
                    "%s died and is started again. Nothing has to be done, unless it happens again: then memory is "
                    "short, and evaluator.backend=transformers or a smaller evaluator.model need less",
                    self.name,
                )
        raise AssertionError("unreachable")

    def _has_died(self) -> bool:
        assert self._process is not None
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(END_S)
        return self._process.returncode is not None

    def _running(self) -> OpenAIBackend:
        if self._server is None or self._process is None or self._process.poll() is not None:
            self.close()
            self._server = self._start()
        return self._server

    def _start(self) -> OpenAIBackend:
        key = secrets.token_hex(16)
        settings = Settings(
            model=str(self._weights),
            context=MAX_PROMPT_TOKENS + self._config.max_new_tokens,
            threads=self._threads,
            key=key,
        )
        told = told_as(EvaluatorError, f"{self.name} cannot be started", "free some memory or open files")
        with told, tempfile.TemporaryFile() as complaints:
            # A session of its own: Ctrl-C goes to this process only, and the end of the pipe stops the other.
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=complaints,
                start_new_session=True,
            )
            started = self._wait_until_started(self._process, settings)
            if not started.url:
                self.close()
                complaints.seek(0)
                last = complaints.read().decode("utf-8", "replace").strip().splitlines()[-1:]
                reason = ascii(", ".join([started.error, *last]).strip(", "))[1:-1]
                raise EvaluatorError(
                    f"{self.name} did not start ({reason or 'no reason given'}): install the extra llama-cpp "
                    f"(docs/launch-script.md), look for damage by `{checkout.COMMAND} models verify NAME`, or set "
                    "evaluator.backend=transformers"
                )
        client = JsonClient(
            started.url + "/v1", JUDGING, timeout_s=self._config.timeout_s, retries=0, at_once=1, key=key
        )
        return OpenAIBackend(self._config, ChatServer(client, self._config.model))

    def _wait_until_started(self, process: subprocess.Popen[bytes], settings: Settings) -> Started:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(msgspec.json.encode(settings) + b"\n")
            process.stdin.flush()
            if not wait([process.stdout], START_TIMEOUT_S):  # type: ignore[list-item]  # a file will do
                return Started(error=f"not ready in {START_TIMEOUT_S:g} s")
            return msgspec.json.decode(process.stdout.readline(), type=Started)
        except (OSError, msgspec.MsgspecError):
            return Started(error="its process ended")

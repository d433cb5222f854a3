"""Rollouts by llama.cpp, from a quantised base with the current adapter, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

import msgspec
import torch

import codezero
from codezero.errors import RolloutError, told_as
from codezero.llm.adapters import active_adapter
from codezero.llm.llama_files import write_adapter, write_base
from codezero.llm.llama_sampler import Request
from codezero.llm.replies import Done, Reply, SamplerFailed, grouped, in_tries, misshapen
from codezero.llm.sample import SampleRequest, StepCallback
from codezero.types import SampledTokens

SILENCE_S = 120.0
"""The longest wait for a step or for a batch of a prompt's tokens, which takes some 10 ms a token, in seconds."""
PROCESS_BYTES = 2 << 30
"""The most memory of sampling beside its base and its key-value cache: drawing from 64 rows takes 0.3 GiB, a batch of
logits 0.2, and each thread's stack counts as 8 MiB."""
_PROGRAM = (
    "import sys; root = sys.argv[1]; sys.path[:1] = [] if root in sys.path[1:] else [root]; "
    "from codezero.llm.llama_sampler import main; main()"
)
COMMAND = (sys.executable, "-s", "-c", _PROGRAM, str(Path(codezero.__file__).parent.parent))


class LlamaCppEngine:
    """A rollout engine with the interface of `llm.sample.sample_groups`. It starts a process for each call, which ends
    with the call or with the node.

    Equal states of the generator give equal rollouts on the same machine with the same number of threads.
    """

    def __init__(self, model_folder: Path, folder: Path, *, cache_bytes: int, command: Sequence[str] = COMMAND) -> None:
        """Writes the quantised base of `model_folder` into `folder` if it is not there yet. cache_bytes: the most
        memory of the key-value cache. Raises RolloutError: it cannot be written; ModelError: llama.cpp does not support
        the model.
        """
        self._folder, self._command = folder, command
        self._memory_bytes = PROCESS_BYTES + cache_bytes
        self.base = folder / "base-q8_0.gguf"
        do = "free some space, give another state_dir, or set rollout.engine=transformers"
        self._trouble = RolloutError, f"cannot write the sampler's files in {folder}", do
        with told_as(*self._trouble):
            folder.mkdir(parents=True, exist_ok=True)
            write_base(model_folder, self.base)

    def sample_groups(self, model: Any, request: SampleRequest) -> list[list[SampledTokens]]:
        """Samples as `llm.sample.sample_groups` does. It uses the active adapters of `model` only, and no `pad_id`.
        Raises RolloutError: the adapters cannot be written, or none of `replies.TRIES` processes gives rollouts."""
        if not request.prompts:
            return []
        adapter, path = active_adapter(model), self._folder / "adapter.gguf"
        if adapter is not None:
            with told_as(*self._trouble):
                write_adapter(model, path, adapter)
        params = request.params
        message = Request(
            base=str(self.base),
            adapter=str(path) if adapter is not None else None,
            prompts=[list(prompt) for prompt in request.prompts],
            num_generations=request.num_generations,
            max_new_tokens=params.max_new_tokens,
            temperature=params.temperature,
            top_p=params.top_p,
            top_k=params.top_k,
            end_ids=list(request.end_ids),
            seed=request.draw_seed(),
            threads=torch.get_num_threads(),
            memory_bytes=self._memory_bytes,
        )
        remedy = (
            "install the extra llama-cpp (docs/launch-script.md), free some memory, or set rollout.engine=transformers"
        )
        done = in_tries(lambda: self._once(message, request.on_step), "llama.cpp gave no rollouts", remedy)
        return grouped(done, request.prompts, request.num_generations)

    def _once(self, request: Request, on_step: StepCallback | None) -> Done:
        with told_as(*self._trouble), tempfile.TemporaryFile(dir=self._folder) as complaints:
            try:
                done = self._run(request, on_step, complaints)
            except (OSError, EOFError, msgspec.MsgspecError) as error:
                complaints.seek(0)
                last = complaints.read().decode("utf-8", "replace").strip().splitlines()[-1:]
                raise SamplerFailed(", ".join([str(error), *last])) from error
        num = len(request.prompts) * request.num_generations
        if trouble := done.error or misshapen(done, num, request.max_new_tokens):
            raise SamplerFailed(trouble)
        return done

    def _run(self, request: Request, on_step: StepCallback | None, complaints: Any) -> Done:
        # It has a session of its own, since Ctrl-C is for the node's process, which then ends it.
        process = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=complaints,
            start_new_session=True,
            # On a busy machine threads that spin while waiting take cores from others: 3.6 tokens/s instead of 12.5.
            env={"OMP_WAIT_POLICY": "passive", **os.environ, "OPENBLAS_NUM_THREADS": "1"},
        )
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(msgspec.json.encode(request) + b"\n")
            process.stdin.flush()
            for line in _lines(process.stdout.fileno()):
                message = msgspec.json.decode(line, type=Reply)
                if isinstance(message, Done):
                    return message
                if on_step is not None and message.done:  # 0 while it reads prompts
                    on_step(message.done, message.total)
            raise EOFError(f"its process ended with code {process.wait()}")
        finally:
            process.kill()
            process.wait()
            process.stdout.close()
            with suppress(OSError):  # the process has not read all input
                process.stdin.close()


def _lines(file: int) -> Iterator[bytes]:
    """Yields complete lines until the end. Raises TimeoutError: nothing came for `SILENCE_S`."""
    rest = b""
    while wait([file], SILENCE_S):
        data = os.read(file, 1 << 20)
        if not data:
            return
        *lines, rest = (rest + data).split(b"\n")
        yield from lines
    raise TimeoutError(f"its process said nothing for {SILENCE_S:g} s")

"""Rollouts by vLLM, in a server of its own on this machine that sleeps while the node learns. Never run on a GPU.

It listens on a Unix socket in a folder that only this user can enter, not on a port: its key would guard the paths that
begin with /v1, but not those to sleep or to call a function of the worker.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx2
import torch

from codezero.errors import RolloutError, told_as
from codezero.llm.replies import Done, SamplerFailed, grouped, in_tries
from codezero.llm.sample import SampleRequest, StepCallback
from codezero.llm.vllm_server import ENVIRONMENT, POLICY, call, complete, serve_options
from codezero.runtime import keeper
from codezero.runtime.files import safetensors_written
from codezero.types import SampledTokens

START_S, LOOK_S = 900.0, 0.2
"""The longest wait for a server that starts, which compiles kernels the first time, and that between two looks, in
seconds."""
COMMAND = (sys.executable, "-m", "vllm.entrypoints.cli.main")


class VllmEngine:
    """A rollout engine with the interface of `llm.sample.sample_groups`. Its server starts with the first call and ends
    with the node; before each call it takes over the adapters, or all weights of a model without.

    Equal states of the generator give equal rollouts as far as batches give equal logits.
    """

    def __init__(self, model_folder: Path, folder: Path, *, cache_bytes: int, command: Sequence[str] = COMMAND) -> None:
        """Weights and the server's log are written into `folder`. cache_bytes: the size of the key-value cache."""
        self._model_folder, self._cache_bytes, self._command = model_folder, cache_bytes, command
        self._weights, self._log = folder.absolute() / "weights", folder / "vllm.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._socket = Path()
        self._rank, self._asleep = 0, False
        self._adapter, self._number = "", 0
        """The name of the adapter in use, and the number of those that were sent."""

    def sample_groups(self, model: Any, request: SampleRequest) -> list[list[SampledTokens]]:
        """Samples as `llm.sample.sample_groups` does, except that log-probs are those after top-p and top-k. `on_step`
        is called as prompts are done, with their share of the steps.

        Raises RolloutError: none of `replies.TRIES` servers gives rollouts.
        """
        prompts, params = request.prompts, request.params
        if not prompts:
            return []
        each = request.num_generations if params.temperature > 0 else 1  # greedy attempts are the same
        seed = request.draw_seed()
        bodies = [
            {
                "prompt": list(prompt),
                "n": each,
                "max_tokens": params.max_new_tokens,
                "temperature": params.temperature,
                "top_p": params.top_p,
                "top_k": params.top_k,
                "seed": seed + number * each,  # attempts at a prompt have seeds that follow one another
                "ignore_eos": True,
                "stop_token_ids": list(request.end_ids),
                "logprobs": 0,
                "return_token_ids": True,
                "return_tokens_as_token_ids": True,
            }
            for number, prompt in enumerate(prompts)
        ]
        if model.device.type == "cuda":
            torch.cuda.empty_cache()  # what learning has freed
        remedy = (
            f"{self._log} has its log; install the extra vllm (docs/rollout-service.md), free some memory of the GPU, "
            "or set rollout.engine=transformers"
        )
        found = in_tries(lambda: self._once(model, bodies, request.on_step), "vLLM gave no rollouts", remedy)
        groups = (grouped(done, [prompt], each)[0] for prompt, done in zip(prompts, found, strict=True))
        return [group * (request.num_generations // each) for group in groups]

    def close(self) -> None:
        """Ends the server, if there is one."""
        if self._process is not None:
            assert self._process.stdin is not None
            with suppress(OSError):
                self._process.stdin.close()  # its keeper ends all of its processes then
            self._process.wait()
        self._process = None

    def _once(self, model: Any, bodies: Sequence[dict[str, Any]], on_step: StepCallback | None) -> list[Done]:
        try:
            return asyncio.run(self._round(model, bodies, on_step))
        except (OSError, httpx2.HTTPError, SamplerFailed) as error:
            self.close()
            raise SamplerFailed(str(error) or type(error).__name__) from error

    async def _round(self, model: Any, bodies: Sequence[dict[str, Any]], on_step: StepCallback | None) -> list[Done]:
        rank = model.peft_config["default"].r if hasattr(model, "peft_config") else 0
        if self._process is None or self._process.poll() is not None or rank != self._rank:
            self.close()
            self._start(model, rank)
        async with httpx2.AsyncClient(
            base_url="http://vllm",
            transport=httpx2.AsyncHTTPTransport(uds=str(self._socket)),
            headers={"accept-encoding": "identity"},
            timeout=None,  # `call` limits the whole time of an answer
        ) as client:
            try:
                await asyncio.wait_for(self._ready(client), START_S)
            except asyncio.TimeoutError as error:
                raise SamplerFailed(f"it did not answer within {START_S:g} s of its start") from error
            if self._asleep:
                await call(client, "/wake_up")
                self._asleep = False
            name = await self._send(client, model)
            done = await complete(client, [{"model": name, **body} for body in bodies], model, on_step)
            await call(client, "/sleep?level=1")
            self._asleep = True
        return done

    def _start(self, model: Any, rank: int) -> None:
        self._rank, self._asleep, self._adapter = rank, False, ""
        self._weights.parent.mkdir(parents=True, exist_ok=True)
        # Not below the state folder, since the path of a socket has at most 107 bytes. The keeper removes it.
        self._socket = Path(tempfile.mkdtemp(prefix="codezero-vllm-")) / "socket"
        options = serve_options(self._model_folder, self._socket, model.dtype, rank, self._cache_bytes)
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, keeper.__file__, str(self._socket.parent), *self._command, *options],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is for the node's process
                env={**os.environ, **ENVIRONMENT},
            )

    async def _ready(self, client: httpx2.AsyncClient) -> None:
        """Waits until the server answers."""
        assert self._process is not None
        while self._process.poll() is None:
            try:
                await call(client, "/health", method="GET")
                return
            except httpx2.TransportError:
                await asyncio.sleep(LOOK_S)
        last = self._log.read_text("utf-8", "replace").strip().splitlines()[-1:]
        raise SamplerFailed(", ".join(["its process ended", *last]))

    async def _send(self, client: httpx2.AsyncClient, model: Any) -> str:
        """Makes the server take over the model's weights, and returns the name to sample with."""
        path = str(self._weights)
        do = "free some space, give another state_dir, or set rollout.engine=transformers"
        told = told_as(RolloutError, f"cannot write the weights for vLLM in {path}", do)
        with told, safetensors_written(self._weights):
            shutil.rmtree(path, ignore_errors=True)  # new files, since the server may have mapped the old ones
            self._weights.mkdir(mode=0o700)
            model.save_pretrained(path, **({"save_embedding_layers": False} if self._rank else {}))
        if not self._rank:
            await call(client, "/collective_rpc", {"method": "reload_weights", "kwargs": {"weights_path": path}})
            return POLICY
        self._number += 1
        name = f"update-{self._number}"
        await call(client, "/v1/load_lora_adapter", {"lora_name": name, "lora_path": path})
        if self._adapter:
            await call(client, "/v1/unload_lora_adapter", {"lora_name": self._adapter})
        self._adapter = name
        return name

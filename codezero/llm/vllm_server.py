"""The server of vLLM 0.30.0: the options that it is started with, what it is asked, and what its answers may be.

Options are those of `entrypoints/launchers/cli_args.py` and `engine/arg_utils.py` there, paths and answers those of
`entrypoints/openai/completion`, `serve/lora`, `serve/dev/sleep` and `serve/dev/rpc`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import torch

from codezero.llm.replies import Done, SamplerFailed, implausible, misshapen
from codezero.llm.sample import StepCallback

ANSWER_S = 600.0
"""The longest wait for an answer, in seconds."""
TOKEN_BYTES = 512
"""The most bytes of a token in an answer: its id, its text and its log-prob, some of them twice; 81 are usual."""
MOST_BYTES = 1 << 20
"""The most bytes of an answer beside its tokens; prompts are repeated in it."""
RANKS = (8, 16, 32, 64, 128, 256, 320, 512)
"""The largest ranks of adapters that a server can be started for."""
POLICY = "policy"
"""The name that the model itself is asked for by."""
ENVIRONMENT = {
    "VLLM_SERVER_DEV_MODE": "1",  # sleep, wake_up, collective_rpc
    "VLLM_ALLOW_RUNTIME_LORA_UPDATING": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "HF_HUB_OFFLINE": "1",
}


class _Logprobs(msgspec.Struct):
    token_logprobs: list[float]


class _Choice(msgspec.Struct):
    index: int
    token_ids: list[int]
    logprobs: _Logprobs


class _Answer(msgspec.Struct):
    choices: list[_Choice]


def serve_options(folder: Path, socket: Path, dtype: torch.dtype, rank: int, cache_bytes: int) -> list[str]:
    """Returns the arguments of the server of a model; `rank` is that of its adapters, 0 without."""
    options = {
        "--served-model-name": POLICY,
        "--uds": str(socket),
        "--dtype": str(dtype).removeprefix("torch."),
        "--generation-config": "vllm",  # the model's own may have penalties, which the learner does not know
        "--logprobs-mode": "processed_logprobs",  # at the sampling temperature; raw ones are at 1
        "--max-model-len": "auto",  # as long as the cache
        "--kv-cache-memory-bytes": str(cache_bytes),
        "--gpu-memory-utilization": "0.01",  # the share that must be free at start; the cache has its size already
    }
    flags = ["--enable-sleep-mode", "--disable-log-stats", "--disable-uvicorn-access-log"]
    if rank:
        flags.append("--enable-lora")
        options["--max-lora-rank"] = str(next((most for most in RANKS if rank <= most), rank))
    return ["serve", str(folder), *flags, *(word for option in options.items() for word in option)]


async def call(client: httpx2.AsyncClient, path: str, body: Any = None, most: int = 0, method: str = "POST") -> bytes:
    """Returns the answer, which has at most `most` bytes beside `MOST_BYTES`."""
    raw = bytearray()

    async def send() -> int:
        async with client.stream(method, path, json=body) as response, aclosing(response.aiter_raw()) as pieces:
            async for piece in pieces:
                raw.extend(piece)
                if len(raw) > MOST_BYTES + most:
                    raise SamplerFailed(f"it answered {path} with more than {MOST_BYTES + most} bytes")
        return response.status_code

    try:
        status = await asyncio.wait_for(send(), ANSWER_S)
    except asyncio.TimeoutError as error:
        raise SamplerFailed(f"it did not answer {path} in {ANSWER_S:g} s") from error
    if status != 200:
        raise SamplerFailed(f"it answered {path} with HTTP {status} {raw[:200].decode('utf-8', 'replace')}")
    return bytes(raw)


async def complete(
    client: httpx2.AsyncClient, bodies: Sequence[dict[str, Any]], model: Any, on_step: StepCallback | None
) -> list[Done]:
    """Returns the attempts at each prompt."""
    vocabulary, total, num_done = model.config.get_text_config().vocab_size, bodies[0]["max_tokens"], 0

    async def one(body: dict[str, Any]) -> Done:
        nonlocal num_done
        done = await _sampled(client, body, vocabulary)
        num_done += 1
        if on_step is not None:
            on_step(total * num_done // len(bodies), total)
        return done

    asked = [asyncio.ensure_future(one(body)) for body in bodies]
    try:
        return await asyncio.gather(*asked)
    finally:
        for task in asked:  # after a failure
            task.cancel()
        await asyncio.gather(*asked, return_exceptions=True)


async def _sampled(client: httpx2.AsyncClient, body: dict[str, Any], vocabulary: int) -> Done:
    most = body["n"] * (body["max_tokens"] * TOKEN_BYTES + len(body["prompt"]) * 16)
    raw = await call(client, "/v1/completions", body, most)
    try:
        choices = sorted(msgspec.json.decode(raw, type=_Answer).choices, key=lambda one: one.index)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise SamplerFailed(f"its answer cannot be read: {error}") from error
    done = Done(ids=[one.token_ids for one in choices], logprobs=[one.logprobs.token_logprobs for one in choices])
    trouble = misshapen(done, body["n"], body["max_tokens"])
    trouble = trouble or implausible(done, body["max_tokens"], body["stop_token_ids"], vocabulary)
    if trouble:
        raise SamplerFailed(trouble)
    return done

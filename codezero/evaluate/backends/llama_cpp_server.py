"""The process of a llama.cpp judge: `python -m codezero.evaluate.backends.llama_cpp_server`.

Reads one line of JSON from standard input (`Settings`), loads the model, prints one line of JSON (`Started`), and
serves OpenAI's chat protocol on a free port of 127.0.0.1 until standard input ends, which it does with the parent.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import msgspec


class Settings(msgspec.Struct):
    model: str
    """Path of a GGUF file."""
    context: int
    """The most tokens of prompt and answer together."""
    threads: int
    key: str
    """The key that every request must have, since any program on the machine can reach the port."""


class Started(msgspec.Struct):
    url: str = ""
    error: str = ""


def main() -> None:
    settings = msgspec.json.decode(sys.stdin.buffer.readline(), type=Settings)
    try:
        server, answer = _serve(settings)
    except (ImportError, RuntimeError, OSError) as error:
        server, answer = None, Started(error=str(error) or type(error).__name__)
    print(msgspec.json.encode(answer).decode(), flush=True)
    if server is not None:
        sys.stdin.buffer.read()
    os._exit(0)  # at once: an orderly shutdown would first finish the prompt that the server reads


def _serve(settings: Settings) -> tuple[Any, Started]:
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = settings.model
    params.n_ctx = settings.context
    params.n_parallel = 1  # one at a time: each reuses the cache of the start that it shares with the last, a problem
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = settings.threads
    params.n_gpu_layers = 0
    params.cache_ram_mib = 0  # the default is up to 8 GiB of earlier prompts
    params.hostnames, params.port = ["127.0.0.1"], 0
    params.api_keys = [settings.key]
    params.ui = params.endpoint_slots = params.endpoint_props = False
    params.verbosity = 1  # errors
    server = xllamacpp.Server(params)
    return server, Started(url=server.listening_address)


if __name__ == "__main__":
    main()

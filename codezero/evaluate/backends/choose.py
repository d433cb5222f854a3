"""Chooses the backend that judges on this machine, and makes those outside this process."""

from __future__ import annotations

from pathlib import Path

from codezero.config import Backend, EvaluatorConfig
from codezero.evaluate.backends.base import JudgeBackend
from codezero.evaluate.backends.llama_cpp import LlamaCppBackend
from codezero.evaluate.backends.ollama import OllamaBackend
from codezero.evaluate.backends.served import JUDGING, OpenAIBackend
from codezero.llm.chat_server import ChatServer
from codezero.llm.llama_library import PACKAGE


def choose_backend(
    config: EvaluatorConfig,
    device_type: str,
    *,
    fits: bool,
    has_llama_cpp: bool,
    has_gguf: bool,
    begun_with: Backend | None = None,
) -> tuple[Backend, str]:
    """Returns the backend and, in a few words, the reason for it. `fits`: memory holds a judge in this process beside
    learning; `has_gguf`: its weights are known as a GGUF file; `begun_with`: the backend of the state folder's earlier
    rounds."""
    if config.backend is not Backend.auto:
        return config.backend, f"evaluator.backend={config.backend.value}"
    can_leave = has_llama_cpp and has_gguf
    if begun_with is Backend.llama_cpp and can_leave:
        return Backend.llama_cpp, "as in earlier rounds"
    if device_type != "cpu":
        return Backend.transformers, f"{device_type} is faster than a process on the CPU"
    if fits:
        return Backend.transformers, "memory holds it"
    if can_leave:
        return Backend.llama_cpp, "memory does not hold a judge in this process"
    missing = "no GGUF file of its weights is known" if has_llama_cpp else f"{PACKAGE} is not installed"
    return Backend.transformers, f"memory is short, but {missing}"


def make_outside(backend: Backend, config: EvaluatorConfig, weights: Path | None, threads: int) -> JudgeBackend | None:
    """Returns a judge outside this process; None for other backends.

    `weights` is the GGUF file, which only llama_cpp needs. Raises EvaluatorError: a setting is missing or unusable.
    """
    if backend is Backend.llama_cpp:
        assert weights is not None
        return LlamaCppBackend(config, weights, threads)
    if backend is Backend.ollama:
        return OllamaBackend(config)
    return OpenAIBackend(config, ChatServer.from_config(config, JUDGING)) if backend is Backend.openai else None

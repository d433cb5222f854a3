"""Chooses the backend that judges on this machine, and makes those outside this process."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path

from codezero.config import Backend, EvaluatorConfig
from codezero.evaluate.backends.base import JudgeBackend
from codezero.evaluate.backends.http import OpenAIBackend
from codezero.evaluate.backends.llama_cpp import PACKAGE, LlamaCppBackend
from codezero.evaluate.backends.ollama import OllamaBackend


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """The facts that the choice of a backend depends on."""

    device_type: str
    """ "cpu", "cuda" or "mps"."""
    fits: bool
    """True if memory holds a judge in this process beside learning."""
    has_llama_cpp: bool
    has_gguf: bool
    """True if the judge's weights are known as a GGUF file."""
    begun_with: Backend | None = None
    """The backend that judged the state folder's earlier rounds."""


def choose_backend(config: EvaluatorConfig, machine: Machine) -> tuple[Backend, str]:
    """Returns the backend and, in a few words, the reason for it."""
    if config.backend is not Backend.auto:
        return config.backend, f"evaluator.backend={config.backend.value}"
    can_leave = machine.has_llama_cpp and machine.has_gguf
    if machine.begun_with is Backend.llama_cpp and can_leave:
        return Backend.llama_cpp, "as in earlier rounds"
    if machine.device_type != "cpu":
        return Backend.transformers, f"{machine.device_type} is faster than a process on the CPU"
    if machine.fits:
        return Backend.transformers, "memory holds it"
    if can_leave:
        return Backend.llama_cpp, "memory does not hold a judge in this process"
    missing = "its weights are no known GGUF file" if machine.has_llama_cpp else f"{PACKAGE} is not installed"
    return Backend.transformers, f"memory is short, but {missing}"


def has_llama_cpp() -> bool:
    return importlib.util.find_spec(PACKAGE) is not None


def make_outside(backend: Backend, config: EvaluatorConfig, weights: Path | None, threads: int) -> JudgeBackend | None:
    """Returns a judge outside this process; None for other backends.

    `weights` is the GGUF file, which only llama_cpp needs. Raises EvaluatorError: a setting is missing or unusable.
    """
    if backend is Backend.llama_cpp:
        assert weights is not None
        return LlamaCppBackend(config, weights, threads)
    if backend is Backend.ollama:
        return OllamaBackend(config)
    return OpenAIBackend.from_config(config) if backend is Backend.openai else None

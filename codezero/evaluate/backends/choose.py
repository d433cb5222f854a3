"""Which backend judges on this machine, and making it."""

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
    """What the choice depends on."""

    device_type: str
    """ "cpu", "cuda" or "mps"."""
    fits: bool
    """Whether memory holds a judge in this process beside what learning takes."""
    has_llama_cpp: bool
    has_gguf: bool
    """Whether the judge is known as a GGUF file."""
    begun_with: Backend | None = None
    """What the state folder's earlier rounds were judged by."""


def choose_backend(config: EvaluatorConfig, machine: Machine) -> tuple[Backend, str]:
    """The backend and why it, in a few words."""
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
    """A judge outside this process; None where no model is asked.

    `weights` is the GGUF file, which llama_cpp alone needs. Raises EvaluatorError: a setting is missing or unusable.
    """
    if backend is Backend.llama_cpp:
        assert weights is not None
        return LlamaCppBackend(config, weights, threads)
    if backend is Backend.ollama:
        return OllamaBackend(config)
    return OpenAIBackend.from_config(config) if backend is Backend.openai else None

"""Builds the evaluator that the configuration names; finds out where its judge runs and how much memory that takes."""

from __future__ import annotations

import logging
import math
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from codezero.config import Backend, Dtype, NodeConfig, VerdictMode
from codezero.errors import ModelError
from codezero.evaluate import calibration
from codezero.evaluate.backends.base import JudgeBackend
from codezero.evaluate.backends.choose import choose_backend, make_outside
from codezero.evaluate.backends.transformers import TransformersBackend
from codezero.evaluate.evaluator import P_UNSURE, FrozenEvaluator
from codezero.evaluate.judge import Judge, ModelJudge
from codezero.evaluate.reading import AttemptReader, Fresh
from codezero.llm import catalogue, store
from codezero.llm import device as devices
from codezero.llm.llama_library import PACKAGE as LLAMA_CPP
from codezero.llm.load import LoadedModel, load_model
from codezero.ports import Progress
from codezero.runtime.console import Console
from codezero.runtime.system_info import is_installed
from codezero.tasks.withheld import ProblemOf, task_alone
from codezero.train import memory
from codezero.train.method import free_room
from codezero.workers import Workers
from codezero.workers.pool import num_workers

logger = logging.getLogger(__name__)

SMALL_JUDGE, LARGE_JUDGE = "Qwen2.5-Coder-0.5B-Instruct", "Qwen2.5-Coder-1.5B-Instruct"
LARGE_JUDGE_MEMORY_BYTES = 24 << 30
"""The least usable memory in bytes with which evaluator.model=auto is the large judge on a CPU: that of a machine of
32 GB."""
LLAMA_CPP_BYTES = 400 << 20
"""The memory of a llama.cpp process without its weights: libraries, cache, and buffers for a prompt of 6,144 tokens."""


def judge_that_fits(memory_bytes: int, device: torch.device, taken: int = 0) -> str:
    """Returns the model that evaluator.model=auto stands for. An accelerator is fast enough for the large one, which is
    taken if it fits beside `taken` bytes of the node's own; on a CPU only a large machine gets it."""
    if device.type == "cpu":
        return LARGE_JUDGE if memory_bytes >= LARGE_JUDGE_MEMORY_BYTES else SMALL_JUDGE
    large = catalogue.find(LARGE_JUDGE)
    assert large is not None
    needed = large.parameters * devices.choose_dtype(Dtype.auto, device).itemsize
    return LARGE_JUDGE if taken + needed <= memory_bytes else SMALL_JUDGE


class JudgeWeights:
    """The judge's weights: finds their folder or file and their size, and loads them. Prepares each only when asked."""

    def __init__(
        self,
        config: NodeConfig,
        name: str,
        device: torch.device,
        console: Console,
        token: str | None = None,
        downloads: bool = True,
    ) -> None:
        """`token` is passed to `store.prepare`; without `downloads` only weights that are prepared are available."""
        self.name, self._config, self._device, self._console = name, config, device, console
        self._token, self._downloads = token, downloads

    def folder(self) -> Path:
        """Returns the folder of the weights, downloading them if needed. Raises ModelError: they are not available."""
        cache_dir = self._config.model.cache_dir
        if not self._downloads and store.prepared(self.name, cache_dir) is None:
            raise ModelError(f"{self.name} is not here yet, so what it needs is not known")
        return store.prepare(self.name, cache_dir, report=self._console.line, token=self._token)

    def file(self) -> Path:
        """Returns the GGUF file, downloading it if needed. Raises ModelError: the weights are not available as one."""
        return store.weight_file(self.name, self._config.model.cache_dir, report=self._console.line)

    def dtype(self) -> torch.dtype:
        """Returns the configured precision. For auto it is the solver's if the judge is the same model, so that they
        can share weights, else the fastest one of the device."""
        wanted = self._config.evaluator.dtype
        if wanted is Dtype.auto and self.name == self._config.model.name:
            return devices.choose_dtype(self._config.model.dtype, self._device)
        return devices.choose_dtype(wanted, self._device, frozen=True)

    def is_asked(self, backend: Backend) -> bool:
        """Returns False if a judge in this backend, with evaluator.backend=auto, could decide nothing: `evaluator.mask`
        masks every attempt of which it is unsure, and by its calibration it is unsure of all."""
        settings, verdict = self._config.evaluator, verdict_in(backend, self._config)
        masks = settings.backend is Backend.auto and settings.mask and settings.dry_run
        if not masks or verdict is VerdictMode.generate:
            return True
        fitted = calibration.of(self.name)
        weights = fitted.likelihood if verdict is VerdictMode.likelihood else fitted.logit
        (least, most), (low, high) = calibration.extremes(weights), P_UNSURE
        return least <= low or most >= high

    def num_bytes(self, backend: Backend) -> int:
        """Returns the bytes of the planned memory that a judge in this backend takes; 0 for one that is not asked. A
        model of the catalogue is not downloaded for that."""
        if not self.is_asked(backend):
            return 0
        known = catalogue.find(self.name)
        if backend is Backend.transformers:
            parameters = known.parameters if known else memory.read_shape(self.folder()).num_parameters
            return parameters * self.dtype().itemsize
        if backend is Backend.llama_cpp and self._device.type != "cuda":
            return LLAMA_CPP_BYTES + (known.size_bytes if known else self.file().stat().st_size)
        return 0

    def is_policy(self, dtype: torch.dtype) -> bool:
        """Returns True if these are the policy's starting weights in `dtype`: adapters then need no second copy."""
        model = self._config.model
        here, there = (store.folder_of(name, model.cache_dir) for name in (self.name, model.name))
        return here == there and self.dtype() == dtype

    def load(self) -> LoadedModel:
        loaded = load_model(self.name, self.folder(), self._device, self.dtype())
        loaded.model.requires_grad_(False)
        return loaded

    def outside(self, backend: Backend) -> JudgeBackend | None:
        """Returns a judge outside this process that has been checked; None if the backend has none, or it is not
        asked. Raises EvaluatorError: it cannot be made or asked."""
        if not self.is_asked(backend):
            return None
        weights = self.file() if backend is Backend.llama_cpp else None
        made = make_outside(backend, self._config.evaluator, weights, torch.get_num_threads())
        if made is not None:
            made.check()
        return made

    def choose(self, fits: bool, begun_with: str | None = None) -> tuple[Backend, str]:
        """Returns where the judge runs, and why; llama.cpp also stands for a judge that is not asked there. `fits` is
        True if this process has memory for it."""
        return choose_backend(
            self._config.evaluator,
            self._device.type,
            fits=fits,
            has_llama_cpp=is_installed(LLAMA_CPP) or not self.is_asked(Backend.llama_cpp),
            has_gguf=catalogue.find(self.name) is not None,
            begun_with=Backend(begun_with) if begun_with else None,
        )


def verdict_in(backend: Backend, config: NodeConfig) -> VerdictMode:
    """Returns the way of judging in this backend."""
    wanted = config.evaluator.verdict
    if wanted is not VerdictMode.auto:
        return wanted
    return VerdictMode.likelihood if backend is Backend.transformers else VerdictMode.logit


def evaluator_line(config: NodeConfig, judge: JudgeWeights, backend: Backend, why: str) -> str:
    """Returns a description of the evaluator in one line."""
    if backend is Backend.execution:
        return "evaluator: WARNING: evaluator.backend=execution RUNS what models wrote, in a sandbox"
    verdict = verdict_in(backend, config).value
    if not judge.is_asked(backend):
        return (
            "evaluator: rules and a dry run, which never runs code; what they leave open is masked, without a judge, "
            f"since {judge.name} by {verdict} could decide none of it ({why})"
        )
    first = "rules, a dry run, then " if config.evaluator.dry_run else "rules, then "
    return f"evaluator: {first}{judge.name}, frozen, by {verdict}; it never runs code ({backend.value}: {why})"


def make_evaluator(
    config: NodeConfig,
    backend: JudgeBackend | None,
    progress: Progress,
    workers: Workers,
    *,
    problem_of: ProblemOf = task_alone,
    secret: bytes | None = None,
) -> FrozenEvaluator:
    """Returns the evaluator of a round with the judge `backend`, or without one, as `JudgeWeights.is_asked` says; with
    evaluator.backend=execution it executes solutions. `workers` read solutions. `problem_of` returns the hidden tests
    of a task, which dry runs and execution also check, and the reference solution for fresh tests. `secret` is a part
    of the seed of these, random by default.

    Raises EvaluatorError: this machine has no sandbox to execute in.
    """
    settings = config.evaluator
    executes = settings.backend is Backend.execution
    dry_run = settings.dry_run and not executes
    attempt_reader = AttemptReader(
        workers,
        dry_run=dry_run,
        fatal_rules=settings.fatal_rules,
        show=backend is not None,
        problem_of=problem_of,
        fresh=Fresh(settings.fresh, secret or secrets.token_bytes(16)) if settings.fresh else None,
        environments=config.tasks.environments,
    )
    judge: Judge | None = None
    if executes:
        # Imported only here: a node whose user has not set this backend must be unable to run what models wrote.
        from codezero.evaluate.execution import ExecutionJudge

        judge = executing = ExecutionJudge(settings, workers, problem_of)
        logger.warning(executing.warning())
    elif backend is not None:
        judge = ModelJudge(backend, settings)
    num_external = config.swarm.num_external if dry_run else math.inf
    at_once = backend.at_once if isinstance(backend, TransformersBackend) else 1
    return FrozenEvaluator(judge, settings, config.reward, progress, attempt_reader, num_external, at_once)


def count_workers(config: NodeConfig) -> int:
    """Returns the number of processes that read untrusted text, by the configuration and the machine."""
    memory_bytes = free_room(config.train, torch.device("cpu"), config.state_dir).memory
    on_gpu = devices.choose_device(config.model.device).type not in ("cpu", "mps")
    # model.threads is a node's share of the cores where several nodes have a GPU each (launch/gpus.py).
    cores = config.model.threads if on_gpu else 0
    return num_workers(config.evaluator.workers, memory_bytes, on_gpu=on_gpu, cores=cores)


def start_workers(config: NodeConfig) -> Workers:
    """Starts the processes that read untrusted text. Raises WorkerError: they do not start; ConfigError: the configured
    device is not there."""
    return Workers(count_workers(config), modules=config.tasks.modules)


@contextmanager
def evaluator_alone(config: NodeConfig, console: Console, problem_of: ProblemOf) -> Iterator[FrozenEvaluator]:
    """Yields a round's evaluator without a node, with workers of its own. The configuration's seed takes the place of
    a node's secret, so that fresh tests are the same in each run.

    Raises ModelError or EvaluatorError: there is no judge; WorkerError: the workers do not start.
    """
    judge = judge_alone(config, console)
    with start_workers(config) as workers:
        secret = f"seed {config.seed}".encode()
        yield make_evaluator(config, judge, lambda *_: None, workers, problem_of=problem_of, secret=secret)


def judge_alone(config: NodeConfig, console: Console) -> JudgeBackend | None:
    """Returns a judge without a node; None for execution, and for a judge that is not asked.

    Raises ModelError or EvaluatorError: its weights are not available, do not fit, or it cannot be asked.
    """
    device = devices.choose_device(config.model.device)
    devices.set_threads(config.model.threads)
    room = free_room(config.train, device, Path())
    name = config.evaluator.model if config.evaluator.model != "auto" else judge_that_fits(room.memory, device)
    weights = JudgeWeights(config, name, device, console)
    may_be_here = config.evaluator.backend in (Backend.auto, Backend.transformers)
    fits = may_be_here and weights.num_bytes(Backend.transformers) < room.memory
    chosen, why = weights.choose(fits)
    if chosen is Backend.transformers and not fits:
        raise ModelError(f"memory does not hold {name}: set evaluator.model to a smaller one")
    console.line(evaluator_line(config, weights, chosen, why))
    if chosen is not Backend.transformers or not weights.is_asked(chosen):
        return weights.outside(chosen)
    backend = TransformersBackend(weights.load(), config.evaluator)
    backend.check()
    return backend

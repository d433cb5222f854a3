"""The models of a node: chooses them by the configuration and the free memory, and loads them."""

from __future__ import annotations

import contextlib
import hashlib
import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch

from codezero.config import Backend, Network, NodeConfig, RolloutEngine, TrainMethod
from codezero.errors import RolloutError, TrainingError
from codezero.evaluate.backends.choose import has_llama_cpp
from codezero.evaluate.backends.llama_cpp import PACKAGE
from codezero.evaluate.backends.transformers import Frozen, TransformersBackend
from codezero.evaluate.build import LARGE_JUDGE, JudgeWeights, count_workers, describe, judge_that_fits
from codezero.evaluate.examiner import Examiner
from codezero.llm import device as devices
from codezero.llm import store
from codezero.llm.load import LoadedModel, load_model
from codezero.llm.sample import SampleGroups, sample_groups
from codezero.observe import probes
from codezero.observe.report_file import ReportFile
from codezero.policy.llama_cpp import LlamaCppEngine
from codezero.policy.probe import SAMPLES, START_SAMPLES, Probe
from codezero.policy.solver import PolicySolver, measuring_solver
from codezero.ports import Progress
from codezero.runtime import state
from codezero.runtime.console import Console
from codezero.train import memory
from codezero.train.memory import GIB, MemoryEstimate, ModelShape, Workload
from codezero.train.method import Room, apply_lora, choose_method, free_room
from codezero.types import Task
from codezero.workers import Workers
from codezero.workers.pool import WORKER_BYTES

PROMPT_TOKENS, CONTEST_PROMPT_TOKENS = 512, 2048
"""The longest prompts that memory is planned for, in tokens: of problems with unit tests, and of contest statements."""


LEAST_TASKS = 2
"""The number of own tasks of a round if swarm.num_local is 0 and the device is not good for more."""
ROWS = {"cpu": 0, "mps": 16, "cuda": 64}
"""The number of attempts that a device is good for at a time: a GPU's step takes as long for one as for 64, a round of
which fits into the records of every protocol. Of a source's 48 candidates then still only the likeliest are drawn."""


class Models:
    """The policy, the frozen judge and, if the loss needs one, the frozen reference of a node."""

    def __init__(self, config: NodeConfig, folder: Path, console: Console, token: str | None = None) -> None:
        """Loads the models after the memory plan has been made and printed, and a judge outside this process has
        answered. `token` is for models that the hub gives to some users only.

        Raises ModelError, TrainingError or StateError: weights are not available, do not fit, or are not those of
        `folder`; EvaluatorError: the judge cannot be asked.
        """
        self._config, self._console = config, console
        self.prompt_tokens = prompt_tokens(config)
        """The longest prompt that memory is planned for, in tokens."""
        self._device = devices.choose_device(config.model.device)
        outside = config.rollout.engine is RolloutEngine.llama_cpp
        if outside and (self._device.type != "cpu" or not has_llama_cpp()):
            where = f"this node computes on {self._device.type}" if has_llama_cpp() else f"{PACKAGE} is not installed"
            raise RolloutError(
                f"rollout.engine=llama_cpp samples on a CPU, by a package of its own, and {where}: `pip install "
                "codezero[llama-cpp]` on a machine without a GPU, or set rollout.engine=transformers"
            )
        devices.set_threads(config.model.threads)
        devices.return_freed_memory()
        dtype = devices.choose_dtype(config.model.dtype, self._device)
        state.check_settings(folder, {"model.name": config.model.name})
        room = free_room(config.train, self._device, folder)
        policy_folder = store.prepare(config.model.name, config.model.cache_dir, report=console.line, token=token)
        weights = JudgeWeights(
            config, self._judge_name(folder, room, policy_folder, dtype), self._device, console, token
        )
        backend, why, plan = self._choose_backend(weights, folder, room, policy_folder, dtype)
        free = f"{room.memory / GIB:.1f} GiB of memory and {room.disk / GIB:.0f} GiB of disk can be used"
        console.line(f"plan: {plan.line()}; {free}")
        self.planned_bytes, self.num_local = plan.peak, plan.num_local
        self.train = plan.train
        """The settings of training: the configured ones, with smaller micro-batches if memory is short."""
        method = plan.method
        fixed = {"model.name": config.model.name, "train.method": method.value}
        if method is TrainMethod.lora:
            fixed["train.lora_r"] = str(config.train.lora_r)
        state.check_settings(folder, fixed)
        # Checkpoints have float32 weights: the precision, and with it the device, may change between starts.
        self.settings = {
            **fixed,
            "model.dtype": str(dtype).removeprefix("torch."),
            "evaluator.backend": backend.value,
        }
        """The settings that a resumed node must keep, its precision, and those of the judge, which it keeps unless
        configured."""
        if backend in (Backend.transformers, Backend.llama_cpp):
            self.settings["evaluator.model"] = weights.name
        self.judge_backend = weights.outside(backend)
        """The connection to the judge; None if no model is asked."""
        self.sample: SampleGroups = sample_groups
        """The function that samples rollouts."""
        if outside:
            self.sample = LlamaCppEngine(policy_folder, folder / "sampler", cache_bytes=2 * plan.kv_cache).sample_groups
        self.policy = load_model(config.model.name, policy_folder, self._device, dtype)
        needs_copy = config.train.beta > 0 and method is TrainMethod.full
        self.reference = load_model(config.model.name, policy_folder, self._device, dtype).model if needs_copy else None
        self.turn = threading.Lock()
        """A lock for computing with weights of this process, since other threads of the node ask the policy too."""
        self.judge: LoadedModel | None = self.policy
        frozen: Frozen = contextlib.nullcontext
        if method is TrainMethod.lora:
            adapted = apply_lora(self.policy.model, config.train, config.seed)
            self.policy = replace(self.policy, model=adapted)
            frozen = adapted.disable_adapter
        if backend is not Backend.transformers:
            self.judge, frozen = None, contextlib.nullcontext
        elif method is TrainMethod.full or not _is_base(weights, policy_folder, dtype):
            self.judge, frozen = weights.load(), contextlib.nullcontext
        if self.judge is not None:
            frozen_in_turn = partial(_in_turn, self.turn, frozen)
            self.judge_backend = TransformersBackend(self.judge, config.evaluator, frozen_in_turn)
            self.judge_backend.check()
        console.line(f"solver: {config.model.name}, {method.value}, on {devices.describe(self._device, dtype)}")
        console.line(describe(config, weights.name, backend, why))

    def _choose_backend(
        self, weights: JudgeWeights, folder: Path, room: Room, policy_folder: Path, dtype: torch.dtype
    ) -> tuple[Backend, str, MemoryEstimate]:
        """Returns where the judge runs, why, and the node's memory plan with it. Raises TrainingError: it does not
        fit."""

        def plan_with(backend: Backend) -> MemoryEstimate:
            return self._plan(folder, room, policy_folder, dtype, weights, backend)

        plan = None
        if self._config.evaluator.backend is Backend.auto:
            with contextlib.suppress(TrainingError):
                plan = plan_with(Backend.transformers)
        backend, why = weights.choose(plan is not None, state.bound_settings(folder).get("evaluator.backend"))
        if plan is None or backend is not Backend.transformers:
            plan = plan_with(backend)
        return backend, why, plan

    def _plan(
        self,
        folder: Path,
        room: Room,
        policy_folder: Path,
        dtype: torch.dtype,
        weights: JudgeWeights,
        backend: Backend,
    ) -> MemoryEstimate:
        """Returns the plan of memory and disk with a judge in `backend`; train.method=auto keeps the method with which
        the state folder was made. Raises TrainingError: it does not fit."""
        config = self._config
        train = config.train
        begun_with = state.bound_settings(folder).get("train.method")
        if train.method is TrainMethod.auto and begun_with is not None:
            train = replace(train, method=TrainMethod(begun_with))
        evaluator_is_base = backend is Backend.transformers and _is_base(weights, policy_folder, dtype)
        load = workload(config, self._device.type, dtype, weights.num_bytes(backend), evaluator_is_base)
        saved = sum(path.stat().st_size for path in folder.rglob("round-*/*.pt"))
        room = replace(room, disk=room.disk + saved)  # the plan counts the space of earlier checkpoints too
        return choose_method(memory.read_shape(policy_folder), train, load, room)

    def _judge_name(self, folder: Path, room: Room, policy_folder: Path, dtype: torch.dtype) -> str:
        """Returns the configured judge; for auto the one with which the state folder was made, else the largest that
        fits."""
        if self._config.evaluator.model != "auto":
            return self._config.evaluator.model
        begun_with = state.bound_settings(folder).get("evaluator.model")
        return begun_with or judge_beside(self._config, memory.read_shape(policy_folder), self._device, dtype, room)


def prompt_tokens(config: NodeConfig) -> int:
    """Returns the longest prompt that memory is planned for, in tokens."""
    return CONTEST_PROMPT_TOKENS if config.tasks.code_contests.weight else PROMPT_TOKENS


def workload(
    config: NodeConfig, device_type: str, dtype: torch.dtype, evaluator_bytes: int, evaluator_is_base: bool
) -> Workload:
    """Returns the sizes of a round of a node with this configuration."""
    rows = 0 if config.swarm.num_local else ROWS.get(device_type, ROWS["cuda"])
    return Workload(
        num_local=config.swarm.num_local or LEAST_TASKS,
        most_local=rows // config.rollout.num_generations,
        num_external=0 if config.swarm.network is Network.none else config.swarm.num_external,
        num_generations=config.rollout.num_generations,
        prompt_tokens=prompt_tokens(config),
        completion_tokens=config.rollout.max_new_tokens,
        dtype=dtype,
        device_type=device_type,
        evaluator_bytes=evaluator_bytes,
        workers_bytes=0 if device_type == "cuda" else count_workers(config) * WORKER_BYTES,
        engine=config.rollout.engine,
        evaluator_is_base=evaluator_is_base,
    )


def judge_beside(config: NodeConfig, shape: ModelShape, device: torch.device, dtype: torch.dtype, room: Room) -> str:
    """Returns the model that evaluator.model=auto stands for beside this policy: a judge never makes training take
    another method or smaller micro-batches."""
    if device.type == "cpu":
        return judge_that_fits(room.memory, device)
    load = replace(workload(config, device.type, dtype, 0, evaluator_is_base=False), most_local=0)
    try:
        plan = choose_method(shape, config.train, load, room)
    except TrainingError:
        return judge_that_fits(room.memory, device, taken=room.memory)
    if plan.method is TrainMethod.lora and config.model.name == LARGE_JUDGE:
        return judge_that_fits(room.memory, device)  # the policy's own base
    return judge_that_fits(room.memory, device, taken=plan.peak)


@contextlib.contextmanager
def _in_turn(turn: threading.Lock, frozen: Frozen) -> Iterator[None]:
    with turn, frozen():
        yield


def _is_base(weights: JudgeWeights, policy_folder: Path, dtype: torch.dtype) -> bool:
    """Returns True if the judge has the policy's starting weights: with adapters no second copy is then needed."""
    return weights.folder() == policy_folder and weights.dtype() == dtype


def make_probe(
    config: NodeConfig, models: Models, problems: Mapping[str, Task], workers: Workers, progress: Progress
) -> Probe | None:
    """Returns the probe that measures the policy on these problems; None if there are none."""
    if not problems:
        return None

    def make_solver(num_samples: int, temperature: float, number: int) -> PolicySolver:
        length, seed = config.rollout.max_new_tokens, config.seed + 1_000_003 * (number + 1)
        return measuring_solver(
            models.policy, num_samples, length, temperature, seed, lambda *_: None, sample=models.sample
        )

    texts = [
        config.rollout.engine.value,
        f"{config.rollout.max_new_tokens} tokens, {START_SAMPLES}, then {SAMPLES} samples",
    ]
    texts += [part for task in problems.values() for part in (task.question, task.tests)]
    model = f"{models.settings['model.name']} in {models.settings['model.dtype']}"
    return Probe(
        problems,
        f"{model}, {hashlib.sha256(chr(0).join(texts).encode()).hexdigest()[:16]}",
        make_solver,
        Examiner(workers, walk=True, fatal_rules=True, show=False),
        ReportFile(Path(config.tracking.log_dir).expanduser() / probes.NAME, "round"),
        share=config.probe.share,
        rows=config.swarm.num_local * config.rollout.num_generations,
        turn=models.turn,
        progress=progress,
    )

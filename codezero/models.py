"""The models of a node: which ones, whether they fit, and loading them."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path

import torch

from codezero import state
from codezero.config import Backend, Network, NodeConfig, TrainMethod
from codezero.errors import TrainingError
from codezero.evaluate.backends.base import JudgeBackend
from codezero.evaluate.backends.choose import Machine, choose_backend, has_llama_cpp, make_outside
from codezero.evaluate.backends.transformers import Frozen, TransformersBackend
from codezero.llm import catalogue, store
from codezero.llm import device as devices
from codezero.llm.load import LoadedModel, load_model
from codezero.observe.console import Console
from codezero.train import memory
from codezero.train.memory import GIB, MemoryEstimate, Workload
from codezero.train.method import Room, apply_lora, choose_method, free_room

SMALL_JUDGE, LARGE_JUDGE = "Qwen2.5-Coder-0.5B-Instruct", "Qwen2.5-Coder-1.5B-Instruct"
LARGE_JUDGE_MEMORY_BYTES = 24 << 30
"""Usable memory from which evaluator.model=auto takes the large judge: what a machine of 32 GB has."""
LLAMA_CPP_BYTES = 400 << 20
"""A llama.cpp process without its weights: its libraries, cache and buffers for a prompt of 6,144 tokens."""
PROMPT_TOKENS, CONTEST_PROMPT_TOKENS = 512, 2048
"""Longest prompts planned for: of problems with unit tests, and of contest statements."""


class Models:
    """Policy, frozen judge and, where the loss needs one, frozen reference."""

    def __init__(self, config: NodeConfig, folder: Path, console: Console) -> None:
        """Nothing is loaded before the memory plan has been made and printed, and a judge elsewhere has answered.

        Raises ModelError, TrainingError or StateError: weights cannot be had, do not fit, or are not those of `folder`;
        EvaluatorError: the judge cannot be asked.
        """
        self._config, self._console = config, console
        self._weights: Path | None = None
        self.prompt_tokens = CONTEST_PROMPT_TOKENS if config.tasks.code_contests.weight else PROMPT_TOKENS
        """Longest prompt that memory is planned for."""
        self._device = devices.choose_device(config.model.device)
        devices.set_threads(config.model.threads)
        devices.return_freed_memory()
        dtype = devices.choose_dtype(config.model.dtype, self._device)
        state.check_settings(folder, {"model.name": config.model.name})
        room = free_room(config.train, self._device, folder)
        judge_name = self._judge_name(folder, room)
        policy_folder = self._prepare(config.model.name)
        backend, why, plan = self._choose_backend(judge_name, folder, room, policy_folder, dtype)
        free = f"{room.memory / GIB:.1f} GiB of memory and {room.disk / GIB:.0f} GiB of disk can be used"
        console.line(f"plan: {plan.line()}; {free}")
        method = plan.method
        fixed = {
            "model.name": config.model.name,
            "model.dtype": str(dtype).removeprefix("torch."),
            "train.method": method.value,
        }
        if method is TrainMethod.lora:
            fixed["train.lora_r"] = str(config.train.lora_r)
        state.check_settings(folder, fixed)
        self.settings = {**fixed, "evaluator.backend": backend.value}
        """What a resumed node must do alike, or, for the judge, does alike unless told otherwise."""
        if backend in (Backend.transformers, Backend.llama_cpp):
            self.settings["evaluator.model"] = judge_name
        self.judge_backend = self._outside_judge(backend, judge_name)
        """What the judge is asked through; None where no model is asked."""
        self.policy = self._load(config.model.name, policy_folder, dtype)
        needs_copy = config.train.beta > 0 and method is TrainMethod.full
        self.reference = self._load(config.model.name, policy_folder, dtype).model if needs_copy else None
        self.judge: LoadedModel | None = self.policy
        self.frozen: Frozen = contextlib.nullcontext
        """The judge of this process, if it is here, and the context in which its weights are the frozen ones."""
        if method is TrainMethod.lora:
            adapted = apply_lora(self.policy.model, config.train, config.seed)
            self.policy = replace(self.policy, model=adapted)
            self.frozen = adapted.disable_adapter
        if backend is not Backend.transformers:
            self.judge, self.frozen = None, contextlib.nullcontext
        elif method is TrainMethod.full or not self._judge_is_base(judge_name, policy_folder, dtype):
            judge_dtype = devices.choose_dtype(config.evaluator.dtype, self._device)
            self.judge = self._load(judge_name, self._prepare(judge_name), judge_dtype)
            self.judge.model.requires_grad_(False)
            self.frozen = contextlib.nullcontext
        if self.judge is not None:
            self.judge_backend = TransformersBackend(self.judge, config.evaluator, self.frozen)
            self.judge_backend.check()
        console.line(f"solver: {config.model.name}, {method.value}, on {devices.describe(self._device, dtype)}")
        verdict = f"{judge_name}, frozen, by {config.evaluator.verdict.value}; it never runs code"
        if backend is Backend.execution:
            verdict = "the tests themselves, which are RUN, in a sandbox"
        console.line(f"evaluator: {verdict} ({backend.value}: {why})")

    def _choose_backend(
        self, judge_name: str, folder: Path, room: Room, policy_folder: Path, dtype: torch.dtype
    ) -> tuple[Backend, str, MemoryEstimate]:
        """Where the judge runs, why there, and what the node then needs. Raises TrainingError: it does not fit."""

        def plan_with(backend: Backend) -> MemoryEstimate:
            return self._plan(folder, room, policy_folder, dtype, judge_name, backend)

        plan = None
        if self._config.evaluator.backend is Backend.auto:
            with contextlib.suppress(TrainingError):
                plan = plan_with(Backend.transformers)
        begun_with = state.bound_settings(folder).get("evaluator.backend")
        machine = Machine(
            device_type=self._device.type,
            fits=plan is not None,
            has_llama_cpp=has_llama_cpp(),
            has_gguf=catalogue.find(judge_name) is not None,
            begun_with=Backend(begun_with) if begun_with else None,
        )
        backend, why = choose_backend(self._config.evaluator, machine)
        if plan is None or backend is not Backend.transformers:
            plan = plan_with(backend)
        return backend, why, plan

    def _plan(
        self, folder: Path, room: Room, policy_folder: Path, dtype: torch.dtype, judge_name: str, backend: Backend
    ) -> MemoryEstimate:
        """Memory and disk with the judge there; train.method=auto stays with what the state folder was begun with."""
        config = self._config
        train = config.train
        begun_with = state.bound_settings(folder).get("train.method")
        if train.method is TrainMethod.auto and begun_with is not None:
            train = replace(train, method=TrainMethod(begun_with))
        inside = backend is Backend.transformers
        load = Workload(
            num_local=config.swarm.num_local,
            num_external=0 if config.swarm.network is Network.none else config.swarm.num_external,
            num_generations=config.rollout.num_generations,
            prompt_tokens=self.prompt_tokens,
            completion_tokens=config.rollout.max_new_tokens,
            dtype=dtype,
            device_type=self._device.type,
            evaluator_bytes=self._judge_bytes(backend, judge_name),
            evaluator_is_base=inside and self._judge_is_base(judge_name, policy_folder, dtype),
        )
        saved = sum(path.stat().st_size for path in folder.rglob("*.pt"))
        room = replace(room, disk=room.disk + saved)  # what earlier checkpoints take is part of what the plan counts
        return choose_method(memory.read_shape(policy_folder), train, load, room)

    def _judge_bytes(self, backend: Backend, name: str) -> int:
        """What the judge takes of the memory that is planned for."""
        if backend is Backend.transformers:
            judge_dtype = devices.choose_dtype(self._config.evaluator.dtype, self._device)
            return memory.read_shape(self._prepare(name)).num_parameters * judge_dtype.itemsize
        if backend is Backend.llama_cpp and self._device.type != "cuda":
            return self._weight_file(name).stat().st_size + LLAMA_CPP_BYTES
        return 0

    def _outside_judge(self, backend: Backend, name: str) -> JudgeBackend | None:
        """A judge that is not in this process, checked; None where there is none."""
        weights = self._weight_file(name) if backend is Backend.llama_cpp else None
        made = make_outside(backend, self._config.evaluator, weights, torch.get_num_threads())
        if made is not None:
            made.check()
        return made

    def _judge_is_base(self, judge_name: str, policy_folder: Path, dtype: torch.dtype) -> bool:
        """Whether the judge is the policy as it started: adapters then need no second copy of the weights."""
        judge_dtype = devices.choose_dtype(self._config.evaluator.dtype, self._device)
        return self._prepare(judge_name) == policy_folder and judge_dtype == dtype

    def _weight_file(self, name: str) -> Path:
        if self._weights is None:
            self._weights = store.weight_file(name, self._config.model.cache_dir, report=self._console.line)
        return self._weights

    def _prepare(self, name: str) -> Path:
        return store.prepare(name, self._config.model.cache_dir, report=self._console.line)

    def _load(self, name: str, folder: Path, dtype: torch.dtype) -> LoadedModel:
        return load_model(name, folder, self._device, dtype)

    def _judge_name(self, folder: Path, room: Room) -> str:
        """The configured judge; for auto the one the state was begun with, else the largest that fits."""
        if self._config.evaluator.model != "auto":
            return self._config.evaluator.model
        begun_with = state.bound_settings(folder).get("evaluator.model")
        return begun_with or _judge_that_fits(room.memory)


def prepare_for(config: NodeConfig, num_nodes: int) -> int:
    """Prepares, once, the models that so many nodes on this machine are going to load.

    Returns the bytes of memory that each of them may plan with. Raises ModelError: weights cannot be had.
    """
    room = free_room(config.train, devices.choose_device(config.model.device), config.state_dir)
    share = room.memory if config.train.memory_limit_gib else room.memory // num_nodes
    names = {config.model.name: 0}
    judge = _judge_that_fits(share) if config.evaluator.model == "auto" else config.evaluator.model
    if config.evaluator.backend is Backend.llama_cpp:
        store.weight_file(judge, config.model.cache_dir)
    elif config.evaluator.backend in (Backend.auto, Backend.transformers):
        names[judge] = 0
    for name in names:
        store.prepare(name, config.model.cache_dir)
    return share


def _judge_that_fits(memory: int) -> str:
    return LARGE_JUDGE if memory >= LARGE_JUDGE_MEMORY_BYTES else SMALL_JUDGE

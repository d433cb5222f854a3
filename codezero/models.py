"""The models of a node: which ones, whether they fit, and loading them."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path

import torch

from codezero import state
from codezero.config import Network, NodeConfig, TrainMethod
from codezero.llm import device as devices
from codezero.llm import store
from codezero.llm.load import LoadedModel, load_model
from codezero.observe.console import Console
from codezero.train import memory
from codezero.train.memory import GIB, Workload
from codezero.train.method import Room, apply_lora, choose_method, free_room

SMALL_JUDGE, LARGE_JUDGE = "Qwen2.5-Coder-0.5B-Instruct", "Qwen2.5-Coder-1.5B-Instruct"
LARGE_JUDGE_MEMORY_BYTES = 24 << 30
"""Usable memory from which evaluator.model=auto takes the large judge: what a machine of 32 GB has."""
PROMPT_TOKENS, CONTEST_PROMPT_TOKENS = 512, 2048
"""Longest prompts planned for: of problems with unit tests, and of contest statements."""


class Models:
    """Policy, frozen judge and, where the loss needs one, frozen reference."""

    def __init__(self, config: NodeConfig, folder: Path, console: Console) -> None:
        """Nothing is loaded before the memory plan has been made and printed.

        Raises ModelError, TrainingError or StateError: weights cannot be had, do not fit, or are not those of `folder`.
        """
        self._config, self._console = config, console
        self.prompt_tokens = CONTEST_PROMPT_TOKENS if config.tasks.code_contests.weight else PROMPT_TOKENS
        """Longest prompt that memory is planned for."""
        self._device = devices.choose_device(config.model.device)
        devices.set_threads(config.model.threads)
        devices.return_freed_memory()
        dtype = devices.choose_dtype(config.model.dtype, self._device)
        state.check_settings(folder, {"model.name": config.model.name})
        room = free_room(config.train, self._device, folder)
        judge_name = self._judge_name(folder, room)
        policy_folder, judge_folder = self._prepare(config.model.name), self._prepare(judge_name)
        method = self._choose_method(folder, room, policy_folder, judge_folder, dtype)
        fixed = {
            "model.name": config.model.name,
            "model.dtype": str(dtype).removeprefix("torch."),
            "train.method": method.value,
        }
        if method is TrainMethod.lora:
            fixed["train.lora_r"] = str(config.train.lora_r)
        state.check_settings(folder, fixed)
        self.settings = {**fixed, "evaluator.model": judge_name}
        """What a resumed node must do alike, or, for the judge, does alike unless told otherwise."""

        self.policy = self._load(config.model.name, policy_folder, dtype)
        needs_copy = config.train.beta > 0 and method is TrainMethod.full
        self.reference = self._load(config.model.name, policy_folder, dtype).model if needs_copy else None
        self.judge, self.frozen = self.policy, contextlib.nullcontext
        """The judge, and the context in which its weights are the frozen ones."""
        if method is TrainMethod.lora:
            adapted = apply_lora(self.policy.model, config.train, config.seed)
            self.policy = replace(self.policy, model=adapted)
            self.frozen = adapted.disable_adapter
        if method is TrainMethod.full or not self._judge_is_base(judge_folder, policy_folder, dtype):
            judge_dtype = devices.choose_dtype(config.evaluator.dtype, self._device)
            self.judge, self.frozen = self._load(judge_name, judge_folder, judge_dtype), contextlib.nullcontext
            self.judge.model.requires_grad_(False)
        console.line(f"solver: {config.model.name}, {method.value}, on {devices.describe(self._device, dtype)}")
        console.line(f"evaluator: {judge_name}, frozen, by {config.evaluator.verdict.value}; it never runs code")

    def _choose_method(
        self, folder: Path, room: Room, policy_folder: Path, judge_folder: Path, dtype: torch.dtype
    ) -> TrainMethod:
        """Plans memory and disk and says so; `auto` stays with what the state folder was begun with."""
        config = self._config
        train = config.train
        begun_with = state.bound_settings(folder).get("train.method")
        if train.method is TrainMethod.auto and begun_with is not None:
            train = replace(train, method=TrainMethod(begun_with))
        judge_dtype = devices.choose_dtype(config.evaluator.dtype, self._device)
        load = Workload(
            num_local=config.swarm.num_local,
            num_external=0 if config.swarm.network is Network.none else config.swarm.num_external,
            num_generations=config.rollout.num_generations,
            prompt_tokens=self.prompt_tokens,
            completion_tokens=config.rollout.max_new_tokens,
            dtype=dtype,
            device_type=self._device.type,
            evaluator_bytes=memory.read_shape(judge_folder).num_parameters * judge_dtype.itemsize,
            evaluator_is_base=self._judge_is_base(judge_folder, policy_folder, dtype),
        )
        saved = sum(path.stat().st_size for path in folder.rglob("*.pt"))
        room = replace(room, disk=room.disk + saved)  # what earlier checkpoints take is part of what the plan counts
        plan = choose_method(memory.read_shape(policy_folder), train, load, room)
        free = f"{room.memory / GIB:.1f} GiB of memory and {room.disk / GIB:.0f} GiB of disk can be used"
        self._console.line(f"plan: {plan.line()}; {free}")
        return plan.method

    def _judge_is_base(self, judge_folder: Path, policy_folder: Path, dtype: torch.dtype) -> bool:
        """Whether the judge is the policy as it started: adapters then need no second copy of the weights."""
        judge_dtype = devices.choose_dtype(self._config.evaluator.dtype, self._device)
        return judge_folder == policy_folder and judge_dtype == dtype

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
    auto = config.evaluator.model == "auto"
    for name in {config.model.name: 0, _judge_that_fits(share) if auto else config.evaluator.model: 0}:
        store.prepare(name, config.model.cache_dir)
    return share


def _judge_that_fits(memory: int) -> str:
    return LARGE_JUDGE if memory >= LARGE_JUDGE_MEMORY_BYTES else SMALL_JUDGE

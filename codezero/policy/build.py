"""The models of a node: chooses them by the configuration and the free memory, and loads them."""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import torch

from codezero.config import Backend, Network, NodeConfig, RolloutEngine, TrainConfig, TrainMethod
from codezero.errors import DiskTooFull, DoesNotFit, TrainingError
from codezero.evaluate.backends.transformers import Frozen, TransformersBackend
from codezero.evaluate.build import LARGE_JUDGE, JudgeWeights, count_workers, evaluator_line, judge_that_fits
from codezero.llm import catalogue, engines, store
from codezero.llm import device as devices
from codezero.llm.load import LoadedModel, load_model
from codezero.llm.sample import SampleGroups
from codezero.rollouts.build import make_remote
from codezero.rollouts.engine import RemoteEngine
from codezero.runtime import state
from codezero.runtime.amounts import GIB, gib
from codezero.runtime.console import Console
from codezero.train import memory
from codezero.train.memory import QWEN_0_5B, MemoryEstimate, ModelShape, Workload
from codezero.train.method import Room, apply_lora, free_room, plan_training
from codezero.workers.pool import WORKER_BYTES

PROMPT_TOKENS, LONG_PROMPT_TOKENS = 512, 2048
"""The longest prompts that memory is planned for, in tokens: of problems with unit tests, and of contest statements and
tasks of environments, which have 6,000 characters at most. Own tasks with longer ones are solved where memory has room
for them, and else left out."""
LEAST_TASKS, ROWS = 2, 64
"""With swarm.num_local=0 a round has as many own tasks as make `ROWS` attempts, which the learning rates are for, and
at least `LEAST_TASKS` where memory does not hold so many. A GPU's step takes as long for one attempt as for 64, so many
fit into the records of every protocol, and their tasks are only the likeliest of a source's 48 candidates."""


class Models:
    """The policy, the frozen judge and, if the loss needs one, the frozen reference of a node."""

    def __init__(self, config: NodeConfig, folder: Path, console: Console, token: str | None = None) -> None:
        """Loads the models after the memory plan has been made and printed, and a judge outside this process has
        answered. `token` is for models that the hub gives to some users only.

        Raises ModelError, TrainingError or StateError: weights are not available, do not fit, or are not those of
        `folder`; EvaluatorError: the judge cannot be asked.
        """
        self.prompt_tokens = prompt_tokens(config)
        """The longest prompt of peers that memory is planned for, in tokens."""
        device = devices.choose_device(config.model.device)
        self.engine = config.rollout.engine
        """The engine that samples rollouts."""
        engines.require(self.engine, device)
        devices.return_freed_memory()
        state.check_settings(folder, {"model.name": config.model.name})
        plan = plan_node(config, folder, console, token)
        assert plan.memory is not None
        policy_folder = store.prepare(config.model.name, config.model.cache_dir, report=console.line)
        console.line(f"plan: {plan.line()}")
        self.num_local = plan.memory.num_local
        self.planned_bytes = 0 if device.type == "cuda" else plan.memory.peak
        """The process's memory by plan, in bytes; 0 on an NVIDIA GPU, where the plan is of the GPU's own memory."""
        self.longest_prompt = plan.memory.longest_prompt
        """The longest prompt of own tasks that memory has room for, in tokens."""
        self.train = _planned_training(config, plan.memory, console)
        """The settings of training: the configured ones, with smaller micro-batches and lower rates if memory is
        short."""
        self.settings = _check_settings(config, folder, plan, plan.memory.method)
        """The settings that a resumed node must keep, with its precision and the judge's settings, which it keeps
        unless they are configured."""
        self.judge_backend = plan.judge.outside(plan.backend)
        """The connection to the judge; None if no model is asked."""
        cache_bytes = _cache_bytes(config, plan.memory)
        self.sample: SampleGroups = engines.make_engine(self.engine, policy_folder, folder / "sampler", cache_bytes)
        """The function that samples rollouts."""
        self.policy_lock = threading.Lock()
        """A lock for computing with weights of this process, since other threads of the node ask the policy too."""
        base = load_model(config.model.name, policy_folder, device, plan.dtype)
        needs_copy = config.train.beta > 0 and plan.memory.method is TrainMethod.full
        self.reference = load_model(config.model.name, policy_folder, device, plan.dtype).model if needs_copy else None
        self.policy, frozen = _in_training(base, config, plan.memory.method)
        self.remote: RemoteEngine | None = None
        """The engine that samples with rollout servers; None with another one."""
        if self.engine is RolloutEngine.remote:
            self.remote = make_remote(config, self.policy.model, folder)
            self.sample = self.remote.sample_groups
        self._load_judge(config, plan, base, frozen)
        console.line(
            f"solver: {config.model.name}, {plan.memory.method.value}, on {devices.describe(device, plan.dtype)}"
        )
        console.line(evaluator_line(config, plan.judge, plan.backend, plan.why))

    def _load_judge(self, config: NodeConfig, plan: NodePlan, base: LoadedModel, frozen: Frozen) -> None:
        """Loads the judge, if it is asked in this process, and has it answer once. A judge that is the policy's `base`
        is asked in the context `frozen`."""
        assert plan.memory is not None
        self.judge: LoadedModel | None = None
        if plan.backend is not Backend.transformers or not plan.judge.is_asked(plan.backend):
            return
        self.judge = base
        if plan.memory.method is TrainMethod.full or not plan.judge.is_policy(plan.dtype):
            self.judge, frozen = plan.judge.load(), contextlib.nullcontext
        locked_and_frozen = partial(_locked_and_frozen, self.policy_lock, frozen)
        self.judge_backend = TransformersBackend(self.judge, config.evaluator, locked_and_frozen)
        self.judge_backend.check()


def _in_training(base: LoadedModel, config: NodeConfig, method: TrainMethod) -> tuple[LoadedModel, Frozen]:
    """Returns the model to train, with new adapters for LoRA, and a context in which these are off."""
    if method is not TrainMethod.lora:
        return base, contextlib.nullcontext
    adapted = apply_lora(base.model, config.train, config.seed)
    return replace(base, model=adapted), adapted.disable_adapter


def _planned_training(config: NodeConfig, plan: MemoryEstimate, console: Console) -> TrainConfig:
    """Returns the plan's settings of training, with lower rates, which it prints, if memory holds fewer than `ROWS`
    attempts a round and swarm.num_local=0."""
    attempts = plan.num_local * config.rollout.num_generations
    if config.swarm.num_local or plan.num_local >= ROWS // config.rollout.num_generations:
        return plan.train
    train, factor = slower(plan.train, attempts)
    console.line(
        f"plan: memory holds {attempts} attempts a round, not {ROWS}, so learning rates are multiplied by "
        f"{factor:.2g}; swarm.num_local={plan.num_local} leaves them as they are"
    )
    return train


def _check_settings(config: NodeConfig, folder: Path, plan: NodePlan, method: TrainMethod) -> dict[str, str]:
    """Returns the settings to save in `folder`. Raises StateError: it was made with others that may not change."""
    fixed = {"model.name": config.model.name, "train.method": method.value}
    if method is TrainMethod.lora:
        fixed["train.lora_r"] = str(config.train.lora_r)
        fixed["train.lora_alpha"] = str(config.train.lora_alpha)
    state.check_settings(folder, fixed)
    # Checkpoints have float32 weights: the precision, and with it the device, may change between starts.
    fixed |= {"model.dtype": str(plan.dtype).removeprefix("torch."), "evaluator.backend": plan.backend.value}
    if plan.backend in (Backend.transformers, Backend.llama_cpp):
        fixed["evaluator.model"] = plan.judge.name
    return fixed


def _cache_bytes(config: NodeConfig, plan: MemoryEstimate) -> int:
    """Returns the size of the engine's key-value cache."""
    if config.rollout.engine is not RolloutEngine.llama_cpp:
        return plan.kv_cache
    # All rows are as long as the longest one, and its process is limited.
    length = config.rollout.max_new_tokens
    return 2 * plan.kv_cache * (plan.longest_prompt + length) // (prompt_tokens(config) + length)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePlan:
    """The models that a node uses, where they run and how it trains, chosen before anything is loaded."""

    dtype: torch.dtype
    room: Room
    judge: JudgeWeights
    backend: Backend
    """The judge's backend."""
    why: str
    """The reason for it in a few words."""
    memory: MemoryEstimate | None
    """None for a policy whose size is not known before it is downloaded."""

    def line(self) -> str:
        free = f"{gib(self.room.memory)} of memory and {self.room.disk / GIB:.0f} GiB of disk can be used"
        return f"{self.memory.line()}; {free}" if self.memory is not None else free


def plan_node(
    config: NodeConfig, folder: Path, console: Console, token: str | None = None, *, downloads: bool = True
) -> NodePlan:
    """Returns the plan of a node with this state folder, which keeps the judge and backend that the folder was made
    with, where they are auto. Without `downloads` it uses only what is on disk.

    Raises TrainingError: the node does not fit; ModelError: weights are not available; ConfigError: the device is not.
    """
    device = devices.choose_device(config.model.device)
    devices.set_threads(config.model.threads)
    dtype = devices.choose_dtype(config.model.dtype, device)
    room, bound = free_room(config.train, device, folder), state.bound_settings(folder)
    if downloads:
        store.prepare(config.model.name, config.model.cache_dir, report=console.line, token=token)
    shape = _shape(config)
    name = config.evaluator.model
    if name == "auto":
        name = bound.get("evaluator.model") or judge_beside(config, shape or QWEN_0_5B, device, dtype, room)
    judge = JudgeWeights(config, name, device, console, token, downloads)
    sizes = {}  # by inode, since a checkpoint may link the weights of the one before
    for path in folder.glob("checkpoints/round-*/*.pt"):
        with contextlib.suppress(FileNotFoundError):  # a running node has removed it
            sizes[path.stat().st_ino] = path.stat().st_size
    saved = sum(sizes.values())
    room_of_plan = replace(room, disk=room.disk + saved)  # the plan counts the space of earlier checkpoints too

    def plan_with(backend: Backend) -> MemoryEstimate | None:
        if shape is None:
            return None
        is_base = backend is Backend.transformers and judge.is_policy(dtype)
        load = workload(config, device.type, dtype, judge.num_bytes(backend), is_base)
        try:
            return plan_training(shape, config.train, load, room_of_plan)
        except DoesNotFit as error:
            if error.lacks_memory or not saved:
                raise
            raise DiskTooFull(f"{error.needs}: free space, and start again to continue") from error

    found, kept = None, bound.get("evaluator.backend")
    if config.evaluator.backend is Backend.auto:
        try:
            found = plan_with(Backend.transformers)
        except TrainingError:
            takes_none = config.train.method is TrainMethod.lora and judge.is_policy(dtype)
            if takes_none and kept in (None, Backend.transformers.value):
                raise  # a judge outside this process would only need more
    backend, why = judge.choose(found is not None, kept)
    if found is None or backend is not Backend.transformers:
        found = plan_with(backend)
    return NodePlan(dtype=dtype, room=room, judge=judge, backend=backend, why=why, memory=found)


def _shape(config: NodeConfig) -> ModelShape | None:
    """Returns the policy's shape from its files; before they are prepared only the default model's shape is known."""
    folder = store.prepared(config.model.name, config.model.cache_dir)
    if folder is not None:
        return memory.read_shape(folder)
    known = catalogue.find(config.model.name)
    return QWEN_0_5B if known is not None and known.parameters == QWEN_0_5B.num_parameters else None


def prompt_tokens(config: NodeConfig) -> int:
    """Returns the longest prompt that memory is planned for, in tokens."""
    is_long = config.tasks.code_contests.weight or config.tasks.environments
    return LONG_PROMPT_TOKENS if is_long else PROMPT_TOKENS


def workload(
    config: NodeConfig, device_type: str, dtype: torch.dtype, evaluator_bytes: int, evaluator_is_base: bool
) -> Workload:
    """Returns the sizes of a round of a node with this configuration."""
    rows = 0 if config.swarm.num_local else ROWS
    return Workload(
        num_local=config.swarm.num_local or LEAST_TASKS,
        most_local=rows // config.rollout.num_generations,
        num_external=0 if config.swarm.network is Network.none else config.swarm.num_external,
        num_replayed=config.train.replay,
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


def slower(train: TrainConfig, attempts: int) -> tuple[TrainConfig, float]:
    """Returns settings with learning rates for rounds of fewer attempts than `ROWS`, and the factor on these: Adam's
    goes with the square root of the batch (Malladi et al., arXiv 2205.10287)."""
    factor = math.sqrt(attempts / ROWS)
    full, lora = factor * train.learning_rate, factor * train.lora_learning_rate
    return replace(train, learning_rate=full, lora_learning_rate=lora), factor


def judge_beside(config: NodeConfig, shape: ModelShape, device: torch.device, dtype: torch.dtype, room: Room) -> str:
    """Returns the model that evaluator.model=auto stands for beside this policy: a judge never makes training take
    another method or smaller micro-batches."""
    if device.type == "cpu":
        return judge_that_fits(room.memory, device)
    load = replace(workload(config, device.type, dtype, 0, evaluator_is_base=False), most_local=0)
    try:
        plan = plan_training(shape, config.train, load, room)
    except TrainingError:
        return judge_that_fits(room.memory, device, taken=room.memory)
    if plan.method is TrainMethod.lora and config.model.name == LARGE_JUDGE:
        return judge_that_fits(room.memory, device)  # the policy's own base
    return judge_that_fits(room.memory, device, taken=plan.peak)


@contextlib.contextmanager
def _locked_and_frozen(policy_lock: threading.Lock, frozen: Frozen) -> Iterator[None]:
    with policy_lock, frozen():
        yield

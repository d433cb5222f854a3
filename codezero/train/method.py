"""Fits training into this machine, before anything is loaded, and makes the adapters of LoRA."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import psutil
import torch
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import PreTrainedModel

from codezero.config import Dtype, TrainConfig, TrainMethod, checkout
from codezero.errors import DoesNotFit
from codezero.llm import device as devices
from codezero.llm.adapters import fuse_adapters
from codezero.runtime import limits
from codezero.runtime.amounts import GIB, gib, shortage
from codezero.train.memory import MemoryEstimate, ModelShape, Workload, estimate, micro_batch_sequences

DEFAULT_ADAPTERS = "default"
"""The name of a model's first adapters, unless they are given another one."""
SOLVER = "solver"
"""The name of the solver's adapters, where they are beside those of a test writer."""
SHARE_OF_FREE = 0.9
"""The share of free memory that a node plans with; the rest is for errors of the estimate and other programs."""
MOST_PROMPT = 1 << 15
"""The longest prompt that is asked for, in tokens: the context of the models of the catalogue."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """The memory and disk that a node may use, in bytes."""

    memory: int
    disk: int


def free_room(config: TrainConfig, device: torch.device, state_dir: str | Path) -> Room:
    """Returns the configured memory limit or a share of the memory now free on `device`, and the free disk space under
    `state_dir`."""
    if config.memory_limit_gib:
        memory = int(config.memory_limit_gib * GIB)
    elif device.type == "cuda":
        memory = int(SHARE_OF_FREE * torch.cuda.mem_get_info(device)[0])
    else:
        memory = int(SHARE_OF_FREE * min(psutil.virtual_memory().available, limits.memory_left()))
    folder = Path(state_dir).expanduser().absolute()
    while not folder.exists():
        folder = folder.parent
    return Room(memory=memory, disk=shutil.disk_usage(folder).free)


def plan_training(shape: ModelShape, config: TrainConfig, load: Workload, room: Room) -> MemoryEstimate:
    """Returns the estimate of training with the configured method. If it does not fit as configured, `train` of the
    estimate has smaller micro-batches and, if these are not enough, recomputes activations: the update is the same. If
    bfloat16 weights with method full still do not fit, they are trained without float32 masters. The estimate has as
    many own groups, up to `most_local`, as there is then room for.

    Raises DoesNotFit: no plan fits.
    """
    plans = _plans(shape, config, load)
    for plan in plans:
        if _fits(plan, room):
            wide = _most_groups(shape, plan, load, room)
            return replace(wide, longest_prompt=_longest_prompt(shape, wide, load, room))
    nearest = plans[-1]
    needs = [
        shortage(wanted, free, what)
        for what, wanted, free in (("memory", nearest.peak, room.memory), ("disk", nearest.disk, room.disk))
        if wanted > free
    ]
    lacks_memory = nearest.peak > room.memory
    raise DoesNotFit(
        f"training with train.method={nearest.method.value} needs {' and '.join(needs)}",
        list(_hints(shape, config, load, lacks_memory)),
        lacks_memory,
    )


def apply_lora(model: PreTrainedModel, config: TrainConfig, seed: int, name: str = DEFAULT_ADAPTERS) -> PeftModel:
    """Adds float32 adapters to every linear layer but the head and freezes the rest (LoRA, arXiv 2106.09685).

    The adapted model first gives the same outputs, bit for bit; equal seeds give equal adapters. The global random
    state is not changed.
    """
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        adapted = get_peft_model(model, _adapters(config), adapter_name=name)
    adapted.eval()
    fuse_adapters(adapted)
    return adapted


def add_lora(adapted: PeftModel, name: str, config: TrainConfig, seed: int) -> None:
    """Adds further adapters to a model of `apply_lora`, whose own ones stay the active ones; they are made alike."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        adapted.add_adapter(name, _adapters(config))
    adapted.eval()


@contextmanager
def active_lora(adapted: PeftModel, name: str) -> Iterator[None]:
    """Within it the model computes with, and trains, the adapters of this name."""
    before = adapted.active_adapter
    adapted.set_adapter(name)
    try:
        yield
    finally:
        adapted.set_adapter(before)


def _adapters(config: TrainConfig) -> LoraConfig:
    return LoraConfig(
        r=config.lora_r,
        lora_alpha=config.lora_alpha,
        lora_dropout=0.0,
        target_modules="all-linear",
        task_type="CAUSAL_LM",
    )


def _plans(shape: ModelShape, config: TrainConfig, load: Workload) -> list[MemoryEstimate]:
    """Returns the estimates that `plan_training` takes the first fitting one of."""
    tried = [config]
    if config.method is TrainMethod.full and load.dtype is torch.bfloat16:
        tried.append(replace(config, masters=False))
    return [estimate(shape, config.method, one, load) for settings in tried for one in _smaller_plans(settings, load)]


def _smaller_plans(config: TrainConfig, load: Workload) -> Iterator[TrainConfig]:
    """Yields the settings, then others that need less and less memory for the same update, at the cost of time."""
    yield config
    size = micro_batch_sequences(config, load)
    while config.micro_batch_size == 0 and size > 1:  # a configured size stays
        size //= 2
        yield replace(config, micro_batch_size=size)
    if not config.gradient_checkpointing:
        smallest = config.micro_batch_size or size
        yield replace(config, micro_batch_size=smallest, gradient_checkpointing=True)


def _most_groups(shape: ModelShape, plan: MemoryEstimate, load: Workload, room: Room) -> MemoryEstimate:
    """Returns the plan with as many own groups, up to `most_local`, as memory holds."""
    groups = load.most_local
    while groups > load.num_local:
        wider = estimate(shape, plan.method, plan.train, replace(load, num_local=groups))
        if _fits(wider, room):
            return wider
        groups //= 2
    return plan


def _longest_prompt(shape: ModelShape, plan: MemoryEstimate, load: Workload, room: Room) -> int:
    """Returns the planned length of prompts, doubled as often as memory holds a round of such prompts."""
    tokens = load.prompt_tokens
    while tokens < MOST_PROMPT:
        longer = replace(load, num_local=plan.num_local, prompt_tokens=2 * tokens)
        if not _fits(estimate(shape, plan.method, plan.train, longer), room):
            break
        tokens *= 2
    return tokens


def _fits(plan: MemoryEstimate, room: Room) -> bool:
    return plan.peak <= room.memory and plan.disk <= room.disk


def _hints(shape: ModelShape, config: TrainConfig, load: Workload, lacks_memory: bool) -> Iterator[str]:
    """Yields the settings that need less, from the one that costs least to the one that costs most, with what they
    need, but for other models, whose shapes are not known here."""

    def needing(setting: str, config: TrainConfig, load: Workload) -> str:
        least = _plans(shape, config, load)[-1]
        size = gib(least.peak) if lacks_memory else f"{gib(least.disk)} of disk"
        return f"{setting} (needs {size})"

    if config.method is TrainMethod.full:
        yield needing("train.method=lora", replace(config, method=TrainMethod.lora), load)
    if lacks_memory:
        fastest = devices.choose_dtype(Dtype.auto, torch.device(load.device_type), frozen=True)
        if load.dtype is torch.float32 and fastest is torch.bfloat16:
            yield needing("model.dtype=bfloat16", config, replace(load, dtype=torch.bfloat16))
        if (half := load.completion_tokens // 2) > 0:
            yield needing(f"rollout.max_new_tokens={half}", config, replace(load, completion_tokens=half))
    yield f"a smaller model.name (`{checkout.COMMAND} models list`)"

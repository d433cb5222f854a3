"""Builds the parts of a test writer from the configuration."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from codezero.config import NodeConfig, RolloutEngine, TaskDraw
from codezero.llm import device as devices
from codezero.llm import engines, store
from codezero.llm.load import LoadedModel
from codezero.llm.sample import SampleGroups
from codezero.observe.probes import PAIR
from codezero.policy import writer
from codezero.policy.probing.build import held_out_for, make_probe
from codezero.policy.probing.probe import Probe
from codezero.policy.solver import PolicySolver, sampling
from codezero.policy.writer import Writing
from codezero.ports import Progress
from codezero.runtime.console import Console
from codezero.tasks.build import make_task_source
from codezero.tasks.mixture import Mixture
from codezero.train.learner import GrpoLearner
from codezero.train.method import SOLVER, active_lora, add_lora, free_room
from codezero.verifier.write import MAX_NEW_TOKENS
from codezero.workers import Workers


def bound_settings(config: NodeConfig) -> dict[str, Any]:
    """Returns the settings that a state folder keeps."""
    bound: dict[str, Any] = {
        "model.name": config.model.name,
        "verifier.lora_r": config.verifier.lora_r,
        "verifier.train_solver": config.verifier.train_solver,
    }
    if config.verifier.train_solver:
        bound |= {
            "train.method": config.train.method.value,
            "train.lora_r": config.train.lora_r,
            "train.lora_alpha": config.train.lora_alpha,
        }
    return bound


def solver_weights(config: NodeConfig, model: LoadedModel) -> AbstractContextManager[object]:
    """Returns a context in which the model has the weights of the solver: its adapters, or none."""
    adapted = model.model
    return active_lora(adapted, SOLVER) if config.verifier.train_solver else adapted.disable_adapter()


def num_bytes(config: NodeConfig, device: torch.device) -> int:
    """Returns the peak memory in bytes of a test writer. Raises ModelError: weights are not available."""
    folder = store.prepare(config.model.name, config.model.cache_dir)
    return writer.num_bytes(folder, _writing(config), devices.choose_dtype(config.model.dtype, device), device)


def engine_of(config: NodeConfig) -> RolloutEngine:
    """Returns the engine that samples solutions and test cases: the configured one, or transformers in place of one
    that takes the adapters of one role only."""
    wanted = config.rollout.engine
    return RolloutEngine.llama_cpp if wanted is RolloutEngine.llama_cpp else RolloutEngine.transformers


def make_sampler(config: NodeConfig, device: torch.device, folder: Path, console: Console) -> SampleGroups:
    """Returns the rollout engine, which writes into `folder`. Raises RolloutError: it does not sample here."""
    wanted, engine = config.rollout.engine, engine_of(config)
    if wanted is not engine:
        console.line(
            f"sampler: {engine.value}, since rollout.engine={wanted.value} takes the adapters of one role only"
        )
    engines.require(engine, device)
    model_folder = store.prepare(config.model.name, config.model.cache_dir)
    dtype = devices.choose_dtype(config.model.dtype, device)
    cache_bytes = writer.cache_bytes(model_folder, _writing(config), dtype, device)
    return engines.make_engine(engine, model_folder, folder / "sampler", cache_bytes)


def load(config: NodeConfig, console: Console) -> LoadedModel:
    """Loads the solver's model with adapters. Raises ModelError: it is not available, or does not fit into memory."""
    device = writer.prepare_device(config.model)
    name = config.model.name
    loaded = writer.load_writer(
        name,
        store.prepare(name, config.model.cache_dir, report=console.line),
        _writing(config),
        devices.choose_dtype(config.model.dtype, device),
        device,
        free_room(config.train, device, config.state_dir).memory,
        config.seed,
        "set a smaller model.name, verifier.batch_size=1, or verifier.num_generations=4",
        console,
    )
    if config.verifier.train_solver:
        add_lora(loaded.model, SOLVER, config.train, config.seed + 1)
        console.line("solver: the same model, with adapters of its own")
    return loaded


def _writing(config: NodeConfig) -> Writing:
    return Writing(
        role="test writer",
        num_groups=config.verifier.batch_size,
        num_generations=max(config.verifier.num_generations, config.verifier.num_candidates),
        max_new_tokens=max(MAX_NEW_TOKENS, config.rollout.max_new_tokens),
        train=writer.train_config(config.verifier.learning_rate, config.verifier.lora_r),
        is_trained=True,
        beside=config.train if config.verifier.train_solver else None,
        engine=engine_of(config),
    )


def make_tasks(config: NodeConfig) -> Mixture:
    """Returns the source of tasks. All are drawn equally often, since which of them a solver learns from tells nothing
    about a test writer. Raises TaskError as `make_task_source` does."""
    return make_task_source(replace(config.tasks, draw=TaskDraw.uniform), config.seed)


def make_solver(config: NodeConfig, model: LoadedModel, progress: Progress, sample: SampleGroups) -> PolicySolver:
    """Returns the solver that writes candidates."""
    num, params = config.verifier.num_candidates, sampling(config.rollout)
    return PolicySolver(model, num, params, seed=config.seed, peer_id="self", progress=progress, sample=sample)


def make_solver_learner(config: NodeConfig, model: LoadedModel, progress: Progress) -> GrpoLearner:
    """Returns the learner of the solver's adapters, with `verifier.train_solver`."""
    with solver_weights(config, model):
        return writer.make_learner(
            model,
            config.train,
            max_new_tokens=config.rollout.max_new_tokens,
            temperature=config.rollout.temperature,
            progress=progress,
            engine=engine_of(config),
        )


def make_solver_probe(
    config: NodeConfig, model: LoadedModel, workers: Workers, progress: Progress, sample: SampleGroups
) -> Probe | None:
    """Returns the probe that measures the solver's adapters; None if they are not trained, or not measured."""
    return make_probe(
        config,
        model,
        held_out_for(config, config.verifier.batches) if config.verifier.train_solver else {},
        PAIR,
        workers,
        progress,
        engine=engine_of(config),
        sample=sample,
        rows=config.verifier.batch_size * config.verifier.num_candidates,
        turn=partial(solver_weights, config, model),
    )

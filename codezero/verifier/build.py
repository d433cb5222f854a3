"""Builds the parts of a test writer from the configuration."""

from __future__ import annotations

from dataclasses import replace

from codezero.config import NodeConfig, TaskDraw, TrainConfig
from codezero.llm import device as devices
from codezero.llm import store
from codezero.llm.load import LoadedModel
from codezero.policy import writer
from codezero.policy.solver import PolicySolver
from codezero.policy.writer import Writing
from codezero.ports import Progress
from codezero.runtime.console import Console
from codezero.tasks.build import make_task_source
from codezero.tasks.mixture import Mixture
from codezero.train.method import free_room
from codezero.verifier.write import MAX_NEW_TOKENS


def train_config(config: NodeConfig) -> TrainConfig:
    """Returns the settings of the learner."""
    return writer.train_config(config.verifier)


def load(config: NodeConfig, console: Console) -> LoadedModel:
    """Loads the solver's model with adapters. Raises ModelError: it is not available, or does not fit into memory."""
    device = writer.prepare_device(config.model)
    name = config.model.name
    writing = Writing(
        role="test writer",
        num_groups=config.verifier.batch_size,
        num_generations=max(config.verifier.num_generations, config.verifier.num_candidates),
        max_new_tokens=max(MAX_NEW_TOKENS, config.rollout.max_new_tokens),
        train=train_config(config),
        is_trained=True,
    )
    return writer.load_writer(
        name,
        store.prepare(name, config.model.cache_dir, report=console.line),
        writing,
        devices.choose_dtype(config.model.dtype, device),
        device,
        free_room(config.train, device, config.state_dir).memory,
        config.seed,
        "set a smaller model.name, verifier.batch_size=1, or verifier.num_generations=4",
        console,
    )


def make_tasks(config: NodeConfig) -> Mixture:
    """Returns the source of tasks. All are drawn equally often, since which of them a solver learns from tells nothing
    about a test writer. Raises TaskError as `make_task_source` does."""
    return make_task_source(replace(config.tasks, draw=TaskDraw.uniform), config.seed)


def make_solver(config: NodeConfig, model: LoadedModel, progress: Progress) -> PolicySolver:
    """Returns the solver that writes candidates."""
    rollout = replace(config.rollout)
    rollout.num_generations = config.verifier.num_candidates  # not by keyword: a solver's settings refuse 1
    return PolicySolver(model, rollout, seed=config.seed, peer_id="self", progress=progress)

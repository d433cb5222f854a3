"""Chooses and loads the proposer's model by the configuration: its name, backend, memory and precision; and makes what
gives its problems the tests of a test writer, whose adapters are on the same model."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from codezero.config import NodeConfig, ProposerBackend, ProposerConfig, TrainConfig, checkout
from codezero.errors import ConfigError, ModelError
from codezero.llm import device as devices
from codezero.llm import store
from codezero.llm.load import LoadedModel
from codezero.llm.sample import sample_groups
from codezero.llm.sources import Report
from codezero.llm.within_memory import WithinMemory
from codezero.observe.roles import PROPOSER, folder_of
from codezero.policy import writer
from codezero.policy.trained import Trained, with_adapters
from codezero.policy.writer import Writing
from codezero.ports import Progress
from codezero.proposer.written_tests import WrittenTests
from codezero.runtime import state
from codezero.runtime.amounts import GIB
from codezero.runtime.console import Console
from codezero.train.method import active_lora, free_room
from codezero.verifier.build import make_solver
from codezero.verifier.trained import FollowedWriter, begun_in
from codezero.verifier.write import MAX_NEW_TOKENS, CaseWriter
from codezero.workers import Workers

WRITER = "writer"
"""The name of the test writer's adapters."""

LARGE_PROPOSER = "Qwen/Qwen3-4B"
LARGE_PROPOSER_MEMORY_BYTES = 24 * GIB
"""The free accelerator memory from which proposer.model=auto is the large model, which needs about half of it."""


def choose_backend(config: ProposerConfig) -> ProposerBackend:
    """Returns the backend, resolving `auto`."""
    if config.backend is not ProposerBackend.auto:
        return config.backend
    return ProposerBackend.openai if config.url else ProposerBackend.transformers


def choose_model(config: NodeConfig, device: torch.device, memory_bytes: int) -> str:
    """Returns the model's name, resolving `auto` by the bytes of free memory."""
    if config.proposer.model != "auto":
        return config.proposer.model
    is_large = device.type == "cuda" and memory_bytes >= LARGE_PROPOSER_MEMORY_BYTES
    return LARGE_PROPOSER if is_large else config.model.name


def bound_settings(config: NodeConfig, name: str) -> dict[str, Any]:
    """Returns the settings that a state folder keeps, for the model of this name; none if nothing is trained."""
    return {"proposer.model": name, "proposer.lora_r": config.proposer.lora_r} if config.proposer.train else {}


def num_bytes(config: NodeConfig, name: str, device: torch.device) -> int:
    """Returns the peak memory in bytes of a proposer with this model. Raises ModelError: weights are not available."""
    return writer.num_bytes(_folder_of(config, name), _writing(config), dtype_of(config, device), device)


def _folder_of(config: NodeConfig, name: str, report: Report = store.say) -> Path:
    """Returns the folder of the model's weights. Raises ModelError: they are not available."""
    try:
        return store.prepare(name, config.model.cache_dir, report=report)
    except ModelError as error:
        if (config.proposer.model, name) != ("auto", LARGE_PROPOSER):
            raise
        own = f"proposer.model={config.model.name}, the solver's"
        raise ModelError(f"proposer.model=auto takes {name} on this GPU, and {error}; or set {own}") from error


def load(config: NodeConfig, console: Console) -> LoadedModel:
    """Loads the proposer's model, with adapters if it is trained, and others for a test writer's weights if there is
    one.

    With `proposer.model=auto`, training goes on with the model that the state folder has adapters of.

    Raises ModelError: its weights are not available, or do not fit into memory. Raises StateError: what the state
    folder has learnt is of another model. Raises StateError or ConfigError: the folder of the test writer holds none,
    or one of another model.
    """
    device = writer.prepare_device(config.model)
    room = free_room(config.train, device, config.state_dir)
    folder = folder_of(Path(config.state_dir).expanduser(), PROPOSER)
    name = choose_model(config, device, room.memory)
    if config.proposer.train and config.proposer.model == "auto":
        name = state.bound_settings(folder).get("proposer.model", name)
    state.check_settings(folder, bound_settings(config, name))
    trained = _test_writer(config.proposer, name)
    smaller = "set proposer.model to a smaller one, or proposer.url to a server"
    loaded = writer.load_writer(
        name,
        _folder_of(config, name, console.line),
        _writing(config),
        dtype_of(config, device),
        device,
        room.memory,
        config.seed,
        "set verifier.num_candidates=4, or leave out proposer.writer" if trained else smaller,
        console,
    )
    if trained is None:
        return loaded
    newest = trained.checkpoint or "no checkpoint yet, so problems have their own tests until there is one"
    console.line(f"test writer: adapters of {trained.folder}, {newest}")
    return with_adapters(loaded, trained, WRITER)


def own_weights(config: NodeConfig, model: LoadedModel) -> AbstractContextManager[object]:
    """Returns a context in which the model has the weights that write problems: its own adapters, or none."""
    has_others_alone = config.proposer.writer and not config.proposer.train
    return model.model.disable_adapter() if has_others_alone else nullcontext()


def make_tests(config: NodeConfig, model: LoadedModel, workers: Workers, progress: Progress) -> WrittenTests:
    """Returns what gives problems their tests, with `proposer.writer`. The model attempts them without adapters."""
    sample = WithinMemory(sample_groups)
    cases = CaseWriter(
        model,
        num_generations=1,
        temperature=config.verifier.temperature,
        seed=config.seed,
        progress=progress,
        sample=sample,
    )
    return WrittenTests(
        make_solver(config, model, progress, sample),
        cases,
        workers,
        solver_weights=model.model.disable_adapter,
        writer_weights=partial(active_lora, model.model, WRITER),
        follow=FollowedWriter(model.model, WRITER, Path(config.proposer.writer).expanduser()).update,
        progress=progress,
    )


def _test_writer(config: ProposerConfig, name: str) -> Trained | None:
    """Returns what the test writer trains, which must be the model of this name; None if there is none."""
    if not config.writer:
        return None
    trained = begun_in(Path(config.writer).expanduser())
    if trained.model != name:
        raise ConfigError(
            f"proposer.writer={config.writer} was trained from {trained.model}, and this proposer has {name}: set "
            f"proposer.model={trained.model}, or train one with `{checkout.command('verify', f'model.name={name}')}`"
        )
    return trained


def _writing(config: NodeConfig) -> Writing:
    """Returns the sizes of a batch, in which a test writer's has `num_candidates` attempts and answers a problem."""
    proposer, tests = config.proposer, config.proposer.writer != ""
    lengths = [proposer.max_new_tokens]
    if tests:
        lengths += [config.rollout.max_new_tokens, MAX_NEW_TOKENS]
    return Writing(
        role="proposer",
        num_groups=proposer.batch_size if tests else 1,
        num_generations=config.verifier.num_candidates if tests else proposer.batch_size,
        max_new_tokens=max(lengths),
        train=train_config(proposer),
        is_trained=proposer.train,
    )


def train_config(proposer: ProposerConfig) -> TrainConfig:
    """Returns the settings of the learner, with `proposer.train`."""
    return replace(
        writer.train_config(proposer.learning_rate, proposer.lora_r),
        epsilon=proposer.epsilon,
        epsilon_high=proposer.epsilon_high,
        num_iterations=proposer.num_iterations,
        beta=proposer.beta,
    )


def dtype_of(config: NodeConfig, device: torch.device) -> torch.dtype:
    """Returns the configured precision; for auto the device's fastest if nothing is trained, else a solver's."""
    return devices.choose_dtype(config.model.dtype, device, frozen=not config.proposer.train)

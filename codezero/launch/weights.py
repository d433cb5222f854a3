"""Prepares the weights that the nodes of one machine load, and divides its memory among them.

It imports torch, and therefore runs in a separate process (`launch.prepare`).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import torch

from codezero.config import Backend, Dtype, NodeConfig, ProposerBackend, TrainMethod
from codezero.errors import DoesNotFit, TrainingError
from codezero.launch.shared_machine import MemoryShare, Programs
from codezero.llm import device as devices
from codezero.llm import store
from codezero.policy.build import plan_node
from codezero.proposer import build
from codezero.runtime.amounts import GIB
from codezero.runtime.console import Console
from codezero.train.memory import read_shape
from codezero.train.method import free_room
from codezero.verifier import build as verifying


def prepare_for(config: NodeConfig, choices: Sequence[Programs]) -> MemoryShare:
    """Prepares, once, the models that the programs on this machine will load.

    Returns the share of the first of the choices that memory holds: an equal one, of which nodes get what the others do
    not need. Raises ModelError: weights are not available; TrainingError: a node of the last choice does not fit.
    """
    for programs in choices[:-1]:
        with suppress(TrainingError):
            return _share(config, programs)
    return _share(config, choices[-1])


def _share(config: NodeConfig, programs: Programs) -> MemoryShare:
    device = devices.choose_device(config.model.device)
    free = free_room(config.train, device, config.state_dir).memory
    limited = config.train.memory_limit_gib > 0
    if not limited:
        free += _counted_too_often(config, programs, device)
    equal = free if limited else free // programs.all
    if programs.proposers and build.choose_backend(config.proposer) is ProposerBackend.transformers:
        needed = build.num_bytes(config, build.choose_model(config, device, equal), device)
        free -= programs.proposers * min(needed, equal)
    if programs.verifiers:
        free -= programs.verifiers * min(verifying.num_bytes(config, device), equal)
    share = equal if limited else free // programs.nodes
    store.prepare(config.model.name, config.model.cache_dir)
    try:
        its = replace(config, train=replace(config.train, memory_limit_gib=share / GIB))
        plan = plan_node(its, Path(config.state_dir), Console())
    except DoesNotFit as error:
        if programs.all == 1:
            raise
        # Without its hints, which are a lone node's and seldom save enough.
        raise TrainingError(
            f"there is no room for {programs.all} programs that learn or propose: {error.needs}: start fewer "
            "(--nodes 1, --proposers 0 or both; --local is one alone), or free memory"
        ) from error
    if plan.backend is Backend.llama_cpp and plan.judge.is_asked(plan.backend):
        plan.judge.file()
    elif plan.backend is Backend.transformers and plan.judge.is_asked(plan.backend):
        plan.judge.folder()
    return MemoryShare(programs=programs, node_bytes=share, other_bytes=equal)


def _counted_too_often(config: NodeConfig, programs: Programs, device: torch.device) -> int:
    """Returns the bytes of weights that plans of several programs count and memory holds once. On a CPU they map the
    same file of float32 weights, which adapters leave as they are."""
    if device.type != "cpu" or config.train.method is TrainMethod.full or config.model.dtype is Dtype.bfloat16:
        return 0
    proposes = (
        build.choose_backend(config.proposer) is ProposerBackend.transformers
        and build.choose_model(config, device, 0) == config.model.name
        and build.dtype_of(config, device) is torch.float32
    )
    mapping = programs.nodes + programs.verifiers + proposes * programs.proposers
    folder = store.prepare(config.model.name, config.model.cache_dir)
    in_file = sum(path.stat().st_size for path in folder.glob("*.safetensors"))
    weights = 4 * read_shape(folder).num_parameters
    return (mapping - 1) * weights if in_file >= weights else 0

"""Prepares the weights that the nodes of one machine load, and divides its memory among them.

It imports torch, and therefore runs in a separate process (`launch.prepare`).
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from codezero.config import Backend, NodeConfig, ProposerBackend
from codezero.errors import TrainingError
from codezero.evaluate.build import judge_that_fits
from codezero.llm import device as devices
from codezero.llm import store
from codezero.policy.build import plan_node
from codezero.proposer import build
from codezero.runtime.console import Console
from codezero.train.memory import GIB
from codezero.train.method import free_room
from codezero.verifier import build as verifying


def prepare_for(config: NodeConfig, num_nodes: int, num_proposers: int, num_verifiers: int) -> tuple[int, int]:
    """Prepares, once, the models that the nodes, proposers and test writers on this machine will load.

    Returns the bytes of memory that a node may plan with, and those of one of the others: an equal share, of which the
    nodes get what the others do not need. Raises ModelError: weights are not available; TrainingError: a node does not
    fit.
    """
    device = devices.choose_device(config.model.device)
    free = free_room(config.train, device, config.state_dir).memory
    limited = config.train.memory_limit_gib > 0
    equal = free if limited else free // (num_nodes + num_proposers + num_verifiers)
    if num_proposers and build.choose_backend(config.proposer) is ProposerBackend.transformers:
        needed = build.num_bytes(config, build.choose_model(config, device, equal), device)
        free -= num_proposers * min(needed, equal)
    if num_verifiers:
        free -= num_verifiers * min(verifying.num_bytes(config, device), equal)
    share = equal if limited else free // num_nodes
    names = [config.model.name]
    judge = (
        judge_that_fits(share, device, taken=share // 2) if config.evaluator.model == "auto" else config.evaluator.model
    )
    if config.evaluator.backend is Backend.llama_cpp:
        store.weight_file(judge, config.model.cache_dir)
    elif config.evaluator.backend in (Backend.auto, Backend.transformers):
        names.append(judge)
    for name in dict.fromkeys(names):
        store.prepare(name, config.model.cache_dir)
    others = num_proposers + num_verifiers
    try:
        its = replace(config, train=replace(config.train, memory_limit_gib=share / GIB))
        plan_node(its, Path(config.state_dir), Console())
    except TrainingError as error:
        if num_nodes + others == 1:
            raise
        needs = str(error).partition(": ")[0]  # its ways out are a lone node's, and seldom save enough
        raise TrainingError(
            f"there is no room for {num_nodes + others} programs that learn or propose: {needs}: start fewer "
            "(--nodes 1, --proposers 0 or both; --local is one alone), or free memory"
        ) from error
    return share, equal

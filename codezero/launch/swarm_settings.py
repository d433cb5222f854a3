"""The options of `codezero swarm up`, and the settings of the swarm's nodes that follow from them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from codezero.config import Network, NodeConfig, PeerTasks, checkout, swarm_file
from codezero.config.check import refuse
from codezero.config.load import load_config
from codezero.config.names import is_swarm_file
from codezero.config.swarm_file import SwarmFile, quoted
from codezero.errors import ConfigError
from codezero.launch import hosting
from codezero.launch.shared_machine import PER_NODE_SETTINGS
from codezero.publish.tokens import OF_SOLVERS

BOOTNODE, NODE, PROPOSER, VERIFIER = "bootnode", "node", "proposer", "verifier"
"""The kinds of programs in a swarm; the names of programs, and of their folders, begin with them."""
_LOCAL = "preset=local"
_LAUNCHER_SETTINGS = {
    "swarm.announce": "it would be the same for all nodes; for the bootnode use --announce",
    "swarm.bootnodes": f"this swarm has its own; to join another one use {checkout.COMMAND} run swarm=FILE",
    "proposer.batches": "proposers write for as long as there are nodes",
    "verifier.batches": "a test writer learns for as long as there are nodes",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class UpOptions:
    """The options of `codezero swarm up`."""

    nodes: int = 0
    """0 takes two, or one for each GPU; fewer where memory does not hold them, at last one without a proposer."""
    proposers: int = 1
    with_verifier: bool = False
    """True runs a test writer, whose cases are the tests of the proposers' problems."""
    rounds: int = 0
    """Rounds that each node finishes in this run; 0 takes `rounds` of node.yaml, or runs until stopped."""
    folder: Path
    port: int | None = None
    """The bootnode's port; None takes the one it had before, or a free one."""
    announce: Sequence[str] = ()
    """Multiaddresses under which others reach the bootnode, besides those of this machine's interfaces."""
    gpus: str = ""
    """`all`, or the GPUs' numbers by `nvidia-smi`, such as `0,2`; empty takes all where there are several."""
    settings: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=lambda: _given(lambda name: name not in OF_SOLVERS))
    """The environment variables of all programs."""
    node_environment: Mapping[str, str] = field(default_factory=lambda: _given(lambda name: name in OF_SOLVERS))
    """Environment variables that only nodes get."""


def _given(wants: Callable[[str], bool]) -> dict[str, str]:
    """Returns the environment variables whose names are wanted."""
    return {name: value for name, value in os.environ.items() if wants(name)}


def node_settings(options: UpOptions, before: SwarmFile | None) -> tuple[list[str], NodeConfig]:
    """Returns the settings of every node, and their configuration but for tasks and tests of others. Raises
    ConfigError: an option or setting is impossible."""
    settings = shared_settings(options, before)
    config = _checked_config(options, settings)
    return [*settings, *_tasks_of_peers(settings, config), *_tests_by_verifier(options, settings, config)], config


def shared_settings(options: UpOptions, before: SwarmFile | None) -> list[str]:
    """Returns the settings that all nodes share: those that define the swarm, then the user's, which win.

    Raises ConfigError: the user gives one that the launcher makes itself.
    """
    refuse(options.settings, PER_NODE_SETTINGS | _LAUNCHER_SETTINGS, "here")
    for setting in options.settings:
        key, _, value = setting.partition("=")
        if key == "swarm" and is_swarm_file(value):
            joins = f"to join that swarm use {checkout.command('run', setting)}"
            raise ConfigError(f"{setting} is not possible here: {joins}")
    preset = [] if any(setting.startswith("preset=") for setting in options.settings) else [_LOCAL]
    new = [f"swarm={Network.native.value}", f"swarm.name={quoted(options.folder.absolute().name)}"]
    return [*preset, *(swarm_file.overrides(before) if before else new), *options.settings]


def _checked_config(options: UpOptions, settings: Sequence[str]) -> NodeConfig:
    """Returns the configuration of every node. Raises ConfigError: an option or setting is impossible."""
    for text in options.announce:
        hosting.parse("--announce", text)
    config = load_config(settings)
    if config.swarm.network is Network.none:
        raise ConfigError("swarm=alone is not possible here: use swarm=native or swarm=genrl")
    if not config.swarm.listen:
        raise ConfigError("swarm.listen=[] is not possible here: leave it out to listen on all interfaces")
    for text in config.swarm.listen:
        if hosting.parse("swarm.listen", text).port:
            raise ConfigError(f"swarm.listen={text} is not possible here: use port 0, every node needs its own")
    return config


def _tasks_of_peers(settings: Sequence[str], config: NodeConfig) -> list[str]:
    """Returns the setting that says which tasks of peers the nodes train on, unless the user has given it. Nodes of one
    launcher have the same sources, so in GenRL's format too they know each other's tasks, but not those that an
    environment makes from their seeds."""
    if any(setting.startswith("swarm.tasks=") for setting in settings):
        return []
    if config.tasks.modules:
        return [f"swarm.tasks={PeerTasks.any.value}"]
    return [f"swarm.tasks={PeerTasks.known.value}"] * (_LOCAL in settings)  # another preset has its own


def _tests_by_verifier(options: UpOptions, settings: Sequence[str], config: NodeConfig) -> list[str]:
    """Returns the settings by which the proposers' problems get tests by the test writer, if there is one: its model,
    which is the solvers', and its folder. Raises ConfigError: the proposers cannot have them."""
    if not options.with_verifier:
        return []
    if not options.proposers:
        raise ConfigError("--with-verifier is not possible with --proposers 0: it writes the tests of their problems")
    if config.proposer.writer:
        raise ConfigError(
            f"proposer.writer={config.proposer.writer} and --with-verifier exclude each other: leave one out"
        )
    if config.proposer.model not in ("auto", config.model.name):
        raise ConfigError(
            f"proposer.model={config.proposer.model} is not possible with --with-verifier, which trains a test "
            f"writer from {config.model.name}: leave it out"
        )
    own = [
        f"proposer.model={quoted(config.model.name)}",
        f"proposer.writer={quoted(str(options.folder / VERIFIER / 'state'))}",
    ]
    load_config([*settings, *own])  # refuses what excludes a test writer, such as a server's model
    return own

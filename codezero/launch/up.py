"""Runs a whole swarm on one machine: a bootnode, nodes, proposers that write problems, and a test writer for these,
each as a process.

<folder>/swarm.yaml            the swarm, as its nodes know it; `codezero swarm invite` makes invite.yaml from it
<folder>/bootnode/             swarm.pem, and output.log with all that it printed
<folder>/swarm_launcher.log    what `up` shows, with times
<folder>/node-1/, node-2/ ...  swarm.pem, state/, logs/, output.log
<folder>/proposer-1/ ...       the same
<folder>/verifier/             the same of a test writer, which learns alone

On a machine with several GPUs each program sees one of them, in turn.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from codezero import __version__
from codezero.config import Device, Network, NodeConfig, PeerTasks, swarm_file
from codezero.config.load import load_config
from codezero.config.swarm_file import SwarmFile, quoted
from codezero.errors import ConfigError
from codezero.identity import key as identity
from codezero.launch import cards, hosting
from codezero.launch.cards import Gpu
from codezero.launch.child import ChildProgram
from codezero.launch.launcher_log import LoggedConsole
from codezero.launch.prepare import prepare
from codezero.launch.several import (
    OF_EACH,
    MemoryShare,
    Programs,
    environment_of,
    kept_in,
    own_settings,
    refuse,
    run_command,
    threads_of_each,
)
from codezero.launch.supervisor import Supervisor
from codezero.runtime import state
from codezero.runtime.console import Console

BOOTNODE_TIMEOUT_S = 120.0
"""Seconds for the bootnode to be ready; on a busy machine imports take most of them."""
VERIFIER_TIMEOUT_S = 600.0
"""Seconds for a test writer to load its model; proposers start after that, since they take its model and rank."""
GIB = 1 << 30
_OF_SWARM = {
    "swarm.announce": "it would be the same for all nodes; for the bootnode use --announce",
    "swarm.bootnodes": "this swarm has its own; to join another one use codezero run swarm=FILE",
    "proposer.batches": "proposers write for as long as there are nodes",
    "verifier.batches": "a test writer learns for as long as there are nodes",
}

Command = Callable[[str, int], Sequence[str]]
"""Returns a program's command line, for its name, such as `node-1`, and the rounds left to it (0: no limit)."""
Prepare = Callable[[Sequence[str], Sequence[Programs], Mapping[str, str]], MemoryShare]
"""The type of `prepare.prepare`."""
_LOCAL = "preset=local"
BOOTNODE, NODE, PROPOSER, VERIFIER = "bootnode", "node", "proposer", "verifier"


@dataclass(frozen=True, slots=True, kw_only=True)
class UpOptions:
    """The options of `codezero swarm up`."""

    nodes: int = 0
    """0 takes two, or one for each GPU; where memory does not hold them one, and no proposer if need be."""
    proposers: int = 1
    with_verifier: bool = False
    """True runs a test writer, whose cases are the tests of the proposers' problems."""
    rounds: int = 0
    """Rounds that each node finishes in this run; 0 runs until stopped."""
    folder: Path
    port: int | None = None
    """The bootnode's port; None takes the one it had before, or a free one."""
    announce: Sequence[str] = ()
    """Multiaddresses under which others reach the bootnode, besides those of this machine's interfaces."""
    gpus: str = ""
    """`all`, or the GPUs' numbers by `nvidia-smi`, such as `0,2`; empty takes all where there are several."""
    settings: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    """The environment variables of all programs."""
    node_environment: Mapping[str, str] = field(default_factory=dict)
    """Environment variables that only nodes get."""


def up(options: UpOptions, command: Command | None = None, prepare: Prepare = prepare) -> int:
    """Runs a swarm until its nodes are done or it is stopped; returns 0, or 1 if any program failed for good.

    Tests give a `command` and a `prepare` in place of the real nodes and models.

    Raises CodezeroError: a setting is impossible, the folder or port is in use, models are not available, or the
    bootnode does not start.
    """
    console = LoggedConsole()
    folder = options.folder
    with state.locked(folder, what="swarm folder", holder="swarm", setting="--folder") as lock:
        console.log_to(folder)
        before = hosting.read_swarm(folder)
        settings, config = node_settings(options, before)
        gpus = _gpus(options, config)
        swarm = describe(options, config, before, console)
        console.line("checking memory and models")
        wanted, *fewer = choices(options, len(gpus))
        share = prepare(
            [*settings, f"state_dir={quoted(str(folder / f'{NODE}-1' / 'state'))}"],
            [wanted, *fewer],
            {**options.environment, **(gpus[0].environment if gpus else {})},
        )
        options = replace(options, nodes=options.nodes or max(2, len(gpus)))
        if share.programs != wanted:
            console.line("memory does not hold what is the default, two nodes and those beside them: fewer are started")
            options = replace(options, nodes=share.programs.nodes, proposers=share.programs.proposers)
        swarm_file.write(hosting.swarm_path(folder), swarm)
        threads = threads_of_each(config, options.nodes + options.proposers + options.with_verifier)
        settings.append(f"model.threads={threads}")
        memory = {NODE: share.node_bytes, PROPOSER: share.other_bytes, VERIFIER: share.other_bytes}
        each = f"{threads} thread{'s' * (threads > 1)} and {share.node_bytes / GIB:.1f} GiB of memory a node"
        for line in _header(options, swarm, gpus, each):
            console.line(line)
        with Supervisor(
            console, environment=environment_of(options.environment, threads), kept_open=[lock]
        ) as supervisor:
            command = command or partial(command_line, options, config, swarm, settings, memory)
            return _supervise(supervisor, options, gpus, command)


def choices(options: UpOptions, num_gpus: int) -> list[Programs]:
    """Returns the programs on this machine, or on each GPU where there are several; then, unless the user has said how
    many nodes, fewer and fewer of them, of which those are started that memory holds."""
    on_each = num_gpus or 1
    nodes = options.nodes or max(2, num_gpus)
    wanted = Programs(
        nodes=-(-nodes // on_each),
        proposers=-(-options.proposers // on_each),
        verifiers=int(options.with_verifier),
    )
    if options.nodes or num_gpus:
        return [wanted]
    one = replace(wanted, nodes=1)
    return [wanted, one, *([Programs(nodes=1)] if one == Programs(nodes=1, proposers=1) else [])]


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
    refuse(options.settings, OF_EACH | _OF_SWARM, "here")
    for setting in options.settings:
        key, _, value = setting.partition("=")
        if key == "swarm" and swarm_file.is_swarm_file(value):
            raise ConfigError(f"{setting} is not possible here: to join that swarm use codezero run {setting}")
    preset = [] if any(setting.startswith("preset=") for setting in options.settings) else [_LOCAL]
    new = [f"swarm={Network.native.value}", f"swarm.name={quoted(options.folder.absolute().name)}"]
    return [*preset, *(swarm_file.overrides(before) if before else new), *options.settings]


def _checked_config(options: UpOptions, settings: Sequence[str]) -> NodeConfig:
    """Returns the configuration of every node. Raises ConfigError: an option or setting is impossible."""
    if options.proposers < 0:
        raise ConfigError(f"--proposers {options.proposers} is not possible: use 0 for built-in problems only")
    if options.rounds < 0:
        raise ConfigError(f"--rounds {options.rounds} is not possible: use 0 to run until stopped")
    if options.port is not None and not 0 < options.port < 65536:
        raise ConfigError(f"--port {options.port} is not possible: use 1 to 65535")
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


def _gpus(options: UpOptions, config: NodeConfig) -> list[Gpu]:
    """Returns the GPUs that programs are divided among, the one with the least memory first, since memory is planned
    with; empty for those that every program finds itself. Raises ConfigError: there is none such."""
    if options.gpus and config.model.device not in (Device.auto, Device.cuda):
        raise ConfigError(f"model.device={config.model.device.value} and --gpus exclude each other: leave one out")
    found = cards.several(config, options.environment)
    if options.gpus:
        found = cards.choose(options.gpus, cards.find(options.environment), options.environment)
    return sorted(found, key=lambda gpu: gpu.memory_mib)


def describe(options: UpOptions, config: NodeConfig, before: SwarmFile | None, console: Console) -> SwarmFile:
    """Returns the swarm that is about to start, on a free port. Raises ConfigError: an address is not valid;
    NetworkError: the port cannot be used."""
    announce = [hosting.parse("--announce", text) for text in options.announce]
    listen = hosting.parse("swarm.listen", config.swarm.listen[0])
    own, _ = identity.load_or_create(options.folder / "bootnode" / "swarm.pem")
    swarm = hosting.describe(config, hosting.choose_port(options.port, listen, before, console), own.peer_id, announce)
    # Old invitations stay good unless the first address, or anything that is not an address, has changed.
    if before is not None and replace(before, bootnodes=before.bootnodes[:1]) != replace(
        swarm, bootnodes=swarm.bootnodes[:1]
    ):
        console.line("this swarm is no longer what earlier invitations say: make a new one for those you invited")
    return swarm


def _header(options: UpOptions, swarm: SwarmFile, gpus: Sequence[Gpu], each: str) -> list[str]:
    folder = options.folder
    nodes = _counted(options.nodes, "node")
    if options.with_verifier:
        nodes += f", {_counted(options.proposers, 'proposer')} and a test writer"
    elif options.proposers:
        nodes += f" and {_counted(options.proposers, 'proposer')}"
    on = f" on GPU {', '.join(gpu.number for gpu in gpus)} in turn" if gpus else ""
    return [
        f"codezero {__version__}: swarm '{swarm.name}' with {nodes}{on}, {each}",
        f"bootnode: {swarm.bootnodes[0]}",
        f"logs: {folder}/node-1/output.log has all that a node prints, {folder}/node-1/logs/ its rounds; so for each",
        f"watch: codezero status --watch {folder}, or codezero dashboard {folder} in a browser",
        f"invite other machines: codezero swarm invite --folder {folder}",
        "stop: Ctrl-C, again to stop at once; the same command continues where it stopped",
    ]


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count > 1)}"


def _supervise(supervisor: Supervisor, options: UpOptions, gpus: Sequence[Gpu], command: Command) -> int:
    def program(name: str, **more: Any) -> ChildProgram:
        return kept_in(options.folder / name, partial(command, name), **more)

    def on_gpu(place: int) -> Mapping[str, str]:
        return gpus[place % len(gpus)].environment if gpus else {}

    bootnode = program(BOOTNODE, serves=True, ready="bootnode ")
    supervisor.wait_until_ready(supervisor.add(bootnode), BOOTNODE_TIMEOUT_S)
    for number in range(1, options.nodes + 1):
        node_its = {**options.node_environment, **on_gpu(number - 1)}
        supervisor.add(program(f"{NODE}-{number}", rounds=options.rounds, environment=node_its))
    if options.with_verifier:
        its = on_gpu(options.nodes + options.proposers)
        verifier = program(VERIFIER, serves=True, reports="cases.jsonl", ready="state: ", environment=its)
        supervisor.wait_until_ready(supervisor.add(verifier), VERIFIER_TIMEOUT_S)
    for number in range(1, options.proposers + 1):
        its = on_gpu(options.nodes + number - 1)
        supervisor.add(program(f"{PROPOSER}-{number}", serves=True, reports="proposals.jsonl", environment=its))
    return supervisor.run()


def command_line(
    options: UpOptions,
    config: NodeConfig,
    swarm: SwarmFile,
    settings: Sequence[str],
    memory: Mapping[str, int],
    name: str,
    rounds_left: int,
) -> list[str]:
    """Returns the command line of a program of the swarm; `memory` is in bytes, by kind of program."""
    kind, _, number = name.partition("-")
    home = options.folder / name
    if kind == BOOTNODE:
        port = hosting.parse("bootnodes", swarm.bootnodes[0]).port
        listen = [str(replace(hosting.parse("swarm.listen", text), port=port)) for text in config.swarm.listen]
        announce = [str(replace(hosting.parse("--announce", text), peer=None)) for text in options.announce]
        addresses = [f"--listen={text}" for text in listen] + [f"--announce={text}" for text in announce]
        end = [f"--identity={home / 'swarm.pem'}", f"--network={swarm.network.value}"]
        return [sys.executable, "-m", "codezero", "swarm", "bootnode", "--stop-with-parent", *addresses, *end]
    count = int(number or 1)
    place = count - 1 + {NODE: 0, PROPOSER: options.nodes, VERIFIER: options.nodes + options.proposers}[kind]
    its = [
        *settings,
        f"train.memory_limit_gib={memory[kind] / GIB:.3f}",
        f"swarm.bootnodes=[{quoted(swarm.bootnodes[0])}]",
        *own_settings(config, home, count, place),
    ]
    if kind == VERIFIER:
        return [sys.executable, "-m", "codezero", "verify", "--stop-with-parent", *its, "swarm=alone"]
    if kind == PROPOSER:
        return [sys.executable, "-m", "codezero", "propose", "--stop-with-parent", *its]
    return run_command(its, rounds_left)

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

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from codezero import __version__
from codezero.config import NodeConfig, checkout, swarm_file
from codezero.config.swarm_file import SwarmFile, quoted
from codezero.identity import key as identity
from codezero.launch import cards, hosting
from codezero.launch.cards import Gpu
from codezero.launch.child import ChildProgram
from codezero.launch.launcher_log import LoggedConsole
from codezero.launch.prepare import prepare
from codezero.launch.shared_machine import (
    MemoryShare,
    Programs,
    environment_of,
    own_settings,
    program_in_folder,
    run_command,
    threads_of_each,
)
from codezero.launch.supervisor import Supervisor
from codezero.launch.swarm_settings import BOOTNODE, NODE, PROPOSER, VERIFIER, UpOptions, node_settings
from codezero.observe.roles import folder_of
from codezero.runtime import state
from codezero.runtime.amounts import GIB, counted, gib
from codezero.runtime.console import Console

BOOTNODE_TIMEOUT_S = 120.0
"""Seconds for the bootnode to be ready; on a busy machine imports take most of them."""
VERIFIER_TIMEOUT_S = 600.0
"""Seconds for a test writer to load its model; proposers start after that, since they take its model and rank."""
Command = Callable[[str, int], Sequence[str]]
"""Returns a program's command line, for its name, such as `node-1`, and the rounds left to it (0: no limit)."""
PrepareFunction = Callable[[Sequence[str], Sequence[Programs], Mapping[str, str]], MemoryShare]
"""The type of `prepare.prepare`."""


def up(options: UpOptions, command: Command | None = None, prepare: PrepareFunction = prepare) -> int:
    """Runs a swarm until its nodes are done or it is stopped; returns 0, or 1 if any program failed for good.

    Tests give a `command` and a `prepare` in place of the real nodes and models.

    Raises CodezeroError: a setting is impossible, the folder or port is in use, models are not available, or the
    bootnode does not start.
    """
    console = LoggedConsole()
    folder = options.folder
    before = hosting.read_swarm(folder)
    settings, config = node_settings(options, before)
    gpus = _gpus(options, config)
    with state.locked(folder, what="swarm folder", holder="swarm", setting="--folder") as lock:
        console.log_to(folder)
        swarm = describe(options, config, before, console)
        console.line("checking memory and models")
        wanted = program_counts(options, len(gpus))
        sharing = [on_first(programs, len(gpus)) for programs in wanted]
        share = prepare(
            [
                *_model_of_proposers(folder, config),
                *settings,
                f"state_dir={quoted(str(folder / f'{NODE}-1' / 'state'))}",
            ],
            sharing,
            {**options.environment, **(gpus[0].environment if gpus else {})},
        )
        held = wanted[sharing.index(share.programs)]
        if held != wanted[0]:
            default = f"{wanted[0].nodes} nodes and those beside them"
            console.line(f"memory does not hold the default ({default}): fewer are started")
        rounds = options.rounds or config.rounds  # the latter of the settings files
        options = replace(options, nodes=held.nodes, proposers=held.proposers, rounds=rounds)
        swarm_file.write(hosting.swarm_path(folder), swarm)
        threads = threads_of_each(config, options.nodes + options.proposers + options.with_verifier)
        settings.append(f"model.threads={threads}")
        memory = {NODE: share.node_bytes, PROPOSER: share.other_bytes, VERIFIER: share.other_bytes}
        each = f"{counted(threads, 'thread')} and {gib(share.node_bytes)} of memory a node"
        for line in _header(options, swarm, gpus, each):
            console.line(line)
        with Supervisor(
            console, environment=environment_of(options.environment, threads), kept_open=[lock]
        ) as supervisor:
            command = command or partial(command_line, options, config, swarm, settings, memory)
            return _supervise(supervisor, options, gpus, command)


def program_counts(options: UpOptions, num_gpus: int) -> list[Programs]:
    """Returns the programs on this machine; then, unless the user has said how many nodes, fewer and fewer of them, of
    which those are started that memory holds."""
    wanted = Programs(
        nodes=options.nodes or max(2, num_gpus), proposers=options.proposers, verifiers=int(options.with_verifier)
    )
    if options.nodes:
        return [wanted]
    found = [replace(wanted, nodes=nodes) for nodes in range(wanted.nodes, 0, -1)]
    return [*found, *([Programs(nodes=1)] if found[-1] == Programs(nodes=1, proposers=1) else [])]


def on_first(programs: Programs, num_gpus: int) -> Programs:
    """Returns those of the programs that run on the first GPU, which has the most of them; all without several GPUs."""
    kinds = [NODE] * programs.nodes + [VERIFIER] * programs.verifiers + [PROPOSER] * programs.proposers
    its = kinds[:: num_gpus or 1]
    return Programs(nodes=its.count(NODE), proposers=its.count(PROPOSER), verifiers=its.count(VERIFIER))


def _gpus(options: UpOptions, config: NodeConfig) -> list[Gpu]:
    """Returns the GPUs that programs are divided among, the one with the least memory first, since memory is planned
    with; empty for those that every program finds itself. Raises ConfigError: there is none such."""
    if options.gpus:
        found = cards.chosen(options.gpus, config, options.environment)
    else:
        found = cards.gpus_if_several(config, options.environment)
    return sorted(found, key=lambda gpu: gpu.memory_mib)


def _model_of_proposers(folder: Path, config: NodeConfig) -> list[str]:
    """Returns the setting of the model that the first proposer has trained, and goes on with, where `auto` may now
    choose another; empty if there is none."""
    if config.proposer.model != "auto" or not config.proposer.train:
        return []
    bound = state.bound_settings(folder_of(folder / f"{PROPOSER}-1" / "state", PROPOSER))
    return [f"proposer.model={quoted(bound['proposer.model'])}"] if "proposer.model" in bound else []


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
    nodes = counted(options.nodes, "node")
    if options.with_verifier:
        nodes += f", {counted(options.proposers, 'proposer')} and a test writer"
    elif options.proposers:
        nodes += f" and {counted(options.proposers, 'proposer')}"
    watch, page = checkout.command("status", "--watch", folder), checkout.command("dashboard", folder)
    on = f" on GPU {', '.join(gpu.number for gpu in gpus)} in turn" if gpus else ""
    return [
        f"codezero {__version__}: swarm '{swarm.name}' with {nodes}{on}, {each}",
        f"bootnode: {swarm.bootnodes[0]}",
        f"logs: {folder}/node-1/output.log has all that a node prints, {folder}/node-1/logs/ its rounds; so for each",
        f"watch: {watch}, or {page} in a browser",
        f"invite other machines: {checkout.command('swarm', 'invite', '--folder', folder)}",
        "stop: Ctrl-C, again to stop at once; the same command continues where it stopped",
    ]


def _supervise(supervisor: Supervisor, options: UpOptions, gpus: Sequence[Gpu], command: Command) -> int:
    def program(name: str, **more: Any) -> ChildProgram:
        return program_in_folder(options.folder / name, partial(command, name), **more)

    def on_gpu(place: int) -> Mapping[str, str]:
        return gpus[place % len(gpus)].environment if gpus else {}

    bootnode = program(BOOTNODE, serves=True, ready="bootnode ")
    supervisor.wait_until_ready(supervisor.add(bootnode), BOOTNODE_TIMEOUT_S)
    for number in range(1, options.nodes + 1):
        node_its = {**options.node_environment, **on_gpu(number - 1)}
        supervisor.add(program(f"{NODE}-{number}", rounds=options.rounds, environment=node_its))
    if options.with_verifier:
        its = on_gpu(options.nodes)
        verifier = program(VERIFIER, serves=True, reports="cases.jsonl", ready="state: ", environment=its)
        supervisor.wait_until_ready(supervisor.add(verifier), VERIFIER_TIMEOUT_S)
    for number in range(1, options.proposers + 1):
        its = on_gpu(options.nodes + options.with_verifier + number - 1)
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
        "proposer.batches=0",  # whatever a settings file has: they end with the nodes
        "verifier.batches=0",
    ]
    if kind == VERIFIER:
        return [sys.executable, "-m", "codezero", "verify", "--stop-with-parent", *its, "swarm=alone"]
    if kind == PROPOSER:
        return [sys.executable, "-m", "codezero", "propose", "--stop-with-parent", *its]
    return run_command(its, rounds_left)

"""Runs one node per GPU under one account, each with its own identity, ports, state and logs.

<folder>/gpu-0/, gpu-1/ ...    swarm.pem, state/, logs/, output.log
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from codezero import __version__
from codezero.config import Network, NodeConfig, checkout
from codezero.config.check import refuse
from codezero.config.load import load_config
from codezero.config.swarm_file import quoted
from codezero.identity import keyfile
from codezero.launch import cards
from codezero.launch.hosting import parse
from codezero.launch.shared_machine import (
    PER_NODE_SETTINGS,
    environment_of,
    own_settings,
    program_in_folder,
    run_command,
    threads_of_each,
)
from codezero.launch.supervisor import Supervisor
from codezero.runtime import state
from codezero.runtime.amounts import counted
from codezero.runtime.console import Console

Command = Callable[[Sequence[str], int], Sequence[str]]
"""Returns a node's command line, for its settings and the rounds left to it (0: no limit)."""


def run_on_gpus(
    wanted: str,
    folder: Path,
    environment: Mapping[str, str],
    console: Console,
    *,
    rounds: int = 0,
    settings: Sequence[str] = (),
    command: Command = run_command,
) -> int:
    """Runs a node on each GPU until they are done or stopped; returns 0, or 1 if any failed for good.

    `wanted` is `all`, or the GPUs' numbers by `nvidia-smi`, such as `0,2`. Each node finishes `rounds` in this run; 0
    runs until stopped. Tests give a `command` in place of the real node's.

    Raises CodezeroError: there are no such GPUs, a setting is impossible, or the folder is in use.
    """
    refuse(settings, PER_NODE_SETTINGS, "with --gpus")
    config = load_config(settings)
    gpus = cards.chosen(wanted, config, environment)
    threads = threads_of_each(config, len(gpus))
    with state.locked(folder, what="folder", holder="launcher", setting="--folder") as lock:
        console.line(
            f"codezero {__version__}: a node on each of GPU {', '.join(gpu.number for gpu in gpus)}, "
            f"{counted(threads, 'thread')} each; keys, state and logs in {folder}/gpu-*"
        )
        looks = [checkout.command(*words, folder) for words in (("status", "--watch"), ("dashboard",))]
        console.line(f"watch: {', or '.join(looks)}")
        with Supervisor(console, environment=environment_of(environment, threads), kept_open=[lock]) as supervisor:
            for place, gpu in enumerate(gpus):
                home = folder / f"gpu-{gpu.number}"
                its = partial(command, [*settings, *settings_of(config, home, int(gpu.number), place, threads)])
                supervisor.add(program_in_folder(home, its, rounds=rounds, environment=gpu.environment))
            return supervisor.run()


def by_default(config: NodeConfig, settings: Sequence[str], environment: Mapping[str, str], console: Console) -> str:
    """Returns the option --gpus of a start without one: `all` for nodes of a swarm on a machine with several GPUs, else
    empty. One node is meant by a setting that nodes cannot share, and by a state or key that it has here already."""
    given = {setting.partition("=")[0] for setting in settings} - {"rounds"}
    if config.swarm.network is Network.none or given & PER_NODE_SETTINGS.keys():
        return ""
    gpus = cards.gpus_if_several(config, environment)
    begun = state.bound_settings(Path(config.state_dir).expanduser())
    key = keyfile.identity_path(config.swarm.identity_path)
    if gpus and (begun or key.exists()):
        its = config.state_dir if begun else key
        console.line(f"the node of {its} goes on, on one GPU; --gpus all runs {len(gpus)} new ones")
        return ""
    return "all" if gpus else ""


def settings_of(config: NodeConfig, home: Path, number: int, place: int, threads: int) -> list[str]:
    """Returns the settings of the node in this folder that differ from the others'. Its seed follows from the GPU's
    number, as the folder does, since a state keeps its seed; a fixed port is raised by its place in this run."""
    listen = [parse("swarm.listen", text) for text in config.swarm.listen]
    ports = [str(replace(at, port=at.port + place) if at.port else at) for at in listen]
    return [
        *own_settings(config, home, number, place),
        f"swarm.listen=[{','.join(map(quoted, ports))}]",
        f"model.threads={threads}",
        "model.device=cuda",
    ]

"""Runs one node per GPU under one account, each with its own identity, ports, state and logs.

<folder>/gpu-0/, gpu-1/ ...    swarm.pem, state/, logs/, output.log
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from codezero import __version__
from codezero.config import Device, ModelConfig, NodeConfig
from codezero.config.load import load_config
from codezero.config.swarm_file import quoted
from codezero.errors import ConfigError
from codezero.launch.hosting import parse
from codezero.launch.supervisor import Supervisor
from codezero.launch.up import OF_EACH, environment_of, kept_in, own_settings, refuse, run_command, threads_of_each
from codezero.runtime import state
from codezero.runtime.console import Console

LARGE_MODEL, LARGE_MODEL_MIB = "Qwen2.5-Coder-1.5B-Instruct", 40_000
"""The model for GPUs with this memory, as on the public node; nvidia-smi gives 40,960 for a card of 40 GB."""
_VISIBLE = "CUDA_VISIBLE_DEVICES"
Command = Callable[[Sequence[str], int], Sequence[str]]
"""Returns a node's command line, for its settings and the rounds left to it (0: no limit)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuOptions:
    """The options of a start with --gpus."""

    gpus: str
    """`all`, or the GPUs' numbers by `nvidia-smi`, such as `0,2`."""
    folder: Path
    rounds: int = 0
    """Rounds that each node finishes in this run; 0 runs until stopped."""
    settings: Sequence[str] = ()


def run_on_gpus(
    options: GpuOptions, environment: Mapping[str, str], console: Console, command: Command | None = None
) -> int:
    """Runs a node on each GPU until they are done or stopped; returns 0, or 1 if any failed for good.

    Tests give a `command` in place of the real node's.

    Raises CodezeroError: there are no such GPUs, a setting is impossible, or the folder is in use.
    """
    names = choose(options.gpus, found_gpus(environment), environment)
    refuse(options.settings, OF_EACH, "with --gpus")
    config = load_config(options.settings)
    if config.model.device not in (Device.auto, Device.cuda):
        raise ConfigError(f"model.device={config.model.device.value} and --gpus exclude each other: leave one out")
    threads = threads_of_each(config, len(names))
    with state.locked(options.folder, what="folder", holder="launcher", setting="--folder") as lock:
        console.line(
            f"codezero {__version__}: a node on each of GPU {', '.join(names)}, {threads} thread{'s' * (threads > 1)} "
            f"each; keys, state and logs in {options.folder}/gpu-*"
        )
        with Supervisor(console, environment=environment_of(environment, threads), kept_open=[lock]) as supervisor:
            for number, name in enumerate(names):
                home = options.folder / f"gpu-{name}"
                its = partial(command or run_command, [*options.settings, *settings_of(config, home, number, threads)])
                visible = {_VISIBLE: name, "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}  # the order of nvidia-smi
                supervisor.add(kept_in(home, its, rounds=options.rounds, environment=visible))
            return supervisor.run()


def model_for(
    config: NodeConfig, settings: Sequence[str], folders: Iterable[Path], environment: Mapping[str, str]
) -> list[str]:
    """Returns the setting of the larger model where nothing names one and each GPU has memory for it. A state in
    `folders` keeps the model that it was begun with."""
    is_named = any(setting.startswith(("model=", "model.name=")) for setting in settings)
    if is_named or config.model.device is Device.cpu or config.model.name != ModelConfig().name:
        return []
    begun_with = next(
        (found["model.name"] for found in map(state.bound_settings, folders) if "model.name" in found), None
    )
    if begun_with is None:
        try:
            memory_mib = [int(text) for text in _asked("memory.total", environment)]
        except ConfigError:
            return []
        begun_with = LARGE_MODEL if min(memory_mib) >= LARGE_MODEL_MIB else config.model.name
    return [f"model.name={quoted(begun_with)}"] if begun_with != config.model.name else []


def found_gpus(environment: Mapping[str, str]) -> list[str]:
    """Returns the numbers of this machine's NVIDIA GPUs. Raises ConfigError: there are none."""
    return _asked("index", environment)


def _asked(field: str, environment: Mapping[str, str]) -> list[str]:
    """Returns a whole number for each NVIDIA GPU; memory is in MiB. Raises ConfigError: there is none."""
    try:
        answer = subprocess.run(
            ["nvidia-smi", f"--query-gpu={field}", "--format=csv,noheader,nounits"],
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
            env=dict(environment),
        ).stdout
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError) as error:
        raise ConfigError(f"--gpus: this machine has no NVIDIA GPU that nvidia-smi can see ({_why(error)})") from error
    found = [line.strip() for line in answer.splitlines() if line.strip().isdigit()]
    if not found:
        raise ConfigError("--gpus: nvidia-smi lists no GPU on this machine: leave --gpus out")
    return found


def _why(error: Exception) -> str:
    return "it is not installed" if isinstance(error, FileNotFoundError) else type(error).__name__


def choose(wanted: str, found: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """Returns the GPUs to use: those named, or all that CUDA_VISIBLE_DEVICES leaves. Raises ConfigError: there is no
    such GPU, or one is named twice."""
    if wanted == "all":
        visible = environment.get(_VISIBLE)
        if visible is None:
            return list(found)
        left = [name.strip() for name in visible.split(",") if name.strip() in found]
        if not left:
            raise ConfigError(f"--gpus all: {_VISIBLE}={visible} names none of the GPUs {', '.join(found)}: unset it")
        return left
    names = wanted.split(",")
    for name in names:
        if name not in found:
            raise ConfigError(f"--gpus {wanted}: there is no GPU '{name}' here, only {', '.join(found)}; or give all")
    if len(set(names)) < len(names):
        raise ConfigError(f"--gpus {wanted} names a GPU twice: each runs one node")
    return names


def settings_of(config: NodeConfig, home: Path, number: int, threads: int) -> list[str]:
    """Returns the settings of the node in this folder that differ from the others'; a fixed port is raised by
    `number`."""
    listen = [parse("swarm.listen", text) for text in config.swarm.listen]
    ports = [str(replace(at, port=at.port + number) if at.port else at) for at in listen]
    return [
        *own_settings(config, home, number, number),
        f"swarm.listen=[{','.join(map(quoted, ports))}]",
        f"model.threads={threads}",
        "model.device=cuda",
    ]

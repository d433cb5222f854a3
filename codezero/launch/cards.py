"""The NVIDIA GPUs of this machine, as nvidia-smi lists them, and those that nodes run on."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from codezero.config import Device, ModelConfig, NodeConfig
from codezero.config.swarm_file import quoted
from codezero.errors import ConfigError
from codezero.runtime import state

LARGE_MODEL, LARGE_MODEL_MIB = "Qwen2.5-Coder-1.5B-Instruct", 40_000
"""The model for GPUs with this memory, as on the public node; nvidia-smi gives 40,960 for a card of 40 GB."""
_VISIBLE = "CUDA_VISIBLE_DEVICES"
_CUDA = (Device.auto, Device.cuda)
"""The values of model.device with which a node uses NVIDIA GPUs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    number: str
    """The index that nvidia-smi gives it."""
    memory_mib: int
    """Its memory in MiB; 0 if the driver does not tell, as of memory that the processor shares."""
    uuid: str = ""

    def is_named(self, name: str) -> bool:
        """Returns True for its number, its UUID, or the beginning of that: CUDA_VISIBLE_DEVICES takes all three."""
        return name == self.number or (name.startswith("GPU-") and self.uuid.startswith(name))

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables of a program that sees no other GPU."""
        return {_VISIBLE: self.number, "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}  # the order of nvidia-smi


def find(environment: Mapping[str, str]) -> list[Gpu]:
    """Returns the NVIDIA GPUs of this machine. Raises ConfigError: there is none."""
    try:
        answer = subprocess.run(
            ["nvidia-smi", "--query-gpu=index,memory.total,uuid", "--format=csv,noheader,nounits"],
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
            env=dict(environment),
        ).stdout
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError) as error:
        raise ConfigError(f"--gpus: this machine has no NVIDIA GPU that nvidia-smi can see ({_why(error)})") from error
    rows = [[field.strip() for field in f"{line},,".split(",")] for line in answer.splitlines()]
    found = [
        Gpu(number=number, memory_mib=int(memory) if memory.isdigit() else 0, uuid=uuid)
        for number, memory, uuid, *_ in rows
        if number.isdigit()
    ]
    if not found:
        raise ConfigError("--gpus: nvidia-smi lists no GPU on this machine: leave --gpus out")
    return found


def _why(error: Exception) -> str:
    return "it is not installed" if isinstance(error, FileNotFoundError) else type(error).__name__


def chosen(wanted: str, config: NodeConfig, environment: Mapping[str, str]) -> list[Gpu]:
    """Returns the GPUs of this machine that --gpus names. Raises ConfigError: there are none such, or nodes with this
    configuration use none."""
    if config.model.device not in _CUDA:
        raise ConfigError(f"model.device={config.model.device.value} and --gpus exclude each other: leave one out")
    return choose(wanted, find(environment), environment)


def choose(wanted: str, found: Sequence[Gpu], environment: Mapping[str, str]) -> list[Gpu]:
    """Returns the GPUs to use: those named, or all that CUDA_VISIBLE_DEVICES leaves. Raises ConfigError: there is no
    such GPU, or one is named twice."""
    by_number = {gpu.number: gpu for gpu in found}
    if wanted == "all":
        visible = environment.get(_VISIBLE)
        if visible is None:
            return list(found)
        names = [name.strip() for name in visible.split(",")]
        left = list(dict.fromkeys(gpu for name in names for gpu in found if gpu.is_named(name)))
        if not left:
            raise ConfigError(
                f"--gpus all: {_VISIBLE}={visible} names none of the GPUs {', '.join(by_number)}: unset it"
            )
        return left
    names = wanted.split(",")
    for name in names:
        if name not in by_number:
            raise ConfigError(
                f"--gpus {wanted}: there is no GPU '{name}' here, only {', '.join(by_number)}; or give all"
            )
    if len(set(names)) < len(names):
        raise ConfigError(f"--gpus {wanted} names a GPU twice: each runs one node")
    return [by_number[name] for name in names]


def gpus_if_several(config: NodeConfig, environment: Mapping[str, str]) -> list[Gpu]:
    """Returns the GPUs that nodes with this configuration would be divided among; none unless there are two."""
    try:
        left = chosen("all", config, environment)
    except ConfigError:
        return []
    return left if len(left) > 1 else []


def model_for(
    config: NodeConfig, settings: Sequence[str], folders: Iterable[Path], environment: Mapping[str, str]
) -> tuple[str, str] | None:
    """Returns the setting of the larger model, and why it is taken, where nothing names one and each GPU that nodes
    use has memory for it. A state in `folders` keeps the model that it was begun with, also on a CPU."""
    is_named = any(setting.startswith(("model=", "model.name=")) for setting in settings)
    if is_named or config.model.name != ModelConfig().name:
        return None
    name = next((found["model.name"] for found in map(state.bound_settings, folders) if "model.name" in found), None)
    why = "with which the state was begun"
    if name is None:
        try:
            least_mib = min(gpu.memory_mib for gpu in chosen("all", config, environment))
        except ConfigError:
            return None
        name = LARGE_MODEL if least_mib >= LARGE_MODEL_MIB else config.model.name
        why = "as GPUs of 40 GiB allow; MODEL_NAME chooses another"
    return (f"model.name={quoted(name)}", why) if name != config.model.name else None

"""Reads YAML files and `key=value` overrides into a checked `NodeConfig`, and writes it as YAML with explained keys."""

from __future__ import annotations

import ast
import dataclasses
import errno
import inspect
import math
import os
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from codezero import __version__
from codezero.config import NodeConfig, checkout, swarm_file
from codezero.config.check import require
from codezero.config.names import CONFIG_DIR_ENV, check_names, config_dir, is_swarm_file, leaves, unknown
from codezero.errors import ConfigError

RESET_ENV = "CODEZERO_RESET_CONFIG"
_CHOOSE_TASKS = ("preset=", "tasks=", "tasks.modules=", "tasks.builtin.", "tasks.code_contests.", "tasks.mbpp.")
"""The beginnings of overrides by which a user chooses what a node draws from."""


def load_config(overrides: Sequence[str] = ()) -> NodeConfig:
    """Returns the shipped configuration with `key=value` overrides, checked.

    A group name selects one of its files (`tasks=builtin`, `reward=faithful`, `preset=local`); any other key sets a
    value (`train.learning_rate=2e-6`). `swarm=FILE.yaml` applies the settings of a swarm file; explicit settings win.

    Raises ConfigError for an unknown key or choice, a wrong type, a value out of range, or an impossible combination.
    """
    from hydra import compose, initialize_config_dir
    from hydra.errors import HydraException
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    if not os.access(config_dir() / "node.yaml", os.R_OK):
        how = f"{checkout.START} puts the shipped files there; or unset {CONFIG_DIR_ENV}"
        raise ConfigError(f"{config_dir()} holds no node.yaml that can be read: {how}")
    _register_schema()
    overrides = _with_swarm_file(overrides)
    check_names(overrides)
    try:
        with initialize_config_dir(str(config_dir()), version_base="1.3", job_name="codezero"):
            composed = compose("node", [_taken_literally(override) for override in overrides])
            for key in _keys_of(list):  # OmegaConf lets lists in lists pass
                for one in OmegaConf.select(composed, key) or ():
                    require(isinstance(one, str), key, f"[{one}]", "it is a list of texts: write it as [A,B]")
            config = OmegaConf.to_object(composed)
    except (HydraException, OmegaConfBaseException) as error:
        raise ConfigError(_one_line(error)) from error
    except (yaml.YAMLError, OSError, UnicodeDecodeError) as error:
        raise ConfigError(_of_files(error)) from error
    if not isinstance(config, NodeConfig):
        file = config_dir() / "node.yaml"
        raise ConfigError(_of_files(OSError(errno.EINVAL, "it lacks `- schema` among its defaults", file)))
    for key, value in leaves(config).items():
        require(not isinstance(value, float) or math.isfinite(value), key, value, "use a finite number")
        if isinstance(value, str) and value.startswith("~") and key != "swarm.name":
            require(not os.path.expanduser(value).startswith("~"), key, value, "there is no such user: name the folder")
    return config


def _of_files(error: Exception) -> str:
    """Returns what is wrong with the settings files, and where."""
    mark = getattr(error, "problem_mark", None)
    where = f"{mark.name}, line {mark.line + 1}" if mark else getattr(error, "filename", None) or config_dir()
    why = getattr(error, "problem", None) or getattr(error, "strerror", None) or _one_line(error)
    do = f"correct it, or {RESET_ENV}=1 {checkout.START} puts the shipped files back and keeps a copy of yours"
    return f"{where}: {why}: {do}"


@cache
def _register_schema() -> None:
    """Registers `NodeConfig` with Hydra as the schema."""
    from hydra.core.config_store import ConfigStore

    ConfigStore.instance().store("schema", NodeConfig)


def _with_swarm_file(overrides: Sequence[str]) -> list[str]:
    """Returns the overrides with the settings of a swarm file in place of `swarm=FILE`, before all others."""
    choices = [override.removeprefix("swarm=") for override in overrides if override.startswith("swarm=")]
    files = [choice for choice in choices if is_swarm_file(choice)]
    if not files:
        return list(overrides)
    if len(choices) > 1:
        raise ConfigError(
            f"swarm={' swarm='.join(choices)}: give one swarm; single settings of it follow as swarm.key="
        )
    rest = [override for override in overrides if not override.startswith("swarm=")]
    swarm = swarm_file.read(Path(files[0]))
    chosen = any(override.startswith(_CHOOSE_TASKS) for override in rest)
    tasks = [f"tasks={swarm.tasks.value}"] if swarm.tasks and not chosen else []
    return [*swarm_file.overrides(swarm), *tasks, *rest]


def _taken_literally(override: str) -> str:
    """Returns the override, its value quoted if Hydra cannot parse it otherwise, such as ~/swarm.sqlite, or if it is a
    text that Hydra takes for a number or a truth value, as `state_dir=2026_11_25` would name the folder 20261125, or
    for several values, as `state_dir=/data/a,b`."""
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException

    key, _, value = override.partition("=")
    try:
        parsed = OverridesParser.create().parse_override(override)
    except HydraException:
        return f"{key}={swarm_file.quoted(value)}"
    if (parsed.is_sweep_override() or isinstance(parsed.value(), int | float)) and key in _keys_of(str):
        return f"{key}={swarm_file.quoted(value)}"
    return override


@cache
def _keys_of(kind: type) -> set[str]:
    """Returns the keys of all settings that are texts, which may be None, or those of all that are lists."""
    return {key for key, value in leaves(NodeConfig()).items() if isinstance("" if value is None else value, kind)}


def _one_line(error: Exception) -> str:
    """Returns key and reason of an error, which Hydra and OmegaConf put on separate lines, without the rest."""
    cause: BaseException = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    lines = [line.strip() for line in str(cause).splitlines() if line.strip()]
    lines = [line for line in lines if not line.endswith("raised while composing config:")]  # of a value in a file
    key = next((line.removeprefix("full_key: ") for line in lines if line.startswith("full_key: ")), "")
    in_file = re.match(r"In '(.+)': ConfigKeyError raised", str(cause))
    if key and in_file:
        return unknown(key, where=f" in {config_dir() / in_file[1]}.yaml")
    if key and lines[0].endswith("is not a ListConfig, list or tuple."):
        return f"{key} is a list: write it as '{key}=[A,B]', also with one value"
    return f"{key}: {lines[0]}" if key else lines[0] if lines else type(cause).__name__


def explain(config: NodeConfig, shown: Callable[[str, Any], Any] = lambda _, value: value) -> str:
    """Returns the configuration as YAML, each key below its explanation; `load_config` accepts every value of it.

    `shown` returns the value to print for a key and its value.
    """
    return "\n".join(_explained(config, "", shown)) + "\n"


def _explained(section: Any, prefix: str, shown: Callable[[str, Any], Any]) -> Iterator[str]:
    indent = "  " * prefix.count(".")
    notes = field_notes(type(section))
    for field in dataclasses.fields(section):
        value = getattr(section, field.name)
        if field.name in notes:
            yield from textwrap.wrap(
                " ".join(notes[field.name].split()), 116, initial_indent=f"{indent}# ", subsequent_indent=f"{indent}# "
            )
        if dataclasses.is_dataclass(value):
            yield f"{indent}{field.name}:"
            yield from _explained(value, f"{prefix}{field.name}.", shown)
        else:
            yield f"{indent}{field.name}: {scalar(shown(prefix + field.name, value))}"


def settings_of(config: NodeConfig) -> list[str]:
    """Returns the `key=value` overrides that turn the shipped configuration into this one."""
    shipped = leaves(load_config())
    return [f"{key}={_literal(value)}" for key, value in leaves(config).items() if value != shipped[key]]


def learning_settings(config: NodeConfig) -> Mapping[str, object]:
    """Returns the settings of training as plain values, without addresses, accounts or paths, since others see them."""
    import msgspec  # here, so that `codezero doctor` starts where it is not installed

    sections = {name: msgspec.to_builtins(getattr(config, name)) for name in ("rollout", "train", "reward")}
    del sections["rollout"]["servers"]
    swarm = {"num_local": config.swarm.num_local, "num_external": config.swarm.num_external}
    return {"codezero": __version__, "seed": config.seed, "swarm": swarm, **sections}


def _literal(value: Any) -> str:
    """Returns a value in Hydra's override grammar."""
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, str):
        return swarm_file.quoted(value)
    if isinstance(value, list):
        return f"[{','.join(map(_literal, value))}]"
    return "null" if value is None else str(value)


def field_notes(section: type) -> dict[str, str]:
    """Returns the docstring below each field of a configuration class, by field name."""
    (definition,) = ast.parse(inspect.getsource(section)).body
    assert isinstance(definition, ast.ClassDef)
    notes = {}
    for field, note in zip(definition.body, definition.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(note, ast.Expr):
            notes[field.target.id] = ast.literal_eval(note.value)
    return notes


def scalar(value: object) -> str:
    """Returns a value as YAML on one line."""
    plain = value.value if isinstance(value, Enum) else value
    return yaml.safe_dump(plain, width=math.inf, default_flow_style=True).removesuffix("...\n").strip()

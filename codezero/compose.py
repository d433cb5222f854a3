"""From YAML files and `key=value` overrides to a checked `NodeConfig`, and back to YAML with every key explained."""

from __future__ import annotations

import ast
import dataclasses
import difflib
import inspect
import math
import os
import textwrap
from collections.abc import Iterator, Sequence
from enum import Enum
from pathlib import Path
from typing import Any

import yaml

from codezero import swarmfile
from codezero.config import NodeConfig
from codezero.errors import ConfigError

CONFIG_DIR_ENV = "CODEZERO_CONFIG_DIR"


def config_dir() -> Path:
    """The folder of the YAML files that are read: CODEZERO_CONFIG_DIR, else the shipped ones."""
    own = os.environ.get(CONFIG_DIR_ENV)
    return Path(own).expanduser().absolute() if own else shipped_dir()


def shipped_dir() -> Path:
    """The folder of the shipped YAML files: inside the installed package, or beside it in a checkout."""
    installed = Path(__file__).with_name("configs")
    return installed if installed.is_dir() else Path(__file__).parent.parent / "configs"


def load(overrides: Sequence[str] = ()) -> NodeConfig:
    """The shipped configuration with `key=value` overrides applied, checked.

    A group name selects one of its files (`tasks=builtin`, `reward=faithful`, `preset=local`); any other key sets a
    value (`train.learning_rate=2e-6`). `swarm=FILE.yaml` stands for what a swarm file says; explicit settings win.

    Raises ConfigError: unknown key or choice, wrong type, value out of range, or combination that cannot work.
    """
    from hydra import compose, initialize_config_dir
    from hydra.core.config_store import ConfigStore
    from hydra.errors import HydraException
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    if not (config_dir() / "node.yaml").exists():
        how = f"./run_rl_swarm.sh puts the shipped files there; or unset {CONFIG_DIR_ENV}"
        raise ConfigError(f"{config_dir()} holds no node.yaml: {how}")
    schema = OmegaConf.structured(NodeConfig)
    leaves = _leaf_keys(OmegaConf.to_container(schema))
    overrides = _with_swarm_file(overrides)
    for override in overrides:
        _check_override(override, leaves)
    ConfigStore.instance().store("schema", NodeConfig)
    try:
        with initialize_config_dir(str(config_dir()), version_base="1.3", job_name="codezero"):
            config = OmegaConf.to_object(compose("node", [_taken_literally(override) for override in overrides]))
    except (HydraException, OmegaConfBaseException) as error:
        raise ConfigError(_one_line(error)) from error
    assert isinstance(config, NodeConfig)
    return config


def _with_swarm_file(overrides: Sequence[str]) -> list[str]:
    """The overrides with the content of a swarm file in place of `swarm=FILE`, before all others."""
    choices = [override.removeprefix("swarm=") for override in overrides if override.startswith("swarm=")]
    files = [choice for choice in choices if swarmfile.is_swarm_file(choice)]
    if not files:
        return list(overrides)
    if len(choices) > 1:
        raise ConfigError(
            f"swarm={' swarm='.join(choices)}: give one swarm; single settings of it follow as swarm.key="
        )
    rest = [override for override in overrides if not override.startswith("swarm=")]
    return [*swarmfile.overrides(swarmfile.read(Path(files[0]).expanduser())), *rest]


def _leaf_keys(tree: Any, prefix: str = "") -> set[str]:
    keys: set[str] = set()
    for name, value in tree.items():
        keys |= _leaf_keys(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name}
    return keys


def _check_override(override: str, leaves: set[str]) -> None:
    key, equals, value = override.partition("=")
    if not equals:
        raise ConfigError(f"'{override}' is not a setting: write it as key=value, such as train.learning_rate=2e-6")
    groups = {
        folder.name: sorted(f.stem for f in folder.glob("*.yaml"))
        for folder in config_dir().iterdir()
        if folder.is_dir()
    }
    if key in groups:
        if value not in groups[key]:
            or_file = "; a swarm file ends in .yaml" if key == "swarm" else ""
            raise ConfigError(f"{key}={value} is not one of the shipped choices: {', '.join(groups[key])}{or_file}")
    elif key not in leaves:
        near = difflib.get_close_matches(key, [*leaves, *groups], n=2)
        hint = f"did you mean {' or '.join(near)}?" if near else "see `codezero run --show-config` for all keys"
        raise ConfigError(f"unknown setting {key}: {hint}")


def _taken_literally(override: str) -> str:
    """The override, in quotes where Hydra cannot parse its value, such as ~/swarm.sqlite: that then means itself."""
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException

    key, _, value = override.partition("=")
    try:
        OverridesParser.create().parse_override(override)
    except HydraException:
        return f"{key}={swarmfile.quoted(value)}"
    return override


def _one_line(error: Exception) -> str:
    """Hydra and OmegaConf put the key and the reason on separate lines; this keeps both and drops their tails."""
    cause: BaseException = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    lines = [line.strip() for line in str(cause).splitlines() if line.strip()]
    key = next((line.removeprefix("full_key: ") for line in lines if line.startswith("full_key: ")), "")
    return f"{key}: {lines[0]}" if key else lines[0] if lines else type(cause).__name__


def explain(config: NodeConfig) -> str:
    """The whole configuration as YAML, each key below its explanation; `load` accepts every value of it."""
    return "\n".join(_explained(config, indent="")) + "\n"


def _explained(section: Any, indent: str) -> Iterator[str]:
    notes = field_notes(type(section))
    for field in dataclasses.fields(section):
        value = getattr(section, field.name)
        if field.name in notes:
            yield from textwrap.wrap(
                " ".join(notes[field.name].split()), 116, initial_indent=f"{indent}# ", subsequent_indent=f"{indent}# "
            )
        if dataclasses.is_dataclass(value):
            yield f"{indent}{field.name}:"
            yield from _explained(value, indent + "  ")
        else:
            yield f"{indent}{field.name}: {scalar(value)}"


def settings_of(config: NodeConfig) -> list[str]:
    """The `key=value` settings that make this configuration of the shipped one."""
    shipped = _leaves(load())
    return [f"{key}={_literal(value)}" for key, value in _leaves(config).items() if value != shipped[key]]


def _leaves(section: Any, prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for field in dataclasses.fields(section):
        value = getattr(section, field.name)
        if dataclasses.is_dataclass(value):
            found |= _leaves(value, f"{prefix}{field.name}.")
        else:
            found[prefix + field.name] = value
    return found


def _literal(value: Any) -> str:
    """A value in Hydra's grammar."""
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, str):
        return swarmfile.quoted(value)
    if isinstance(value, list):
        return f"[{','.join(map(_literal, value))}]"
    return "null" if value is None else str(value)


def field_notes(section: type) -> dict[str, str]:
    """The string below each field of a configuration class, by field name."""
    (definition,) = ast.parse(inspect.getsource(section)).body
    assert isinstance(definition, ast.ClassDef)
    notes = {}
    for field, note in zip(definition.body, definition.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(note, ast.Expr):
            notes[field.target.id] = ast.literal_eval(note.value)
    return notes


def scalar(value: object) -> str:
    """A value as YAML on one line."""
    plain = value.value if isinstance(value, Enum) else value
    return yaml.safe_dump(plain, width=math.inf, default_flow_style=True).removesuffix("...\n").strip()

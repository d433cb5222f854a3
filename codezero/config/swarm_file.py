"""The swarm file: the settings that a node needs to join a swarm, in a small file to send to others.

    version: 1
    name: home
    network: native
    bootnodes:
    - /ip4/203.0.113.7/tcp/4001/p2p/Qm...
    ledger: local
    num_generations: 8
    tasks: builtin

A file may come from a stranger: it is data of a fixed form that cannot change any other setting.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from enum import Enum
from pathlib import Path
from typing import Any, TypeVar

import yaml

from codezero.config import LedgerKind, Network
from codezero.config.check import require
from codezero.config.multiaddr import Multiaddr
from codezero.config.names import is_swarm_file
from codezero.config.swarm import MAX_GENERATIONS
from codezero.errors import ConfigError, told_as
from codezero.runtime.files import replace_file

VERSION = 1
MAX_BYTES = 64 * 1024
MAX_BOOTNODES = 32
_FIRST_LINE = "# A codezero swarm. To join it, in a checkout of codezero: ./run_rl_swarm.sh --join FILE"
Choice = TypeVar("Choice", bound=Enum)


class SwarmTasks(Enum):
    """The datasets that the nodes of a swarm draw from: a shipped choice of `tasks`."""

    auto = "auto"
    builtin = "builtin"
    code_contests = "code_contests"
    mbpp = "mbpp"


@dataclass(frozen=True, slots=True, kw_only=True)
class SwarmFile:
    """The content of a swarm file. Raises ConfigError for values that no swarm can have."""

    name: str
    network: Network
    bootnodes: tuple[str, ...]
    """Multiaddresses that end with the peer id."""
    ledger: LedgerKind
    num_generations: int
    """G, the number of rollouts in a group; nodes drop groups of another size."""
    tasks: SwarmTasks | None = None
    """The tasks that a node draws unless its user chooses, since others train on known ones only; None: nobody says."""

    def __post_init__(self) -> None:
        require(self.network is not Network.none, "network", "none", "use native or genrl")
        named = 1 <= len(self.name) <= 64 and self.name.isprintable()
        require(named, "name", _shown(self.name), "use 1 to 64 printable characters")
        sized = 2 <= self.num_generations <= MAX_GENERATIONS
        require(sized, "num_generations", self.num_generations, f"use 2 to {MAX_GENERATIONS}")
        counted = 1 <= len(self.bootnodes) <= MAX_BOOTNODES
        require(counted, "bootnodes", f"{len(self.bootnodes)} addresses", f"give 1 to {MAX_BOOTNODES}")
        for address in self.bootnodes:
            try:
                found = Multiaddr.parse(address)
            except ValueError as error:
                raise ConfigError(f"bootnodes: {_shown(address)} is not an address: {error}") from error
            require(found.peer is not None, "bootnodes", address, "end it with /p2p/ and the peer id")
            require(found.port > 0, "bootnodes", address, "name the port")


def write(path: Path, swarm: SwarmFile) -> None:
    """Replaces the file atomically. Raises ConfigError: it cannot be written, or nobody could join by its name."""
    if not is_swarm_file(path.name):
        raise ConfigError(f"'{path}' is no name for a swarm file: give one that ends in .yaml")
    content = {
        "version": VERSION,
        "name": swarm.name,
        "network": swarm.network.value,
        "bootnodes": list(swarm.bootnodes),
        "ledger": swarm.ledger.value,
        "num_generations": swarm.num_generations,
        **({"tasks": swarm.tasks.value} if swarm.tasks else {}),
    }
    text = yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=MAX_BYTES)
    with told_as(ConfigError, f"cannot write swarm file {path}", "give another place"):
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, f"{_FIRST_LINE}\n{text}")


def read(path: Path) -> SwarmFile:
    """Returns the content of a swarm file. Raises ConfigError, with file, key and fix, if it is missing or invalid."""
    try:
        values = _values(path)
        return SwarmFile(
            name=_text(values, "name"),
            network=_choice(values, "network", Network),
            bootnodes=_texts(values, "bootnodes"),
            ledger=_choice(values, "ledger", LedgerKind),
            num_generations=_number(values, "num_generations"),
            tasks=_choice(values, "tasks", SwarmTasks) if "tasks" in values else None,
        )
    except ConfigError as error:
        raise ConfigError(f"swarm file {path}: {error}") from error


def overrides(swarm: SwarmFile) -> list[str]:
    """Returns the overrides for `load_config` of a node of the swarm, without the choice of tasks."""
    return [
        f"swarm={swarm.network.value}",
        f"swarm.name={quoted(swarm.name)}",
        f"swarm.bootnodes=[{','.join(map(quoted, swarm.bootnodes))}]",
        f"ledger={swarm.ledger.value}",
        f"rollout.num_generations={swarm.num_generations}",
    ]


def quoted(text: str) -> str:
    """Returns the value of an override that Hydra reads as exactly this text.

    Within quotes Hydra has one escape, a backslash before the quote; backslashes are doubled only there and at the end
    (https://hydra.cc/docs/advanced/override_grammar/basic/#quoted-values). OmegaConf then reads `${` as an
    interpolation unless it follows an odd number of backslashes.
    """
    literal = re.sub(r"(\\*)\$\{", r"\1\1\\${", text)
    return "'" + re.sub(r"(\\*)('|$)", lambda m: m[1] * 2 + ("\\'" if m[2] else ""), literal) + "'"


def _values(path: Path) -> dict[str, Any]:
    """Returns the file's mapping, with every scalar as text. Raises ConfigError."""
    try:
        path = path.expanduser()
        if not path.is_file():
            raise ConfigError("there is no such file; check the path")
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
        if len(raw) > MAX_BYTES:
            raise ConfigError(f"it has more than {MAX_BYTES // 1024} KiB; this is not a swarm file")
        # BaseLoader is stricter than safe_load: no merge keys that multiply data, no conversion of numbers or dates.
        values = yaml.load(raw.decode("utf-8"), Loader=yaml.BaseLoader)
    except OSError as error:
        raise ConfigError(f"it cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        raise ConfigError(f"it is not YAML{f' at line {mark.line + 1}' if mark else ''}; ask for it again") from error
    except RuntimeError as error:  # of `expanduser`
        raise ConfigError("there is no such user; check the path") from error
    known = ["version", *(field.name for field in fields(SwarmFile))]
    if not isinstance(values, dict):
        raise ConfigError(f"it has no keys; it should have {', '.join(known)}")
    if values.get("version") != str(VERSION):
        raise ConfigError(f"version={_shown(values.get('version'))} is not known here, only {VERSION}; update codezero")
    for key in values:
        require(key in known, "key", _shown(key), f"remove it; known are {', '.join(known)}")
    for key in known:
        require(key in values or key == "tasks", key, "nothing", "add it")
    return values


def _text(values: dict[str, Any], key: str) -> str:
    value = values[key]
    require(isinstance(value, str), key, _shown(value), "give one text")
    return str(value)


def _texts(values: dict[str, Any], key: str) -> tuple[str, ...]:
    value = values[key]
    listed = isinstance(value, list) and all(isinstance(item, str) for item in value)
    require(listed, key, _shown(value), "give a list of texts")
    return tuple(value)


def _number(values: dict[str, Any], key: str) -> int:
    text = _text(values, key)
    require(re.fullmatch("[0-9]{1,9}", text) is not None, key, _shown(text), "give a whole number")
    return int(text)


def _choice(values: dict[str, Any], key: str, choices: type[Choice]) -> Choice:
    text = _text(values, key)
    names = [choice.value for choice in choices]
    require(text in names, key, _shown(text), f"use one of {', '.join(names)}")
    return choices(text)


def _shown(value: object) -> str:
    """Returns an untrusted value for a message: short, in one line, without control characters."""
    if not isinstance(value, str):
        return "nothing" if value is None else f"a {type(value).__name__}"
    return ascii(value if len(value) <= 60 else value[:60] + "...")

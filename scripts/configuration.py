"""Writes docs/configuration.md: every setting with its type, default and meaning, from the code.

`.venv/bin/python -m scripts.configuration` refreshes the file; a test compares it.
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any

import yaml

from codezero.config import checkout
from codezero.config.load import field_notes, load_config, scalar

PAGE = Path(__file__).parent.parent / "docs" / "configuration.md"
COMMAND = ".venv/bin/python -m scripts.configuration"
INTRODUCTION = f"""\
# All settings

Made from the code by `{COMMAND}`. Give any of them as `key=value`; the defaults are those of a node that
is given none. `codezero run --show-config` prints what yours come to. One node at a time may use a state folder,
and a state folder keeps its model and training method. A relative path is taken from the folder in which the command
runs, which for `run_rl_swarm.sh` is its own; only a swarm file is looked for where you are. `~` is your home.

| section | what it sets |
|---|---|
| [preset](#preset) | several sections at once |
| [model](#model), [rollout](#rollout) | the model that learns, and how it writes solutions |
| [tasks](#tasks) | where problems come from, beside proposals; `auto` falls back to the 75 built-in ones |
| [proposer](#proposer) | of a proposer: its model, how its problems are checked, how the level moves, what it learns |
| [verifier](#verifier) | of a test writer: how many test cases it writes, and how it learns |
| [evaluator](#evaluator) | what judges, where its model runs and how it is asked |
| [reward](#reward) | weights of the reward's parts |
| [train](#train) | the update: loss type, clipping, learning rate, all weights or adapters |
| [probe](#probe) | how much of its time a node measures itself |
| [swarm](#swarm) | tasks a round, and whose solutions to learn from; or a swarm file: `swarm=invite.yaml` |
| [ledger](#ledger) | where rewards are kept |
| [tracking](#tracking) | logs, and [curves elsewhere](logs.md#curves-elsewhere) |
| [judge](#judge), [market](#market) | judge service and prediction market, both off |
| [push](#push) | pushing the model to Hugging Face, off unless the launch script gets a token |
"""


def page() -> str:
    """Returns the whole page as Markdown."""
    config = load_config([])
    sections = [
        field.name for field in dataclasses.fields(config) if dataclasses.is_dataclass(getattr(config, field.name))
    ]
    lines = [
        INTRODUCTION,
        "## Node",
        "",
        *_table(_rows(config, "", nested=False)),
        "",
        "## preset",
        "",
        *_choices("preset"),
    ]
    for name in sections:
        lines += ["", f"## {name}", ""]
        if (checkout.CONFIGS / name).is_dir():
            lines += [*_choices(name), ""]
        lines += _table(_rows(getattr(config, name), f"{name}.", nested=True))
    return "\n".join(lines) + "\n"


def _table(rows: Iterator[str]) -> list[str]:
    return ["| key | type | default | meaning |", "|---|---|---|---|", *rows]


def _rows(section: Any, prefix: str, nested: bool) -> Iterator[str]:
    notes, types = field_notes(type(section)), typing.get_type_hints(type(section))
    for field in dataclasses.fields(section):
        value = getattr(section, field.name)
        if not dataclasses.is_dataclass(value):
            meaning = _cell(notes.get(field.name, ""))
            yield f"| `{prefix}{field.name}` | {_type(types[field.name])} | `{scalar(value)}` | {meaning} |"
        elif nested:
            yield f"| `{prefix}{field.name}.*` | | | {_cell(notes.get(field.name, ''))} |"
            yield from _rows(value, f"{prefix}{field.name}.", nested)


def _type(kind: Any) -> str:
    if isinstance(kind, type) and issubclass(kind, Enum):
        return ", ".join(f"`{choice.value}`" for choice in kind)
    names = {str: "text", int: "whole number", float: "number", bool: "`true`, `false`", list[str]: "list of text"}
    members = [member for member in typing.get_args(kind) if member is not type(None)]
    optional = type(None) in typing.get_args(kind)
    return f"{_type(members[0])}, `null`" if optional else names.get(kind, str(kind))


def _choices(group: str) -> list[str]:
    """Returns a table of what each file of a group sets, and why, by its leading comment."""
    rows = []
    for path in sorted((checkout.CONFIGS / group).glob("*.yaml")):
        text = path.read_text(encoding="utf-8")
        comment = " ".join(line.removeprefix("#").strip() for line in text.splitlines() if line.startswith("# "))
        prefix = "" if group == "preset" else f"{group}."
        settings = ", ".join(f"`{setting}`" for setting in _settings(yaml.safe_load(text), prefix))
        rows.append(
            f"| `{group}={path.stem}` | {settings} | {_cell(comment.removeprefix('@package _global_').strip())} |"
        )
    return ["| choice | sets | what for |", "|---|---|---|", *rows]


def _settings(tree: dict[str, Any], prefix: str) -> Iterator[str]:
    for name, value in tree.items():
        if name == "defaults":
            yield from (
                f"{key.removeprefix('override /')}={choice}" for entry in value for key, choice in entry.items()
            )
        elif isinstance(value, dict):
            yield from _settings(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}={scalar(value)}"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")

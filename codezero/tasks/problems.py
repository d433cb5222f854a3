"""The problems that ship with codezero: five YAML files in `builtin/`, one for each difficulty level."""

from __future__ import annotations

from pathlib import Path

import yaml

from codezero.errors import TaskError
from codezero.proposals import LEVELS
from codezero.tasks.withheld import Problem
from codezero.types import Task, TaskOrigin

_FOLDER = Path(__file__).with_name("builtin")
_FIELDS = ("name", "question", "tests", "solution")


def load_problems(min_difficulty: int = 1, max_difficulty: int = 5, folder: Path = _FOLDER) -> tuple[Problem, ...]:
    """Returns all problems of the levels asked for, easiest first, in file order.

    Raises TaskError if a file is missing or damaged, which for the shipped ones means a broken installation.
    """
    return tuple(
        problem
        for level in range(min_difficulty, max_difficulty + 1)
        for problem in _load_level(folder / f"{level}_{LEVELS[level - 1]}.yaml", level)
    )


def _load_level(path: Path, level: int) -> list[Problem]:
    # The C parser takes a tenth of the time, and starting a node should feel instant.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        entries = yaml.load(path.read_text(encoding="utf-8"), Loader=loader)
    except (OSError, ValueError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())
        raise TaskError(f"built-in problems {path} cannot be read ({reason}): install codezero again") from error
    if not isinstance(entries, list) or not entries:
        raise TaskError(f"built-in problems {path} hold no list of problems: install codezero again")
    return [_problem(entry, f"{path} entry {number}", level) for number, entry in enumerate(entries, start=1)]


def _problem(entry: object, where: str, level: int) -> Problem:
    if not isinstance(entry, dict) or not all(
        isinstance(entry.get(key), str) and entry[key].strip() for key in _FIELDS
    ):
        raise TaskError(f"built-in problem {where} lacks one of {', '.join(_FIELDS)}: install codezero again")
    task = Task(
        origin=TaskOrigin.BUILTIN,
        question=entry["question"].strip(),
        tests=entry["tests"].strip(),
        difficulty=level,
    )
    return Problem(task=task, reference=entry["solution"])

"""Environments: modules of the node's user with tasks, a prompt and a reward rule (docs/environments.md)."""

from __future__ import annotations

import importlib
import os
import random
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol, cast

from codezero.errors import TaskError
from codezero.tasks.rows import MAX_DESCRIPTION_CHARS, BadRow, checked_text
from codezero.tasks.sources import StreamSource
from codezero.types import Task, TaskOrigin


class Environment(Protocol):
    """The names that an environment's module defines."""

    SYSTEM: str
    """The system prompt; the question of a task is what the user says then."""

    def tasks(self, seed: int) -> Iterable[tuple[str, str]]:
        """Yields the question and the answer of each task of one pass, the same ones for the same seed."""
        ...

    def score(self, question: str, answer: str, text: str) -> float:
        """Returns what an attempt is worth, in 0..1; from 0.5 up it counts as right. Only worker processes call it,
        since texts, and of peers' groups questions and answers too, are strangers'."""
        ...


def load_environments(modules: Mapping[str, str]) -> dict[str, Environment]:
    """Imports modules, also from the current folder, and returns them by the names of their environments. Raises
    TaskError: one cannot be imported, or lacks a part."""
    if modules and os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    return {name: _load(module) for name, module in modules.items()}


def _load(module: str) -> Environment:
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError as error:
        itself = f"{module}.".startswith(f"{error.name}.")
        advice = "start in its folder, or put that on PYTHONPATH" if itself else "install what it imports"
        raise TaskError(f"tasks.modules: {module} cannot be imported ({error}): {advice}") from error
    except (Exception, SystemExit) as error:  # the latter of a script without `if __name__ == "__main__"`
        raise TaskError(f"tasks.modules: {module} cannot be imported ({_said(error)}): fix the module") from error
    lacks = [name for name in ("SYSTEM", "tasks", "score") if not hasattr(found, name)]
    if lacks:
        raise TaskError(f"tasks.modules: {module} lacks {', '.join(lacks)}: docs/environments.md has an example")
    if not isinstance(found.SYSTEM, str):
        raise TaskError(f"tasks.modules: SYSTEM of {module} is no text: docs/environments.md has an example")
    return cast(Environment, found)


def _said(error: BaseException) -> str:
    """Returns kind and text of a module's error in one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())


def environment_source(name: str, environment: Environment, seed: int, skipped: Counter[str]) -> StreamSource:
    """Returns the source of an environment's tasks, each pass of which has a seed of its own. Raises TaskError: its
    first task is none. Drawing from it raises TaskError if the module fails."""

    def rows_of_epoch(epoch: int) -> Iterator[object]:
        try:
            yield from environment.tasks(random.Random(f"{seed}/{name}/{epoch}").getrandbits(32))
        except TaskError:
            raise
        except (Exception, SystemExit) as error:
            raise TaskError(f"tasks.modules: tasks(seed) of {name} fails ({_said(error)}): fix the module") from error

    def to_task(row: object) -> Task:
        if not isinstance(row, tuple) or len(row) != 2:
            raise BadRow("task is not a question and an answer")
        question, answer = (checked_text(part, "text", MAX_DESCRIPTION_CHARS) for part in row)
        return Task(origin=TaskOrigin.ENVIRONMENT, question=question, tests=answer, environment=name)

    try:
        to_task(next(rows_of_epoch(0), None))
    except BadRow as error:
        raise TaskError(f"tasks.modules: {name}: {error}: tasks(seed) has to yield pairs of texts") from error
    return StreamSource(name, f"tasks of {name}", rows_of_epoch, to_task, skipped, passes_differ=True)

"""Solutions and further tests of problems, which a node neither shows to a solver nor sends to a peer."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from codezero.prompts import solver as prompt
from codezero.proposals import problem_id
from codezero.types import Task

MAX_DRAWN = 1024
"""The most problems drawn from streams that are remembered, of at most some 30 KB each; the oldest are forgotten."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A task, with a solution and further tests, which only judging may see."""

    task: Task
    reference: str | None = None
    """Source of a solution that the dataset gives as right; untrusted, not executed here."""
    more_tests: str = ""
    """Tests beside those of the task, in the same form."""


ProblemOf = Callable[[Task], Problem]
"""A function that returns a task with all that is known of it."""


def task_alone(task: Task) -> Problem:
    """Returns a task of which nothing else is known."""
    return Problem(task=task)


class Withheld:
    """A store of problems, in which judging looks up tasks, whether the solutions are own or a peer's."""

    def __init__(self, problems: Iterable[Problem] = ()) -> None:
        self._kept = {id_of(problem.task): problem for problem in problems}
        self._drawn: OrderedDict[str, Problem] = OrderedDict()

    def keep(self, problem: Problem) -> None:
        """Stores a problem for good."""
        self._kept[id_of(problem.task)] = problem

    def keep_drawn(self, problem: Problem) -> None:
        """Stores a problem until `MAX_DRAWN` others have been drawn."""
        name = id_of(problem.task)
        if name in self._kept:
            return
        self._drawn[name] = problem
        self._drawn.move_to_end(name)
        if len(self._drawn) > MAX_DRAWN:
            self._drawn.popitem(last=False)

    def has(self, name: str) -> bool:
        """Returns True if a problem with this `id_of` is stored."""
        return name in self._kept or name in self._drawn

    def problem(self, task: Task) -> Problem:
        """Returns the task with all that is known of it."""
        name = id_of(task)
        return self._kept.get(name) or self._drawn.get(name) or Problem(task=task)


def id_of(task: Task) -> str:
    """Returns the id of question and tests, which both wire formats carry as they are; `task_id` is that of the
    question only.

    It is the same whether the question shows all tests or few: peers may have set `tasks.show_all_tests` otherwise.
    """
    return problem_id(prompt.showing_all(task.question, task.tests), task.tests)

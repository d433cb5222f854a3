"""What a node knows of tasks and neither shows to a solver nor sends to a peer: a right solution, and further tests."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass

from codezero.prompts import solver as prompt
from codezero.proposals import problem_id
from codezero.types import Task

MAX_DRAWN = 1024
"""Problems drawn from streams that are remembered, of at most some 30 KB each; of more, the oldest are forgotten."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A task, with what only judging may see of it."""

    task: Task
    reference: str | None = None
    """Source of a solution that is taken for right, as the dataset has it: untrusted, not executed here."""
    more_tests: str = ""
    """Tests beside those of the task, in the same form."""


class Withheld:
    """Looked up by the task when it is judged, whoever's solutions these are."""

    def __init__(self, problems: Iterable[Problem] = ()) -> None:
        self._kept = {id_of(problem.task): problem for problem in problems}
        self._drawn: OrderedDict[str, Problem] = OrderedDict()

    def keep(self, problem: Problem) -> None:
        """Remembers a problem for good."""
        self._kept[id_of(problem.task)] = problem

    def keep_drawn(self, problem: Problem) -> None:
        """Remembers a problem until `MAX_DRAWN` others have been drawn."""
        name = id_of(problem.task)
        if name in self._kept:
            return
        self._drawn[name] = problem
        self._drawn.move_to_end(name)
        if len(self._drawn) > MAX_DRAWN:
            self._drawn.popitem(last=False)

    def problem(self, task: Task) -> Problem:
        """The task with all that is known of it."""
        return self._find(task) or Problem(task=task)

    def reference_of(self, task: Task) -> str | None:
        """Source of a right solution; None where there is none at hand."""
        found = self._find(task)
        return found.reference if found else None

    def more_tests(self, task: Task) -> str:
        """Tests that follow those of the task; empty where there are none at hand."""
        found = self._find(task)
        return found.more_tests if found else ""

    def _find(self, task: Task) -> Problem | None:
        name = id_of(task)
        return self._kept.get(name) or self._drawn.get(name)


def id_of(task: Task) -> str:
    """The id of question and tests, which both wire formats carry as they are; `task_id` is of the question only.

    The same whether the question shows all tests or the few: peers may have set `tasks.show_all_tests` otherwise.
    """
    return problem_id(prompt.showing_all(task.question, task.tests), task.tests)

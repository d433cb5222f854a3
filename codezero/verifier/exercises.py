"""The exercises of a test writer: problems with a reference solution, each with a candidate that is right or wrong.

tasks ─► draw ─ReferenceProblem─► the model solves ─► rules and dry run judge ─JudgedAttempts─► choose ─Exercise─►
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

from codezero.errors import TaskError
from codezero.evaluate.evaluator import proven
from codezero.evaluate.reading import AttemptReader
from codezero.policy.solver import PolicySolver
from codezero.prompts import solver as prompt
from codezero.tasks.mixture import Mixture
from codezero.types import RolloutGroup, Task
from codezero.verifier.jobs import ask_to_try
from codezero.verifier.write import Subject
from codezero.workers import Death, Workers

MAX_DRAWS = 50
"""The most tasks that are drawn for one that can be used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceProblem:
    """A problem that test cases can be written for."""

    task: Task
    """The task, whose question shows only few of the tests."""
    function: str
    """The function that the tests call."""
    reference: str
    """Source of a solution that passes the tests in a dry run; untrusted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedAttempts:
    """A problem with solutions of the model."""

    problem: ReferenceProblem
    group: RolloutGroup
    verdicts: tuple[bool | None, ...]
    """True for each solution that is right by all tests of the task, None if rules and dry run cannot tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exercise:
    """A problem with a candidate solution."""

    problem: ReferenceProblem
    candidate: str
    """Source of the solution that the test writer sees; untrusted."""
    is_right: bool
    """True if the candidate passes all tests of the task by rules and dry run, False if it fails."""
    wrong: tuple[str, ...]
    """The different solutions of the model that fail, the candidate among them if it does."""

    @property
    def subject(self) -> Subject:
        """The candidate as a subject of test cases."""
        return Subject(problem=self.problem.task.question, code=self.candidate, function=self.problem.function)


class Problems:
    """Draws tasks that have a reference solution and tests of one function. Each reference is tried first, since cases
    are judged by it."""

    def __init__(self, tasks: Mixture, workers: Workers) -> None:
        self._tasks, self._workers = tasks, workers
        self._left_out: Counter[str] = Counter()

    def draw(self, count: int) -> list[ReferenceProblem]:
        """Returns the next problems. Raises TaskError: tasks cannot be drawn, or none of many can be used."""
        return [self._next() for _ in range(count)]

    def _next(self) -> ReferenceProblem:
        for _ in range(MAX_DRAWS):
            (drawn,) = self._tasks.draw(1)
            found = self._usable(drawn)
            if isinstance(found, ReferenceProblem):
                return found
            self._left_out[found] += 1
        (reason, count), *_ = self._left_out.most_common(1)
        raise TaskError(
            f"none of {MAX_DRAWS} tasks can be used to write test cases for ({count} x {reason}): draw tasks with a "
            "reference solution and tests of a function, tasks=mbpp or tasks=builtin"
        )

    def _usable(self, task: Task) -> ReferenceProblem | str:
        """Returns the problem, or the reason why cases cannot be written for it."""
        reference = self._tasks.withheld.problem(task).reference
        if reference is None:
            return "no_reference"
        tried = ask_to_try(self._workers, replace(task, question=prompt.with_tests("", task.tests)), (), (reference,))
        if isinstance(tried, Death):
            return "unreadable"
        if not tried.function:
            return "no_function"
        if not tried.programs[0].passes_shown:  # all tests, since the question here shows all
            return "reference_fails"
        few = replace(task, question=prompt.showing_few(task.question, task.tests))
        return ReferenceProblem(task=few, function=tried.function, reference=reference)

    def take_left_out(self) -> dict[str, int]:
        """Returns the numbers of tasks and rows that were not used since the last call, by reason."""
        taken = Counter(self._tasks.take_skipped()) + self._left_out
        self._left_out = Counter()
        return dict(taken)


class CandidateSolver:
    """Has the model solve problems, and chooses a solution to each, a right and a wrong one equally often as far as
    there are both."""

    def __init__(
        self, solver: PolicySolver, attempt_reader: AttemptReader, weights: Callable[[], AbstractContextManager[object]]
    ) -> None:
        """`weights` returns a context in which the model has a solver's weights. `attempt_reader` makes dry runs."""
        self._solver, self._attempt_reader, self._weights = solver, attempt_reader, weights
        self._left_out: Counter[str] = Counter()

    def solve(
        self, problems: Sequence[ReferenceProblem], questions: Sequence[str] = ()
    ) -> list[tuple[ReferenceProblem, RolloutGroup]]:
        """Returns each problem with the model's solutions, also where other `questions` than the problems' are asked;
        problems whose prompts are too long are left out."""
        asked = questions or [one.task.question for one in problems]
        tasks = [replace(one.task, question=question) for one, question in zip(problems, asked, strict=True)]
        by_task = {id(task): one for task, one in zip(tasks, problems, strict=True)}
        with self._weights():
            groups = self._solver.solve(tasks, policy_version=0)
        solved = [(by_task[id(group.task)], group) for group in groups]
        return [(problem, replace(group, task=problem.task)) for problem, group in solved]

    def judge(self, solved: Sequence[tuple[ReferenceProblem, RolloutGroup]]) -> list[JudgedAttempts]:
        """Returns the solutions with their verdicts. Raises WorkerError."""
        return [
            JudgedAttempts(problem=problem, group=group, verdicts=tuple(proven(self._attempt_reader, group)))
            for problem, group in solved
        ]

    def choose(self, attempted: Sequence[JudgedAttempts], seed: str) -> list[Exercise]:
        """Returns an exercise for each problem that has a solution with a known verdict. Equal seeds choose alike."""
        rng, found = random.Random(seed), []
        for one in attempted:
            wants_right = rng.random() < 0.5
            known = known_verdicts(one)
            if not known:
                self._left_out["no_candidate"] += 1
                continue
            wanted = [code for code, is_right in known.items() if is_right is wants_right] or list(known)
            candidate = rng.choice(wanted)
            wrong = tuple(code for code, is_right in known.items() if not is_right)
            found.append(Exercise(problem=one.problem, candidate=candidate, is_right=known[candidate], wrong=wrong))
        return found

    def take_left_out(self) -> dict[str, int]:
        """Returns the numbers of problems left out since the last call, by reason."""
        taken = Counter(self._solver.take_skipped()) + self._left_out
        self._left_out = Counter()
        return dict(taken)


def known_verdicts(attempted: JudgedAttempts) -> dict[str, bool]:
    """Returns whether they are right for the different solutions of which that is known."""
    codes = [prompt.parse(rollout.text) for rollout in attempted.group.rollouts]
    return {code: right for code, right in zip(codes, attempted.verdicts, strict=True) if code and right is not None}

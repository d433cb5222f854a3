"""Gives problems tests by a test writer, chosen by the problem's own solution and by attempts at it.

    Proposal ─► solve ─attempts─► cases about each ─► try: dry runs of solution and attempts ─► Proposal

Nothing is executed. A case is valid if the solution passes it, and discriminating if an attempt fails it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

from codezero.loop import StageClock
from codezero.policy.solver import PolicySolver
from codezero.ports import Progress
from codezero.prompts import solver as prompt
from codezero.prompts.proposer import MAX_TESTS
from codezero.proposals import Proposal, WriterReport
from codezero.proposer import jobs
from codezero.tasks.proposed import to_task
from codezero.types import CaseOutcome, Task, TaskOrigin
from codezero.verifier.jobs import ask_to_try
from codezero.verifier.write import CaseWriter, Subject
from codezero.workers import Death, Workers

Weights = Callable[[], AbstractContextManager[object]]


@dataclass(frozen=True, slots=True)
class _Valid:
    """A case that the solution passes."""

    input: int
    """The number of its input, the same for inputs of equal values."""
    discriminates: bool


class WrittenTests:
    """Has a solver attempt problems, and a test writer write one answer of cases about each attempt."""

    def __init__(
        self,
        solver: PolicySolver,
        writer: CaseWriter,
        workers: Workers,
        *,
        solver_weights: Weights,
        writer_weights: Weights,
        follow: Callable[[], int],
        progress: Progress,
    ) -> None:
        """`solver_weights` and `writer_weights` return contexts in which the model is the solver or the test writer;
        `writer` writes one answer. `follow` takes over what the test writer has learnt since, and returns the number
        of its batch, 0 before the first one."""
        self._solver, self._writer, self._workers, self._progress = solver, writer, workers, progress
        self._solver_weights, self._writer_weights, self._follow = solver_weights, writer_weights, follow

    def give(
        self, problems: Sequence[tuple[Proposal, str]], clock: StageClock
    ) -> tuple[list[Proposal], WriterReport | None]:
        """Returns the proposals, given with their solutions, with the tests to publish; with their own ones and no
        report before the test writer's first batch. Raises WorkerError; CheckpointError: there is another test writer
        now; RolloutError: the accelerator's memory is too small."""
        batch = self._follow()
        if batch == 0:
            return [proposal for proposal, _ in problems], None
        tasks = [to_task(proposal, show_all_tests=False) for proposal, _ in problems]
        with clock.stage("solve"):
            attempts = self._attempts(tasks)
        with clock.stage("cases"):
            cases = self._cases(tasks, attempts)
        tested, num_valid, discriminating = [], 0, []
        with clock.stage("try"):
            for number, (proposal, solution) in enumerate(problems):
                self._progress("try", number, len(problems))
                valid = self._valid(proposal, cases[number], (solution, *attempts[number]))
                tests = self._chosen(proposal, valid)
                tested.append(replace(proposal, tests="\n".join(tests)))
                num_valid += sum(case in valid for case in cases[number])
                discriminating.append(sum(test in valid and valid[test].discriminates for test in tests))
        return tested, WriterReport(
            num_problems=len(problems),
            num_cases=sum(map(len, cases)),
            num_valid=num_valid,
            num_with_one=sum(count >= 1 for count in discriminating),
            num_with_three=sum(count >= 3 for count in discriminating),
            batch=batch,
        )

    def _attempts(self, tasks: Sequence[Task]) -> list[list[str]]:
        """Returns the attempts at each problem that have code; none if its prompt is too long."""
        with self._solver_weights():
            groups = {group.task: group for group in self._solver.solve(tasks, policy_version=0)}
        texts = ([one.text for one in groups[task].rollouts] if task in groups else [] for task in tasks)
        return [[code for code in map(prompt.parse, some) if code] for some in texts]

    def _cases(self, tasks: Sequence[Task], attempts: Sequence[Sequence[str]]) -> list[list[str]]:
        """Returns the different cases of the answers about the attempts at each problem."""
        subjects = []
        for task, codes in zip(tasks, attempts, strict=True):
            tried = ask_to_try(self._workers, task, (), ())
            function = "" if isinstance(tried, Death) else tried.function
            subjects.append([Subject(problem=task.question, code=one, function=function) for one in codes if function])
        with self._writer_weights():
            answers = iter(self._writer.write([one for some in subjects for one in some]))
        return [
            list(dict.fromkeys(case for _ in some for answer in next(answers) for case in answer.cases))
            for some in subjects
        ]

    def _valid(self, proposal: Proposal, written: Sequence[str], programs: Sequence[str]) -> dict[str, _Valid]:
        """Returns the valid ones of the written cases and, after them, of the proposal's own tests in that form. The
        first program is the solution; attempts that do not parse disagree with nothing. Where a text ends the worker
        there are none."""
        cases = list(dict.fromkeys((*written, *proposal.tests.split("\n"))))
        # A question that shows no test, so that inputs of its own tests count too.
        without_shown_tests = Task(origin=TaskOrigin.PROPOSER, question=proposal.question, tests=proposal.tests)
        tried = ask_to_try(self._workers, without_shown_tests, cases, list(dict.fromkeys(programs)))
        if isinstance(tried, Death):
            return {}
        solution, *others = tried.programs
        attempts = [one for one in others if one.digest]
        usable = [case for case, is_usable in zip(cases, tried.usable, strict=True) if is_usable]
        return {
            case: _Valid(tried.inputs[number], any(one.cases[number] is CaseOutcome.FAIL for one in attempts))
            for number, case in enumerate(usable)
            if solution.cases[number] is CaseOutcome.PASS
        }

    def _chosen(self, proposal: Proposal, valid: dict[str, _Valid]) -> list[str]:
        """Returns up to `MAX_TESTS` tests of different inputs that together pass the checks of a problem: the first of
        its own, since solvers are shown it and attempts were, then discriminating ones, then others."""
        own = proposal.tests.split("\n")
        ranked = sorted(valid, key=lambda case: not valid[case].discriminates)
        left = list(dict.fromkeys((own[0], *ranked, *own)))
        tests: list[str] = []
        inputs: set[int] = set()
        while left and len(tests) < MAX_TESTS:
            left = [one for one in left if one not in valid or valid[one].input not in inputs]
            test = next((one for one in left if self._fit(proposal.question, [*tests, one])), None)
            if test is None:
                break
            # The others are asked again: two with one result are refused until a test has another.
            tests.append(test)
            left.remove(test)
            if test in valid:
                inputs.add(valid[test].input)
        return tests

    def _fit(self, question: str, tests: Sequence[str]) -> bool:
        return jobs.why_not(self._workers, question, "\n".join(tests)) is None

    def state_dict(self) -> dict[str, Any]:
        return {"solver": self._solver.state_dict(), "writer": self._writer.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._solver.load_state_dict(state["solver"])
        self._writer.load_state_dict(state["writer"])

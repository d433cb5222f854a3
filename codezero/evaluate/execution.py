"""Reward by execution (RLVR): runs a solution's tests in the sandbox and asks no model.

The only module of a round that runs code. It is imported only if `evaluator.backend=execution` is set.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from codezero.config import EvaluatorConfig
from codezero.errors import EvaluatorError, SandboxError
from codezero.evaluate.judge import Opinion, Submission
from codezero.sandbox.run import isolation, run_many
from codezero.tasks.testcases import read_tests
from codezero.tasks.withheld import ProblemOf, task_alone
from codezero.types import CaseOutcome, CaseResult
from codezero.workers import Workers


class ExecutionJudge:
    """A judge (evaluate.judge.Judge) that runs the tests: p_correct is 1.0 if all passed, 0.0 if one failed."""

    def __init__(self, config: EvaluatorConfig, workers: Workers, problem_of: ProblemOf = task_alone) -> None:
        """`workers` parse tests; `problem_of` returns the hidden tests of a task.

        Raises EvaluatorError: this machine has no sandbox at all.
        """
        self._config, self._workers, self._problem_of = config, workers, problem_of
        try:
            self._isolation = isolation()
        except SandboxError as error:
            raise EvaluatorError(f"evaluator.backend=execution is impossible here: {error}") from error

    def warning(self) -> str:
        """Returns the warning that the node logs at every start with this backend."""
        whose = "own and other nodes' solutions" if self._config.execute_external else "own solutions"
        return (
            f"evaluator.backend=execution RUNS {whose} on this machine; protections: {self._isolation}. "
            "evaluator.backend=auto runs nothing"
        )

    def judge(self, solutions: Sequence[Submission]) -> list[Opinion]:
        """Returns opinions in the order of `solutions`, from one sandbox per core at a time. Raises EvaluatorError:
        the sandbox fails, or some code comes from another node, and running such code is not allowed."""
        if any(solution.external for solution in solutions) and not self._config.execute_external:
            raise EvaluatorError(
                "code of other nodes is not run: set evaluator.execute_external=true if you want this machine to run it"
            )
        tasks = [solution.task for solution in solutions]
        suites = [read_tests(self._workers, task.tests + self._problem_of(task).more_tests) for task in tasks]
        codes = [solution.code for solution in solutions]
        try:
            found = list(run_many(zip(codes, suites, strict=True)))
        except SandboxError as error:
            raise EvaluatorError(str(error)) from error
        return [opinion(execution.cases) for execution in found]


def opinion(cases: Sequence[CaseResult]) -> Opinion:
    """Returns an opinion of 1.0 if all cases passed, 0.0 if one failed; None without cases, or if none failed and some
    are unknown."""
    counts = Counter(case.outcome for case in cases)
    first = next((case.reason for case in cases if case.outcome is not CaseOutcome.PASS), "")
    reply = f"passed {counts[CaseOutcome.PASS]} of {len(cases)} tests" + (f": {first}" if first else "")
    if counts[CaseOutcome.FAIL]:
        return Opinion(p_correct=0.0, reply=reply)
    if not cases or counts[CaseOutcome.UNKNOWN]:
        return Opinion(p_correct=None, reply=reply)
    return Opinion(p_correct=1.0, reply=reply)

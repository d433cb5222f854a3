"""Reward by execution (RLVR): a solution's tests are run, in the sandbox, and no model is asked.

The only module of a round that runs code. It is imported when `evaluator.backend=execution` is set, never before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from codezero.config import EvaluatorConfig
from codezero.errors import EvaluatorError, SandboxError
from codezero.evaluate.judge import Opinion, Submission
from codezero.sandbox.run import Limits, isolation, run_many
from codezero.tasks.testcases import read_tests
from codezero.types import CaseOutcome, CaseResult, Task
from codezero.workers import Workers


class ExecutionJudge:
    """evaluate.judge.Judge: p_correct is 1.0 when every test has passed, 0.0 when one has failed."""

    def __init__(
        self,
        config: EvaluatorConfig,
        workers: Workers,
        limits: Limits = Limits(),  # noqa: B008
        more_tests: Callable[[Task], str] = lambda task: "",
    ) -> None:
        """`workers` take tests apart; `more_tests` are known of a task beside those that it has.

        Raises EvaluatorError: this machine has no sandbox at all.
        """
        self._config, self._workers, self._limits, self._more_tests = config, workers, limits, more_tests
        try:
            self._isolation = isolation()
        except SandboxError as error:
            raise EvaluatorError(f"evaluator.backend=execution is impossible here: {error}") from error

    def warning(self) -> str:
        """What whoever set this backend should read at every start."""
        whose = "own and other nodes' solutions" if self._config.execute_external else "own solutions"
        return (
            f"evaluator.backend=execution RUNS {whose} on this machine; protections: {self._isolation.line()}. "
            "evaluator.backend=auto runs nothing"
        )

    def permit(self, external: bool) -> None:
        """Raises EvaluatorError: the code comes from another node, and running that has not been allowed."""
        if external and not self._config.execute_external:
            raise EvaluatorError(
                "code of other nodes is not run: set evaluator.execute_external=true if you want this machine to run it"
            )

    def judge(self, solutions: Sequence[Submission]) -> list[Opinion]:
        """Opinions in the order of `solutions`, one sandbox a core at a time. Raises EvaluatorError.

        Asks nobody's permission: see `permit`.
        """
        tasks = [solution.task for solution in solutions]
        suites = [read_tests(self._workers, task.tests + self._more_tests(task)) for task in tasks]
        codes = [solution.code for solution in solutions]
        try:
            found = list(run_many(zip(codes, suites, strict=True), self._limits))
        except SandboxError as error:
            raise EvaluatorError(str(error)) from error
        return [opinion(execution.cases) for execution in found]


def opinion(cases: Sequence[CaseResult]) -> Opinion:
    """1.0 when all cases passed, 0.0 when one failed; no verdict without cases or when the rest could not be told."""
    counts = {outcome: sum(case.outcome is outcome for case in cases) for outcome in CaseOutcome}
    first = next((case.reason for case in cases if case.outcome is not CaseOutcome.PASS), "")
    reply = f"passed {counts[CaseOutcome.PASS]} of {len(cases)} tests" + (f": {first}" if first else "")
    if counts[CaseOutcome.FAIL]:
        return Opinion(p_correct=0.0, reply=reply)
    if not cases or counts[CaseOutcome.UNKNOWN]:
        return Opinion(p_correct=None, reply=reply)
    return Opinion(p_correct=1.0, reply=reply)

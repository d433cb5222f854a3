"""Chooses the best of several solutions to a problem, without executing any."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from codezero.harness.problems import BenchProblem
from codezero.llm.load import LoadedModel
from codezero.llm.sample import StepCallback
from codezero.prompts import solver as prompt
from codezero.types import Rollout
from codezero.verifier.choose import Ranks, ranks
from codezero.verifier.jobs import TRY_CASES, Trial, Tried
from codezero.verifier.write import Subject, write_cases
from codezero.workers import Death, Workers

SECONDS = 4.0
"""Processor seconds for the dry runs of a solution; they end at the latest after those of all solutions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """A solution's ranks, and the test cases that were written with a look at it."""

    ranks: Ranks
    cases: tuple[str, ...] = ()


class Chooser:
    """Ranks solutions, also by test cases that `writer` writes, if it is given."""

    def __init__(self, workers: Workers, writer: LoadedModel | None, *, temperature: float) -> None:
        self._workers, self._writer, self._temperature = workers, writer, temperature

    def rank(
        self, problem: BenchProblem, answers: Sequence[Rollout], seed: int, on_step: StepCallback | None = None
    ) -> list[Ranked]:
        """Returns what each answer is ranked by; one without code has no ranks and is the worst. Raises WorkerError."""
        codes = [prompt.parse(answer.text) for answer in answers]
        programs = tuple(problem.prelude + code for code in codes if code)
        tried = self._try(problem, programs, ())
        cases: list[tuple[str, ...]] = [()] * len(programs)
        if self._writer is not None and tried is not None and tried.function:
            text = problem.task.question
            cases = write_cases(
                self._writer,
                [Subject(problem=text, code=code, function=tried.function) for code in codes if code],
                temperature=self._temperature,
                generator=torch.Generator(device=self._writer.model.device).manual_seed(seed),
                on_step=on_step,
            )
            tried = self._try(problem, programs, tuple(dict.fromkeys(case for some in cases for case in some)))
        found = ranks(tried, by_tests=self._writer is not None) if tried is not None else [{}] * len(programs)
        ranked = (Ranked(ranks=one, cases=written) for one, written in zip(found, cases, strict=True))
        return [next(ranked) if code else Ranked(ranks={}) for code in codes]

    def _try(self, problem: BenchProblem, programs: tuple[str, ...], cases: tuple[str, ...]) -> Tried | None:
        """Returns the results of the dry runs; None if these texts end the worker."""
        task, seconds = problem.task, SECONDS * max(len(programs), 1)
        trial = Trial(
            origin=task.origin,
            tests=task.tests,
            shown=prompt.shown_of(task.question, task.tests),
            cases=cases,
            programs=programs,
            seconds=seconds,
        )
        tried = self._workers.ask(TRY_CASES, trial, seconds + SECONDS)
        return None if isinstance(tried, Death) else tried

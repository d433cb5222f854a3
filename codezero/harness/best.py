"""Chooses the best of several solutions to a problem, without executing any."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
        self, solved: Sequence[tuple[BenchProblem, Sequence[Rollout]]], seed: int, on_step: StepCallback | None = None
    ) -> list[list[Ranked]]:
        """Returns what each answer to each problem is ranked by; one without code has no ranks and is the worst. Raises
        WorkerError."""
        read = [(problem, [prompt.parse(answer.text) for answer in answers]) for problem, answers in solved]
        programs = [tuple(problem.prelude + code for code in codes if code) for problem, codes in read]
        tried = [self._try(problem, found, ()) for (problem, _), found in zip(read, programs, strict=True)]
        written = self._written([(*one, found) for one, found in zip(read, tried, strict=True)], seed, on_step)
        ranked = []
        for (problem, codes), found, first, cases in zip(read, programs, tried, written, strict=True):
            distinct = tuple(dict.fromkeys(case for some in cases for case in some))
            second = self._try(problem, found, distinct) if distinct else first
            all_ranks = ranks(second, by_tests=self._writer is not None) if second else [{}] * len(found)
            each = (Ranked(ranks=one, cases=some) for one, some in zip(all_ranks, cases, strict=True))
            ranked.append([next(each) if code else Ranked(ranks={}) for code in codes])
        return ranked

    def _written(
        self,
        read: Sequence[tuple[BenchProblem, Sequence[str | None], Tried | None]],
        seed: int,
        on_step: StepCallback | None,
    ) -> list[list[tuple[str, ...]]]:
        """Returns the cases that were written for each solution with code, by problem."""
        asked = [
            [
                Subject(problem=problem.task.question, code=code, function=tried.function)
                for code in codes
                if code and self._writer is not None and tried is not None and tried.function
            ]
            for problem, codes, tried in read
        ]
        found: Iterator[tuple[str, ...]] = iter(())
        if self._writer is not None:
            generator = torch.Generator(device=self._writer.model.device).manual_seed(seed)
            subjects = [one for some in asked for one in some]
            found = iter(
                write_cases(self._writer, subjects, temperature=self._temperature, generator=generator, on_step=on_step)
            )
        return [
            [next(found) for _ in some] if some else [()] * sum(map(bool, codes))
            for some, (_, codes, _) in zip(asked, read, strict=True)
        ]

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

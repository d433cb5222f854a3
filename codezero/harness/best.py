"""Chooses the best of several solutions to a problem, without executing any."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from codezero.harness.problems import BenchProblem, with_prelude
from codezero.llm.load import LoadedModel
from codezero.llm.sample import SampleGroups, StepCallback, sample_groups
from codezero.prompts import solver as prompt
from codezero.types import Rollout
from codezero.verifier.choose import Ranks, ranks
from codezero.verifier.jobs import Tried, ask_to_try
from codezero.verifier.write import Subject, write_cases
from codezero.workers import Death, Workers

NUM_INPUTS = 16
"""The most inputs on which solutions are compared for `agreement`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """A solution's ranks. Where test cases were written, as many answers as solutions were asked for, each with the
    same solution in its prompt."""

    ranks: Ranks
    written: tuple[str, ...] = ()
    """The cases of the answer with the solution's number."""
    in_prompt: bool = False


@dataclass(slots=True)
class _Read:
    """A problem and the solutions to it."""

    problem: BenchProblem
    codes: tuple[str | None, ...]
    tried: Tried | None = None
    cases: list[tuple[str, ...]] = field(default_factory=list)
    in_prompt: int | None = None

    @property
    def numbers(self) -> list[int]:
        """The numbers of the solutions with code."""
        return [number for number, code in enumerate(self.codes) if code]

    @property
    def programs(self) -> tuple[str, ...]:
        return tuple(with_prelude(self.problem.prelude, code) for code in self.codes if code)


def rank_solutions(
    solved: Sequence[tuple[BenchProblem, Sequence[Rollout]]],
    workers: Workers,
    writer: LoadedModel | None,
    seed: int,
    *,
    temperature: float,
    sample: SampleGroups = sample_groups,
    on_step: StepCallback | None = None,
) -> list[list[Ranked]]:
    """Returns what each answer to each problem is ranked by, also by test cases that `writer` writes, if it is given;
    an answer without code has no ranks and is the worst. Raises WorkerError."""
    parsed = [[prompt.parse(answer.text) for answer in answers] for _, answers in solved]
    read = [_Read(problem, tuple(codes)) for (problem, _), codes in zip(solved, parsed, strict=True)]
    for one in read:
        one.tried = _try(workers, one, ())
    if writer is not None:
        asked, subjects = _subjects(read)
        answers = write_cases(
            writer,
            subjects,
            max((len(one.codes) for one in read), default=0),
            temperature=temperature,
            generator=torch.Generator(device=writer.model.device).manual_seed(seed),
            sample=sample,
            on_step=on_step,
        )
        for one, some in zip(asked, answers, strict=True):
            one.cases = [answer.cases for answer in some]
            written = tuple(dict.fromkeys(case for each in some for case in each.cases))
            one.tried = _try(workers, one, written) or one.tried  # cases that end the worker count as none
    return [_ranked(one, by_tests=writer is not None) for one in read]


def _subjects(read: Sequence[_Read]) -> tuple[list[_Read], list[Subject]]:
    """Returns the problems of functions, and what cases are written for: each with the solution that most others agree
    with, whose number is kept."""
    asked = [one for one in read if one.tried is not None and one.tried.function and one.programs]
    subjects = []
    for one in asked:
        assert one.tried is not None
        agreed = [found["agreement"] for found in ranks(one.tried, by_tests=False)]
        one.in_prompt = one.numbers[agreed.index(max(agreed))]
        code = one.codes[one.in_prompt] or ""
        subjects.append(Subject(problem=one.problem.task.question, code=code, function=one.tried.function))
    return asked, subjects


def _ranked(read: _Read, by_tests: bool) -> list[Ranked]:
    found = ranks(read.tried, by_tests=by_tests) if read.tried else [{}] * len(read.numbers)
    by_number = dict(zip(read.numbers, found, strict=True))
    cases = read.cases or [()] * len(read.codes)
    return [
        Ranked(ranks=by_number.get(number, {}), written=some, in_prompt=number == read.in_prompt)
        for number, some in enumerate(cases)
    ]


def _try(workers: Workers, read: _Read, cases: tuple[str, ...]) -> Tried | None:
    """Returns the results of the dry runs; None if these texts end the worker."""
    tried = ask_to_try(workers, read.problem.task, cases, read.programs, NUM_INPUTS)
    return None if isinstance(tried, Death) else tried

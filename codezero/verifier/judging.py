"""Judges answers of test cases: workers try them on the reference solution and on the candidates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from codezero.verifier.exercises import Exercise
from codezero.verifier.jobs import ask_to_try
from codezero.verifier.reward import CaseResults, JudgedAnswer, judge
from codezero.verifier.write import CaseAnswer
from codezero.workers import Death, Workers

_NONE = CaseResults(inputs=(), reference=(), candidate=(), wrong=())
"""The results of cases that bring down what reads them: none of them is usable."""


@dataclass(frozen=True, slots=True)
class Answered:
    """An exercise with the answers about it, and their judgement."""

    exercise: Exercise
    answers: Sequence[CaseAnswer]
    judged: Sequence[JudgedAnswer | None]


def judge_answers(
    workers: Workers, exercise: Exercise, answers: Sequence[tuple[str, ...]]
) -> list[JudgedAnswer | None]:
    """Returns the judgement of each answer's cases; None if it is not known. Raises WorkerError.

    Each answer has dry runs of its own, so that its cases can neither take the time of another answer's nor end them.
    """
    found: dict[tuple[str, ...], JudgedAnswer | None] = {}
    for cases in answers:
        if cases not in found:
            results = _results(workers, exercise, cases)
            found[cases] = None if results is None else judge(results, exercise.is_right)
    return [found[cases] for cases in answers]


def _results(workers: Workers, exercise: Exercise, cases: tuple[str, ...]) -> CaseResults | None:
    """Returns the results of an answer's cases; None if the worker died of something else."""
    programs = tuple(dict.fromkeys((exercise.problem.reference, exercise.candidate, *exercise.wrong)))
    tried = ask_to_try(workers, exercise.problem.task, cases, programs)
    if isinstance(tried, Death):
        if not tried.is_jobs_fault or isinstance(ask_to_try(workers, exercise.problem.task, (), programs), Death):
            return None  # a busy machine, or a program that ends the worker without any case
        return _NONE
    outcomes = {code: one.cases for code, one in zip(programs, tried.programs, strict=True)}
    return CaseResults(
        inputs=tried.inputs,
        reference=outcomes[exercise.problem.reference],
        candidate=outcomes[exercise.candidate],
        wrong=[outcomes[code] for code in exercise.wrong],
    )

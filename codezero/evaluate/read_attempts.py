"""Reads attempts at a task in a worker process: applies the rules, makes dry runs, and prepares what the judge sees."""

from __future__ import annotations

import dataclasses
import importlib
import time
from collections.abc import Collection, Sequence
from contextlib import suppress

from msgspec.structs import replace

from codezero.evaluate.copies import program_of
from codezero.evaluate.dryrun import budget_of, dry_run, share_of
from codezero.evaluate.fresh.draw import MIN_ASKED, NONE, draw, form_and_inputs
from codezero.evaluate.fresh.memorised import function_memorises, program_memorises
from codezero.evaluate.fresh.results import results_of
from codezero.evaluate.jobs import MAX_REASONS, Attempt, AttemptRead, ReadReply, ReadRequest, p_by_fresh
from codezero.evaluate.rules import breaks_fatal
from codezero.evaluate.rules.check import check
from codezero.evaluate.rules.solution import Requirements, requirements_of
from codezero.evaluate.shown import show_code, show_task
from codezero.tasks.testcases import TestSuite, parse_tests
from codezero.types import CaseResult, FreshCases, Memorised, Task

FRESH_SHARE = 0.25
"""The share of the time for dry runs that is kept for fresh tests, so that slow attempts do not avoid them."""


def read_attempts(request: ReadRequest) -> ReadReply:
    """Returns the results of reading the attempts. Dry runs end when `dry_run_s` is used up."""
    if request.environment:
        return _score(request)
    task = Task(origin=request.origin, question=request.question, tests=request.tests)
    suite = parse_tests(task.tests)
    requirements = requirements_of(task.origin, suite)
    ends_s = time.process_time() + request.dry_run_s
    for_fresh_s = FRESH_SHARE * request.dry_run_s if request.num_fresh else 0.0
    if not request.attempts and request.dry_run:
        _dry_run(_stub(requirements), suite, request.dry_run_s)
    found = []
    for number, attempt in enumerate(request.attempts):
        dry_run_s = share_of(ends_s - for_fresh_s - time.process_time(), len(request.attempts) - number)
        found.append(_read(request, task, suite, requirements, attempt, dry_run_s))
    found = _with_fresh(request, suite, requirements, found, ends_s)
    open_ones = [i for i, one in enumerate(found) if request.show and one.settled(request.fatal_rules) is None]
    if not open_ones:
        return ReadReply(attempts=tuple(found))
    shown = show_task(task, requirements)
    for number in open_ones:
        with suppress(ValueError):  # raised for a program that cannot be printed, which the judge gets unchanged
            found[number] = replace(found[number], shown=show_code(shown, request.attempts[number].code))
    return ReadReply(question=shown.question, tests=shown.tests, attempts=tuple(found))


def _score(request: ReadRequest) -> ReadReply:
    """Returns the scores of an environment, whose module was imported when the worker started. Raises ValueError: one
    is not in 0..1."""
    rule = importlib.import_module(request.environment).score
    scores = [float(rule(request.question, request.tests, attempt.text)) for attempt in request.attempts]
    if not all(0 <= score <= 1 for score in scores):
        raise ValueError(f"scores {scores} are not in 0..1")
    return ReadReply(attempts=tuple(AttemptRead(rules={}, reasons={}, score=score) for score in scores))


def _with_fresh(
    request: ReadRequest, suite: TestSuite, requirements: Requirements, found: Sequence[AttemptRead], ends_s: float
) -> list[AttemptRead]:
    """Returns the findings, with the results of fresh tests for attempts that pass the visible ones. Tests are drawn
    only if an attempt passes, or, to make a dry run of the reference, if there are no attempts. Programs, and functions
    whose reference gives no fresh tests, get a dry run with other inputs if hidden tests do not tell.

    Whether an attempt holds the answers is UNKNOWN

    - if the tests show no result of a function, as with helpers: a table of answers could not be found then;
    - if the reference gives one result for all inputs, or few fresh tests;
    - for a small table also if all fresh tests have one result, which may be its default.
    """
    passing = [number for number, one in enumerate(found) if one.settled(request.fatal_rules)]
    if not request.dry_run or not request.num_fresh or not (passing or not request.attempts):
        return list(found)
    functions = requirements.functions
    if not suite.examples and not requirements.pairs and form_and_inputs(suite, functions) is None:
        unknown = FreshCases(recalled=Memorised.UNKNOWN, unverified=True)
        return [replace(one, fresh=unknown) if number in passing else one for number, one in enumerate(found)]
    tests = NONE
    if request.reference is not None and not suite.examples:
        half_s = (ends_s - time.process_time()) / 2
        tests = draw(suite, functions, request.reference, seed=request.seed, count=request.num_fresh, seconds=half_s)
    if tests.asked:
        programs = [(request.attempts[number].code, found[number].program) for number in passing]
        reference = program_of(request.reference or "", requirements.wanted)
        told = dict(zip(passing, results_of(programs, tests, reference, ends_s - time.process_time()), strict=True))
        for number, one in told.items():
            is_small = found[number].has_small_table and not tests.varied
            is_unknown = is_small or tests.one_result or len(tests.asked) < min(MIN_ASKED, request.num_fresh)
            if is_unknown and p_by_fresh(one) is None:
                told[number] = dataclasses.replace(one, recalled=Memorised.UNKNOWN)
    elif len({one.expected.strip() for one in parse_tests(request.more_tests).examples}) > 1:
        told = {}  # a program that prints one answer to all but the examples fails a hidden test
    else:
        told = _memorised_by(request, suite, functions, passing, ends_s)
    return [replace(one, fresh=told.get(number, one.fresh)) for number, one in enumerate(found)]


def _memorised_by(
    request: ReadRequest, suite: TestSuite, functions: Collection[str], passing: Sequence[int], ends_s: float
) -> dict[int, FreshCases]:
    """Returns, for attempts that only visible tests show to be right, whether they seem to contain the answers."""
    found: dict[int, FreshCases] = {}
    for left, number in zip(range(len(passing), 0, -1), passing, strict=True):
        code, seconds = request.attempts[number].code, (ends_s - time.process_time()) / left
        if suite.examples:
            memorised = program_memorises(code, suite.examples, request.question, request.seed, seconds)
        else:
            seed, count = request.seed, request.num_fresh
            memorised = function_memorises(code, suite, functions, seed=seed, count=count, seconds=seconds)
        found[number] = FreshCases(recalled=memorised, unverified=True)
    return found


def _read(
    request: ReadRequest, task: Task, suite: TestSuite, requirements: Requirements, attempt: Attempt, dry_run_s: float
) -> AttemptRead:
    checked = check(attempt.code, attempt.text, task, requirements)
    found = AttemptRead(
        rules={name: one.score for name, one in checked.items()},
        reasons={name: one.reason for name, one in checked.items() if one.reason},
        program=program_of(attempt.code, requirements.wanted),
        is_program=requirements.is_program,
    )
    if not request.dry_run or (request.fatal_rules and breaks_fatal(found.rules)):
        return found
    whole = dataclasses.replace(suite, examples=suite.examples + parse_tests(request.more_tests).examples)
    return replace(found, cases=_dry_run(attempt.code, whole, dry_run_s))


def _dry_run(code: str, suite: TestSuite, dry_run_s: float) -> tuple[CaseResult, ...]:
    budget = budget_of(suite)
    results = dry_run(code, suite, dataclasses.replace(budget, total_seconds=min(budget.total_seconds, dry_run_s)))
    return tuple(one if i < MAX_REASONS else dataclasses.replace(one, reason="") for i, one in enumerate(results))


def _stub(requirements: Requirements) -> str:
    """Returns functions with the names that the tests call, which do nothing: a dry run with them covers the tests
    alone."""
    return "\n".join(f"def {name}(*args, **kwargs): return 0" for name in requirements.functions)

"""Makes dry runs of attempts over fresh tests, and compares the attempts on a test that one fails."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from time import process_time

from codezero.evaluate.dryrun import Budget, dry_run, share_of, until
from codezero.evaluate.dryrun.budget import OUT_OF_STEPS
from codezero.evaluate.fresh.draw import FreshTests, values_of
from codezero.evaluate.jobs import ProgramPrint
from codezero.types import CaseOutcome, FreshCases

Program = tuple[str, ProgramPrint | None]
"""An attempt's source, and its fingerprint, which is the same for copies."""
MIN_SHARE = 0.5
"""The least share of fresh tests that an attempt must pass to count against the reference, since tables of answers
agree with each other too."""


def results_of(
    programs: Sequence[Program], tests: FreshTests, reference: ProgramPrint | None, seconds: float
) -> list[FreshCases]:
    """Returns the results of fresh tests for each attempt, in order. Copies of one program count as one. Copies of the
    reference, which a model may have memorised, do not count as evidence that its results are right."""
    ends = process_time() + seconds
    outcomes, slow = [], []
    for number, (code, _) in enumerate(programs):
        share_s = share_of(ends - process_time(), len(programs) - number)
        budget = Budget(total_seconds=min(Budget().total_seconds, share_s))
        cases = dry_run(code, tests.suite, budget, alone=False)  # a program that counts its calls knows no answers
        slow.append({i for i, one in enumerate(cases) if one.reason == OUT_OF_STEPS})
        outcomes.append(tuple(CaseOutcome.FAIL if i in slow[-1] else one.outcome for i, one in enumerate(cases)))
    others = [(one, found) for one, found in zip(programs, outcomes, strict=True) if one[1] != reference]
    left_out = {i for i in range(len(tests.asked)) if _is_disputed(i, others, tests, ends)}
    passing = [{program for (_, program), found in others if found[i] is _PASS} for i in range(len(tests.asked))]
    counts = [_counts(found, passing, left_out, its_slow) for found, its_slow in zip(outcomes, slow, strict=True)]
    return [
        replace(one, constant=bool(one.doubtful) and _is_constant(code, tests, ends))
        for one, (code, _) in zip(counts, programs, strict=True)
    ]


_PASS = CaseOutcome.PASS


def _counts(
    found: Sequence[CaseOutcome], passing: Sequence[set[ProgramPrint | None]], left_out: set[int], slow: set[int]
) -> FreshCases:
    """Returns the counts of an attempt. Its failure is doubtful in a test that no other attempt passes, and in one of
    the `slow` ones on which its steps ran out, since executing it might take a moment only."""
    passing = [set() if i in slow else others for i, others in enumerate(passing)]
    counted = [(outcome, passing[i]) for i, outcome in enumerate(found) if i not in left_out]
    failed = [others for outcome, others in counted if outcome is CaseOutcome.FAIL]
    return FreshCases(
        drawn=len(found),
        passed=sum(outcome is _PASS for outcome, _ in counted),
        failed=sum(bool(others) for others in failed),
        doubtful=sum(not others for others in failed),
        unknown=sum(outcome is CaseOutcome.UNKNOWN for outcome, _ in counted),
    )


def _is_constant(code: str, tests: FreshTests, ends: float) -> bool:
    """Returns whether an attempt gives one value for all fresh inputs, and the reference does not."""
    if not tests.varied:
        return False
    values = values_of(code, tests.suite, tests.asked, until(ends, len(tests.asked) * Budget().steps))
    # none at all is a run that was cut off
    return bool(values) and len({repr(values.get(asked, _NO_VALUE)) for asked in tests.asked}) == 1


_NO_VALUE = object()
_NO_EVIDENCE = {repr(value) for value in (True, False, _NO_VALUE)}


def _is_disputed(
    number: int, attempts: Sequence[tuple[Program, Sequence[CaseOutcome]]], tests: FreshTests, ends: float
) -> bool:
    """Returns whether all attempts fail the test, and those that pass enough fresh tests (`MIN_SHARE`), at least two
    different ones, give one and the same value: then the problem likely does not allow its input. Truth values dispute
    nothing, since whoever fails gives the other one."""
    if any(found[number] is not CaseOutcome.FAIL for _, found in attempts):
        return False
    voters = {program: code for (code, program), found in attempts if found.count(_PASS) >= MIN_SHARE * len(found)}
    if len(voters) < 2:
        return False
    asked = tests.asked[number]
    given = [values_of(code, tests.suite, [asked], until(ends)) for code in voters.values()]
    found = {repr(values.get(asked, _NO_VALUE)) for values in given}
    return len(found) == 1 and not found & _NO_EVIDENCE

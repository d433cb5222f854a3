"""Ranks the solutions to a problem without executing any of them, to choose the best of several."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence

from codezero.types import CaseOutcome
from codezero.verifier.jobs import Tried

Ranks = dict[str, float]
"""The rank of a solution by each way of choosing; solutions with the highest one are equally good choices."""


def ranks(tried: Tried, *, by_tests: bool) -> list[Ranks]:
    """Returns the ranks of each solution.

    `shown`: it passes the tests that the question shows. The others are 0 for solutions that do not, and for those that
    do: `majority`, how many of them are copies of it; `agreement`, how many of them give the same results on inputs
    like the shown ones; `tests`, with `by_tests`, how many of them pass the same written cases, times the number of
    these cases (CodeT, arXiv 2207.10397). A solution without a known result or fingerprint is alike to none
    but itself.
    """
    programs = tried.programs
    passing = [number for number, one in enumerate(programs) if one.passes_shown]
    results = [programs[number].values for number in passing]
    alike = {
        "majority": _num_equal([programs[number].digest for number in passing]),
        "agreement": _num_equal([values if any(values) else () for values in results]),
    }
    if by_tests:
        passed = [tuple(case is CaseOutcome.PASS for case in programs[number].cases) for number in passing]
        both = zip(_num_equal(passed), passed, strict=True)
        alike["tests"] = [num_equal * sum(cases) for num_equal, cases in both]
    found: list[Ranks] = [{"shown": float(one.passes_shown), **dict.fromkeys(alike, 0.0)} for one in programs]
    for way, values in alike.items():
        for number, value in zip(passing, values, strict=True):
            found[number][way] = 1.0 + value  # better than a solution that fails what is shown
    return found


def _num_equal(keys: Sequence[Hashable]) -> list[int]:
    """Returns how many keys are equal to each; an empty one is unknown, and equal to itself only."""
    counts = Counter(keys)
    return [counts[key] if key else 1 for key in keys]

"""The findings of a report in plain sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from codezero.evaluate.gain import Direction
from codezero.views.report.change import MeanChange
from codezero.views.report.summary import RunFacts


def headline(solvers: Sequence[RunFacts]) -> str:
    """Returns one line on whether the solvers learn."""
    if len(solvers) == 1:
        return solvers[0].learning.text.partition(":")[0] + "."
    said = {
        Direction.RISING: "that learn",
        Direction.FALLING: "that got worse",
        Direction.LEVEL: "without a clear change",
        Direction.UNKNOWN: "of which it is too early to tell",
    }
    found = Counter(one.learning.direction for one in solvers)
    return (
        f"Of {len(solvers)} solvers: {', '.join(f'{found[one]} {words}' for one, words in said.items() if found[one])}."
    )


def interval(change: MeanChange) -> str:
    """Returns a difference with its interval, as in +0.12 [+0.03, +0.21]."""
    if change.low is None or change.high is None:
        return signed(change.difference)
    return f"{signed(change.difference)} [{signed(change.low)}, {signed(change.high)}]"


def signed(value: float | None) -> str:
    """Returns a number with two digits and its sign; 0.00 has none."""
    if value is None:
        return "unknown"
    return f"{value:+.2f}" if f"{abs(value):.2f}" != "0.00" else "0.00"

"""The findings of a report in plain sentences."""

from __future__ import annotations

from collections.abc import Sequence

from codezero.views.report.change import MIN_EACH, MeanChange
from codezero.views.report.summary import RunFacts


def headline(solvers: Sequence[RunFacts]) -> str:
    """Whether reward rose, in one line."""
    changes = [one.reward for one in solvers if one.reward is not None]
    if not changes:
        return "No rewards yet: nothing can be said about learning."
    if len(solvers) == 1:
        return {
            "rose": "Reward rose.",
            "fell": "Reward fell.",
            "no clear change": "No clear change of reward.",
            "too few to tell": "Too few rounds to tell whether reward changed.",
        }[changes[0].verdict]
    said = {
        "rose": "reward rose in",
        "fell": "reward fell in",
        "no clear change": "no clear change in",
        "too few to tell": "too few rounds to tell in",
    }
    tally = [
        f"{words} {count}"
        for verdict, words in said.items()
        if (count := sum(change.verdict == verdict for change in changes))
    ]
    return f"Of {len(solvers)} solvers: {', '.join(tally)}."


def sentence(what: str, change: MeanChange | None) -> str:
    """A change with its numbers."""
    if change is None:
        return f"{what}: not known yet."
    thirds = f"{what} was {change.before:.2f} over the first third of its rounds and {change.after:.2f} over the last"
    if change.low is None or change.high is None:
        return f"{thirds}: too few rounds to tell ({3 * MIN_EACH} are needed)."
    verdict = {"rose": "a rise", "fell": "a fall"}.get(change.verdict, "no clear change, since the interval includes 0")
    return f"{thirds}: {interval(change)}, {verdict}."


def interval(change: MeanChange) -> str:
    """A difference with its interval, as in +0.12 [+0.03, +0.21]."""
    if change.low is None or change.high is None:
        return signed(change.difference)
    return f"{signed(change.difference)} [{signed(change.low)}, {signed(change.high)}]"


def signed(value: float | None) -> str:
    """Two digits with their sign; 0.00 has none."""
    if value is None:
        return "unknown"
    return f"{value:+.2f}" if f"{abs(value):.2f}" != "0.00" else "0.00"

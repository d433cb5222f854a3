"""The rewards of a whole swarm in one chart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from codezero.types import RoundReport
from codezero.views.charts import line_chart
from codezero.views.charts.runs import smoothed


def swarm_chart(solvers: Mapping[str, Sequence[RoundReport]]) -> str:
    """Returns a chart of the rewards of several solvers over the rounds of all of them."""
    rounds = sorted({one.round for reports in solvers.values() for one in reports})
    series = {}
    for name, reports in solvers.items():
        means = smoothed(name, [one.reward_mean for one in reports])
        ((_, values),) = means.items()
        at = dict(zip([one.round for one in reports], values, strict=True))
        series[name] = [at.get(number) for number in rounds]
    return line_chart(
        "Reward of each node",
        [float(number) for number in rounds],
        series,
        note="Running means where a node has finished rounds enough; higher is better.",
    )

"""The curves of a run, as charts. A prefix tells the charts of several runs apart on one page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from codezero.charts import line_chart, stacked_bars
from codezero.proposals import LEVELS, BatchReport
from codezero.report.change import running_mean
from codezero.types import RoundReport

GIB = 2**30
SMOOTH_FROM = 20
"""Rounds from which on a running mean is drawn, over a twentieth of them and at least `SMOOTH_LEAST`."""
SMOOTH_LEAST = 5


def solver_charts(reports: Sequence[RoundReport], prefix: str, group_size: int) -> list[str]:
    """Of finished rounds in ascending order; empty without any."""
    if not reports:
        return []
    x = [float(one.round) for one in reports]
    charts = [reward_chart(reports, prefix), pass_chart(reports, prefix, group_size)]
    charts.append(
        stacked_bars(
            f"{prefix}Parts of the reward",
            x,
            _by_name([one.reward_parts for one in reports]),
            note="What the reward is the sum of; the weights are in reward.*.",
        )
    )
    charts.append(
        line_chart(
            f"{prefix}Solutions learnt from",
            x,
            {
                "own groups": [float(one.num_local_groups) for one in reports],
                "of other nodes, judged": [float(one.num_pooled_groups) for one in reports],
                "of other nodes, trained on": [float(one.num_external_groups) for one in reports],
            },
            unit="groups",
            low=0.0,
        )
    )
    charts.append(
        stacked_bars(
            f"{prefix}Time of a round", x, _by_name([one.seconds for one in reports]), unit="s", note="By stage."
        )
    )
    speed: list[float | None] = [one.tokens_per_s if one.num_tokens else None for one in reports]
    charts.append(line_chart(f"{prefix}Speed of writing", x, {"tokens a second": speed}, unit="tok/s", low=0.0))
    memory = [one.peak_rss_bytes / GIB for one in reports]
    charts.append(line_chart(f"{prefix}Peak memory", x, {"peak so far": memory}, unit="GiB", low=0.0))
    judged = [one.judge_score for one in reports]
    if any(score is not None for score in judged):
        charts.append(line_chart(f"{prefix}Score by the judge service", x, {"score": judged}))
    return charts


def reward_chart(reports: Sequence[RoundReport], prefix: str) -> str:
    return line_chart(
        f"{prefix}Reward",
        [float(one.round) for one in reports],
        _with_mean("reward", [one.reward_mean for one in reports]),
        note="Mean over a round's own solutions; higher is better.",
    )


def pass_chart(reports: Sequence[RoundReport], prefix: str, group_size: int) -> str:
    k = str(group_size) if group_size else "k"
    series = {
        f"pass@{k}": [one.pass_at_k for one in reports],
        f"average@{k}": [one.average_at_k for one in reports],
    }
    smooth = {name: mean for name, values in series.items() for name, mean in _only_mean(name, values).items()}
    return line_chart(
        f"{prefix}Tasks solved",
        [float(one.round) for one in reports],
        smooth,
        note=f"Share of tasks with one right solution at least, and share of right solutions, as the evaluator judged "
        f"them.{' Running means.' if len(reports) >= SMOOTH_FROM else ''}",
        low=0.0,
        high=1.0,
    )


def swarm_chart(solvers: Mapping[str, Sequence[RoundReport]]) -> str:
    """The rewards of several solvers over the rounds of all of them."""
    rounds = sorted({one.round for reports in solvers.values() for one in reports})
    series = {}
    for name, reports in solvers.items():
        means = _only_mean(name, [one.reward_mean for one in reports])
        ((_, values),) = means.items()
        at = dict(zip([one.round for one in reports], values, strict=True))
        series[name] = [at.get(number) for number in rounds]
    return line_chart(
        "Reward of each node",
        [float(number) for number in rounds],
        series,
        note="Running means where a node has finished rounds enough; higher is better.",
    )


def proposer_charts(batches: Sequence[BatchReport], prefix: str) -> list[str]:
    """Of finished batches in ascending order; empty without any."""
    if not batches:
        return []
    x = [float(one.batch) for one in batches]
    success: dict[str, list[float | None]] = {
        f"{level} {name}": [one.success.get(str(level)) for one in batches] for level, name in enumerate(LEVELS, 1)
    }
    known = {name: values for name, values in success.items() if any(value is not None for value in values)}
    return [
        line_chart(
            f"{prefix}Level of the problems",
            x,
            {"level": [float(one.level) for one in batches]},
            x_label="batch",
            note="1 beginner to 5 expert.",
            low=1.0,
            high=5.0,
        ),
        line_chart(
            f"{prefix}Success of the solvers",
            x,
            known,
            x_label="batch",
            note="Estimated share of right attempts, by level.",
            low=0.0,
            high=1.0,
        ),
        line_chart(
            f"{prefix}Problems written",
            x,
            {
                "written": [float(one.num_written) for one in batches],
                "published": [float(one.num_valid) for one in batches],
                "judged by solvers": [float(one.num_judged) for one in batches],
            },
            x_label="batch",
            unit="problems",
            low=0.0,
        ),
    ]


def _with_mean(name: str, values: Sequence[float | None]) -> dict[str, Sequence[float | None]]:
    means = _only_mean(name, values)
    return {name: values, **means}


def _only_mean(name: str, values: Sequence[float | None]) -> dict[str, Sequence[float | None]]:
    """The running mean where there are values enough, else the values."""
    if len(values) < SMOOTH_FROM:
        return {name: values}
    window = max(SMOOTH_LEAST, len(values) // 20)
    return {f"{name}, mean of {window}": running_mean(values, window)}


def _by_name(rounds: Sequence[Mapping[str, float]]) -> dict[str, list[float | None]]:
    names = dict.fromkeys(name for one in rounds for name in one)
    return {name: [one.get(name) for one in rounds] for name in names}

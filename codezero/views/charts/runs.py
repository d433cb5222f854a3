"""The charts of nodes of each role, with notes that explain their numbers: for the dashboard and for reports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from codezero.observe.probes import Pass
from codezero.observe.roles import SOLVER, VERIFIER
from codezero.proposals import BatchReport, level_name
from codezero.reports import CasesReport, RoundReport
from codezero.views.charts.figure import Series, line_chart, stacked_bars
from codezero.views.charts.scale import running_mean

SMOOTH_FROM = 20
"""The number of rounds from which on a running mean is drawn, over a twentieth of them and at least `SMOOTH_LEAST`."""
SMOOTH_LEAST = 5
MAX_PARTS = 8
"""The most parts of a stacked chart; the last one is the sum of the smallest."""
OTHER = "other"
SHARE = {"low": 0, "high": 1}
"""The range of a chart of shares."""


class _Charts:
    """Draws charts over the same x; their titles have a common prefix."""

    def __init__(self, x: Sequence[float], prefix: str, x_label: str = "round") -> None:
        self._x, self._prefix, self._x_label = x, prefix, x_label

    def line(self, title: str, series: Series, note: str, **more: Any) -> str:
        return line_chart(self._prefix + title, self._x, series, note=note, x_label=self._x_label, **more)

    def bars(self, title: str, series: Series, note: str = "", unit: str = "") -> str:
        return stacked_bars(self._prefix + title, self._x, series, note=note, x_label=self._x_label, unit=unit)


def charts_of(
    role: str, finished: Sequence[Any], passes: Sequence[Pass], group_size: int, prefix: str = ""
) -> list[str]:
    """Returns the charts of the finished rounds or batches of a node of this role; none before the first."""
    if not finished:
        return []
    if role == SOLVER:
        return solver_charts(finished, group_size, passes, prefix)
    return verifier_charts(finished, passes, prefix) if role == VERIFIER else proposer_charts(finished, prefix)


def solver_charts(
    reports: Sequence[RoundReport], group_size: int, passes: Sequence[Pass] = (), prefix: str = ""
) -> list[str]:
    """Returns charts of finished rounds (ascending) as HTML, the most telling first. `prefix` begins the titles, and
    distinguishes the charts of several runs on one page."""
    draw = _Charts([report.round for report in reports], prefix)
    rewards = [report.reward_mean for report in reports]
    return [
        *_probe_chart(passes, prefix, "round"),
        draw.line(
            "Reward",
            {"reward": rewards, **smoothed("reward", rewards)},
            "Mean over the round's own solutions, from \N{MINUS SIGN}1.2 (no code at all) to 1.2 (surely right).",
        ),
        pass_chart(reports, group_size, prefix),
        draw.bars(
            "Reward by part",
            parts(report.reward_parts for report in reports),
            "What the reward is made of: the predicted chance of being right (correct), the static rules (structure, "
            "formatting, alignment), and whether the solution came to an end (finished).",
        ),
        draw.bars(
            "Groups: own and of peers",
            {
                "own (I)": [report.num_local_groups for report in reports],
                "peers', trained on (J)": [report.num_external_groups for report in reports],
                "peers', judged only": [r.num_pooled_groups - r.num_external_groups for r in reports],
            },
            "A group is one node's solutions to one task. Peers' groups that teach nothing are judged and left.",
        ),
        draw.bars("Seconds by stage", parts(r.seconds for r in reports), "Where the time goes.", unit="s"),
        draw.line(
            "Tokens per second",
            {"written": [r.tokens_per_s for r in reports]},
            "While solving; over whole rounds with solutions sampled ahead.",
            low=0,
        ),
        *_updates(reports, draw),
        *_others(reports, draw),
    ]


def _probe_chart(passes: Sequence[Pass], prefix: str, x_label: str) -> list[str]:
    if not passes:
        return []
    solved = {"at T=1": [one.sampled for one in passes], "greedily": [one.greedy for one in passes]}
    note = "Share of right solutions to problems that the solver never trains on, as the dry run found."
    draw = _Charts([one.last_round for one in passes], prefix, x_label)
    return [draw.line("Held-out problems solved", solved, note, low=0)]


def pass_chart(reports: Sequence[RoundReport], group_size: int, prefix: str = "") -> str:
    """Returns a chart of the share of tasks that are solved, and of right solutions."""
    k = str(group_size or "k")
    return _Charts([report.round for report in reports], prefix).line(
        f"pass@{k} and average@{k}",
        {
            **smoothed(f"pass@{k}", [report.pass_at_k for report in reports]),
            **smoothed(f"average@{k}", [report.average_at_k for report in reports]),
        },
        f"Share of tasks with at least one right solution among {k}, and share of right solutions. Predicted by "
        "the evaluator, which runs nothing unless evaluator.backend=execution.",
        **SHARE,
    )


def _updates(reports: Sequence[RoundReport], draw: _Charts) -> list[str]:
    return [
        draw.line(
            "Loss",
            {"loss": [report.loss for report in reports]},
            "Of the policy update. With train.loss_type=grpo and one step a round it is 0 by construction. A gap is a "
            "round without an update.",
        ),
        draw.line(
            "Gradient norm",
            {"before clipping": [report.grad_norm for report in reports]},
            "The size of the round's gradient. Jumps now and then are normal; steady growth is not.",
            low=0,
        ),
        draw.line(
            "Mixed groups",
            smoothed("share", [report.mixed for report in reports]),
            "Own groups in which some solutions are right and some wrong, by their verdicts: only these teach what is "
            "right.",
            **SHARE,
        ),
        draw.line(
            "KL and clipped share",
            {"KL to the start": [r.kl for r in reports], "clipped tokens": [r.clip_fraction for r in reports]},
            "How far the model is from where it started (only with train.beta above 0), and the share of tokens whose "
            "update was cut off.",
        ),
    ]


def _others(reports: Sequence[RoundReport], draw: _Charts) -> list[str]:
    charts = [
        draw.bars(
            "Dropped, by reason",
            parts((report.dropped for report in reports), empty=0.0),
            "zero_advantage: all solutions equally good, nothing to learn; normal. unscored: no verdict. masked: "
            "single solutions that could not be judged. Others: peers' groups that break a rule or limit.",
        ),
        draw.line(
            "Memory",
            {"peak": [report.peak_rss_bytes / 2**30 for report in reports]},
            "The largest value so far, so it falls only at a restart.",
            unit="GiB",
            low=0,
        ),
    ]
    gaps, sizes = [report.sampler_gap for report in reports], [report.sample_size for report in reports]
    if any(gap is not None for gap in gaps):
        note = "Whether solutions are drawn from the model that learns: the gap stays near 0, the size near 1."
        found = {"median gap, nats a token": gaps, "effective sample size": sizes}
        charts.append(draw.line("Sampler and learner", found, note))
    judge = [report.judge_score for report in reports]
    if any(score is not None for score in judge):
        charts.append(draw.line("Judge service", {"score": judge}, "Its scores, which are no rewards."))
    return charts


def proposer_charts(batches: Sequence[BatchReport], prefix: str = "") -> list[str]:
    """Returns charts of finished batches (ascending) as HTML."""
    draw = _Charts([batch.batch for batch in batches], prefix, "batch")
    levels = sorted({level for batch in batches for level in batch.success})[:MAX_PARTS]
    rewards = {"reward": [batch.reward_mean for batch in batches], "loss": [batch.loss for batch in batches]}
    charts = [
        draw.line(
            "Level",
            {"level": [batch.level for batch in batches]},
            "1 beginner to 5 expert. It stays where about half of the attempts succeed.",
            low=1,
            high=5,
        ),
        draw.line(
            "Success by level",
            {level_name(level): [batch.success.get(level) for batch in batches] for level in levels},
            "Estimated share of solvers' attempts that are right, for each level with any answers.",
            **SHARE,
        ),
        draw.bars(
            "Problems: published and rejected",
            {
                "published": [float(batch.num_valid) for batch in batches],
                **parts((batch.rejected for batch in batches), MAX_PARTS - 1, empty=0.0),
            },
            "Those that failed the checks, by reason.",
        ),
        draw.line(
            "Judged by solvers",
            {"problems": [batch.num_judged for batch in batches]},
            "Problems that solvers have newly answered.",
            low=0,
        ),
        draw.line(
            "Share with signal",
            {"share": [batch.signal_share for batch in batches]},
            "Of the judged problems, those with right and wrong attempts: the ones that teach.",
            **SHARE,
        ),
        draw.line("Proposer's reward and loss", rewards, "Only with proposer.train."),
        draw.bars("Seconds by stage", parts(batch.seconds for batch in batches), unit="s"),
    ]
    tested = [batch.writer if batch.writer and batch.writer.num_problems else None for batch in batches]
    if any(tested):
        shares = {
            "one or more": [one.num_with_one / one.num_problems if one else None for one in tested],
            "three or more": [one.num_with_three / one.num_problems if one else None for one in tested],
        }
        note = "Share of problems by tests that an attempt of the solver fails; other tests teach nothing."
        charts.append(draw.line("Discriminating tests", shares, note, **SHARE))
    return charts


def verifier_charts(batches: Sequence[CasesReport], passes: Sequence[Pass] = (), prefix: str = "") -> list[str]:
    """Returns charts of a test writer's finished batches (ascending), and of the probes of the solver beside it, as
    HTML."""
    draw = _Charts([batch.batch for batch in batches], prefix, "batch")
    rewards = [batch.reward_mean for batch in batches]
    solvers = [batch.solver for batch in batches]
    attempts = {
        "first": [one.right if one else None for one in solvers],
        "second": [one.second_right if one else None for one in solvers],
    }
    note = "Shares of right solutions; second ones follow wrong ones that written cases refused."
    return [
        *_probe_chart(passes, prefix, "batch"),
        draw.line(
            "Reward of test cases",
            {
                "reward": rewards,
                **smoothed("reward", rewards),
                "approving always": [batch.reward_approving for batch in batches],
            },
            "Half for cases that the reference solution passes, half for the right verdict on a candidate; beside what "
            "a writer earns who approves of everything.",
            **SHARE,
        ),
        draw.line(
            "Test cases: valid, right diagnosis, approved",
            {
                "valid": [batch.valid for batch in batches],
                "right diagnosis": [batch.right for batch in batches],
                "approved": [batch.approved for batch in batches],
                "candidates right": [batch.candidates_right for batch in batches],
            },
            "Shares of the answers that could be judged.",
            **SHARE,
        ),
        draw.bars(
            "Answers: judged and masked",
            {
                "judged": [float(batch.num_answers - batch.num_masked) for batch in batches],
                "masked": [float(batch.num_masked) for batch in batches],
            },
            "Masked are those whose results the dry run cannot tell.",
        ),
        *([draw.line("Attempts of the solver", attempts, note, **SHARE)] if any(solvers) else []),
        draw.line("Loss", {"loss": [batch.loss for batch in batches]}, "Of the update; none where all earned equally."),
        draw.bars("Seconds by stage", parts(batch.seconds for batch in batches), unit="s"),
    ]


def swarm_chart(solvers: Mapping[str, Sequence[RoundReport]]) -> str:
    """Returns a chart of the rewards of several solvers by round."""
    rounds = sorted({one.round for reports in solvers.values() for one in reports})
    series = {}
    for name, reports in solvers.items():
        ((_, values),) = smoothed(name, [one.reward_mean for one in reports]).items()
        at = dict(zip([one.round for one in reports], values, strict=True))
        series[name] = [at.get(number) for number in rounds]
    note = "Running means where a node has finished enough rounds; higher is better."
    return _Charts(rounds, "").line("Reward of each node", series, note)


def smoothed(name: str, values: Sequence[float | None]) -> dict[str, Sequence[float | None]]:
    """Returns the running mean, under a name that says so, if there are enough values; else the values."""
    if len(values) < SMOOTH_FROM:
        return {name: values}
    window = max(SMOOTH_LEAST, len(values) // 20)
    return {f"{name}, mean of {window}": running_mean(values, window)}


def parts(
    mappings: Iterable[Mapping[str, float]], most: int = MAX_PARTS, empty: float | None = None
) -> dict[str, list[float | None]]:
    """Returns a column for each name, with 0 where a row has other names only and `empty` where it has none; of more
    than `most` names the largest first, and the sum of the others last."""
    rows = list(mappings)
    sums: Counter[str] = Counter()
    for row in rows:
        for name, value in row.items():
            sums[name] += abs(value)  # type: ignore[assignment]
    kept = list(sums) if len(sums) <= most else [name for name, _ in sums.most_common(most - 1) if name != OTHER]
    columns: dict[str, list[float | None]] = {
        name: [row.get(name, 0.0) if row else empty for row in rows] for name in kept
    }
    if len(sums) > most:
        columns[OTHER] = [sum(value for name, value in row.items() if name not in columns) for row in rows]
    return columns

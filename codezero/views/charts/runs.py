"""The charts of a solver or proposer, with notes that explain their numbers: for the dashboard and for reports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from codezero.observe.probes import Pass
from codezero.proposals import BatchReport, level_name
from codezero.types import RoundReport
from codezero.views.charts.figure import line_chart, stacked_bars
from codezero.views.charts.scale import running_mean

SMOOTH_FROM = 20
"""The number of rounds from which on a running mean is drawn, over a twentieth of them and at least `SMOOTH_LEAST`."""
SMOOTH_LEAST = 5
MAX_PARTS = 8
"""The most parts of a stacked chart; the last one is the sum of the smallest."""
MAX_NAMES = 1000
"""The most different names of parts that are counted; more come from a damaged file."""
OTHER = "other"


def solver_charts(
    reports: Sequence[RoundReport], group_size: int, passes: Sequence[Pass] = (), prefix: str = ""
) -> list[str]:
    """Returns charts of finished rounds (ascending) as HTML, the most telling first. `prefix` begins the titles, and
    distinguishes the charts of several runs on one page."""
    x = [report.round for report in reports]
    return [
        *_probes(passes, prefix),
        *_rewards(reports, x, prefix, group_size),
        *_work(reports, x, prefix),
        *_updates(reports, x, prefix),
        *_others(reports, x, prefix),
    ]


def _probes(passes: Sequence[Pass], prefix: str) -> list[str]:
    if not passes:
        return []
    return [
        line_chart(
            f"{prefix}Held-out problems solved",
            [one.last_round for one in passes],
            {"at T=1": [one.sampled for one in passes], "greedily": [one.greedy for one in passes]},
            low=0,
            note="Share of right solutions to problems that the node never trains on, as the dry run found.",
        )
    ]


def _rewards(reports: Sequence[RoundReport], x: Sequence[float], prefix: str, group_size: int) -> list[str]:
    rewards = [report.reward_mean for report in reports]
    return [
        line_chart(
            f"{prefix}Reward",
            x,
            {"reward": rewards, **smoothed("reward", rewards)},
            note="Mean over the round's own solutions, from \N{MINUS SIGN}1.2 (no code at all) to 1.2 (surely right).",
        ),
        pass_chart(reports, group_size, prefix),
        stacked_bars(
            f"{prefix}Reward by part",
            x,
            parts(report.reward_parts for report in reports),
            note="What the reward is made of: the predicted chance of being right (correct), the static rules "
            "(structure, formatting, alignment), and whether the solution came to an end (finished).",
        ),
    ]


def pass_chart(reports: Sequence[RoundReport], group_size: int, prefix: str = "") -> str:
    """Returns a chart of the share of tasks that are solved, and of right solutions."""
    k = str(group_size or "k")
    return line_chart(
        f"{prefix}pass@{k} and average@{k}",
        [report.round for report in reports],
        {
            **smoothed(f"pass@{k}", [report.pass_at_k for report in reports]),
            **smoothed(f"average@{k}", [report.average_at_k for report in reports]),
        },
        low=0,
        high=1,
        note=f"Share of tasks with at least one right solution among {k}, and share of right solutions. Predicted by "
        "the evaluator: nothing is run.",
    )


def _work(reports: Sequence[RoundReport], x: Sequence[float], prefix: str) -> list[str]:
    return [
        stacked_bars(
            f"{prefix}Groups: own and of peers",
            x,
            {
                "own (I)": [report.num_local_groups for report in reports],
                "peers', trained on (J)": [report.num_external_groups for report in reports],
                "peers', judged only": [r.num_pooled_groups - r.num_external_groups for r in reports],
            },
            note="A group is one node's solutions to one task. Peers' groups that teach nothing are judged and left.",
        ),
        stacked_bars(
            f"{prefix}Seconds by stage",
            x,
            parts(report.seconds for report in reports),
            unit="s",
            note="Where the time goes.",
        ),
        line_chart(
            f"{prefix}Tokens per second",
            x,
            {"written": [r.tokens_per_s for r in reports]},
            low=0,
            note="While solving.",
        ),
    ]


def _updates(reports: Sequence[RoundReport], x: Sequence[float], prefix: str) -> list[str]:
    return [
        line_chart(
            f"{prefix}Loss",
            x,
            {"loss": [report.loss for report in reports]},
            note="Of the policy update. With one step a round the GRPO loss is 0 by construction. A gap is a round "
            "without an update.",
        ),
        line_chart(
            f"{prefix}Gradient norm",
            x,
            {"before clipping": [report.grad_norm for report in reports]},
            low=0,
            note="How hard the round pulled at the model. Jumps now and then are normal; steady growth is not.",
        ),
        line_chart(
            f"{prefix}Mixed groups",
            x,
            smoothed("share", [report.mixed for report in reports]),
            low=0,
            high=1,
            note="Own groups in which some solutions are right and some wrong, by their verdicts: only these teach "
            "what is right.",
        ),
        line_chart(
            f"{prefix}KL and clipped share",
            x,
            {"KL to the start": [r.kl for r in reports], "clipped tokens": [r.clip_fraction for r in reports]},
            note="How far the model is from where it started (only with train.beta above 0), and the share of tokens "
            "whose update was cut off.",
        ),
    ]


def _others(reports: Sequence[RoundReport], x: Sequence[float], prefix: str) -> list[str]:
    charts = [
        stacked_bars(
            f"{prefix}Dropped, by reason",
            x,
            parts(report.dropped for report in reports),
            note="zero_advantage: all solutions equally good, nothing to learn; normal. unscored: no verdict. "
            "masked: single solutions that nothing could tell of. Others: peers' groups that were not as they should "
            "be.",
        ),
        line_chart(
            f"{prefix}Memory",
            x,
            {"peak": [report.peak_rss_bytes / 2**30 for report in reports]},
            unit="GiB",
            low=0,
            note="The most that the process has ever held, so it never falls but at a restart.",
        ),
    ]
    gaps = [report.sampler_gap for report in reports]
    if any(gap is not None for gap in gaps):
        left = [report.sample_size for report in reports]
        charts.append(
            line_chart(
                f"{prefix}Sampler and learner",
                x,
                {"median gap, nats a token": gaps, "effective sample size": left},
                note="Whether solutions are drawn from the model that learns: the gap stays near 0, the size near 1.",
            )
        )
    judge = [report.judge_score for report in reports]
    if any(score is not None for score in judge):
        charts.append(line_chart(f"{prefix}Judge service", x, {"score": judge}, note="Its scores; no reward."))
    return charts


def proposer_charts(batches: Sequence[BatchReport], prefix: str = "") -> list[str]:
    """Returns charts of finished batches (ascending) as HTML."""
    x = [batch.batch for batch in batches]
    levels = sorted({level for batch in batches for level in batch.success})[:MAX_PARTS]
    return [
        line_chart(
            f"{prefix}Level",
            x,
            {"level": [batch.level for batch in batches]},
            low=1,
            high=5,
            x_label="batch",
            note="1 beginner to 5 expert. It stays where about half of the attempts succeed.",
        ),
        line_chart(
            f"{prefix}Success by level",
            x,
            {level_name(level): [batch.success.get(level) for batch in batches] for level in levels},
            low=0,
            high=1,
            x_label="batch",
            note="Estimated share of solvers' attempts that are right, for each level with any answers.",
        ),
        stacked_bars(
            f"{prefix}Problems: published and rejected",
            x,
            {"published": [float(batch.num_valid) for batch in batches], **parts(batch.rejected for batch in batches)},
            x_label="batch",
            note="Those that failed the checks, by reason.",
        ),
        line_chart(
            f"{prefix}Judged by solvers",
            x,
            {"problems": [batch.num_judged for batch in batches]},
            low=0,
            x_label="batch",
            note="Problems that solvers have newly answered.",
        ),
        line_chart(
            f"{prefix}Share with signal",
            x,
            {"share": [batch.signal_share for batch in batches]},
            low=0,
            high=1,
            x_label="batch",
            note="Of the judged problems, those with right and wrong attempts: the ones that teach.",
        ),
        line_chart(
            f"{prefix}Proposer's reward and loss",
            x,
            {"reward": [batch.reward_mean for batch in batches], "loss": [batch.loss for batch in batches]},
            x_label="batch",
            note="Only with proposer.train.",
        ),
        stacked_bars(f"{prefix}Seconds by stage", x, parts(b.seconds for b in batches), unit="s", x_label="batch"),
    ]


def smoothed(name: str, values: Sequence[float | None]) -> dict[str, Sequence[float | None]]:
    """Returns the running mean, under a name that says so, if there are enough values; else the values."""
    if len(values) < SMOOTH_FROM:
        return {name: values}
    window = max(SMOOTH_LEAST, len(values) // 20)
    return {f"{name}, mean of {window}": running_mean(values, window)}


def parts(mappings: Iterable[Mapping[str, float]]) -> dict[str, list[float | None]]:
    """Returns a column for each name; of more than MAX_PARTS the largest first, and the sum of the others last."""
    rows = list(mappings)
    sums: Counter[str] = Counter()
    for row in rows:
        for name, value in row.items():
            if name in sums or len(sums) < MAX_NAMES:
                sums[name] += abs(value)  # type: ignore[assignment]
    if len(sums) <= MAX_PARTS:
        return {name: [row.get(name) for row in rows] for name in sums}
    kept = [name for name, _ in sums.most_common(MAX_PARTS - 1) if name != OTHER]
    columns: dict[str, list[float | None]] = {name: [row.get(name) for row in rows] for name in kept}
    columns[OTHER] = [sum(value for name, value in row.items() if name not in columns) for row in rows]
    return columns

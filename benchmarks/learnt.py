"""Tables and pictures of what `benchmarks.learning` has measured."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks import harness
from benchmarks.harness import Counts, Result, Target
from benchmarks.tables import in_points, markdown, outcome
from codezero.evaluate.intervals import bootstrap
from codezero.evaluate.metrics import Estimate
from codezero.observe.probes import percent, points
from codezero.views.charts.figure import line_chart
from codezero.views.charts.scale import running_mean
from codezero.views.report.picture import drawing

GREEDY_PIECE, SAMPLED_PIECE, PROBE_PIECE, ATTEMPTS_PIECE = "greedy", "sampled", "probe", "attempts"
CHECKPOINTS = ("newest", "best")
SAMPLED = "pass@1 at T=1, paired"
GAIN = Target(figure="gain of pass@1 at T=1", at_least=0.05)
SURE = Target(figure="lower end of its interval", at_least=1e-9)
GREEDY = Target(figure="gain of greedy pass@1", at_least=0.0)
TOGETHER = ("defaults-seed1", "defaults-seed2", "double", "gpu")
"""The runs with the defaults."""
PAIRS = (("shared", "alone"), ("double", "alone"), ("uniform", "alone"), ("earlier", "alone"))
"""Runs of which the first is compared with the second."""
AS_DEFAULTS = "as-defaults"
"""The run with which those that choose settings are compared."""
ASKED = ("model", "problems", "samples", "max_new_tokens")
"""The settings in which evaluations that are compared are equal."""
Rates = Mapping[str, float]
"""A share by problem."""


def rates(piece: Counts) -> Rates:
    """pass@1 of each problem."""
    return {name: right / piece["samples"] for name, right in piece["right"].items()}


def solved_once(piece: Counts) -> Rates:
    """pass@k of each problem, where k is the number of its samples."""
    return {name: float(right > 0) for name, right in piece["right"].items()}


def paired(before: Rates, after: Rates) -> Estimate:
    """The mean difference over the problems that both have."""
    return bootstrap([after[name] - before[name] for name in before if name in after])


def measured(results: Mapping[str, Result]) -> Iterator[tuple[str, str, Result, Result, Result]]:
    """Name of a run, which checkpoint, its training, the start, and what was measured after, in the runs' order."""
    for arm, training in results.items():
        name = arm.removesuffix("-train")
        for checkpoint in CHECKPOINTS if name != arm else ():
            after = results.get(f"{name}-{checkpoint}")
            start = after and results.get(f"start-{after.settings['split']}")
            if after and start and are_alike(start, after):
                yield name, checkpoint, training, start, after


def are_alike(one: Result, other: Result) -> bool:
    """Returns True if two evaluations asked the same of one model's weights before and after, or of two runs of it."""
    return all(one.settings.get(key) == other.settings.get(key) for key in ASKED)


def together(results: Mapping[str, Result]) -> list[Result]:
    """The start and the runs of one setting after it; none unless all are there and were asked the same."""
    arms = ["start-report", *(f"{name}-newest" for name in TOGETHER)]
    found = [results[arm] for arm in arms if arm in results]
    return found if len(found) == len(arms) and all(are_alike(found[0], one) for one in found) else []


def gained(start: Result, afters: Sequence[Result]) -> list[tuple[Estimate, float, float]]:
    """The gain of the runs' mean, the share before and the one after: at T=1, greedily, and of any of the samples."""
    gains = []
    for piece, of in ((SAMPLED_PIECE, rates), (GREEDY_PIECE, rates), (SAMPLED_PIECE, solved_once)):
        before, runs = of(start.counts[piece]), [of(after.counts[piece]) for after in afters]
        now = {name: fmean(run[name] for run in runs) for name in before}
        gains.append((paired(before, now), mean(before), mean(now)))
    return gains


def table(results: Mapping[str, Result]) -> str:
    """What each run has gained on problems that it was not trained on, by execution, those of one setting together, and
    one over another; by the hour where settings were compared."""
    reported, tuned, others = [], [], []
    for name, checkpoint, training, start, after in measured(results):
        gains = gained(start, [after])
        figures = [told(before, now, change) for change, before, now in gains]
        rounds, hours = trained(training, after.settings["round"])
        share = hours / max(trained(training)[1], 1e-9)
        processor = share * sum(one.cpu_s for one in training.sittings) / 3600
        rollouts = str(rounds * training.settings["rollouts a round"])
        row = [f"{name}, {checkpoint}", rollouts, f"{hours:.1f} ({processor:.1f})"]
        (gain, *_), (greedy, *_), _ = gains
        if after.settings["split"] == "report":
            for place, target, value in ((0, GAIN, gain.value), (0, SURE, gain.low), (1, GREEDY, greedy.value)):
                figures[place] += f"; {target.figure} {outcome(target, value, '{:.0f} points', 100)}"
            reported.append(row + figures)
        else:
            hourly = [points(one / max(hours, 1e-9)) for one in (gain.value, gain.low, gain.high)]
            tuned.append([*row, *figures, f"{hourly[0]} [{hourly[1]}, {hourly[2]}]"])
            if checkpoint == "newest" and name != AS_DEFAULTS:
                others.append((name, AS_DEFAULTS))
    if seeds := together(results):
        gains = gained(seeds[0], seeds[1:])
        reported.append([f"mean of {', '.join(TOGETHER)}", "", "", *(told(b, n, change) for change, b, n in gains)])
    reported += compared(results, PAIRS)
    tuned += ([*row, ""] for row in compared(results, others))
    header = ["run, checkpoint", "rollouts", "hours (of processors)", "pass@1 at T=1", "greedy", "any of the samples"]
    more = of_more(results)
    parts = [
        (markdown(header, reported), reported),
        (markdown(["run, checkpoint", "k", "pass@1 at T=1", "pass@k"], more), more),
        (markdown([*header, "points an hour at T=1"], tuned), tuned),
    ]
    return "\n\n".join(part for part, rows in parts if rows)


def compared(results: Mapping[str, Result], pairs: Sequence[tuple[str, str]]) -> Iterator[list[str]]:
    """Yields a row for each pair of runs that were asked the same: what the first has gained over the second."""
    for name, other in pairs:
        one, base = (results.get(f"{run}-newest") for run in (name, other))
        if one and base and are_alike(one, base):
            gains = gained(base, [one])
            yield [f"{name} against {other}", "", "", *(told(b, n, change) for change, b, n in gains)]


def mean(found: Rates) -> float:
    return fmean(found.values())


def of_samples(samples: int) -> str:
    """The end of the name of an arm that has so many solutions to each problem; 0 for the usual number."""
    return f"-of{samples}" * (samples > 0)


def of_more(results: Mapping[str, Result]) -> list[list[str]]:
    """The rows of evaluations with more solutions to each problem: pass@1 and pass@k of them."""
    rows = []
    for name, checkpoint, _, _, after in measured(results):
        for arm, more in results.items():
            run, _, samples = arm.rpartition("-of")
            start = results.get(f"start-{after.settings['split']}-of{samples}")
            if run == f"{name}-{checkpoint}" and start and are_alike(start, more):
                before, now = start.counts[SAMPLED_PIECE], more.counts[SAMPLED_PIECE]
                pairs = [(of(before), of(now)) for of in (rates, solved_once)]
                rows.append([run, samples, *(told(mean(a), mean(b), paired(a, b)) for a, b in pairs)])
    return rows


def told(before: float, after: float, change: Estimate) -> str:
    """`24.1 % to 30.2 %: +6.1 points [+2.4, +9.9]`"""
    return f"{percent(before)} to {percent(after)}: {in_points(change)}"


def unlike_training(results: Mapping[str, Result], alike: Collection[str]) -> str:
    """Returns in words the mean gain of the runs with the defaults on the problems not in `alike`, those like one in
    training; empty unless all these runs are there."""
    if not (found := together(results)):
        return ""
    start, *runs = (rates(one.counts[SAMPLED_PIECE]) for one in found)
    before = {name: rate for name, rate in start.items() if name not in alike}
    now = {name: fmean(run[name] for run in runs) for name in before}
    gain = told(mean(before), mean(now), paired(before, now))
    left_out = len(start) - len(before)
    return f"mean of {', '.join(TOGETHER)}, without {left_out} problems like one in training, at T=1: {gain}"


def trained(training: Result, last_round: int = sys.maxsize) -> tuple[int, float]:
    """The number of rounds up to a checkpoint, or of all, and the hours that they took."""
    blocks = training.counts.values()
    rounds = [number for block in blocks for number in block["round"] if number <= last_round]
    by_round = [sum(stages) for block in blocks for stages in zip(*block["seconds"].values(), strict=True)]
    return len(rounds), sum(by_round[: len(rounds)]) / 3600


def pictures(results: Mapping[str, Result], folder: Path) -> list[Path]:
    """Draws the curves of each run that was measured, as SVG beside its results. Returns the files."""
    made = []
    for name, checkpoint, training, start, after in measured(results):
        if checkpoint == "newest":
            made.append(folder / f"{name}.svg")
            harness.write(made[-1], drawing(charts(training, start, after)) + "\n")
    return made


def charts(training: Result, start: Result, after: Result) -> list[str]:
    """The curves of a run, over training rollouts."""
    a_round = training.settings["rollouts a round"]
    columns = {key: [one for block in training.counts.values() for one in block[key]] for key in ("round", *_DRAWN)}
    x = [a_round * number for number in columns["round"]]
    passes = after.counts[PROBE_PIECE]["passes"]
    ends = [0, a_round * after.settings["round"]]
    blocks = after.counts[ATTEMPTS_PIECE]
    middles = [a_round * sum(map(int, name.split("-"))) / 2 for name in blocks]
    known = [(predicted, right, total - masked) for total, masked, predicted, _, right, *_ in blocks.values()]
    new = [block[7] / block[6] if len(block) > 6 and block[6] else None for block in blocks.values()]  # older lack them
    window = max(1, len(x) // 20)
    return [
        line_chart(
            f"Problems {_ids(after)}, executed: right solutions",
            ends,
            {
                "at T=1": [mean(rates(one.counts[SAMPLED_PIECE])) for one in (start, after)],
                "greedy": [mean(rates(one.counts[GREEDY_PIECE])) for one in (start, after)],
                "any of the samples": [mean(solved_once(one.counts[SAMPLED_PIECE])) for one in (start, after)],
            },
            low=0,
            **_ROLLOUTS,
        ),
        line_chart(
            "The node's own probes: right solutions",
            [a_round * number for number, _, _ in passes],
            {"at T=1": [one for _, one, _ in passes], "greedy": [one for _, _, one in passes]},
            low=0,
            **_ROLLOUTS,
        ),
        line_chart(
            "Attempts at training problems",
            middles,
            {
                "predicted right": [predicted / max(total, 1) for predicted, _, total in known],
                "right when executed": [right / max(total, 1) for _, right, total in known],
                "the same, of tasks drawn for the first time": new,
            },
            low=0,
            **_ROLLOUTS,
        ),
        *(
            line_chart(title, x, {f"mean of {window}": running_mean(columns[key], window)}, low=0, **_ROLLOUTS)
            for key, title in _DRAWN.items()
        ),
    ]


_ROLLOUTS: Mapping[str, Any] = {"x_label": "rollouts"}
_DRAWN = {"reward_mean": "Mean reward", "mixed": "Share of mixed groups", "num_tokens": "Tokens a round"}


def _ids(after: Result) -> str:
    names: Sequence[int] = sorted(int(name) for name in after.counts[SAMPLED_PIECE]["right"])
    return f"{names[0]} to {names[-1]}"

"""Measures whether a node learns more in a swarm than alone: SAPO's experiment (arXiv 2509.08721) with small models.

    python -m benchmarks.sharing                       # the arms of the paper, and the control that it lacks
    python -m benchmarks.sharing 4/4 4/4-liars-2       # these arms

Eight nodes begin with the same weights, a model that solves a tenth of the held-out tasks of `benchmarks.arithmetic`,
and play `ROUNDS` rounds. In an arm I/J each solves I tasks of its own, G attempts each, and trains on all of these and
on J groups of peers. Sampler, native records, turns of peers in the pool, selection, advantages, loss and optimizer are
the product's; the network is a list of records, which all others read at once, and the reward is 1 for the right answer
and else 0. `filtered` is the control: a node alone that samples more, up to `FILTER` times its tasks, until it has as
many groups with unequal rewards as it trains on, since of peers it would get only such groups. That costs it tokens, so
arms are compared at equal numbers of own generated tokens too.

Other words after I/J say what the last nodes are, whose number follows; results are those of the other nodes:

    garbage       send random characters           stale      never learn
    copies        send what others have sent       takers     send nothing
    liars         send tasks with a wrong answer as their test, which half of their attempts give
    newcomers     begin anew every `EVERY` rounds
    strong        begin with a model that solves a third of the tasks
    weak          begin like all nodes elsewhere, and the others like `strong`

`-accuracy` at the end is `swarm.weighting=accuracy`.

A piece is a seed: held-out score at T=1, own tokens, and groups trained on, as means over nodes, each `EVERY` rounds.
Arms are compared seed by seed. A seed begins with the same models only on processors of one kind, so an arm that comes
later, on another kind, takes seeds that its control has from there too (`--first`).

Figures: docs/measurements.md#what-sharing-pays
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import fmean, stdev

import torch

from benchmarks import arithmetic, harness
from benchmarks.harness import Arm, Counts, Result
from benchmarks.power import of_seeds, t_quantile
from benchmarks.small_swarm import NODES, RATE, G, Node, Setup, play_round
from benchmarks.tables import in_points, markdown
from codezero.evaluate.metrics import CONFIDENCE, Estimate
from codezero.observe.probes import percent, points

BENCHMARK = "sharing"
START, STRONG = 0.1, 0.33
ROUNDS, EVERY, SEEDS = 400, 25, 3
HELD_OUT = 256
PAPER = ("8/0", "8/0-filtered", "6/2", "4/4", "2/6")
SPREAD = 0.02
"""The standard deviation over seeds of an arm's score, for the power."""


def play(setup: Setup, rounds: int, folder: Path, seed: str) -> Counts:
    """Plays an arm with a seed. Returns [rounds played, score, own tokens, groups trained on] of each look. Keeps the
    models that nodes begin with in the folder."""
    torch.set_num_threads(1)

    def begun(number: int, life: int = 0) -> Node:
        share = STRONG if setup.is_strong(number) else START
        start = arithmetic.kept_beginner(int(seed), share, folder)
        return Node(number, setup, f"{seed}/{number}/{life}", start)

    nodes = [begun(number) for number in range(NODES)]
    reported = [node for node in nodes if not node.behaviour]
    asked, rng = arithmetic.held_out(HELD_OUT), torch.Generator().manual_seed(int(seed))
    counts = []
    for number in range(rounds + 1):
        if number % EVERY == 0:
            scores = [arithmetic.solved(node.model, asked, rng) for node in reported]
            tokens, groups = (fmean(getattr(node, key) for node in reported) for key in ("own_tokens", "num_trained"))
            counts.append([number, round(fmean(scores), 5), round(tokens), round(groups, 1)])
            nodes = [begun(i, number) if one.behaviour == "newcomers" else one for i, one in enumerate(nodes)]
        if number < rounds:
            play_round(nodes, number)
    return counts


def table(results: Mapping[str, Result]) -> str:
    """Returns a Markdown table: each arm's late held-out score, and its difference to the arm in which the reported
    nodes are alone, after equal rounds and after equal numbers of own tokens."""
    curves = {result.settings["arm"]: result.counts for result in results.values()}
    rows = []
    for name in sorted(curves, key=lambda one: (one not in PAPER, PAPER.index(one) if one in PAPER else 0, one)):
        runs = list(curves[name].values())
        alone = curves.get("8/0" + name[3:] if Setup.of(name).behaviour == "weak" else "8/0", {})
        pairs = [(run, alone[seed]) for seed, run in curves[name].items() if seed in alone]
        equal = [(run, other, min(run[-1][2], other[-1][2])) for run, other in pairs]
        tokens, groups = ([run[-1][column] for run in runs] for column in (2, 3))
        rows.append(
            [
                name,
                str(len(tokens)),
                f"{fmean(groups) / runs[0][-1][0]:.1f}",
                f"{fmean(tokens) / 1000:.0f}",
                percent(fmean(late_score(run, run[-1][2]) for run in runs)),
                difference([late_score(run, run[-1][2]) - late_score(other, other[-1][2]) for run, other in pairs]),
                difference([late_score(run, fewest) - late_score(other, fewest) for run, other, fewest in equal]),
            ]
        )
    header = ["arm", "seeds", "groups a round", "own tokens, thousands", "held-out score", "to alone, equal rounds"]
    return markdown([*header, "to alone, equal own tokens"], rows)


def late_score(run: Counts, tokens: float, score: int = 1, used: int = 2) -> float:
    """Returns the mean held-out score of a run's looks in the last quarter of its first `tokens` own tokens, or of the
    last look before it: of several looks, since one of 256 answers a node is off by a point. `score` and `used`, the
    tokens until then, are columns of a look."""
    looks = [look for look in run if look[used] <= tokens]
    late = [look for look in looks if look[used] >= 0.75 * tokens]
    return fmean(look[score] for look in late or looks[-1:])


def difference(differences: Sequence[float]) -> str:
    """Returns `+3.1 points [+1.2, +5.0]`, the interval by Student's t over paired seeds."""
    if not any(differences):
        return ""
    mean = fmean(differences)
    if len(differences) == 1:
        return f"{points(mean)} points"
    half = t_quantile((1 + CONFIDENCE) / 2, len(differences)) * stdev(differences) / len(differences) ** 0.5
    return in_points(Estimate(value=mean, low=mean - half, high=mean + half))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = harness.parser(BENCHMARK, __doc__)
    parser.add_argument("arms", nargs="*", default=PAPER, metavar="ARM", help=f"default: {' '.join(PAPER)}")
    parser.add_argument("--seeds", type=int, default=SEEDS, metavar="N", help=f"runs of each arm (default {SEEDS})")
    parser.add_argument("--first", type=int, default=0, metavar="SEED", help="of the seeds (default 0)")
    parser.add_argument("--rounds", type=int, default=ROUNDS, metavar="N", help=f"of a run (default {ROUNDS})")
    options = parser.parse_args(arguments)
    try:
        setups = {name: Setup.of(name) for name in options.arms}
    except ValueError as error:
        parser.error(str(error))
    settings = {"nodes": NODES, "generations": G, "start": START, "held out": HELD_OUT, "learning_rate": RATE}
    for name, setup in setups.items():
        do: Callable[[str], Counts] = partial(play, setup, options.rounds, options.state / BENCHMARK)
        arm = Arm(
            benchmark=BENCHMARK,
            name=name.replace("/", "-"),
            settings={**settings, "arm": name, "rounds": options.rounds},
            seed=0,
            pieces=[str(options.first + number) for number in range(options.seeds)],
            power=[of_seeds("held-out score", options.seeds, SPREAD)],
        )
        harness.run(arm, do, options)
    print(table(harness.results(BENCHMARK, options.results)))


if __name__ == "__main__":
    main()

"""Measures what attempts of earlier policies are worth, by loss, with one small node of `benchmarks.sharing`.

    python -m benchmarks.staleness                                # all arms
    python -m benchmarks.staleness m2po-stale-64 grpo-replay-16   # these

A node begins with a model that solves a tenth of the held-out tasks of `benchmarks.arithmetic` and plays `ROUNDS`
rounds of 8 tasks, G attempts each. In an arm `LOSS-stale-S` it trains in each round on the groups that it sampled S
rounds ago, in the first S rounds on groups of the policy that it begins with. In `LOSS-replay-N` it trains on the new
groups and, by `train.replay`, on N of its mixed groups of the last eight updates; of 8 new groups about half are mixed,
so with 16 each is trained on four to five times. Losses are grpo, which clips at fixed ratios, m2po, and cispo, whose
weights are truncated ratios. Sampler, advantages, losses, replay and optimizer are the product's.

A piece is a seed: held-out score at T=1, own tokens, and the share of tokens clipped since the last look, each `EVERY`
rounds.

Figures: docs/measurements.md#what-stale-attempts-are-worth
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import fmean

import torch

from benchmarks import arithmetic, harness, small_swarm
from benchmarks.harness import Arm, Counts, Result
from benchmarks.power import of_seeds
from benchmarks.sharing import SPREAD, START, difference, late_score
from benchmarks.sides import PLAIN
from benchmarks.small_swarm import RATE, G, Node
from benchmarks.tables import markdown
from codezero.config import LossType, TrainConfig
from codezero.observe.probes import percent

BENCHMARK = "staleness"
TASKS = 8
ROUNDS, EVERY, SEEDS = 400, 25, 3
HELD_OUT, ANSWERS = 512, 2
"""Held-out tasks, of which other bases have no 256, and answers to each at a look."""
ALONE = "stale-0"
LOSSES = (LossType.grpo, LossType.m2po, LossType.cispo)
ARMS = tuple(f"{loss.value}-{how}" for loss in LOSSES for how in (ALONE, "stale-1", "stale-8", "stale-64", "replay-16"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """The settings that the name of an arm stands for."""

    train: TrainConfig
    staleness: int

    @classmethod
    def of(cls, name: str) -> Setup:
        """Returns the setup of an arm's name. Raises ValueError: there is no such arm."""
        loss, _, rest = name.partition("-")
        how, _, number = rest.partition("-")
        if how not in ("stale", "replay") or not number.isdecimal():
            raise ValueError(f"{name} is neither LOSS-stale-S nor LOSS-replay-N")
        train = replace(
            PLAIN, learning_rate=RATE, loss_type=LossType(loss), replay=int(number) if how == "replay" else 0
        )
        return cls(train=train, staleness=int(number) if how == "stale" else 0)


def play(setup: Setup, rounds: int, folder: Path, seed: str) -> Counts:
    """Plays an arm with a seed. Returns [rounds played, score, own tokens, share of tokens clipped] of each look. Keeps
    the model that nodes begin with in the folder."""
    torch.set_num_threads(1)
    start = arithmetic.kept_beginner(int(seed), START, folder)
    node = Node(0, small_swarm.Setup.of(f"{TASKS}/0"), seed, start, setup.train)
    asked, rng = ANSWERS * arithmetic.held_out(HELD_OUT), torch.Generator().manual_seed(int(seed))
    waiting = deque(node.solve() for _ in range(setup.staleness))
    counts, clipped = [], list[float]()
    for number in range(rounds + 1):
        if number % EVERY == 0:
            score = arithmetic.solved(node.model, asked, rng)
            counts.append([number, round(score, 5), node.own_tokens, round(fmean(clipped or [0.0]), 6)])
            clipped = []
        if number < rounds:
            waiting.append(node.solve())
            update = node.learn(number, waiting.popleft(), [])
            if update is not None and update.clip_fraction is not None:
                clipped.append(update.clip_fraction)
    return counts


def table(results: Mapping[str, Result]) -> str:
    """Returns a Markdown table: each arm's late held-out score, its difference to the same loss on new groups alone and
    to grpo in the same way, and the share of tokens clipped."""
    curves = {result.settings["arm"]: list(result.counts.values()) for result in results.values()}
    rows = []
    for name in sorted(curves, key=lambda one: (one not in ARMS, ARMS.index(one) if one in ARMS else 0, one)):
        loss, _, how = name.partition("-")
        scores = [late_score(run, run[-1][2]) for run in curves[name]]

        def against(other: str, scores: Sequence[float] = scores) -> str:
            paired = zip(scores, curves.get(other, []), strict=False)
            return difference([score - late_score(run, run[-1][2]) for score, run in paired])

        clipped = fmean(look[3] for run in curves[name] for look in run[1:] or run)
        rows.append(
            [
                name,
                str(len(scores)),
                percent(fmean(scores)),
                against(f"{loss}-{ALONE}") if how != ALONE else "",
                against(f"grpo-{how}") if loss != "grpo" else "",
                f"{clipped:.2%}",
            ]
        )
    return markdown(["arm", "seeds", "held-out score", "to new groups alone", "to grpo", "tokens clipped"], rows)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = harness.parser(BENCHMARK, __doc__)
    parser.add_argument("arms", nargs="*", default=ARMS, metavar="ARM", help=f"default: {' '.join(ARMS)}")
    parser.add_argument("--seeds", type=int, default=SEEDS, metavar="N", help=f"runs of each arm (default {SEEDS})")
    parser.add_argument("--rounds", type=int, default=ROUNDS, metavar="N", help=f"of a run (default {ROUNDS})")
    options = parser.parse_args(arguments)
    try:
        setups = {name: Setup.of(name) for name in options.arms}
    except ValueError as error:
        parser.error(str(error))
    settings = {"tasks": TASKS, "generations": G, "start": START, "learning_rate": RATE}
    settings |= {"held out": HELD_OUT, "answers": ANSWERS}
    for name, setup in setups.items():
        do: Callable[[str], Counts] = partial(play, setup, options.rounds, options.state / BENCHMARK)
        arm = Arm(
            benchmark=BENCHMARK,
            name=name,
            settings={**settings, "arm": name, "rounds": options.rounds},
            seed=0,
            pieces=[str(seed) for seed in range(options.seeds)],
            power=[of_seeds("held-out score", options.seeds, SPREAD)],
        )
        harness.run(arm, do, options)
    print(table(harness.results(BENCHMARK, options.results)))


if __name__ == "__main__":
    main()

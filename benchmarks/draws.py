"""Measures how many groups teach if tasks are drawn by the results of attempts at them, with simulated attempts.

    python -m benchmarks.draws        # about five minutes

The product's own draws (`tasks/candidates.py`), eight a round, over as many tasks as MBPP has to train on. An attempt
succeeds with the rate p of its task; a group is mixed if some of its G attempts do and some do not. `uniform` is
`tasks.draw=uniform`; `oracle` knows every rate and draws by 4 p (1 - p) from all tasks. Counted is, of each group that
is drawn, the probability that it is mixed, 1 - p^G - (1 - p)^G.

Rates are drawn from two populations. *Measured*: Beta(0.1, 0.4), which has the mean rate (0.20) and the shares of mixed
groups (20, 28 and 34 % at G = 4, 8 and 16) that were measured of Qwen2.5-Coder-0.5B on MBPP at temperature 1.
*Executed*: of the problems in `benchmarks/results/calibrate`, by what samples at temperature 0.8 came to when executed;
copies were left out there, so these rates are nearer to one half. Where the policy learns, a mixed group raises the
log-odds of its task by 1 and those of all tasks by 0.005, about as in `benchmarks.learning`, where draws came to hold
little that teaches. *And contests* has a second source of the same weight and size whose rates are Beta(0.02, 2): one
attempt in a hundred is right.

Figures: docs/measurements.md#which-tasks-are-drawn
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean

from benchmarks import harness
from benchmarks.harness import Arm, Result, Target
from benchmarks.power import of_seeds
from benchmarks.tables import markdown, outcome
from codezero.evaluate.intervals import bootstrap
from codezero.tasks.candidates import EXPLORE, KEEP, MOST, PRIOR, SIZE, TEACHES, Informative, weighted
from codezero.tasks.mixture import Mixture
from codezero.tasks.sources import ListSource
from codezero.tasks.withheld import Withheld
from codezero.types import FinishReason, Outcome, Reward, Rollout, RolloutGroup, ScoredGroup, Task, TaskOrigin, Verdict

TASKS, A_ROUND = 374, 8
SIZES = (4, 8, 16)
"""The values of G."""
ROLLOUTS, WINDOW, AFTER = 3_000, 500, 1_500
"""The rollouts of a run, those that are counted together, and those before the window that the table shows."""
OWN_GAIN, SHARED_GAIN = 1.0, 0.005
"""The sums that a mixed group adds to the log-odds of its task, and to those of all."""
TARGET = Target(figure="share of mixed groups after 1,500 rollouts, of what knowing every rate gives", at_least=0.8)
FIRST_SEED = 1_000
"""The constants of `tasks/candidates.py` were chosen with seeds 0 to 15 of the measured rates, G = 4, 8 and 16."""
SD_OF_SEEDS = 0.06
"""The expected standard deviation over seeds of the share in a window."""
EXECUTED = "report-0.5B-by-Qwen2.5-Coder-0.5B-Instruct"
WORLDS = ("measured", "measured, learning", "measured, and contests", "executed", "executed, learning")


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """The success rate of every task."""

    log_odds: list[float]
    learns: bool

    def rate(self, task: int) -> float:
        return 1 / (1 + math.exp(-self.log_odds[task]))

    def train(self, task: int) -> None:
        """The policy has learnt from a mixed group."""
        if self.learns:
            self.log_odds[:] = [one + SHARED_GAIN for one in self.log_odds]
            self.log_odds[task] += OWN_GAIN


def make_world(name: str, seed: int) -> World:
    rng = random.Random(seed)
    population, _, more = name.partition(", ")
    if population == "measured":
        rates = [rng.betavariate(0.1, 0.4) for _ in range(TASKS)]
    else:
        counts = [[sample[0] for sample in found] for found in harness.results("calibrate")[EXECUTED].counts.values()]
        drawn = [rng.choice(counts) for _ in range(TASKS)]
        rates = [rng.betavariate(0.5 + found.count("P"), 0.5 + found.count("F")) for found in drawn]
    if more == "and contests":
        rates += [rng.betavariate(0.02, 2) for _ in range(TASKS)]
    bounded = (min(max(rate, 1e-9), 1 - 1e-9) for rate in rates)
    return World(log_odds=[math.log(rate / (1 - rate)) for rate in bounded], learns=more == "learning")


class Oracle:
    """Draws by true rates."""

    def __init__(self, world: World, seed: int) -> None:
        self._world, self._rng = world, random.Random(f"{seed}/oracle")

    def draw(self) -> list[int]:
        rates = map(self._world.rate, range(len(self._world.log_odds)))
        weights = {str(task): rate * (1 - rate) for task, rate in enumerate(rates)}
        found = []
        for _ in range(A_ROUND):
            found.append(int(weighted(weights, self._rng.random())))
            del weights[str(found[-1])]
        return found

    def note(self, right: Sequence[int], size: int) -> None:
        """It knows."""


class Product:
    """A node's own draws, uniform or informative, from a source for each `TASKS` tasks."""

    def __init__(self, informative: bool, num_tasks: int, seed: int) -> None:
        tasks = [Task(origin=TaskOrigin.MBPP, question=str(i), tests="assert True") for i in range(num_tasks)]
        sources = [ListSource(str(i), tasks[i : i + TASKS], seed) for i in range(0, num_tasks, TASKS)]
        drawn = [Informative(one, seed, Withheld()) if informative else one for one in sources]
        self._mixture = Mixture([(one, 1.0) for one in drawn], seed, Counter(), Withheld())
        self._drawn: tuple[Task, ...] = ()

    def draw(self) -> list[int]:
        self._drawn = self._mixture.draw(A_ROUND)
        return [int(task.question) for task in self._drawn]

    def note(self, right: Sequence[int], size: int) -> None:
        self._mixture.note([judged(task, count, size) for task, count in zip(self._drawn, right, strict=True)])


def judged(task: Task, right: int, size: int) -> ScoredGroup:
    """A group of `size` attempts, of which so many are right."""
    correct = [1.0] * right + [0.0] * (size - right)
    attempt = Rollout(text="", finish=FinishReason.STOP)
    return ScoredGroup(
        group=RolloutGroup(peer_id="", model_id="", policy_version=0, task=task, rollouts=(attempt,) * size),
        verdicts=tuple(Verdict(outcome=Outcome.JUDGED, p_correct=p) for p in correct),
        rewards=tuple(Reward(total=p, parts={}) for p in correct),
    )


def simulate(draws: Oracle | Product, world: World, size: int, seed: int) -> tuple[list[float], int]:
    """Expected share of mixed groups in each window, and how many tasks were drawn."""
    rng = random.Random(f"{seed}/attempts")
    windows: list[list[float]] = [[] for _ in range(ROLLOUTS // WINDOW)]
    seen = set()
    for start in range(0, ROLLOUTS - A_ROUND * size + 1, A_ROUND * size):
        tasks = draws.draw()
        rates = [world.rate(task) for task in tasks]
        windows[start // WINDOW] += [1 - rate**size - (1 - rate) ** size for rate in rates]
        right = [sum(rng.random() < rate for _ in range(size)) for rate in rates]
        draws.note(right, size)
        for task, count in zip(tasks, right, strict=True):
            if 0 < count < size:
                world.train(task)
        seen.update(tasks)
    return [fmean(window) for window in windows], len(seen)


def counts(arm: str, seeds: int, piece: str) -> dict[str, list[object]]:
    """Returns the share of mixed groups in each window, and how many tasks were drawn in all, both by seed."""
    world_name, size = piece.rsplit(", G = ", 1)
    shares, seen = [], []
    for seed in range(FIRST_SEED, FIRST_SEED + seeds):
        world = make_world(world_name, seed)
        draws = Oracle(world, seed) if arm == "oracle" else Product(arm == "informative", len(world.log_odds), seed)
        found, num_tasks = simulate(draws, world, int(size), seed)
        shares.append([round(share, 4) for share in found])
        seen.append(num_tasks)
    return {"mixed": shares, "tasks": seen}


def table(results: Mapping[str, Result]) -> str:
    """Shares of mixed groups in the window after 1,500 rollouts, means over seeds."""
    rows = []
    at = AFTER // WINDOW
    for piece in results["informative"].counts:
        mixed = {arm: [windows[at] for windows in result.counts[piece]["mixed"]] for arm, result in results.items()}
        reached = bootstrap([mine / best for mine, best in zip(mixed["informative"], mixed["oracle"], strict=True)])
        world, size = piece.rsplit(", G = ", 1)
        rows.append(
            [
                *(world, size),
                *(f"{fmean(mixed[arm]):.2f}" for arm in ("uniform", "informative", "oracle")),
                f"{reached.value:.2f} [{reached.low:.2f}, {reached.high:.2f}]",
                outcome(TARGET, reached.value, "{:g}"),
                *(f"{fmean(results[arm].counts[piece]['tasks']):.0f}" for arm in ("informative", "oracle")),
            ]
        )
    header = ["rates", "G", "uniform", "informative", "knowing them", "of that", "target", "tasks", "knowing them"]
    return markdown(header, rows)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = harness.parser("draws", __doc__)
    parser.add_argument("--seeds", type=int, default=20, metavar="N", help="runs of each arm (default 20)")
    options = parser.parse_args(arguments)
    for name in ("uniform", "informative", "oracle"):
        arm = Arm(
            benchmark="draws",
            name=name,
            settings={
                "tasks": TASKS,
                "tasks a round": A_ROUND,
                "rollouts": ROLLOUTS,
                "window": WINDOW,
                "seeds": options.seeds,
                "candidates": [SIZE, EXPLORE, KEEP, TEACHES, PRIOR, MOST],
                "gains": [OWN_GAIN, SHARED_GAIN],
            },
            seed=FIRST_SEED,
            pieces=[f"{world}, G = {size}" for world in WORLDS for size in SIZES],
            power=[of_seeds("share of mixed groups", options.seeds, SD_OF_SEEDS)],
            targets=[TARGET],
        )
        harness.run(arm, partial(counts, name, options.seeds), options)
    print(table(harness.results("draws", options.results)))


if __name__ == "__main__":
    main()

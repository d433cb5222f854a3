"""Measures how the difficulty policies find the level that teaches most, with simulated solvers of known skill.

    python -m benchmarks.difficulty        # about a minute

A solver of skill k solves a problem of level l with probability 1 / (1 + exp(-1.5 (k - l + noise))); problems of one
level differ (noise, standard deviation 0.7) and each gets 4 attempts. Signal: share of problems that some attempts
solve and others do not, which is all that GRPO learns from, over all batches, exploration included. `oracle` knows the
skill and is what any policy could at best come to. Only the policies run: there is no model.

Figures: docs/measurements.md#how-good-the-problems-are
"""

from __future__ import annotations

import math
import random
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean
from typing import Protocol

from benchmarks import harness
from benchmarks.harness import Arm, Result
from benchmarks.power import of_seeds
from benchmarks.tables import markdown
from codezero.config import DifficultyPolicy, ProposerConfig
from codezero.evaluate.intervals import bootstrap
from codezero.proposals import LEVELS
from codezero.proposer.difficulty import LevelChoice, difficulty
from codezero.proposer.feedback import JudgedProposal

SLOPE = 1.5
SKILLS = {"weak": 1.0, "medium": 3.0, "strong": 5.0, "between 1 and 2": 1.5, "between 2 and 3": 2.5}
SD_OF_SEEDS = 0.15
"""The expected standard deviation over seeds of the share of groups that teach: `trend` may go the wrong way and stay
there."""

LogOdds = Callable[[int, int], float]
"""(batch, level) -> log-odds of solving a typical problem of that level then."""


class Policy(Protocol):
    def choose(self) -> LevelChoice: ...

    def observe(self, judged: Sequence[JudgedProposal]) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """A model of how solvers answer."""

    log_odds: LogOdds
    batch_size: int = 4
    attempts: int = 4
    noise: float = 0.7
    """Standard deviation of a problem's own difficulty, in levels."""
    answered: float = 1.0
    """Share of problems that get feedback."""
    delay: int = 1
    """Batches until it comes."""

    def best_level(self, batch: int) -> int:
        return min(range(1, len(LEVELS) + 1), key=lambda level: abs(self.log_odds(batch, level)))

    def attempt(self, batch: int, level: int, rng: random.Random) -> JudgedProposal:
        p = 1 / (1 + math.exp(-self.log_odds(batch, level) - SLOPE * rng.gauss(0, self.noise)))
        success = sum(rng.random() < p for _ in range(self.attempts)) / self.attempts
        return JudgedProposal(
            proposal_id=str(rng.random()),
            level=level,
            success=success,
            reward=success + 0.2,
            differed=0 < success < 1,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One simulated run."""

    homes: tuple[int, ...]
    """The level where the policy stood in each batch, exploration aside."""
    mixed: int
    """Groups with right and wrong attempts."""
    groups: int

    @property
    def signal(self) -> float:
        return self.mixed / self.groups

    def changes(self, start: int = 0) -> int:
        """Changes of the home level from batch `start` on."""
        return sum(a != b for a, b in zip(self.homes[start:], self.homes[start + 1 :], strict=False))


class Oracle:
    def __init__(self, world: World) -> None:
        self._world, self._batch = world, -1

    def choose(self) -> LevelChoice:
        self._batch += 1
        return LevelChoice(level=self._world.best_level(self._batch), reason="known")

    def observe(self, judged: Sequence[JudgedProposal]) -> None:
        pass


def simulate(policy: Policy, world: World, batches: int, seed: int = 0) -> Run:
    rng = random.Random(seed)
    pending: deque[list[JudgedProposal]] = deque([[] for _ in range(world.delay)])
    homes, differed = [], []
    for batch in range(batches):
        level = policy.choose().level
        homes.append(getattr(policy, "home", level))
        problems = [world.attempt(batch, level, rng) for _ in range(world.batch_size)]
        differed += [problem.differed for problem in problems]
        pending.append([problem for problem in problems if rng.random() < world.answered])
        policy.observe(pending.popleft())
    return Run(homes=tuple(homes), mixed=sum(differed), groups=len(differed))


def constant(skill: float) -> World:
    return World(log_odds=lambda batch, level: SLOPE * (skill - level))


def changing(skill: Callable[[int], float]) -> World:
    return World(log_odds=lambda batch, level: SLOPE * (skill(batch) - level))


def policies(world: World) -> dict[str, Callable[[], Policy]]:
    configs = {policy.value: ProposerConfig(policy=policy) for policy in DifficultyPolicy}
    made = {name: lambda config=config: difficulty(config) for name, config in configs.items()}
    return {**made, "oracle": lambda: Oracle(world)}


def worlds(batches: int) -> dict[str, World]:
    half = batches // 2
    return {name: constant(skill) for name, skill in SKILLS.items()} | {
        "rising, 1 to 5": changing(lambda batch: 1 + 4 * batch / batches),
        "jump, 1 to 4": changing(lambda batch: 1.0 if batch < half else 4.0),
        "fall, 4 to 1": changing(lambda batch: 4.0 if batch < half else 1.0),
    }


def counts(policy: str, batches: int, seeds: int, name: str) -> dict[str, list[int]]:
    """Returns the number of mixed groups by seed."""
    world = worlds(batches)[name]
    return {"mixed": [simulate(policies(world)[policy](), world, batches, seed).mixed for seed in range(seeds)]}


def table(results: Mapping[str, Result]) -> str:
    """Shares of groups that teach: the mean over seeds with its interval, and the lowest seed's."""
    rows = []
    shares: dict[str, dict[str, list[float]]] = {
        name: {
            world: [mixed / result.settings["groups"] for mixed in found["mixed"]]
            for world, found in result.counts.items()
        }
        for name, result in results.items()
    }
    for world in shares["oracle"]:
        cells = []
        for name in ("target", "trend"):
            found = bootstrap(shares[name][world])
            cells.append(f"{found.value:.2f} [{found.low:.2f}, {found.high:.2f}], {min(shares[name][world]):.2f}")
        rows.append([world, *cells, f"{fmean(shares['oracle'][world]):.2f}"])
    means = [f"{fmean(fmean(found) for found in shares[name].values()):.2f}" for name in ("target", "trend", "oracle")]
    return markdown(["solver", "target, lowest", "trend, lowest", "knowing the skill"], [*rows, ["mean", *means]])


def main(arguments: Sequence[str] | None = None) -> None:
    parser = harness.parser("difficulty", __doc__)
    parser.add_argument("--batches", type=int, default=200)
    parser.add_argument("--seeds", type=int, default=20)
    options = parser.parse_args(arguments)
    made = worlds(options.batches)
    some = made["weak"]
    for policy in policies(some):
        arm = Arm(
            benchmark="difficulty",
            name=policy,
            settings={
                "groups": options.batches * some.batch_size,
                "batches": options.batches,
                "attempts": some.attempts,
                "noise": some.noise,
                "seeds": options.seeds,
            },
            seed=0,
            pieces=list(made),
            power=[of_seeds("share of groups that teach", options.seeds, SD_OF_SEEDS)],
        )
        harness.run(arm, partial(counts, policy, options.batches, options.seeds), options)
    print(table(harness.results("difficulty", options.results)))


if __name__ == "__main__":
    main()

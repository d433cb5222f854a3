"""How the difficulty policies find the level that teaches most, with simulated solvers of known skill.

    python -m benchmarks.difficulty

A solver of skill k solves a problem of level l with probability 1 / (1 + exp(-1.5 (k - l + noise))); problems of one
level differ (noise, standard deviation 0.7) and each gets 4 attempts. Signal: share of problems that some attempts
solve and others do not, which is all that GRPO learns from, over all batches, exploration included. `oracle` knows the
skill and is what any policy could at best come to. Only the policies run: no model, a few seconds.
"""

from __future__ import annotations

import argparse
import math
import random
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Protocol

from codezero.config import DifficultyPolicy, ProposerConfig
from codezero.proposals import LEVELS
from codezero.proposer.difficulty import Choice, difficulty
from codezero.proposer.feedback import JudgedProposal

SLOPE = 1.5
SKILLS = {"weak": 1.0, "medium": 3.0, "strong": 5.0, "between 1 and 2": 1.5, "between 2 and 3": 2.5}

LogOdds = Callable[[int, int], float]
"""(batch, level) -> log-odds of solving a typical problem of that level then."""


class Policy(Protocol):
    def choose(self) -> Choice: ...

    def observe(self, judged: Sequence[JudgedProposal]) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """How solvers answer."""

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
            num_peers=1,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One simulated run, a value a batch."""

    levels: tuple[int, ...]
    homes: tuple[int, ...]
    """The level where the policy stood, exploration aside."""
    signal: float

    def changes(self, start: int = 0) -> int:
        """Changes of the home level from batch `start` on."""
        return sum(a != b for a, b in zip(self.homes[start:], self.homes[start + 1 :], strict=False))


class Oracle:
    def __init__(self, world: World) -> None:
        self._world, self._batch = world, -1

    def choose(self) -> Choice:
        self._batch += 1
        return Choice(level=self._world.best_level(self._batch), reason="known")

    def observe(self, judged: Sequence[JudgedProposal]) -> None:
        pass


def simulate(policy: Policy, world: World, batches: int, seed: int = 0) -> Run:
    rng = random.Random(seed)
    pending: deque[list[JudgedProposal]] = deque([[] for _ in range(world.delay)])
    levels, homes, differed = [], [], []
    for batch in range(batches):
        level = policy.choose().level
        levels.append(level)
        homes.append(getattr(policy, "home", level))
        problems = [world.attempt(batch, level, rng) for _ in range(world.batch_size)]
        differed += [problem.differed for problem in problems]
        pending.append([problem for problem in problems if rng.random() < world.answered])
        policy.observe(pending.popleft())
    return Run(levels=tuple(levels), homes=tuple(homes), signal=fmean(differed))


def constant(skill: float) -> World:
    return World(log_odds=lambda batch, level: SLOPE * (skill - level))


def changing(skill: Callable[[int], float]) -> World:
    return World(log_odds=lambda batch, level: SLOPE * (skill(batch) - level))


def policies(world: World) -> dict[str, Callable[[], Policy]]:
    configs = {policy.value: ProposerConfig(policy=policy) for policy in DifficultyPolicy}
    made = {name: lambda config=config: difficulty(config) for name, config in configs.items()}
    return {**made, "oracle": lambda: Oracle(world)}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.difficulty", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--batches", type=int, default=200)
    parser.add_argument("--seeds", type=int, default=20)
    options = parser.parse_args(arguments)
    half = options.batches // 2
    worlds = {name: constant(skill) for name, skill in SKILLS.items()}
    worlds["rising, 1 to 5"] = changing(lambda batch: 1 + 4 * batch / options.batches)
    worlds["jump, 1 to 4"] = changing(lambda batch: 1.0 if batch < half else 4.0)
    worlds["fall, 4 to 1"] = changing(lambda batch: 4.0 if batch < half else 1.0)
    print(f"{options.batches} batches of 4 problems, {options.seeds} seeds, start at level 2")
    print(f"{'solver':18}{'policy':8}{'signal':>8}{'lowest':>8}{'at best level':>15}{'level changes':>15}")
    means: dict[str, list[float]] = {}
    for name, world in worlds.items():
        for policy, make in policies(world).items():
            runs = [simulate(make(), world, options.batches, seed) for seed in range(options.seeds)]
            signals = [run.signal for run in runs]
            at_best = fmean(home == world.best_level(b) for run in runs for b, home in enumerate(run.homes))
            changes = fmean(run.changes() for run in runs)
            means.setdefault(policy, []).append(fmean(signals))
            print(f"{name:18}{policy:8}{fmean(signals):8.2f}{min(signals):8.2f}{at_best:15.2f}{changes:15.1f}")
    for policy, signals in means.items():
        print(f"{'mean':18}{policy:8}{fmean(signals):8.2f}")


if __name__ == "__main__":
    main()

"""Chooses the level of the next batch of problems by solvers' results on the last ones.

There are two policies: `TargetPolicy` keeps the solvers' success near one half (`tasks.posterior` has its statistics),
`TrendPolicy` is that of the public node. Results may be late, few, and of any level.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from codezero.config import DifficultyPolicy, ProposerConfig
from codezero.errors import StateError
from codezero.proposals import LEVELS
from codezero.proposer.feedback import JudgedProposal
from codezero.tasks.posterior import Posterior, p_nearer

logger = logging.getLogger(__name__)

CONFIDENT = 0.75
"""The posterior probability, estimated conservatively by `Posterior`, from which the home level is outside the band."""
PROBABLE = 0.5
"""The posterior probability from which a level to move to is outside the band. It is lower than for home: otherwise
home could alternate between a too easy and a too hard level, each tried again as its evidence fades."""
CERTAIN = 0.95
"""The posterior probability from which another known level counts as nearer to the middle of the band."""
LEAST_EVIDENCE = 0.5
"""The least evidence, in judged proposals, for any statement about a level."""
KNOWN = 4.0
"""The least evidence, in judged proposals, for comparing a level with home."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelChoice:
    """The level of one batch, and the reason in words."""

    level: int
    reason: str


def difficulty(config: ProposerConfig) -> Difficulty:
    """Returns the policy that the settings name."""
    return TrendPolicy(config) if config.policy is DifficultyPolicy.trend else TargetPolicy(config)


def _require_own(state: Mapping[str, Any], key: str) -> None:
    if key not in state:
        raise StateError("state_dir has the state of another proposer.policy: set that one, or give another state_dir")


class TrendPolicy:
    """The public node's policy. Every `update_every` batches it compares the mean reward of the last `window` judged
    proposals with that of the window before: one level up if it is more than `threshold` higher, one level down if it
    is more than that lower."""

    def __init__(self, config: ProposerConfig) -> None:
        self._config = config
        self._level = config.level
        self._num_batches = 0
        self._reason = "start"
        self._history: deque[tuple[int, float, float]] = deque(maxlen=2 * config.window)  # level, reward, success

    def choose(self) -> LevelChoice:
        """Returns the level of the next batch; called once per batch."""
        if self._num_batches and self._num_batches % self._config.update_every == 0:
            self._decide()
        self._num_batches += 1
        return LevelChoice(level=self._level, reason=self._reason)

    def observe(self, judged: Sequence[JudgedProposal]) -> None:
        """Records new results, of batches of any age and level."""
        self._history.extend((proposal.level, proposal.reward, proposal.success) for proposal in judged)

    def success(self) -> dict[int, float]:
        """Returns the estimated success rate by level, in 0..1, for levels with any evidence."""
        by_level: dict[int, list[float]] = {}
        for level, _, success in self._history:
            by_level.setdefault(level, []).append(success)
        return {level: fmean(by_level[level]) for level in sorted(by_level)}

    def state_dict(self) -> dict[str, Any]:
        """Returns the state as plain JSON values."""
        history = [{"level": level, "reward": reward, "success": success} for level, reward, success in self._history]
        return {"level": self._level, "batches": self._num_batches, "reason": self._reason, "history": history}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restores a state. Raises StateError: it belongs to the other policy."""
        _require_own(state, "history")
        self._level, self._num_batches, self._reason = state["level"], state["batches"], state["reason"]
        self._history.clear()
        self._history.extend((row["level"], row["reward"], row["success"]) for row in state["history"])

    def _decide(self) -> None:
        window = self._config.window
        if len(self._history) < 2 * window:
            self._reason = f"{len(self._history)} of {2 * window} judged proposals"
            return
        rewards = [reward for _, reward, _ in self._history]
        before, now = fmean(rewards[:window]), fmean(rewards[window:])
        step = (now - before > self._config.threshold) - (before - now > self._config.threshold)
        level = min(max(self._level + step, 1), len(LEVELS))
        self._reason = f"mean reward {before:+.2f} -> {now:+.2f}"
        if level != self._level:
            logger.info("difficulty: level %d -> %d: %s", self._level, level, self._reason)
        self._level = level


class TargetPolicy:
    """A policy that stays at a home level while its success rate may be in the band, and moves when the posterior
    probability says that it is not.

    Home moves to the next harder (or easier) level, past levels that are probably too easy (or too hard) as well. If a
    level on the way is probably beyond the band on the other side, home stays, or moves to a known level that is almost
    certainly nearer to the middle of the band. Evidence fades, so that changes of skill are noticed.

    A share `explore` of batches, evenly spaced, is written at the neighbouring level with less evidence. While home is
    outside the band they alternate between the next level on the way and the level with the least evidence of all,
    since a model's levels need not be in order of difficulty.
    """

    def __init__(self, config: ProposerConfig) -> None:
        self._config = config
        self.home = config.level
        self._num_batches = 0
        self._num_explored = 0
        self._levels = {level: Posterior() for level in range(1, len(LEVELS) + 1)}

    def choose(self) -> LevelChoice:
        """Returns the level of the next batch; called once per batch."""
        n, share = self._num_batches, self._config.explore
        self._num_batches += 1
        if int((n + 1) * share) == int(n * share):
            return LevelChoice(level=self.home, reason=self._words(self.home))
        level = self._least_known(self._outside(self.home))
        self._num_explored += 1
        return LevelChoice(level=level, reason=f"exploring beside level {self.home}; {self._words(level)}")

    def observe(self, judged: Sequence[JudgedProposal]) -> None:
        """Records new results, of batches of any age and level."""
        for proposal in judged:
            for level, posterior in self._levels.items():
                if level == proposal.level:
                    posterior.observe(proposal.success, 1 - proposal.success)
                else:
                    posterior.fade()
        target = self._next_home() if judged else self.home
        if target != self.home:
            why = f"{self._words(self.home)}; {self._words(target)}"
            logger.info("difficulty: level %d -> %d: %s", self.home, target, why)
            self.home = target

    def success(self) -> dict[int, float]:
        """Returns the estimated success rate by level, in 0..1, for levels with any evidence."""
        return {level: p.rate for level, p in self._levels.items() if p.evidence >= LEAST_EVIDENCE}

    def state_dict(self) -> dict[str, Any]:
        """Returns the state as plain JSON values."""
        return {
            "home": self.home,
            "batches": self._num_batches,
            "explored": self._num_explored,
            "levels": [p.state_dict() for p in self._levels.values()],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restores a state. Raises StateError: it belongs to the other policy."""
        _require_own(state, "levels")
        self.home, self._num_batches, self._num_explored = state["home"], state["batches"], state["explored"]
        self._levels = {level: Posterior(**row) for level, row in enumerate(state["levels"], start=1)}

    def _outside(self, level: int, confidence: float = CONFIDENT) -> int | None:
        """Returns +1 if the level is too easy, -1 if it is too hard, None if its success may be in the band."""
        posterior = self._levels[level]
        if posterior.evidence < LEAST_EVIDENCE:
            return None
        if posterior.p_above(self._config.band_high) >= confidence:
            return 1
        if 1 - posterior.p_above(self._config.band_low) >= confidence:
            return -1
        return None

    def _least_known(self, out: int | None) -> int:
        """Returns the level to explore; `out` is `_outside` of home."""
        onward = self._levels.keys() & {self.home + out} if out else set()
        everywhere = out is not None and self._num_explored % 2 == 1
        neighbours = {level for level in self._levels if abs(level - self.home) == 1}
        candidates = self._levels.keys() - {self.home} if everywhere else onward or neighbours
        return min(sorted(candidates), key=lambda level: self._levels[level].evidence)

    def _next_home(self) -> int:
        out = self._outside(self.home)
        if out is None:
            return self.home
        onward = self._onward(out)
        return self._nearest_known() if onward is None else onward

    def _onward(self, out: int) -> int | None:
        """Returns the next level in this direction that may be in the band, else the last level if it is probably
        nearer to the band's middle than home; None if not, or if a level beyond the band comes first."""
        level = self.home
        while level + out in self._levels:
            level += out
            side = self._outside(level, confidence=PROBABLE)
            if side is None:
                return level
            if side != out:
                return None
        return level if self._p_nearer(level) >= PROBABLE else None

    def _nearest_known(self) -> int:
        """Returns home, or a known level that is almost certainly nearer to the middle of the band."""
        known = [level for level, p in self._levels.items() if level != self.home and p.evidence >= KNOWN]
        best = max(known, key=self._p_nearer, default=self.home)
        return best if self._p_nearer(best) >= CERTAIN else self.home

    def _p_nearer(self, level: int) -> float:
        """Returns the probability that a level is nearer to the middle of the band than home."""
        middle = (self._config.band_low + self._config.band_high) / 2
        return p_nearer(self._levels[level], self._levels[self.home], middle)

    def _words(self, level: int) -> str:
        posterior = self._levels[level]
        if posterior.evidence < LEAST_EVIDENCE:
            return f"level {level} not known"
        side = {1: "too easy", -1: "too hard", None: "in or near"}[self._outside(level)]
        band = f"{self._config.band_low:.2f}..{self._config.band_high:.2f}"
        return f"level {level} {side} (success {posterior.rate:.2f} of {posterior.evidence:.0f}, band {band})"


Difficulty = TargetPolicy | TrendPolicy
"""A policy that chooses levels, with a state that can be saved."""

"""Scripted stand-ins for the ports, for tests of what calls them, and for a full disk."""

from __future__ import annotations

import resource
from contextlib import contextmanager

from codezero.reports import SkipReason, UpdateReport
from codezero.types import RoundId, SwarmRound
from tests.builders import group, rollout, scored, task


class Calls:
    """All stages in one object: each returns what it was given and notes that it was called."""

    def __init__(self, rewards=((1.0, 0.0),), external=(), rejected=(), skipped=None, score_error=None):
        """rewards: of the own groups; external: (peer id, rewards) of each pooled one, of which the last is chosen."""
        self.rewards, self.external, self.rejected = rewards, external, rejected
        self.skipped, self.score_error = skipped or {}, score_error
        self.calls = []
        self.policy_version = 3

    def draw(self, num_tasks):
        self.calls.append(("draw", num_tasks))
        return (task(),) * num_tasks

    def take_skipped(self):
        skipped, self.skipped = self.skipped, {}
        return skipped

    def solve(self, tasks, policy_version):
        self.calls.append(("solve", len(tasks), policy_version))
        return tuple(group([rollout()] * 2, policy_version=policy_version) for _ in tasks)

    def exchange(self, round_id, groups, elapsed_s):
        self.calls.append(("exchange", round_id.number, len(groups)))
        self.elapsed_s = elapsed_s
        return SwarmRound(
            round_id=round_id,
            local=tuple(groups),
            external=tuple(group([rollout()] * 2, peer_id=peer_id) for peer_id, _ in self.external),
            rejected=self.rejected,
            network="2 peers online" if self.external else "",
        )

    def note(self, groups):
        self.noted = groups

    def score(self, swarm_round):
        self.calls.append(("score", len(swarm_round.local), len(swarm_round.external)))
        if self.score_error:
            raise self.score_error
        own = [scored([rollout()] * len(rewards), rewards) for rewards in self.rewards]
        peers = [
            scored([rollout()] * len(rewards), rewards, external=True, peer_id=name) for name, rewards in self.external
        ]
        return (*own, *peers)

    def give(self, groups):
        self.calls.append(("feedback", len(groups)))

    def choose(self, round_id, groups):
        self.calls.append(("select", round_id.number, len(groups)))
        own = tuple(g for g in groups if not g.external)
        return own + tuple(g for g in groups if g.external)[-1:]

    def stage(self, name):
        pass

    def groups(self, round_id, scored, chosen):
        pass

    def step(self, groups):
        self.calls.append(("learn", len(groups)))
        num_zero = sum(g.scored and not g.has_advantage for g in groups)
        if not any(g.has_advantage for g in groups):
            skipped = SkipReason.ZERO_ADVANTAGE
            return UpdateReport(policy_version=self.policy_version, skipped=skipped, num_zero_advantage=num_zero)
        self.policy_version += 1
        return UpdateReport(
            policy_version=self.policy_version,
            loss=-0.1,
            grad_norm=0.5,
            clip_fraction=0.0,
            num_zero_advantage=num_zero,
        )

    def next_round(self, after):
        return RoundId(number=1 if after is None else after.number + 1)

    def settle(self, round_id, groups):
        self.calls.append(("settle", round_id.number, len(groups)))

    def status(self):
        return ""


@contextmanager
def files_of_at_most(size):
    """A full disk, as far as new files go."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)

"""One round of a node, in the order of its stages. A node repeats it without end.

     ledger: which round is it?                                                      ledger: reward + vote
          │                                                                                           ▲
 tasks ► draw ─Task─► solve ─RolloutGroup─► exchange ─SwarmRound─► score ─ScoredGroup─► select ─► learn ─► settle
                      policy                publish own,           rules + frozen       own, and  GRPO       │
                      (local, batched)      pool peers'            evaluator            J of pool step       ▼
                                                                                                        RoundReport

Data moves one way, one named record per stage. Selection is for learning only: the ledger settles with all scored
groups. Only the policy version in UpdateReport flows back, and the results of tasks to their proposers (`feedback`).
"""

from __future__ import annotations

import resource
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from codezero.evaluate.metrics import averages
from codezero.ports import Gossip, Learner, Ledger, Proposals, Solver, TaskSource
from codezero.reports import RoundReport, UpdateReport
from codezero.types import Memorised, RoundId, ScoredGroup, SwarmRound, TaskOrigin

if TYPE_CHECKING:
    from codezero.evaluate.evaluator import FrozenEvaluator
    from codezero.network.selection import SapoSelection
    from codezero.observe.monitor import RoundMonitor


@dataclass(frozen=True, slots=True, kw_only=True)
class Stages:
    """The parts of a round."""

    tasks: TaskSource
    solver: Solver
    gossip: Gossip
    evaluator: FrozenEvaluator
    feedback: Proposals
    selection: SapoSelection
    learner: Learner
    ledger: Ledger
    observer: RoundMonitor
    policy_lock: AbstractContextManager[object] = field(default_factory=nullcontext)
    """A lock that is held while the policy samples and learns; between, other threads of the node may use it."""
    samples_ahead: bool = False
    """True if the solver samples while earlier rounds are judged and learned from; `solve` then waits for the rest."""


def run_round(round_id: RoundId, stages: Stages, num_tasks: int) -> RoundReport:
    """Plays one round and returns its report. A round without anything to train on is a normal one."""
    clock = StageClock(stages.observer.stage)
    with clock.stage("draw"):
        tasks = stages.tasks.draw(num_tasks)
    with clock.stage("solve"), stages.policy_lock:
        local = stages.solver.solve(tasks, stages.learner.policy_version)
    with clock.stage("exchange"):
        swarm = stages.gossip.exchange(round_id, local, clock.elapsed_s)
    with clock.stage("score"):
        scored = stages.evaluator.score(swarm)
        stages.tasks.note(scored)
        stages.gossip.note(scored)
        stages.feedback.give(scored)
        chosen = stages.selection.choose(round_id, scored)
        stages.observer.groups(round_id, scored, chosen)
    stale = [stages.learner.policy_version - group.policy_version for group in local]
    with clock.stage("learn"), stages.policy_lock:
        update = stages.learner.step(chosen)
    with clock.stage("settle"):
        stages.ledger.settle(round_id, scored)
    skipped = Counter(stages.tasks.take_skipped()) + Counter(stages.solver.take_skipped())
    sampling_s = sum(clock.seconds.values()) if stages.samples_ahead else clock.seconds["solve"]
    report = _report(round_id, swarm, scored, chosen, update, skipped, clock.seconds, sampling_s)
    return replace(report, ledger=stages.ledger.status(), staleness=sum(stale) / len(stale) if stale else 0.0)


class StageClock:
    """A clock of one round: wall seconds by stage, and since the round began."""

    def __init__(self, on_stage: Callable[[str], None]) -> None:
        """`on_stage` is called with the name of each stage as it begins."""
        self._on_stage = on_stage
        self.seconds: dict[str, float] = {}
        self._started = time.perf_counter()

    @property
    def elapsed_s(self) -> float:
        return time.perf_counter() - self._started

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        self._on_stage(name)
        started = time.perf_counter()
        yield
        self.seconds[name] = time.perf_counter() - started


def _report(
    round_id: RoundId,
    swarm: SwarmRound,
    scored: Sequence[ScoredGroup],
    chosen: Sequence[ScoredGroup],
    update: UpdateReport,
    skipped: Mapping[str, int],
    seconds: Mapping[str, float],
    sampling_s: float,
) -> RoundReport:
    own = [group for group in scored if not group.external]
    rewards = [reward for group in own for reward in group.earned]
    external = Counter(group.group.peer_id for group in chosen if group.external)
    average_at_k, pass_at_k = averages(own)
    mixed = [group.is_mixed for group in own if group.scored]
    num_tokens = sum(
        len(r.tokens.completion_ids) for group in swarm.local for r in group.rollouts if r.tokens is not None
    )
    return RoundReport(
        round=round_id.number,
        policy_version=update.policy_version,
        num_local_groups=len(swarm.local),
        num_proposed_groups=sum(group.task.origin is TaskOrigin.PROPOSER for group in swarm.local),
        num_external_groups=external.total(),
        num_replayed_groups=update.num_replayed,
        num_weighted_rollouts=update.num_weighted,
        dropped=_dropped(swarm, scored, update, skipped),
        reward_mean=sum(r.total for r in rewards) / len(rewards) if rewards else None,
        # A part that a rollout does not have counts as 0, so that the parts add up to reward_mean.
        reward_parts={
            name: sum(r.parts.get(name, 0.0) for r in rewards) / len(rewards)
            for name in sorted({name for r in rewards for name in r.parts})
        },
        average_at_k=average_at_k,
        pass_at_k=pass_at_k,
        loss=update.loss,
        grad_norm=update.grad_norm,
        clip_fraction=update.clip_fraction,
        kl=update.kl,
        skipped=update.skipped.value if update.skipped is not None else None,
        num_tokens=num_tokens,
        tokens_per_s=num_tokens / max(sampling_s, 1e-9),
        peak_rss_bytes=_peak_rss_bytes(),
        seconds=dict(seconds),
        num_pooled_groups=len(swarm.external),
        external_groups=dict(sorted(external.items())),
        fresh_tests=_fresh_tests(scored),
        sampler_gap=update.sampler_gap,
        sample_size=update.sample_size,
        mixed=sum(mixed) / len(mixed) if mixed else None,
        network=swarm.network,
        finished_at_s=time.time(),
    )


def _fresh_tests(scored: Sequence[ScoredGroup]) -> dict[str, int]:
    found = [verdict.fresh for group in scored for verdict in group.verdicts]
    counts = Counter(drawn=sum(one.drawn for one in found), passed=sum(one.passed for one in found))
    counts["failed"] = sum(one.failed + one.doubtful for one in found)
    counts["unverified"] = sum(one.unverified for one in found)
    counts["recalled"] = sum(one.recalled is Memorised.YES for one in found)
    return dict(+counts)


def _dropped(
    swarm: SwarmRound, scored: Sequence[ScoredGroup], update: UpdateReport, skipped: Mapping[str, int]
) -> dict[str, int]:
    counts = Counter(skipped)
    counts.update(reason for _, reason in swarm.rejected)
    counts.update(group.refused.value for group in scored if group.refused is not None)
    counts["masked"] += sum(len(group.rewards) - len(group.earned) for group in scored if group.scored)
    counts["unscored"] += sum(not group.scored and group.refused is None for group in scored)
    # The learner counts own groups; of peers' groups it gets only chosen ones, all of which have an advantage.
    lost = sum(group.external and group.scored and not group.has_advantage for group in scored)
    counts["zero_advantage"] += update.num_zero_advantage + lost
    return dict(sorted((+counts).items()))


def _peak_rss_bytes() -> int:
    """Returns the largest resident set of this process so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024  # macOS counts bytes, Linux KiB

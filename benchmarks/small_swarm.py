"""The nodes of `benchmarks.sharing`: one small model each, with the parts of the product that a round has."""

from __future__ import annotations

import copy
import hashlib
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

import torch

from benchmarks import arithmetic
from benchmarks.arithmetic import MAX_ANSWER
from benchmarks.sides import PLAIN
from codezero.config import SwarmConfig, TrainConfig, Weighting
from codezero.llm.load import LoadedModel
from codezero.network import wire
from codezero.network.selection import SapoSelection
from codezero.network.shares import in_turns
from codezero.reports import UpdateReport
from codezero.train import passes
from codezero.train.batch import TextEncoder, batch_limits
from codezero.train.learner import GrpoLearner
from codezero.train.replay import ReplayingLearner
from codezero.types import FinishReason, Outcome, Reward, Rollout, RolloutGroup, RoundId, ScoredGroup, Task, Verdict

NODES, G = 8, 8
FILTER = 4
RATE = 5e-5
"""Learning rate. Alone for 400 to 600 rounds, two nodes gained 3 points at 3e-5, 4 to 5 at 6e-5 and none at 1e-4; at
3e-4 they forgot what they knew."""
WEIGHTED = "-accuracy"
BEHAVIOURS = ("garbage", "copies", "liars", "stale", "takers", "weak", "strong", "newcomers")


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """The settings that the name of an arm stands for: `I/J`, `I/J-filtered`, or `I/J-MANNER-NUMBER`, and
    `-accuracy` after any."""

    num_local: int
    num_external: int
    filters: bool = False
    behaviour: str = ""
    num_deviating: int = 0
    weighting: Weighting = Weighting.none

    @classmethod
    def of(cls, name: str) -> Setup:
        """Returns the setup of an arm's name. Raises ValueError: there is no such arm."""
        shares, _, rest = name.removesuffix(WEIGHTED).partition("-")
        behaviour, _, number = rest.rpartition("-")
        deviate = behaviour in BEHAVIOURS and number.isdecimal() and 0 < int(number) < NODES
        if not re.fullmatch(r"\d+/\d+", shares) or not (rest in ("", "filtered") or deviate):
            raise ValueError(
                f"{name} is no arm: give I/J, I/J-filtered or I/J-WORD-NUMBER, where WORD is one of "
                f"{', '.join(BEHAVIOURS)} and NUMBER that of nodes, below {NODES}"
            )
        num_local, num_external = map(int, shares.split("/"))
        return cls(
            num_local=num_local,
            num_external=num_external,
            filters=rest == "filtered",
            behaviour=behaviour,
            num_deviating=int(number) if behaviour else 0,
            weighting=Weighting.accuracy if name.endswith(WEIGHTED) else Weighting.none,
        )

    def deviates(self, number: int) -> bool:
        """Returns True if the node with this number is one of the last that the name speaks of."""
        return number >= NODES - self.num_deviating

    def is_strong(self, number: int) -> bool:
        return self.behaviour in ("weak", "strong") and self.deviates(number) == (self.behaviour == "strong")


def make_learner(made: LoadedModel, train: TrainConfig, longest: int) -> GrpoLearner:
    """Returns the product's learner of a small model whose completions have at most `longest` tokens."""
    encoder = TextEncoder(
        tokenizer=made.tokenizer,
        encode_prompt=lambda task: made.encode_text(task.question),
        end_token_id=made.end_ids[0],
        max_prompt_length=made.context_length,
        max_completion_length=longest,
    )
    with patch.object(passes, "batch_limits", lambda config, _: batch_limits(config, "cuda")):
        # As on a GPU all prompts share a pass, which with so small a model takes half the time on a CPU too.
        return GrpoLearner(
            made.model, encoder, train, temperature=1.0, max_completion_length=encoder.max_completion_length
        )


class Node:
    def __init__(
        self, number: int, setup: Setup, seed: str, start: LoadedModel, train: TrainConfig | None = None
    ) -> None:
        train = train or replace(PLAIN, learning_rate=RATE)
        self.peer_id, self._setup = f"node-{number}", setup
        self.behaviour = setup.behaviour if setup.deviates(number) else ""
        self.rng = random.Random(seed)
        self._sampling = torch.Generator().manual_seed(self.rng.randrange(2**62))
        self.model = replace(start, model=copy.deepcopy(start.model))
        self._learner = ReplayingLearner(make_learner(self.model, train, MAX_ANSWER), train.replay, number)
        swarm = SwarmConfig(num_external=setup.num_external, weighting=setup.weighting)
        self._selection = SapoSelection(swarm, self.rng.randrange(2**62))
        self.own_tokens = self.num_trained = 0

    def solve(self) -> list[ScoredGroup]:
        """Returns the own groups of a round, scored."""
        wanted, groups = self._setup.num_local, list[ScoredGroup]()
        for _ in range(FILTER if self._setup.filters else 1):
            tasks = [arithmetic.task(self.rng) for _ in range(wanted)]
            sampled = arithmetic.sample(self.model, tasks, G, self._sampling)
            for task, attempts in zip(tasks, sampled, strict=True):
                self.own_tokens += sum(len(one.completion_ids) for one in attempts)
                groups.append(score(self._group(task, [self._rollout(one) for one in attempts])))
            if sum(one.has_advantage for one in groups) >= wanted:
                break
        groups.sort(key=lambda one: not one.has_advantage)
        return groups[:wanted]

    def send(self, own: Sequence[ScoredGroup], others: Sequence[RolloutGroup]) -> list[RolloutGroup]:
        """Returns the groups to publish, made of the own ones and those that others have sent in this round."""
        groups = [one.group for one in own]
        if self.behaviour == "takers":
            return []
        if self.behaviour == "copies":
            copied = self.rng.sample(others, min(len(groups), len(others)))
            return [replace(one, peer_id=self.peer_id) for one in copied]
        if self.behaviour == "garbage":
            return [self._group(one.task, [self._said(self._noise()) for _ in range(G)]) for one in groups]
        if self.behaviour == "liars":
            return [self._lie(one.task) for one in groups]
        return groups

    def learn(
        self, round_number: int, own: Sequence[ScoredGroup], others: Sequence[RolloutGroup]
    ) -> UpdateReport | None:
        if self.behaviour == "stale":
            return None
        turns = in_turns(others, [lambda one: one.address], lambda _: self.rng.random())
        equals = {(one.task.question, one.rollouts): one for one in reversed(turns)}  # of equal groups the first
        pool = [one for one in turns if equals[one.task.question, one.rollouts] is one][: 2 * self._setup.num_external]
        scored = [score(one, external=True) for one in pool]
        chosen = self._selection.choose(RoundId(number=round_number), [*own, *scored])
        self.num_trained += sum(one.has_advantage for one in chosen)
        return self._learner.step(chosen)

    def _group(self, task: Task, rollouts: Sequence[Rollout]) -> RolloutGroup:
        version = self._learner.policy_version
        return RolloutGroup(
            peer_id=self.peer_id, model_id="arithmetic", policy_version=version, task=task, rollouts=tuple(rollouts)
        )

    def _rollout(self, tokens: Any) -> Rollout:
        ended = tokens.completion_ids[-1] in self.model.end_ids
        finish = FinishReason.STOP if ended else FinishReason.LENGTH
        return Rollout(text=arithmetic.text_of(self.model, tokens), finish=finish, tokens=tokens)

    def _said(self, text: str) -> Rollout:
        return Rollout(text=text, finish=FinishReason.STOP)

    def _noise(self) -> str:
        return "".join(self.rng.choices(arithmetic.CHARACTERS, k=MAX_ANSWER - 1))

    def _lie(self, task: Task) -> RolloutGroup:
        """Returns a group of a task whose test is the answer to another, which half of the attempts give."""
        wrong = arithmetic.task(self.rng).tests
        attempts = [wrong, task.tests] * (G // 2)
        return self._group(replace(task, tests=wrong), [self._said(text) for text in attempts])


def score(group: RolloutGroup, *, external: bool = False) -> ScoredGroup:
    """Returns the group with a reward of 1 for the answer that the task's tests have, and else 0."""
    right = [float(rollout.text == group.task.tests) for rollout in group.rollouts]
    verdicts = tuple(Verdict(outcome=Outcome.JUDGED, p_correct=one) for one in right)
    rewards = tuple(Reward(total=one, parts={"correct": one}) for one in right)
    return ScoredGroup(group=group, verdicts=verdicts, rewards=rewards, external=external)


def over_the_wire(groups: Sequence[RolloutGroup], round_number: int) -> list[RolloutGroup]:
    """Returns a peer's groups as others read them from its record."""
    if not groups:
        return []
    body, peer_id = wire.pack_groups(groups), groups[0].peer_id
    announcement = wire.Announcement(
        swarm="sharing",
        topic=wire.ROLLOUTS,
        peer_id=peer_id,
        round=round_number,
        published_at_s=0.0,
        expires_at_s=0.0,
        instance="0" * 16,
        digest=hashlib.sha256(body).digest(),
        size=len(body),
    )
    read, dropped = wire.unpack_groups(body, announcement)
    assert not dropped, dropped
    return [replace(one, address=peer_id) for one in read]


def play_round(nodes: Sequence[Node], number: int) -> None:
    """All solve, then all send, in order of their numbers, then all learn."""
    own = [node.solve() for node in nodes]
    records: dict[str, list[RolloutGroup]] = {}
    for node, groups in zip(nodes, own, strict=True):
        sent = [group for record in records.values() for group in record]
        records[node.peer_id] = over_the_wire(node.send(groups, sent), number)
    for node, groups in zip(nodes, own, strict=True):
        others = [group for peer_id, record in records.items() if peer_id != node.peer_id for group in record]
        node.learn(number, groups, others)

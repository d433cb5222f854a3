"""Adds own past groups to each update: they are neither sampled nor judged again, but are of earlier policies.

    new groups ─► and `num` of those kept ─► Learner ─► the own mixed ones of the new are kept, within bounds

A group is kept with the log-probs at which its tokens were sampled, so that the learner corrects for the updates since
then (`batch.to_sequences`). Its advantages are again those within the group.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import chain
from random import Random
from typing import Any

import torch
from torch import Tensor

from codezero.ports import Learner
from codezero.reports import SkipReason, UpdateReport
from codezero.types import Reward, SampledTokens, ScoredGroup

MAX_STALENESS = 8
"""The number of policy versions after which a group is dropped, as in AstraFlow's recipes for code."""
MAX_GROUPS = 128
"""The number of groups kept; the oldest are dropped. Of sixteen new groups a round this is all within MAX_STALENESS."""
MAX_BYTES = 8 * 2**20
"""The bytes of their tokens and log-probs: 128 groups of eight attempts with 512 and 256 tokens take 5 MB."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Kept:
    """The part of an own group that is trained on, without attempts that do not count."""

    policy_version: int
    rewards: tuple[float, ...]
    """The rewards, [G]."""
    lengths: tuple[tuple[int, int], ...]
    """The numbers P and C of prompt and completion tokens of each attempt, [G]."""
    ids: Tensor
    """The token ids of the attempts one after the other, each prompt before its completion; int32."""
    logprobs: Tensor
    """The log-probs of the completions' tokens; float64, which holds each as it was given."""

    @property
    def num_bytes(self) -> int:
        return self.ids.nbytes + self.logprobs.nbytes


class ReplayingLearner:
    """The implementation of `ports.Learner` that adds own past groups to the updates of another one. Its state is the
    kept groups; the owner of the other learner saves that one's."""

    def __init__(self, learner: Learner, num: int, seed: int) -> None:
        """`num` is the number of past groups in an update; with 0 none is kept. The draw depends on seed, policy
        version and kept groups alone."""
        self._learner, self._num, self._seed = learner, num, seed
        self._kept: list[_Kept] = []
        """The kept groups, the oldest first."""

    @property
    def policy_version(self) -> int:
        return self._learner.policy_version

    def step(self, groups: Sequence[ScoredGroup]) -> UpdateReport:
        """Makes one policy update on the groups and on at most `num` past ones, also if no new one teaches anything.

        Past groups of an update whose loss is not finite are dropped and its new ones not kept, since they would make
        the next one fail too. Raises what the other learner's `step` raises.
        """
        version = self._learner.policy_version
        self._kept = [one for one in self._kept if version - one.policy_version <= MAX_STALENESS]
        drawn = Random(f"{self._seed}/{version}").sample(self._kept, min(self._num, len(self._kept)))
        update = self._learner.step([*groups, *map(_unpacked, drawn)])
        if update.skipped is SkipReason.NOT_FINITE:
            self._kept = [one for one in self._kept if one not in drawn]
        elif self._num:
            self._keep(groups)
        return replace(update, num_replayed=len(drawn) if update.skipped is None else 0)

    def state_dict(self) -> dict[str, Any]:
        """Returns plain values and tensors."""
        return {"groups": [{field.name: getattr(one, field.name) for field in fields(one)} for one in self._kept]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restores the kept groups; there are none in an empty state."""
        self._kept = [_Kept(**row) for row in state.get("groups", ())]

    def _keep(self, groups: Sequence[ScoredGroup]) -> None:
        self._kept += [_packed(one) for one in groups if not one.external and one.is_mixed and one.has_advantage]
        while len(self._kept) > MAX_GROUPS or sum(one.num_bytes for one in self._kept) > MAX_BYTES:
            del self._kept[0]


def _packed(scored: ScoredGroup) -> _Kept:
    attempts = [(rollout.tokens, reward.total) for rollout, _, reward in scored.rewarded if rollout.tokens is not None]
    ids = chain.from_iterable((*tokens.prompt_ids, *tokens.completion_ids) for tokens, _ in attempts)
    logprobs = chain.from_iterable(tokens.logprobs for tokens, _ in attempts)
    return _Kept(
        policy_version=scored.group.policy_version,
        rewards=tuple(reward for _, reward in attempts),
        lengths=tuple((len(tokens.prompt_ids), len(tokens.completion_ids)) for tokens, _ in attempts),
        ids=torch.tensor([*ids], dtype=torch.int32),
        logprobs=torch.tensor([*logprobs], dtype=torch.float64),
    )


def _unpacked(kept: _Kept) -> ScoredGroup:
    ids = iter(torch.split(kept.ids, [*chain.from_iterable(kept.lengths)]))
    logprobs = torch.split(kept.logprobs, [completion for _, completion in kept.lengths])
    tokens = [
        SampledTokens(
            prompt_ids=tuple(next(ids).tolist()), completion_ids=tuple(next(ids).tolist()), logprobs=tuple(row.tolist())
        )
        for row in logprobs
    ]
    rewards = [Reward(total=total, parts={"total": total}) for total in kept.rewards]
    return ScoredGroup.of_tokens(tokens, rewards, policy_version=kept.policy_version)

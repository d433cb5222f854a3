"""Trains the writer of problems: drafts are kept until solvers have judged them, and then compared with each other.

    draft ─► kept with the policy version it was sampled by ─► JudgedProposal ─► reward ─► per level a group ─► Learner
             rejected by the checks: rewarded at once

The drafts of one level are one group of GRPO, although their prompts ask for different topics: the requests are of the
same kind, and few drafts share a prompt. Each is trained on with its own prompt.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from codezero.ports import Learner
from codezero.proposer.feedback import JudgedProposal
from codezero.reports import UpdateReport
from codezero.types import Reward, SampledTokens, ScoredGroup

MAX_DRAFTS = 256
"""The number of drafts kept, about 50 KB each; the oldest are dropped, which solvers no longer find."""
MAX_LAG = 8
"""The number of policy versions after which a draft is not trained on: the ratio to the policy that sampled it, which
the clip range holds near 1, corrects only for small steps. The number is a choice without a source."""
INVALID_REWARD = -0.5
"""The reward of a draft that the checks reject: less than that of a valid problem that teaches nothing. The number is a
choice without a source."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """The result of a batch's learning."""

    update: UpdateReport
    reward_mean: float | None
    """The mean reward of the drafts trained on; None without any."""


@dataclass(slots=True, kw_only=True)
class _Kept:
    level: int
    tokens: SampledTokens
    proposal_id: str | None
    """The id of the published proposal; None if the checks rejected the draft."""
    policy_version: int
    reward: float | None
    """The draft's reward; None until it is judged."""


def learnability(success: float) -> float:
    """Returns the reward of a judged draft, 4 s (1 - s) for solvers' success rate s in 0..1: 1 at one half, 0 where all
    attempts succeed or none do.

    This is the variance of an attempt's outcome, scaled to 1: the learnability of Rutherford et al. (arXiv 2408.15099),
    used for language models by Foster et al. (arXiv 2502.12272).
    """
    return 4 * success * (1 - success)


class ProposalLearner:
    """Rewards drafts by learnability and trains their writer on them, once each."""

    def __init__(self, learner: Learner) -> None:
        """`learner` trains the model that writes; its owner saves its state."""
        self._learner = learner
        self._kept: list[_Kept] = []

    def keep(self, level: int, tokens: SampledTokens, proposal_id: str | None) -> None:
        """Adds a draft that the present policy has just written; `proposal_id` is None if the checks rejected it."""
        version, reward = self._learner.policy_version, INVALID_REWARD if proposal_id is None else None
        kept = _Kept(level=level, tokens=tokens, proposal_id=proposal_id, policy_version=version, reward=reward)
        self._kept = [*self._kept, kept][-MAX_DRAFTS:]

    def learn(self, judged: Sequence[JudgedProposal]) -> Lesson:
        """Makes one update on all levels whose rewarded drafts differ in reward; the drafts of others are kept.

        Rejected drafts are kept as well, since a group of only these teaches nothing. Drafts of an update that was
        skipped are not used again, since they would make the next one fail too. Raises what `Learner.step` raises.
        """
        by_id = {proposal.proposal_id: proposal for proposal in judged}
        for draft in self._kept:
            if draft.reward is None and (found := by_id.get(draft.proposal_id or "")):
                # Where strong solvers always succeed and weak ones never do, it teaches none of them.
                draft.reward = learnability(found.success) if found.differed else 0.0
        oldest = self._learner.policy_version - MAX_LAG
        self._kept = [draft for draft in self._kept if draft.policy_version >= oldest]
        rewarded: dict[int, list[tuple[_Kept, float]]] = {}
        for draft in self._kept:
            if draft.reward is not None:
                rewarded.setdefault(draft.level, []).append((draft, draft.reward))
        taught = {level for level, members in rewarded.items() if len({reward for _, reward in members}) > 1}
        self._kept = [draft for draft in self._kept if draft.reward is None or draft.level not in taught]
        rewards = [reward for level in taught for _, reward in rewarded[level]]
        update = self._learner.step([_group(rewarded[level]) for level in sorted(taught)])
        return Lesson(update=update, reward_mean=fmean(rewards) if rewards else None)

    def state_dict(self) -> dict[str, Any]:
        """Returns plain JSON values."""
        return {"drafts": [_saved(draft) for draft in self._kept]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restores the drafts."""
        self._kept = [_loaded(row) for row in state["drafts"]]


def _group(members: Sequence[tuple[_Kept, float]]) -> ScoredGroup:
    return ScoredGroup.of_tokens(
        [draft.tokens for draft, _ in members],
        [Reward(total=reward, parts={"learnability": reward}) for _, reward in members],
        # The oldest version: if any draft is of an earlier policy, all ratios are against the sampled log-probs, which
        # is right for the new drafts as well.
        policy_version=min(draft.policy_version for draft, _ in members),
    )


def _saved(draft: _Kept) -> dict[str, Any]:
    return {
        "level": draft.level,
        "id": draft.proposal_id,
        "prompt_ids": list(draft.tokens.prompt_ids),
        "completion_ids": list(draft.tokens.completion_ids),
        "logprobs": list(draft.tokens.logprobs),
        "policy_version": draft.policy_version,
        "reward": draft.reward,
    }


def _loaded(row: Mapping[str, Any]) -> _Kept:
    tokens = SampledTokens(
        prompt_ids=tuple(row["prompt_ids"]),
        completion_ids=tuple(row["completion_ids"]),
        logprobs=tuple(row["logprobs"]),
    )
    return _Kept(
        level=row["level"],
        tokens=tokens,
        proposal_id=row["id"],
        policy_version=row["policy_version"],
        reward=row["reward"],
    )

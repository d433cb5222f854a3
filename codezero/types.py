"""The records that the stages of a round give to each other, in the order in which they are made.

All are frozen, keyword-only and hold tuples. In shapes, G counts rollouts in a group, P prompt and C completion tokens.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Annotated

from msgspec import Meta

from codezero.proposals import Proposal

SOLO_PEER_ID = "local"
"""The peer id of a node without a network."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundId:
    """The number of a round, as the ledger counts them. Made by the ledger, read by all."""

    number: int
    stage: int = 0


class TaskOrigin(str, Enum):
    """The source of a task. The values are the names used on the wire (docs/wire.md)."""

    MBPP = "mbpp"
    CODE_CONTESTS = "code_contests"
    BUILTIN = "builtin"
    PROPOSER = "proposer"
    ENVIRONMENT = "environment"
    """A module that the node's user has named (`tasks.modules`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One problem, of programming unless it has an environment. Made by tasks, read by the solver and evaluate."""

    origin: TaskOrigin
    question: str
    """The text that the solver is asked, with tests if they are needed to know the function's name."""
    tests: str
    """Assert statements, one per line, or the input/output table of a stdin program as text; never executed here. Of
    an environment's task it is the answer that its rule compares with."""
    difficulty: int | None = None
    """The level from 1 (beginner) to 5 (expert); None if the source does not say."""
    environment: str = ""
    """The name of the environment whose task it is; empty for codezero's own programming problems."""
    proposal: Proposal | None = None
    """The proposal behind the task, for feedback to its proposer; None for other tasks and those that peers sent."""

    @property
    def task_id(self) -> str:
        """The MD5 of the question in hex, which is the `batch_id` of the GenRL wire format."""
        return hashlib.md5(self.question.encode(), usedforsecurity=False).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledTokens:
    """The token ids of one completion exactly as sampled, never tokenised again. Made by llm, read by train."""

    prompt_ids: tuple[int, ...]
    """The prompt's token ids, [P]."""
    completion_ids: tuple[int, ...]
    """The completion's token ids, [C], with the end token if the model gave one."""
    logprobs: tuple[float, ...]
    """The log-probability of each completion token under the sampling policy at the sampling temperature, [C]."""


class FinishReason(str, Enum):
    """The reason why a completion ended."""

    STOP = "stop"
    """The model gave its end token."""
    LENGTH = "length"
    """The token limit cut the completion off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollout:
    """One attempt at a task. Made by the solver (with tokens) or received from a peer (text only)."""

    text: str
    finish: FinishReason
    tokens: SampledTokens | None = None
    """The sampled tokens; None for peers' rollouts, whose text is encoded with the node's own tokenizer."""
    logprobs: bytes = b""
    """The log-probs of the text's tokens as its author publishes them (`train.claims`), of a peer's rollout unchecked;
    empty without, also if encoding the text gives other tokens than were sampled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutGroup:
    """All G attempts of one peer at one task. Made by the solver and network, read by evaluate."""

    peer_id: str
    model_id: str
    policy_version: int
    task: Task
    rollouts: tuple[Rollout, ...]
    """The attempts, [G]."""
    address: str = ""
    """For a peer's group: the network address that it came from, as observed and not as claimed."""
    signed: bool = False
    """For a peer's group: True if its author signed it."""
    address_is_certain: bool = False
    """For a peer's group: True if it is signed and its author is connected from `address` directly, without a relay."""
    age: int = 0
    """For a peer's group: its age in rounds of this node; 0 if it was published since the last exchange."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SwarmRound:
    """All groups of a round before scoring. Made by network, read by evaluate."""

    round_id: RoundId
    local: tuple[RolloutGroup, ...]
    external: tuple[RolloutGroup, ...] = ()
    """The pool: groups of peers, of which selection takes J after scoring. Addresses take turns in it, and so do the
    peers of one address, in random order."""
    rejected: tuple[tuple[str, str], ...] = ()
    """The pair (peer id, reason) of every dropped record or group."""
    network: str = ""
    """The state of the network in a few words, for the round's line; empty for a node that trains alone by choice."""


class Outcome(str, Enum):
    """The outcome of judging one rollout."""

    JUDGED = "judged"
    NO_TEXT = "no_text"
    """A peer sent data that is not text."""
    NO_CODE = "no_code"
    """The rollout has no fenced Python block to judge."""
    UNSURE = "unsure"
    """Neither the dry run nor the judge can tell if the rollout is right."""
    UNAVAILABLE = "unavailable"
    """The evaluator gave no judgement."""


class CaseOutcome(str, Enum):
    """The outcome of one test case of a task."""

    PASS = "pass"
    FAIL = "fail"
    UNKNOWN = "unknown"
    """Neither passed nor failed for certain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult:
    """The result of one test case, from the dry run or from execution."""

    outcome: CaseOutcome
    reason: Annotated[str, Meta(max_length=240)] = ""
    """The reason for any outcome but `PASS`, in a few words; partly untrusted text. A worker's reply with a longer one
    is refused."""


class Memorised(str, Enum):
    """The result of a check for memorised examples, made on programs that pass them if there are no other tests."""

    NOT_CHECKED = "untried"
    """The check was not needed or not possible; the attempt counts as its tests say."""
    NO = "none"
    """No sign of memorised examples."""
    YES = "table"
    """For an example the program takes branches that no other input takes, or all inputs on one of its branches get
    the example's answer; or a function gives one value for all new inputs, and several for the visible ones."""
    UNKNOWN = "untold"
    """The program cannot be followed on enough other inputs, or its answer is one that anybody might guess."""


Count = Annotated[int, Meta(ge=0)]
"""A number of things; a worker's reply with a negative one is refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FreshCases:
    """The counts of fresh tests, which the author cannot know, for an attempt that passes its visible tests. Drawn
    tests that no count has were left out, because attempts agree with each other against the reference."""

    drawn: Count = 0
    passed: Count = 0
    failed: Count = 0
    """Failed tests that another attempt of the group passes."""
    doubtful: Count = 0
    """Failed tests that only the reference passes."""
    unknown: Count = 0
    """Tests with an unknown outcome."""
    constant: bool = False
    """True if some tests are doubtful and the attempt gives one value for all where the reference gives several."""
    recalled: Memorised = Memorised.NOT_CHECKED
    """The finding on whether it seems to contain the answers to the visible tests."""
    unverified: bool = False
    """True if nothing speaks for the attempt but tests that its author was shown, or hidden ones that all expect one
    output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The judgement of one rollout. Made by evaluate."""

    outcome: Outcome
    p_correct: float | None = None
    """The predicted probability that all tests pass; None unless judged or unsure."""
    rules: Mapping[str, float] = field(default_factory=dict)
    """The score in 0..1 of each static rule, by its name."""
    reasons: Mapping[str, str] = field(default_factory=dict)
    """The reasons for rules' scores below 1, by the rule's name."""
    cases: tuple[CaseResult, ...] = ()
    """The results of the dry run or of the execution of the test cases; empty without either."""
    fresh: FreshCases = FreshCases()
    reply: str = ""
    """The evaluator's raw reply, for the log; untrusted text."""

    @property
    def is_decided(self) -> bool:
        """True if the verdict is neither unsure nor unavailable."""
        return self.outcome not in (Outcome.UNSURE, Outcome.UNAVAILABLE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reward:
    """The reward of one rollout. `total` is the sum of `parts`."""

    total: float
    parts: Mapping[str, float]


class Refusal(str, Enum):
    """The reason why a group was not judged; the values are the words in reports."""

    HOSTILE = "hostile"
    """The group ended the process that read it, and again alone in a process of its own."""
    UNREAD = "unread"
    """Other groups of the same author ended processes in this round."""
    UNASKED = "unasked"
    """Dry runs did not decide the group, and the round's limit of judge questions on peers' groups is used up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredGroup:
    """A group with its judgement. Made by evaluate, read by train and ledger."""

    group: RolloutGroup
    verdicts: tuple[Verdict, ...]
    """The verdicts on the attempts, [G]."""
    rewards: tuple[Reward | None, ...]
    """The rewards, [G], None for a masked attempt, which nothing could judge; empty for a group that was refused or
    whose evaluator was unavailable: an outage is never a reward."""
    external: bool = False
    refused: Refusal | None = None
    programs: bytes = b""
    """The fingerprint of its programs, equal for a copy with other names; empty if they are too short for one."""
    weight: float = 1.0
    """The factor of its advantages in an update."""

    @classmethod
    def of_tokens(
        cls, tokens: Iterable[SampledTokens | None], rewards: Sequence[Reward | None], *, policy_version: int
    ) -> ScoredGroup:
        """Returns a group of this node's own with what a learner reads of it, but no texts or task. A reward of None
        masks an attempt."""
        group = RolloutGroup(
            peer_id="self",
            model_id="",
            policy_version=policy_version,
            task=Task(origin=TaskOrigin.BUILTIN, question="", tests=""),
            rollouts=tuple(Rollout(text="", finish=FinishReason.STOP, tokens=one) for one in tokens),
        )
        verdicts = tuple(Verdict(outcome=Outcome.JUDGED if reward else Outcome.UNSURE) for reward in rewards)
        return cls(group=group, verdicts=verdicts, rewards=tuple(rewards))

    @property
    def rewarded(self) -> tuple[tuple[Rollout, Verdict, Reward], ...]:
        """The attempts that count, with their verdicts and rewards. Masked ones do not; if only one of several is
        left, none counts, since there is nothing to compare it with."""
        attempts = zip(self.group.rollouts, self.verdicts, self.rewards, strict=False)  # no rewards: no attempts
        found = tuple((rollout, verdict, reward) for rollout, verdict, reward in attempts if reward is not None)
        return found if len(found) >= min(2, len(self.rewards)) else ()

    @property
    def earned(self) -> tuple[Reward, ...]:
        """The rewards of the attempts that count."""
        return tuple(reward for _, _, reward in self.rewarded)

    @property
    def scored(self) -> bool:
        """True if any attempt counts."""
        return bool(self.rewarded)

    @property
    def num_correct(self) -> int:
        """The number of counted attempts whose predicted probability of being right is at least one half."""
        return sum(verdict.p_correct is not None and verdict.p_correct >= 0.5 for _, verdict, _ in self.rewarded)

    @property
    def is_mixed(self) -> bool:
        """True if some attempts are right and some wrong by their verdicts. Rewards that differ show less, since they
        depend on rules of style too."""
        return 0 < self.num_correct < len(self.rewarded)

    @property
    def has_advantage(self) -> bool:
        """True if the group's rewards differ, so that it can be learned from."""
        return len({reward.total for reward in self.earned}) > 1

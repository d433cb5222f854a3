"""The records that stages of a round hand to each other, in the order in which they come to be.

All are frozen, keyword-only and hold tuples. In shapes, G is rollouts in a group, P prompt and C completion tokens.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from codezero.proposals import Proposal

SOLO_PEER_ID = "local"
"""What a node without a network calls itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundId:
    """Which round of the swarm: the ledger's count. Made by the ledger, read by all."""

    number: int
    stage: int = 0


class TaskOrigin(str, Enum):
    """Where a task comes from. The values are the names used on the wire (SPEC §2)."""

    MBPP = "mbpp"
    CODE_CONTESTS = "code_contests"
    BUILTIN = "builtin"
    PROPOSER = "proposer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One programming problem. Made by tasks, read by rollout and evaluate."""

    origin: TaskOrigin
    question: str
    """What the solver is asked, tests included where they are needed to know the function's name."""
    tests: str
    """Assert statements one a line, or the text of an input/output table for stdin programs; never executed here."""
    difficulty: int | None = None
    """1 (beginner) to 5 (expert), None where the source does not say."""
    proposal: Proposal | None = None
    """What the task was made of, for feedback to its proposer; None for other tasks, and for those that peers sent."""

    @property
    def task_id(self) -> str:
        """md5 of the question in hex: the `batch_id` of the GenRL wire format (SPEC §2)."""
        return hashlib.md5(self.question.encode(), usedforsecurity=False).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledTokens:
    """The ids of one completion exactly as sampled. Made by llm, read by train; never re-tokenised."""

    prompt_ids: tuple[int, ...]
    """[P]"""
    completion_ids: tuple[int, ...]
    """[C], the end token included when the model gave one."""
    logprobs: tuple[float, ...]
    """[C], log-probability of each id under the sampling policy, at the sampling temperature."""


class FinishReason(str, Enum):
    """How a completion ended."""

    STOP = "stop"
    """The model gave its end token."""
    LENGTH = "length"
    """The token limit cut it off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollout:
    """One attempt at a task. Made by rollout (with tokens) or received from a peer (text only)."""

    text: str
    finish: FinishReason
    tokens: SampledTokens | None = None
    """None for peers' rollouts: peers send text, and text is re-encoded with our tokenizer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutGroup:
    """All G attempts of one peer at one task. Made by rollout and network, read by evaluate."""

    peer_id: str
    model_id: str
    policy_version: int
    task: Task
    rollouts: tuple[Rollout, ...]
    """[G]"""
    address: str = ""
    """For a peer's group: the network address that is answerable for it, as seen and not as claimed."""
    answerable: bool = False
    """For a peer's group: whether its author has signed it and is connected to us from `address`, through no relay."""
    age: int = 0
    """For a peer's group: how many of our own rounds ago it was published; 0 is since the last exchange."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SwarmRound:
    """What a round has to train on, before scoring. Made by network, read by evaluate."""

    round_id: RoundId
    local: tuple[RolloutGroup, ...]
    external: tuple[RolloutGroup, ...] = ()
    """The pool: groups of peers, of which selection takes J after scoring. Addresses, and peers within one, take turns
    in it, in an order drawn by lot."""
    rejected: tuple[tuple[str, str], ...] = ()
    """(peer id, reason) of every dropped record or group."""
    network: str = ""
    """The state of the network in a few words, for the round's line; empty for a node that trains alone by choice."""


class Outcome(str, Enum):
    """What became of judging one rollout."""

    JUDGED = "judged"
    NO_TEXT = "no_text"
    """A peer sent something that is not text."""
    NO_CODE = "no_code"
    """There is no fenced Python block to judge."""
    UNSURE = "unsure"
    """Neither the dry run nor the judge can tell whether it is right."""
    UNAVAILABLE = "unavailable"
    """The evaluator gave no judgement."""


class CaseOutcome(str, Enum):
    """What became of one test case of a task."""

    PASS = "pass"
    FAIL = "fail"
    UNKNOWN = "unknown"
    """It could not be told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult:
    """One test case, walked through or executed."""

    outcome: CaseOutcome
    reason: str = ""
    """Why not `PASS`, in a few words; untrusted text in part."""
    p_correct: float | None = None
    """Predicted probability that an `UNKNOWN` case passes, where the judge could tell."""


class Recalled(str, Enum):
    """What a program seems to know of the examples that it passes, where no other test is at hand."""

    UNTRIED = "untried"
    """There was no need to look, or no way."""
    NONE = "none"
    TABLE = "table"
    """It goes a way with an example that it goes with no other input, or prints its answer whatever comes that way."""
    UNTOLD = "untold"
    """It goes through too few other inputs, or its answer is one that anybody might guess."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FreshCases:
    """How an attempt that passes its tests did on fresh ones, which its author cannot know. What is neither passed nor
    failed nor unknown was left out: attempts agree with each other against the reference."""

    drawn: int = 0
    passed: int = 0
    failed: int = 0
    """Failed, and another attempt of the group passes them."""
    doubtful: int = 0
    """Failed, and nothing but the reference says that they can be passed."""
    unknown: int = 0
    """It could not be told."""
    constant: bool = False
    """Whether it gives one value for all of them, where some are doubtful and the reference gives several."""
    recalled: Recalled = Recalled.UNTRIED
    unverified: bool = False
    """Whether nothing but tests that it was shown speaks for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The judgement of one rollout. Made by evaluate."""

    outcome: Outcome
    p_correct: float | None = None
    """Predicted probability that all tests pass; None unless judged or unsure."""
    rules: Mapping[str, float] = field(default_factory=dict)
    """Score in 0..1 of each static rule, by name."""
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Why a rule's score is below 1, by its name."""
    cases: tuple[CaseResult, ...] = ()
    """What the dry run, or the execution, of each test case came to; empty without one."""
    fresh: FreshCases = FreshCases()
    reply: str = ""
    """The evaluator's raw reply, for the log; untrusted text."""

    @property
    def tells(self) -> bool:
        """Whether it says what the attempt is worth."""
        return self.outcome not in (Outcome.UNSURE, Outcome.UNAVAILABLE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reward:
    """What one rollout earns. `total` is the sum of `parts`."""

    total: float
    parts: Mapping[str, float]


class Refusal(str, Enum):
    """Why a group was not judged; the word that reports count it under."""

    HOSTILE = "hostile"
    """It ends whatever process reads it, for the second time and alone in a process of its own."""
    UNREAD = "unread"
    """Its author's other groups have done so in this round."""
    UNASKED = "unasked"
    """Dry runs left it open, and the judge was asked about as much of peers' groups as it may be in this round."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredGroup:
    """A group with its judgement. Made by evaluate, read by train and ledger."""

    group: RolloutGroup
    verdicts: tuple[Verdict, ...]
    """[G]"""
    rewards: tuple[Reward | None, ...]
    """[G], None for a masked attempt, of which nothing could tell whether it is right; empty for a group that was
    refused, or left whole to an evaluator that was unavailable: an outage is never a reward."""
    external: bool = False
    refused: Refusal | None = None
    programs: bytes = b""
    """Fingerprint of its programs, that of a copy under other names too; empty where they are too short to tell."""

    @property
    def rewarded(self) -> tuple[tuple[Rollout, Verdict, Reward], ...]:
        """The attempts that count, with their verdicts and rewards. Masked ones are as if they had never been made;
        where only one of several is left, there is nothing to compare it with and none counts."""
        attempts = zip(self.group.rollouts, self.verdicts, self.rewards, strict=False)  # no rewards: no attempts
        found = tuple((rollout, verdict, reward) for rollout, verdict, reward in attempts if reward is not None)
        return found if len(found) >= min(2, len(self.rewards)) else ()

    @property
    def earned(self) -> tuple[Reward, ...]:
        """The rewards of the attempts that count."""
        return tuple(reward for _, _, reward in self.rewarded)

    @property
    def scored(self) -> bool:
        """Whether any attempt counts."""
        return bool(self.rewarded)

    @property
    def num_correct(self) -> int:
        """Attempts that the evaluator finds more likely right than wrong, of those that count."""
        return sum(verdict.p_correct is not None and verdict.p_correct >= 0.5 for _, verdict, _ in self.rewarded)

    @property
    def is_mixed(self) -> bool:
        """Whether some attempts are right and some wrong, by their verdicts. That rewards differ says less, since rules
        of style tell attempts apart too."""
        return 0 < self.num_correct < len(self.rewarded)

    @property
    def has_advantage(self) -> bool:
        """Whether the group can teach anything: its rewards differ."""
        return len({reward.total for reward in self.earned}) > 1


class SkipReason(str, Enum):
    """Why a round made no update. Each is a normal outcome, not an error."""

    NO_GROUPS = "no scored groups"
    ZERO_ADVANTAGE = "every group has equal rewards"
    NOT_FINITE = "loss or gradient is not finite"


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateReport:
    """What one policy update did. Made by train, read by observe."""

    policy_version: int
    skipped: SkipReason | None = None
    detail: str = ""
    """For a skipped update: what was found, in words."""
    loss: float | None = None
    kl: float | None = None
    """Mean KL estimate against the reference per token, None when beta is 0."""
    clip_fraction: float | None = None
    """Share of trained tokens whose ratio was clipped."""
    grad_norm: float | None = None
    """Global gradient norm before clipping (of the last optimizer step)."""
    num_tokens: int = 0
    """Completion tokens trained on."""
    num_zero_advantage: int = 0
    """Groups left out because all their rewards are equal."""
    sampler_gap: float | None = None
    """Median of |log-prob of the learner - that of the sampler| over own trained tokens; None without any."""
    sample_size: float | None = None
    """Effective sample size of own tokens, as a share of them, where the learner takes them for its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """Proof that the ledger took a round's reward and vote."""

    round_id: RoundId
    reward: float
    winners: tuple[str, ...]
    reference: str
    """Row id or transaction hash."""
    settled_at_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundReport:
    """A finished round in numbers: one line of `logs/rounds.jsonl`. Made by loop, read by observe.

    The denominators: rewards are means over the local rollouts that were scored; average@k and pass@k are means over
    the scored local groups, k of each its rollouts that were scored, and read one as correct when its predicted
    probability is at least one half.
    """

    round: int
    policy_version: int
    num_local_groups: int
    num_external_groups: int
    """J: peers' groups trained on."""
    dropped: Mapping[str, int]
    """Groups and tasks left out, by reason; under `masked`, attempts of scored groups."""
    reward_mean: float | None
    reward_parts: Mapping[str, float]
    average_at_k: float | None
    pass_at_k: float | None
    loss: float | None
    grad_norm: float | None
    clip_fraction: float | None
    kl: float | None
    skipped: str | None
    """Why there was no update, None if there was one."""
    num_tokens: int
    """Completion tokens generated."""
    tokens_per_s: float
    """Generated completion tokens per second of the solve stage."""
    peak_rss_bytes: int
    seconds: Mapping[str, float]
    """Wall seconds by stage: draw, solve, exchange, score, learn, settle."""
    num_pooled_groups: int = 0
    """Peers' groups that were judged; num_external_groups of them were trained on."""
    external_groups: Mapping[str, int] = field(default_factory=dict)
    """Groups trained on by the peer id they came from."""
    num_proposed_groups: int = 0
    """Of the local groups, those whose tasks a proposer of the swarm wrote."""
    fresh_tests: Mapping[str, int] = field(default_factory=dict)
    """Fresh tests that attempts were walked over: `drawn`, `passed`, `failed`. Of attempts that pass: `unverified`
    where only tests that their authors were shown speak for them, `recalled` if they seem to know these by heart."""
    network: str = ""
    """The state of the network in a few words; empty for a node that trains alone by choice."""
    ledger: str = ""
    """What keeps rewards from the ledger, in words; empty while nothing does."""
    judge_score: float | None = None
    """The judge service's latest score that no report had yet, perhaps for an earlier round; None for none."""
    judge: str = ""
    """Why the judge service gave no score, in words; empty while it does."""
    market: str = ""
    """What keeps the node from playing the prediction market, in words; empty while nothing does."""
    sampler_gap: float | None = None
    """How far sampler and learner are apart, in nats a token (`UpdateReport`); None where nothing own was learned."""
    sample_size: float | None = None
    """What is left of the sample by that: 1 is all of it."""
    mixed: float | None = None
    """Share of the scored local groups in which some attempts are right and some wrong; None without any."""
    finished_at_s: float = 0.0
    """Unix time at which it was over; 0 in reports of versions that did not note it."""

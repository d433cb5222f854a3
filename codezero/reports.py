"""Updates, batches and finished rounds in numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum


class SkipReason(str, Enum):
    """The reason why a round made no update. Each is a normal outcome, not an error."""

    NO_GROUPS = "no scored groups"
    ZERO_ADVANTAGE = "every group has equal rewards"
    NOT_FINITE = "loss or gradient is not finite"


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateReport:
    """The result of one policy update. Made by train, read by observe."""

    policy_version: int
    skipped: SkipReason | None = None
    loss: float | None = None
    kl: float | None = None
    """The mean KL estimate per token against the reference; None if beta is 0."""
    clip_fraction: float | None = None
    """The share of trained tokens whose ratio was clipped, in 0..1."""
    grad_norm: float | None = None
    """The global gradient norm before clipping, in the last optimizer step."""
    num_zero_advantage: int = 0
    """The number of groups left out because all their rewards are equal."""
    num_replayed: int = 0
    """The number of own past groups that were trained on again."""
    num_weighted: int = 0
    """The number of peers' attempts that counted by the log-probs which came with them."""
    sampler_gap: float | None = None
    """The median of |log-prob of learner - log-prob of sampler| over own trained tokens, in nats; None without any."""
    sample_size: float | None = None
    """The effective sample size of own tokens under the learner, as a share of their number in 0..1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SolverReport:
    """The part of a batch in which a solver learns beside a test writer. Shares are over the attempts that could be
    judged; None if there are none."""

    num_attempts: int
    """The number of first attempts."""
    right: float | None
    num_second: int
    """The number of second attempts, at wrong solutions that were refused."""
    second_right: float | None
    num_tokens: int = 0
    """The number of tokens of all attempts."""
    policy_version: int
    loss: float | None
    grad_norm: float | None
    skipped: str | None
    """The reason why there was no update; None if there was one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CasesReport:
    """A test writer's batch in numbers: one line of `logs/cases.jsonl`. Made by verifier, read by observe.

    Shares and means are over the answers that are not masked; None if there are none.
    """

    batch: int
    num_groups: int
    """The number of problems with a candidate for which cases were written."""
    num_answers: int
    num_masked: int
    """The number of answers that could not be judged."""
    candidates_right: float | None
    """The share of answers whose candidate is right."""
    valid: float | None
    """The share of answers whose cases the reference solution passes."""
    approved: float | None
    """The share of answers whose cases the candidate passes."""
    right: float | None
    """The share of answers that are valid and approve of a right candidate, or refuse a wrong one."""
    reward_mean: float | None
    reward_approving: float | None
    """The mean reward that cases which everybody passes would have earned."""
    dropped: Mapping[str, int]
    """Numbers of tasks that were drawn and not used, by reason."""
    policy_version: int
    loss: float | None
    grad_norm: float | None
    skipped: str | None
    """The reason why there was no update; None if there was one."""
    num_tokens: int
    """The number of tokens of the answers."""
    seconds: Mapping[str, float]
    """Wall seconds by stage: draw, solve, score, cases, try, again (of a solver that is trained too), learn."""
    finished_at_s: float
    """Unix time of the batch's end, in seconds."""
    solver: SolverReport | None = None
    """The solver that is trained too; None without `verifier.train_solver`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundReport:
    """A finished round in numbers: one line of `logs/rounds.jsonl`. Made by loop, read by observe.

    Rewards are means over the local rollouts that were scored. average@k and pass@k are means over the local groups
    that were scored, where k is the number of the group's scored rollouts and a rollout counts as correct if its
    predicted probability is at least one half.
    """

    round: int
    policy_version: int
    num_local_groups: int
    num_external_groups: int
    """The number of peers' groups trained on, J."""
    dropped: Mapping[str, int]
    """Numbers of groups and tasks left out, by reason; under `masked` the number of attempts of scored groups."""
    reward_mean: float | None
    reward_parts: Mapping[str, float]
    average_at_k: float | None
    pass_at_k: float | None
    loss: float | None
    grad_norm: float | None
    clip_fraction: float | None
    kl: float | None
    skipped: str | None
    """The reason why there was no update; None if there was one."""
    num_tokens: int
    """The number of completion tokens generated."""
    tokens_per_s: float
    """Generated completion tokens per second of the solve stage; of the whole round if they were sampled ahead."""
    peak_rss_bytes: int
    seconds: Mapping[str, float]
    """Wall seconds by stage: draw, solve, exchange, score, learn, settle."""
    num_pooled_groups: int = 0
    """The number of peers' groups that were judged; num_external_groups of them were trained on."""
    external_groups: Mapping[str, int] = field(default_factory=dict)
    """Numbers of groups trained on, by the id of the peer that they came from."""
    num_proposed_groups: int = 0
    """The number of local groups whose tasks were written by a proposer of the swarm."""
    num_replayed_groups: int = 0
    """The number of own past groups that were trained on again; num_local_groups counts the new ones."""
    fresh_tests: Mapping[str, int] = field(default_factory=dict)
    """Numbers of fresh tests: `drawn`, `passed`, `failed`. Numbers of passing attempts: `unverified` if they passed
    only tests that their authors were shown, `recalled` if they seem to have memorised the examples."""
    network: str = ""
    """The state of the network in a few words; empty for a node that trains alone by choice."""
    ledger: str = ""
    """The reason why rewards do not reach the ledger, in words; empty without a problem."""
    judge_score: float | None = None
    """The judge service's latest score that no report had yet, perhaps for an earlier round; None if there is none."""
    judge: str = ""
    """The reason why the judge service gave no score, in words; empty without a problem."""
    market: str = ""
    """The reason why the node cannot play the prediction market, in words; empty without a problem."""
    sampler_gap: float | None = None
    """The difference of sampler and learner in nats (`UpdateReport.sampler_gap`); None without own trained tokens."""
    sample_size: float | None = None
    """The effective sample size as a share of own tokens, in 0..1 (`UpdateReport.sample_size`)."""
    staleness: float = 0.0
    """The mean number of updates between the weights that own attempts were sampled with and those that learned."""
    num_weighted_rollouts: int = 0
    """The number of peers' attempts that counted by the log-probs which came with them (`swarm.logprobs`)."""
    mixed: float | None = None
    """The share of scored local groups in which some attempts are right and some wrong; None without any."""
    finished_at_s: float = 0.0
    """Unix time of the round's end, in seconds; 0 in reports of versions that did not record it."""

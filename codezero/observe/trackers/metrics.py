"""Reports as named numbers for all trackers.

Names are `section/quantity`, with the unit at the end if there is one. They have only words of codezero: no peer id or
other text from outside is part of a name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from codezero.observe.probes import Learning
from codezero.proposals import BatchReport
from codezero.types import RoundReport

MAX_WORD = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One number of a round or a batch."""

    name: str
    """Name in TensorBoard and Weights & Biases, such as `time/solve_s`."""
    value: float
    family: str
    """Name in Prometheus, such as `codezero_stage_seconds`; metrics of one family differ in their label."""
    help: str
    label: tuple[str, str] | None = None
    counts: bool = False
    """True for a count, which Prometheus sums since the start of the node."""


def round_metrics(report: RoundReport, learning: Learning | None = None) -> list[Metric]:
    """Returns the metrics of a solver's round after those of its probes, without those that there are not."""
    stages = ("codezero_stage_seconds", "Wall seconds of the last round by stage", "stage")
    return [
        *(_learning(learning) if learning is not None else ()),
        _one("round/number", report.round, "codezero_round", "Number of the last finished round"),
        _count("round/finished", 1, "codezero_rounds", "Rounds finished since the node started"),
        *_optional("reward/mean", report.reward_mean, "codezero_reward_mean", "Mean reward of own solutions"),
        *_each("reward/", report.reward_parts, "codezero_reward_part_mean", "Mean of each part of the reward", "part"),
        *_optional("eval/pass_at_k", report.pass_at_k, "codezero_pass_at_k_ratio", "Predicted pass@k, own groups"),
        *_optional(
            "eval/average_at_k", report.average_at_k, "codezero_average_at_k_ratio", "Predicted average@k, own groups"
        ),
        *_optional("eval/mixed", report.mixed, "codezero_mixed_ratio", "Own groups both right and wrong, as predicted"),
        *_training(report.loss, "codezero"),
        *_optional("train/grad_norm", report.grad_norm, "codezero_train_grad_norm", "Gradient norm before clipping"),
        *_optional(
            "train/clip_fraction",
            report.clip_fraction,
            "codezero_train_clip_ratio",
            "Share of tokens that were clipped",
        ),
        *_optional("train/kl", report.kl, "codezero_train_kl_nats", "KL estimate a token against the reference"),
        *_optional(
            "train/sampler_gap", report.sampler_gap, "codezero_sampler_gap_nats", "Median |learner - sampler| a token"
        ),
        *_optional(
            "train/sample_size", report.sample_size, "codezero_sample_size_ratio", "Effective sample size of own tokens"
        ),
        _one("train/updated", report.skipped is None, "codezero_train_updated", "1 if the last round had an update"),
        _one("train/policy_version", report.policy_version, "codezero_policy_version", "Updates of the policy"),
        _count("rollout/tokens", report.num_tokens, "codezero_generated_tokens", "Completion tokens generated"),
        _one(
            "rollout/tokens_per_s",
            report.tokens_per_s,
            "codezero_generated_tokens_per_second",
            "Completion tokens a second of the solve stage",
        ),
        _one("swarm/local_groups", report.num_local_groups, "codezero_local_groups", "Own groups (I)"),
        _one("swarm/proposed_groups", report.num_proposed_groups, "codezero_proposed_groups", "Of them, by proposers"),
        _one("swarm/pooled_groups", report.num_pooled_groups, "codezero_pooled_groups", "Peers' groups judged"),
        _one(
            "swarm/external_groups", report.num_external_groups, "codezero_external_groups", "Of them, trained on (J)"
        ),
        _one("swarm/peers", len(report.external_groups), "codezero_peers", "Peers whose groups were trained on"),
        *_each("dropped/", report.dropped, "codezero_dropped", "Groups and tasks left out", "reason", counts=True),
        *_optional("judge/score", report.judge_score, "codezero_judge_score", "Latest score by the judge service"),
        *_each("trouble/", _troubles(report), "codezero_trouble", "1 while this keeps from doing its part", "of"),
        _one("system/peak_rss_bytes", report.peak_rss_bytes, "codezero_peak_rss_bytes", "Largest resident set so far"),
        *_each("time/", report.seconds, *stages, suffix="_s"),
        _one("time/round_s", sum(report.seconds.values()), "codezero_round_seconds", "Wall seconds of the last round"),
    ]


def batch_metrics(report: BatchReport) -> list[Metric]:
    """Returns the metrics of a proposer's batch, without those that the batch does not have."""
    stages = ("codezero_proposer_stage_seconds", "Wall seconds of the last batch by stage", "stage")
    return [
        _one("batch/number", report.batch, "codezero_proposer_batch", "Number of the last finished batch"),
        _count("batch/finished", 1, "codezero_proposer_batches", "Batches finished since the proposer started"),
        _one("proposer/level", report.level, "codezero_proposer_level", "Level of the last batch, 1 to 5"),
        _count("proposer/written", report.num_written, "codezero_proposer_written", "Problems written"),
        _count("proposer/valid", report.num_valid, "codezero_proposer_valid", "Problems published"),
        _count("proposer/judged", report.num_judged, "codezero_proposer_judged", "Problems that solvers answered"),
        *_optional(
            "proposer/signal_share",
            report.signal_share,
            "codezero_proposer_signal_ratio",
            "Share of them that solvers had both right and wrong",
        ),
        *_each(
            "proposer/success_level_",
            report.success,
            "codezero_proposer_success_ratio",
            "Estimated success of the solvers by level",
            "level",
        ),
        *_each(
            "rejected/", report.rejected, "codezero_proposer_rejected", "Problems not published", "reason", counts=True
        ),
        *_each("dropped/", report.dropped, "codezero_proposer_dropped", "Feedback not used", "reason", counts=True),
        *_optional("reward/mean", report.reward_mean, "codezero_proposer_reward_mean", "Mean reward of own problems"),
        *_training(report.loss, "codezero_proposer"),
        *_each("time/", report.seconds, *stages, suffix="_s"),
        _one(
            "time/batch_s",
            sum(report.seconds.values()),
            "codezero_proposer_batch_seconds",
            "Wall seconds of the last batch",
        ),
    ]


def _learning(found: Learning) -> Iterator[Metric]:
    if found.passes:
        newest = found.passes[-1]
        yield _one("probe/sampled", newest.sampled, "codezero_probe_sampled_ratio", "Held-out problems solved at T=1")
        yield _one("probe/greedy", newest.greedy, "codezero_probe_greedy_ratio", "Held-out problems solved greedily")
    if found.gain is not None:
        change = found.gain.change
        for name, value in (("value", change.value), ("low", change.low), ("high", change.high)):
            text = "Change of the first since the start, and its interval over all looks"
            yield replace(_one(f"probe/gain_{name}", value, "codezero_probe_gain_ratio", text), label=("of", name))


def _troubles(report: RoundReport) -> dict[str, float]:
    told = {"ledger": report.ledger, "judge": report.judge, "market": report.market}
    return {name: float(text != "") for name, text in told.items()}


def _training(loss: float | None, prefix: str) -> Iterator[Metric]:
    return _optional("train/loss", loss, f"{prefix}_train_loss", "Loss of the last update")


def _one(name: str, value: float, family: str, text: str) -> Metric:
    return Metric(name=name, value=float(value), family=family, help=text)


def _count(name: str, value: float, family: str, text: str) -> Metric:
    return Metric(name=name, value=float(value), family=family, help=text, counts=True)


def _optional(name: str, value: float | None, family: str, text: str) -> Iterator[Metric]:
    if value is not None:
        yield _one(name, value, family, text)


def _each(
    prefix: str,
    values: Mapping[str, float],
    family: str,
    text: str,
    label: str,
    *,
    suffix: str = "",
    counts: bool = False,
) -> Iterator[Metric]:
    words: dict[str, float] = {}
    for key, value in values.items():
        words[_word(key)] = words.get(_word(key), 0.0) + value
    for word, value in words.items():
        yield Metric(
            name=f"{prefix}{word}{suffix}",
            value=value,
            family=family,
            help=text,
            label=(label, word),
            counts=counts,
        )


def _word(text: str) -> str:
    """Returns a reason or part in the form of a name: `mbpp_no_tests` for "mbpp: no tests"."""
    return re.sub(r"[^a-z0-9]+", "_", text.lower())[:MAX_WORD].strip("_") or "other"

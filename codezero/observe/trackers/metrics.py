"""Reports as named numbers for all trackers.

Names are `section/quantity`, with the unit at the end if there is one. They have only words of codezero: no peer id or
other text from outside is part of a name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from codezero.observe.probes import Learning
from codezero.proposals import BatchReport
from codezero.reports import CasesReport, RoundReport

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


_ROUND = (
    ("round/number", "round", "round", "Number of the last finished round"),
    ("reward/mean", "reward_mean", "reward_mean", "Mean reward of own solutions"),
    ("eval/pass_at_k", "pass_at_k", "pass_at_k_ratio", "Predicted pass@k, own groups"),
    ("eval/average_at_k", "average_at_k", "average_at_k_ratio", "Predicted average@k, own groups"),
    ("eval/mixed", "mixed", "mixed_ratio", "Own groups both right and wrong, as predicted"),
    ("train/loss", "loss", "train_loss", "Loss of the last update"),
    ("train/grad_norm", "grad_norm", "train_grad_norm", "Gradient norm before clipping"),
    ("train/clip_fraction", "clip_fraction", "train_clip_ratio", "Share of tokens that were clipped"),
    ("train/kl", "kl", "train_kl_nats", "KL estimate a token against the reference"),
    ("train/sampler_gap", "sampler_gap", "sampler_gap_nats", "Median |learner - sampler| a token"),
    ("train/sample_size", "sample_size", "sample_size_ratio", "Effective sample size of own tokens"),
    ("train/replayed_groups", "num_replayed_groups", "replayed_groups", "Own past groups trained on again"),
    ("train/policy_version", "policy_version", "policy_version", "Updates of the policy"),
    (
        "rollout/tokens_per_s",
        "tokens_per_s",
        "generated_tokens_per_second",
        "Completion tokens a second of solving, or of the round if sampled ahead",
    ),
    ("swarm/local_groups", "num_local_groups", "local_groups", "Own groups (I)"),
    ("swarm/proposed_groups", "num_proposed_groups", "proposed_groups", "Of them, by proposers"),
    ("swarm/pooled_groups", "num_pooled_groups", "pooled_groups", "Peers' groups judged"),
    ("swarm/external_groups", "num_external_groups", "external_groups", "Of them, trained on (J)"),
    ("judge/score", "judge_score", "judge_score", "Latest score by the judge service"),
    ("system/peak_rss_bytes", "peak_rss_bytes", "peak_rss_bytes", "Largest resident set so far"),
)
_BATCH = (
    ("batch/number", "batch", "batch", "Number of the last finished batch"),
    ("proposer/level", "level", "level", "Level of the last batch, 1 to 5"),
    ("proposer/signal_share", "signal_share", "signal_ratio", "Share of judged problems with mixed attempts"),
    ("reward/mean", "reward_mean", "reward_mean", "Mean reward of own problems"),
    ("train/loss", "loss", "train_loss", "Loss of the last update"),
)
_WRITER = (
    ("tests/problems", "num_problems", "tested", "Problems of the last batch that a test writer wrote test cases for"),
    ("tests/cases", "num_cases", "cases", "Test cases that it wrote"),
    ("tests/valid", "num_valid", "valid_cases", "Of them, those that the problem's own solution passes"),
    ("tests/with_one", "num_with_one", "discriminated", "Problems with a test that an attempt fails"),
    ("tests/with_three", "num_with_three", "well_discriminated", "Problems with three or more"),
)
_CASES = (
    ("batch/number", "batch", "batch", "Number of the last finished batch"),
    ("reward/mean", "reward_mean", "reward_mean", "Mean reward of own test cases"),
    ("reward/approving", "reward_approving", "reward_approving", "Mean reward of cases that everybody passes"),
    ("verifier/valid", "valid", "valid_ratio", "Share of answers that the reference passes"),
    ("verifier/right", "right", "right_ratio", "Share of answers with the right diagnosis"),
    ("verifier/approved", "approved", "approved_ratio", "Share of answers that the candidate passes"),
    ("verifier/candidates_right", "candidates_right", "candidates_right_ratio", "Share whose candidate is right"),
    ("train/loss", "loss", "train_loss", "Loss of the last update"),
    ("train/grad_norm", "grad_norm", "train_grad_norm", "Gradient norm before clipping"),
    ("train/policy_version", "policy_version", "policy_version", "Updates of the policy"),
)
_SOLVER = (
    ("solver/right", "right", "solver_right_ratio", "Share of the solver's first attempts that are right"),
    ("solver/second_right", "second_right", "solver_second_right_ratio", "Share of second attempts that are right"),
    ("solver/loss", "loss", "solver_train_loss", "Loss of the solver's last update"),
    ("solver/grad_norm", "grad_norm", "solver_train_grad_norm", "Its gradient norm before clipping"),
    ("solver/policy_version", "policy_version", "solver_policy_version", "Updates of the solver"),
)
"""The numbers that a report has as they are: name, field, family without its first words, and help."""


def round_metrics(report: RoundReport, learning: Learning | None = None) -> list[Metric]:
    """Returns the metrics of a solver's round after those of its probes; quantities without a value are left out."""
    stages = ("codezero_stage_seconds", "Wall seconds of the last round by stage", "stage")
    return [
        *_learning(learning, "codezero"),
        *_fields(report, _ROUND, "codezero"),
        _count("round/finished", 1, "codezero_rounds", "Rounds finished since the node started"),
        *_each("reward/", report.reward_parts, "codezero_reward_part_mean", "Mean of each part of the reward", "part"),
        _one("train/updated", report.skipped is None, "codezero_train_updated", "1 if the last round had an update"),
        _count("rollout/tokens", report.num_tokens, "codezero_generated_tokens", "Completion tokens generated"),
        _one("swarm/peers", len(report.external_groups), "codezero_peers", "Peers whose groups were trained on"),
        *_each("dropped/", report.dropped, "codezero_dropped", "Groups and tasks left out", "reason", counts=True),
        *_each("trouble/", _troubles(report), "codezero_trouble", "1 while this part has a problem", "of"),
        *_each("time/", report.seconds, *stages, suffix="_s"),
        _one("time/round_s", sum(report.seconds.values()), "codezero_round_seconds", "Wall seconds of the last round"),
    ]


def batch_metrics(report: BatchReport) -> list[Metric]:
    """Returns the metrics of a proposer's batch; quantities without a value are left out."""
    own = "codezero_proposer"
    stages = (f"{own}_stage_seconds", "Wall seconds of the last batch by stage", "stage")
    levels = (f"{own}_success_ratio", "Estimated success of the solvers by level", "level")
    return [
        *_fields(report, _BATCH, own),
        *(_fields(report.writer, _WRITER, own) if report.writer is not None else ()),
        _count("batch/finished", 1, f"{own}_batches", "Batches finished since the proposer started"),
        _count("proposer/written", report.num_written, f"{own}_written", "Problems written"),
        _count("proposer/valid", report.num_valid, f"{own}_valid", "Problems published"),
        _count("proposer/judged", report.num_judged, f"{own}_judged", "Problems that solvers answered"),
        *_each("proposer/success_level_", report.success, *levels),
        *_each("rejected/", report.rejected, f"{own}_rejected", "Problems not published", "reason", counts=True),
        *_each("dropped/", report.dropped, f"{own}_dropped", "Feedback not used", "reason", counts=True),
        *_each("time/", report.seconds, *stages, suffix="_s"),
        _one("time/batch_s", sum(report.seconds.values()), f"{own}_batch_seconds", "Wall seconds of the last batch"),
    ]


def cases_metrics(report: CasesReport, learning: Learning | None = None) -> list[Metric]:
    """Returns the metrics of a test writer's batch after those of its solver's probes; quantities without a value are
    left out."""
    own = "codezero_verifier"
    stages = (f"{own}_stage_seconds", "Wall seconds of the last batch by stage", "stage")
    return [
        *_learning(learning, own),
        *_fields(report, _CASES, own),
        *(_fields(report.solver, _SOLVER, own) if report.solver is not None else ()),
        _count("batch/finished", 1, f"{own}_batches", "Batches finished since the test writer started"),
        _count("verifier/answers", report.num_answers, f"{own}_answers", "Answers of test cases written"),
        _count("verifier/masked", report.num_masked, f"{own}_masked", "Answers that could not be judged"),
        _count("rollout/tokens", report.num_tokens, f"{own}_generated_tokens", "Tokens of the answers"),
        _one("train/updated", report.skipped is None, f"{own}_train_updated", "1 if the last batch had an update"),
        *_each("dropped/", report.dropped, f"{own}_dropped", "Tasks drawn and not used", "reason", counts=True),
        *_each("time/", report.seconds, *stages, suffix="_s"),
        _one("time/batch_s", sum(report.seconds.values()), f"{own}_batch_seconds", "Wall seconds of the last batch"),
    ]


def _learning(found: Learning | None, prefix: str) -> Iterator[Metric]:
    if found is None:
        return
    if found.passes:
        newest = found.passes[-1]
        yield _one("probe/sampled", newest.sampled, f"{prefix}_probe_sampled_ratio", "Held-out problems solved at T=1")
        yield _one("probe/greedy", newest.greedy, f"{prefix}_probe_greedy_ratio", "Held-out problems solved greedily")
    if found.gain is not None:
        change = found.gain.change
        for name, value in (("value", change.value), ("low", change.low), ("high", change.high)):
            text = "Change of the first since the start, and its interval over all looks"
            yield replace(_one(f"probe/gain_{name}", value, f"{prefix}_probe_gain_ratio", text), label=("of", name))


def _troubles(report: RoundReport) -> dict[str, float]:
    told = {"ledger": report.ledger, "judge": report.judge, "market": report.market}
    return {name: float(text != "") for name, text in told.items()}


def _one(name: str, value: float, family: str, text: str) -> Metric:
    return Metric(name=name, value=float(value), family=family, help=text)


def _count(name: str, value: float, family: str, text: str) -> Metric:
    return Metric(name=name, value=float(value), family=family, help=text, counts=True)


def _fields(report: object, rows: Sequence[tuple[str, str, str, str]], prefix: str) -> Iterator[Metric]:
    for name, field, family, text in rows:
        if (value := getattr(report, field)) is not None:
            yield _one(name, value, f"{prefix}_{family}", text)


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

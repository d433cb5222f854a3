"""Fits codezero/evaluate/calibration.yaml: what a model finds of executed solutions, against whether they passed.

    codezero eval --dataset mbpp --path mbpp.jsonl --split train --samples 4 --out samples
    python -m benchmarks.calibrate samples/results.jsonl --model Qwen2.5-Coder-1.5B-Instruct

The judge is asked about what a dry run leaves open, so each solution is fitted as if its dry run had stopped before
each of its tests, as often before one as before another; where it would have decided by then the judge is not asked.
One that really stops has stopped where it did.

Prints how well each feature, and some sets of them, tell right from wrong on problems that they were not fitted on, and
the model's entry. Problems of MBPP must be of the splits to fit on (`benchmarks.splits`). `total` is not in the entry:
where its AUC is that of `tokens`, it says how long a solution is.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.evaluator import Sample, read_samples
from benchmarks.measure import machine
from benchmarks.splits import FITTING
from codezero.config.load import load_config
from codezero.evaluate.backends.base import Review, Reviewer
from codezero.evaluate.build import LARGE_JUDGE, judge_alone
from codezero.evaluate.calibration import prompt_hash
from codezero.evaluate.dryrun import dry_run
from codezero.evaluate.examine import shown_to_judge
from codezero.evaluate.judge import features_of
from codezero.prompts import evaluator as prompt
from codezero.prompts import solver
from codezero.runtime.console import Console
from codezero.tasks.testcases import parse_tests
from codezero.types import CaseOutcome, CaseResult

L2 = 1.0
"""Weight of the penalty on the weights of standardised features."""
FOLDS = 5
"""Parts of the problems, each of which is told of by what was fitted on the others."""
FITTED = {"likelihood": ("margin", "mean", "passed"), "logit": ("margin", "passed")}
COMPARED = (*FITTED.values(), ("margin", "mean"), ("margin", "mean", "total"), ("margin", "mean", "total", "passed"))


@dataclass(frozen=True, slots=True)
class Rows:
    """Solutions, each at every point where its dry run could have stopped."""

    features: dict[str, np.ndarray]
    """[N] each, as `calibration.features`, and `tokens`: how many the solution has."""
    right: np.ndarray
    """[N], 1 or 0"""
    weight: np.ndarray
    """[N], at most 1 in all for each solution."""
    problem: np.ndarray
    """[N], of int"""

    def columns(self, names: Sequence[str]) -> np.ndarray:
        """[N, names]"""
        return np.stack([self.features[name] for name in names], 1)


def stops(cases: Sequence[CaseResult]) -> tuple[list[float], float]:
    """The shares of tests passed at which a dry run that finds these cases could have stopped without having decided,
    and the weight of each."""
    outcomes = [case.outcome for case in cases]
    num_cases = max(len(outcomes), 1)
    if CaseOutcome.FAIL not in outcomes and outcomes.count(CaseOutcome.PASS) < num_cases:
        return [outcomes.count(CaseOutcome.PASS) / num_cases], 1.0
    seen = (outcomes[:number] for number in range(num_cases))
    return [one.count(CaseOutcome.PASS) / num_cases for one in seen if CaseOutcome.FAIL not in one], 1 / num_cases


def rows_of(asked: Sequence[tuple[Sample, Review, Sequence[CaseResult]]]) -> Rows:
    """Of solutions, what the judge said of each, and what its dry run found."""
    numbers = {group: number for number, group in enumerate(dict.fromkeys(sample.group for sample, *_ in asked))}
    found, right, weights, problems = [], [], [], []
    for sample, review, cases in asked:
        shares, weight = stops(cases)
        for passed in shares:
            found.append({**features_of(review, passed), "tokens": float(len(review.logprobs))})
            right.append(float(sample.right))
            weights.append(weight)
            problems.append(numbers[sample.group])
    features = {name: np.array([one[name] for one in found]) for name in found[0]}
    return Rows(features, np.array(right), np.array(weights), np.array(problems))


def logistic_regression(x: np.ndarray, y: np.ndarray, weight: np.ndarray | float = 1.0) -> np.ndarray:
    """[F + 1] weights for raw features [N, F] and the intercept, by Newton's method on standardised ones. `weight` of
    each row. A feature that is the same everywhere gets 0."""
    mean, std = x.mean(0), np.where(x.std(0) > 0, x.std(0), 1.0)
    a = np.c_[(x - mean) / std, np.ones(len(x))]
    penalty = L2 * np.r_[np.ones(x.shape[1]), 1e-9]
    w = np.zeros(a.shape[1])
    for _ in range(50):
        p = 1 / (1 + np.exp(-a @ w))
        gradient = a.T @ (weight * (p - y)) + penalty * w
        w -= np.linalg.solve((a * (weight * p * (1 - p))[:, None]).T @ a + np.diag(penalty), gradient)
    raw = w[:-1] / std
    return np.r_[raw, w[-1] - raw @ mean]


def held_out(rows: Rows, names: Sequence[str]) -> np.ndarray:
    """[N] probabilities, of each row by weights that were fitted on other problems."""
    x, p = rows.columns(names), np.empty(len(rows.right))
    for fold in range(FOLDS):
        out = rows.problem % FOLDS == fold
        w = logistic_regression(x[~out], rows.right[~out], rows.weight[~out])
        p[out] = 1 / (1 + np.exp(-(x[out] @ w[:-1] + w[-1])))
    return p


def auc(score: np.ndarray, rows: Rows) -> float:
    """Probability that a right row is above a wrong one, both drawn by weight; ties count one half."""
    right, wrong = rows.right == 1, rows.right == 0
    above = (score[right][:, None] > score[wrong]) + 0.5 * (score[right][:, None] == score[wrong])
    weight = rows.weight[right][:, None] * rows.weight[wrong]
    return float((above * weight).sum() / weight.sum())


def log_loss(p: np.ndarray, rows: Rows) -> float:
    """Mean over rows by weight, in nats."""
    p = np.clip(p, 1e-12, 1 - 1e-12)
    losses = -(rows.right * np.log(p) + (1 - rows.right) * np.log(1 - p))
    return float((losses * rows.weight).sum() / rows.weight.sum())


def report(rows: Rows, model: str) -> None:
    """Prints the table and the model's entry."""
    for name, score in rows.features.items():
        print(f"{name:28} AUC {auc(score, rows):.3f}")
    for names in COMPARED:
        p = held_out(rows, names)
        print(f"{' '.join(names):28} AUC {auc(p, rows):.3f}, log loss {log_loss(p, rows):.3f}, on other problems")
    num_problems = len(np.unique(rows.problem))
    print(f"prompt: {prompt_hash()}\nmodels:\n  {model}:  # {len(rows.right)} rows of {num_problems} problems")
    for entry, names in FITTED.items():
        weights = logistic_regression(rows.columns(names), rows.right, rows.weight)
        pairs = zip((*names, "intercept"), weights, strict=True)
        print(f"    {entry}: {{{', '.join(f'{name}: {weight:.4f}' for name, weight in pairs)}}}")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.calibrate", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("samples", type=Path, nargs="+", help="results of codezero eval")
    parser.add_argument("--model", default=LARGE_JUDGE, help="the judge")
    options = parser.parse_args(arguments)
    backend = judge_alone(load_config([f"evaluator.model={options.model}"]), Console())
    assert isinstance(backend, Reviewer)
    asked = []
    for sample in (one for path in options.samples for one in read_samples(path, splits=FITTING)):
        code = solver.parse(sample.text)
        if code is None:
            continue
        shown = shown_to_judge(sample.task, code)
        chat = prompt.review_messages(shown.question, shown.tests, shown.code)
        (review,) = backend.review([chat], (prompt.YES, prompt.NO))
        if review is not None:
            asked.append((sample, review, dry_run(code, parse_tests(sample.task.tests))))
    print(f"machine: {machine()}")
    report(rows_of(asked), options.model)


if __name__ == "__main__":
    main()

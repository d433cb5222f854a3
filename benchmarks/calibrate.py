"""Fits codezero/evaluate/calibration.yaml: what a model finds of executed solutions, against whether they passed.

    codezero eval --dataset mbpp --path mbpp.jsonl --split train --samples 4 --out samples
    python -m benchmarks.calibrate samples/results.jsonl --model Qwen2.5-Coder-1.5B-Instruct

Prints the model's entry. The problems must be of the splits to fit on (`benchmarks.splits`).
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.evaluator import read_samples
from benchmarks.measure import machine
from benchmarks.quality import auc, judged_of, ranking_accuracy
from benchmarks.splits import FITTING
from codezero.config.load import load_config
from codezero.evaluate.backends.base import Reviewer
from codezero.evaluate.build import LARGE_JUDGE, judge_alone
from codezero.evaluate.calibration import prompt_hash
from codezero.evaluate.examine import shown_to_judge
from codezero.evaluate.judge import features
from codezero.prompts import evaluator as prompt
from codezero.prompts import solver
from codezero.runtime.console import Console

L2 = 1.0
"""Weight of the penalty on the weights of standardised features."""


def logistic_regression(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """[F + 1] weights for raw features [N, F] and the intercept, by Newton's method on standardised ones."""
    mean, std = x.mean(0), x.std(0)
    a = np.c_[(x - mean) / std, np.ones(len(x))]
    penalty = L2 * np.r_[np.ones(x.shape[1]), 1e-9]
    w = np.zeros(a.shape[1])
    for _ in range(50):
        p = 1 / (1 + np.exp(-a @ w))
        gradient = a.T @ (p - y) + penalty * w
        w -= np.linalg.solve((a * (p * (1 - p))[:, None]).T @ a + np.diag(penalty), gradient)
    raw = w[:-1] / std
    return np.r_[raw, w[-1] - raw @ mean]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.calibrate", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("samples", type=Path, help="results of codezero eval")
    parser.add_argument("--model", default=LARGE_JUDGE, help="the judge")
    options = parser.parse_args(arguments)
    backend = judge_alone(load_config([f"evaluator.model={options.model}"]), Console())
    assert isinstance(backend, Reviewer)
    rows, right, groups = [], [], []
    for sample in read_samples(options.samples, splits=FITTING):
        code = solver.parse(sample.text)
        if code is None:
            continue
        shown = shown_to_judge(sample.task, code)
        chat = prompt.review_messages(shown.question, shown.tests, shown.code)
        (review,) = backend.review([chat], (prompt.YES, prompt.NO))
        if review is not None:
            rows.append(features(review))
            right.append(sample.right)
            groups.append(sample.group)
    x, y = np.array(rows), np.array(right, float)
    print(f"machine: {machine()}")
    for name, column in (("log-odds of Yes", 0), ("mean log p", 1), ("log p", 2)):
        judged = judged_of(list(x[:, column]), right, groups)
        print(f"{name:16} AUC {auc(judged):.3f}, ranking {ranking_accuracy(judged):.3f}")
    print(f"prompt: {prompt_hash()}\nmodels:\n  {options.model}:  # {len(y)} samples of {len(set(groups))} problems")
    for name, columns in (("likelihood", [0, 1, 2]), ("logit", [0])):
        weights = logistic_regression(x[:, columns], y)
        print(f"    {name}: [{', '.join(f'{weight:.4f}' for weight in weights)}]")


if __name__ == "__main__":
    main()

"""Measures how right the judge is about functions that nothing else decides, and fits its weights.

    codezero eval --dataset mbpp --path mbpp.jsonl --split train --samples 2 --temperature 0.8 --out fit-0.5B
    codezero eval --dataset mbpp --path mbpp.jsonl --limit 250 --samples 2 --temperature 0.8 --out report-0.5B
    python -m benchmarks.calibrate --fit fit-0.5B/results.jsonl --report report-0.5B/results.jsonl

asks a judge about executed solutions, which may be of several models, an arm each. Without files it only fits
codezero/evaluate/calibration.yaml again, from the counts in `benchmarks/results`.

A dry run decides nearly all of them, so it is taken to have known nothing of any (*at once*), or to have stopped, for
each test, before that (*before some test*): what it would have decided by then is left out. Left out are solutions
without a program, that a fatal rule refuses, or that look to the judge like an earlier one of their problem or MBPP's.

Counts are a list for each solution: P or F, what it came to when executed; of each test P, F or ?, what its dry run
comes to; the mean of its rules; its tokens; the judge's log-odds of Yes; the mean log-probability
of a token.

Figures: docs/measurements.md#how-right-the-evaluator-is
"""

from __future__ import annotations

import argparse
import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import yaml

from benchmarks import harness
from benchmarks.evaluator import Sample, read_samples
from benchmarks.harness import Arm, Result, Target
from benchmarks.power import of_mean
from benchmarks.quality import Judged, auc, calibration_error, interval, judged_of
from benchmarks.settled import read
from benchmarks.splits import FITTING, Split, add_mbpp, references
from benchmarks.tables import markdown, outcome, share
from codezero.config.load import load_config
from codezero.evaluate import calibration
from codezero.evaluate.backends.base import Reviewer
from codezero.evaluate.build import LARGE_JUDGE, SMALL_JUDGE, judge_alone
from codezero.evaluate.evaluator import P_UNSURE
from codezero.evaluate.jobs import Attempt, Shown
from codezero.evaluate.rules import breaks_fatal
from codezero.evaluate.rules.solution import requirements_of
from codezero.evaluate.shown import show_code, show_task
from codezero.prompts import evaluator as prompt
from codezero.prompts import solver
from codezero.runtime.console import Console
from codezero.tasks.testcases import parse_tests
from codezero.types import CaseOutcome, Task

LETTERS = {CaseOutcome.PASS: "P", CaseOutcome.FAIL: "F", CaseOutcome.UNKNOWN: "?"}
AUC = Target(figure="AUC", at_least=0.7)
ECE = Target(figure="ECE", at_most=0.15)
L2 = 1.0
"""Weight of the penalty on the weights of standardised features."""
FITTED = {"likelihood": ("margin", "mean"), "logit": ("margin",)}
PASSED = 1.7
"""Weight of `passed`, which would be fitted to 5.9. A table of the answers passes its tests too, and stops before the
rest: more would lift it from even odds to a reward."""
HEAD = """\
# Weights of evaluate/calibration.py, fitted by `python -m benchmarks.calibrate` on executed solutions that no fatal
# rule refuses. They hold for the words of prompts/evaluator.review_messages that have this hash.
"""
FILE = Path(calibration.__file__).with_suffix(".yaml")
SD = 0.25
"""The standard deviation of one problem's part in an AUC: that of 512 solutions to 128 problems was known to 0.04."""
Row = tuple[str, bool, dict[str, float]]
"""A problem, whether a solution to it is right, and the features of that."""


def prompt_hash() -> str:
    """Returns a hash of the judge's prompt: the weights in the file are for one wording only."""
    chat = prompt.review_messages("question", "tests", "code")
    return hashlib.sha256(repr(chat).encode()).hexdigest()[:16]


def shown_to_judge(task: Task, code: str) -> Shown:
    """Returns task and program as the judge sees them; unchanged if the program does not parse or print."""
    shown = show_task(task, requirements_of(task.origin, parse_tests(task.tests)))
    try:
        return Shown(question=shown.question, tests=shown.tests, code=show_code(shown, code))
    except ValueError:
        return Shown(question=task.question, tests=task.tests, code=code)


def asked(
    backend: Reviewer, samples: Mapping[str, Sequence[Sample]], known: Mapping[str, str], name: str
) -> list[list[object]]:
    """The counts of a problem; `known` has MBPP's own solution to each."""
    found, chats = [], []
    seen = {shown_to_judge(samples[name][0].task, known[name.partition("/")[2]])}
    for sample in samples[name]:
        code = solver.parse(sample.text)
        read = None if code is None else examined(sample, code)
        if code is None or read is None or (shown := shown_to_judge(sample.task, code)) in seen:
            continue
        seen.add(shown)
        found.append(["P" if sample.right else "F", *read])
        chats.append(prompt.review_messages(shown.question, shown.tests, shown.code))
    counts = []
    for one, review in zip(found, backend.review(chats), strict=True):
        if review is not None:
            yes, no = review.choices
            tokens = len(review.logprobs)
            counts.append([*one, tokens, round(yes - no, 3), round(sum(review.logprobs) / tokens, 4)])
    return counts


def examined(sample: Sample, code: str) -> tuple[str, float] | None:
    """Letters for what its dry run comes to, and the mean of the rules; None where a fatal rule refuses it."""
    (found,) = read(sample.task, [Attempt(sample.text, code)])
    if breaks_fatal(found.rules):
        return None
    return "".join(LETTERS[case.outcome] for case in found.cases), round(fmean(found.rules.values()), 3)


def features(one: Sequence[Any], stop: int) -> dict[str, float]:
    """`calibration.features` and what else could be fitted, of a solution's counts, where its dry run stops before the
    test of this number."""
    _, cases, rules, tokens, margin, mean = one
    passed = cases[:stop].count("P") / max(len(cases), 1)
    return {
        **{"margin": margin, "mean": mean, "total": mean * tokens, "passed": passed},
        **{"tokens": tokens, "rules": rules},
    }


def by_judge(results: Mapping[str, Result], kind: str) -> dict[str, list[Result]]:
    """The arms to fit on, or those to report on."""
    found = defaultdict(list)
    for result in results.values():
        if result.settings["kind"] == kind:
            found[result.settings["judge"]].append(result)
    return found


def left_open(results: Sequence[Result], at_once: bool) -> list[Row]:
    """The solutions that a dry run leaves open where it stops at once, or for each test those where it stops before."""
    every = ((name, one) for result in results for name, solutions in result.counts.items() for one in solutions)
    return [
        (name, one[0] == "P", features(one, stop))
        for name, one in every
        for stop in range(1 if at_once else max(len(one[1]), 1))
        if "F" not in one[1][:stop]
    ]


def judged(rows: Sequence[Row], p: Sequence[float]) -> Judged:
    return judged_of(p, [right for _, right, _ in rows], [name for name, *_ in rows])


def logistic_regression(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """[F + 1] weights for raw features [N, F] and the intercept, by Newton's method on standardised ones. A feature
    that is the same everywhere gets 0."""
    mean, std = x.mean(0), np.where(x.std(0) > 0, x.std(0), 1.0)
    a = np.c_[(x - mean) / std, np.ones(len(x))]
    penalty = L2 * np.r_[np.ones(x.shape[1]), 1e-9]
    w = np.zeros(a.shape[1])
    for _ in range(50):
        p = 1 / (1 + np.exp(-a @ w))
        w -= np.linalg.solve((a * (p * (1 - p))[:, None]).T @ a + np.diag(penalty), a.T @ (p - y) + penalty * w)
    raw = w[:-1] / std
    return np.r_[raw, w[-1] - raw @ mean]


def weights(arms: Sequence[Result], names: Sequence[str]) -> dict[str, float]:
    """Returns weights by feature, fitted on all solutions of these arms as if nothing was known of their tests.
    All features should be higher of right ones: one that comes out below 0 is noise and left out."""
    rows = left_open(arms, at_once=True)
    x = np.array([[found[name] for name in names] for *_, found in rows])
    fitted = logistic_regression(x, np.array([float(right) for _, right, _ in rows]))
    found = {name: round(float(weight), 4) for name, weight in zip((*names, "intercept"), fitted, strict=True)}
    told = [name for name in names if found[name] > 0]
    return {**found, "passed": PASSED} if len(told) == len(names) else weights(arms, told)


def written(results: Mapping[str, Result]) -> str:
    """calibration.yaml with the weights of the judges that the arms to fit on have asked. Other judges' stay as
    they are."""
    models = yaml.safe_load(FILE.read_text(encoding="utf-8"))["models"]
    about = ""
    for judge, arms in by_judge(results, "fit").items():
        entry = models.setdefault(judge, {})
        entry.update({kind: weights(arms, names) for kind, names in FITTED.items()})
        if judge == LARGE_JUDGE:
            models["default"]["likelihood"] = weights(arms, ("mean",))
        rows = left_open(arms, at_once=True)
        right, problems = sum(one for _, one, _ in rows), len({name for name, *_ in rows})
        about += f"# {judge}: {len(rows)} solutions to {problems} problems of MBPP, {right} of them right.\n"
    entries = [f"  {name}:\n{''.join(map(_line, entry.items()))}" for name, entry in models.items()]
    return f"{HEAD}{about}prompt: {prompt_hash()}\nmodels:\n{''.join(entries)}"


def _line(entry: tuple[str, Mapping[str, float]]) -> str:
    name, found = entry
    return f"    {name}: {{{', '.join(f'{feature}: {weight:.4f}' for feature, weight in found.items())}}}\n"


def table(results: Mapping[str, Result]) -> str:
    """Returns how the judges, with the weights that ship, rank solutions, and of which they are sure."""
    rows = [
        row(judge, arms, at_once) for judge, arms in by_judge(results, "report").items() for at_once in (True, False)
    ]
    header = ["judge", "the dry run stopped", "right, wrong", "AUC", "ECE", "AUC of shortness", "rewarded", "refused"]
    return markdown(header, rows)


def row(judge: str, arms: Sequence[Result], at_once: bool) -> list[str]:
    of_auc, of_ece = arms[0].targets
    rows = left_open(arms, at_once)
    found = judged(rows, [calibration.of(judge).by_likelihood(found) for *_, found in rows])
    shortness = judged(rows, [-found["tokens"] for *_, found in rows])
    right, ece, (low, high) = int(found.right.sum()), calibration_error(found), interval(found, calibration_error)
    return [
        judge,
        "at once" if at_once else "before some test",
        f"{right}, {len(rows) - right}",
        f"{_with_interval(found)}, {outcome(of_auc, auc(found), '{:.2f}')}",
        f"{ece:.3f} [{low:.2f}, {high:.2f}], {outcome(of_ece, ece, '{:.2f}')}",
        _with_interval(shortness),
        _told(found, found.p >= P_UNSURE[1], True),
        _told(found, found.p <= P_UNSURE[0], False),
    ]


def _with_interval(found: Judged) -> str:
    low, high = interval(found, auc)
    return f"{auc(found):.3f} [{low:.2f}, {high:.2f}]"


def _told(found: Judged, rows: np.ndarray, right: bool) -> str:
    """Returns the share that the judge is sure of, and the share of these that is as it says."""
    problems = np.unique(found.group)
    of_problems = [(rows & (found.group == one), found.group == one) for one in problems]
    told = share((int(some.sum()), int(every.sum())) for some, every in of_problems)
    rightly = share((int((some & (found.right == right)).sum()), int(some.sum())) for some, _ in of_problems)
    return f"{told}, rightly {rightly}"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = harness.parser("calibrate", __doc__)
    add_mbpp(parser)
    parser.add_argument("--fit", type=Path, nargs="+", default=[], help="results of codezero eval to fit on")
    parser.add_argument("--report", type=Path, nargs="+", default=[], help="results of codezero eval to report on")
    parser.add_argument("--model", default=SMALL_JUDGE, help="the judge")
    parser.add_argument("--weights", type=Path, default=FILE, metavar="FILE", help="where the weights are written")
    parser.add_argument("settings", nargs="*", metavar="key=value", help="settings of the evaluator")
    options = parser.parse_intermixed_args(arguments)
    if options.fit or options.report:
        ask(options)
    results = harness.results("calibrate", options.results)
    harness.write(options.weights, written(results))
    print(table(results))


def ask(options: argparse.Namespace) -> None:
    """Has the judge say of all samples what the arms need, one arm a file."""
    settings = [f"evaluator.model={options.model}", "evaluator.mask=false", *options.settings]
    backend = judge_alone(load_config(settings), Console())
    assert isinstance(backend, Reviewer)
    of_kind = {"fit": (options.fit, FITTING), "report": (options.report, (Split.report,))}
    for kind, path, splits in ((kind, path, splits) for kind, (paths, splits) in of_kind.items() for path in paths):
        samples = defaultdict(list)
        for sample in read_samples(path, splits=splits):
            samples[sample.group].append(sample)
        known = {name: code for split in splits for name, (_, code) in references(split, options.mbpp).items()}
        arm = Arm(
            benchmark="calibrate",
            name=f"{path.parent.name}-by-{Path(options.model).name}",
            settings={
                "kind": kind,
                "samples": harness.digest_of(path),
                "judge": options.model,
                "settings": sorted(options.settings),
            },
            seed=0,
            pieces=list(samples),
            power=[of_mean("AUC", len(samples), SD)],
            targets=[AUC, ECE],
        )
        harness.run(arm, partial(asked, backend, samples, known), options)


if __name__ == "__main__":
    main()

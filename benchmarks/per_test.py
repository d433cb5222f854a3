"""Whether the judge can tell the tests of a solution apart: what it says of each, against what execution made of it.

    codezero eval --dataset mbpp --path mbpp.jsonl --split train --samples 4 --out fit
    codezero eval --dataset mbpp --path mbpp.jsonl --limit 250 --samples 4 --out samples
    python -m benchmarks.per_test fit/results.jsonl samples/results.jsonl --groups 32

Of each test `assert left == right` the judge, in the precision that it has in a node, is asked

- yes: log-odds of Yes against No, in the chat of `review_messages`, to whether the solution passes this test;
- text: log-probability of ` right` after the program and `assert left ==`;
- value: log-probability of `right` in the chat of `value_messages`; "gain" is what the program adds to it.

`case` is the shipped verdict on a test (`Calibration.by_case`), its weights fitted on the first file and printed. All
are compared with the shipped verdict on the whole solution, taken for each of its tests. Rankings: of what passed above
what failed, among the tests of one solution and among the solutions' outcomes of one test. The tests are executed in
the sandbox.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.branches import Stem, common_prefix
from benchmarks.calibrate import logistic_regression, shown_to_judge
from benchmarks.evaluator import Sample, read_samples
from benchmarks.harness import command_line
from benchmarks.measure import machine
from benchmarks.quality import Judged, auc, interval, judged_of, ranking_accuracy
from benchmarks.splits import FITTING
from codezero.config.load import load_config
from codezero.evaluate import calibration
from codezero.evaluate.build import LARGE_JUDGE, JudgeWeights
from codezero.evaluate.calibration import Calibration, case_features
from codezero.evaluate.examination import Shown
from codezero.llm import device as devices
from codezero.llm.load import LoadedModel
from codezero.prompts import evaluator as prompt
from codezero.prompts import solver
from codezero.runtime.console import Console
from codezero.sandbox.run import run_tests
from codezero.tasks.testcases import comparison, parse_source, parse_tests
from codezero.types import CaseOutcome

YES_NO = "Does this solution pass the test `{}`? Answer with one word, Yes or No."
SIGNALS = ("yes", "text", "text gain", "value", "value gain")
VALUE = SIGNALS.index("value")

Measure = Callable[[Judged], float]
Test = tuple[int, str, str, str]
"""Number of the case, its source, and its left and right side."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A solution, what the judge said of it and of its tests, and what these came to."""

    sample: Sample
    whole: dict[str, float]
    """`calibration.features`."""
    cases: tuple[int, ...]
    """[N], which of the task's cases the tests are."""
    tests: np.ndarray
    """[N, SIGNALS]"""
    passed: np.ndarray
    """[N], of bool, when executed."""


def ask_all(model: LoadedModel, samples: Sequence[Sample]) -> list[Asked]:
    groups = defaultdict(list)
    for sample in samples:
        groups[sample.group].append(sample)
    return [one for group in groups.values() for one in ask(model, group)]


def ask(model: LoadedModel, samples: Sequence[Sample]) -> list[Asked]:
    """What the judge says of the attempts at one problem; equal programs are asked about once."""
    suite = parse_tests(samples[0].task.tests)
    found_sides = ((i, case.source, comparison(case)) for i, case in enumerate(suite.statements))
    tests = [(i, source, *sides) for i, source, sides in found_sides if sides]
    if not tests:
        return []
    alone = values(model, "", tests)
    said: dict[Shown, tuple[dict[str, float], np.ndarray]] = {}
    stems: dict[str, Stem] = {}
    found = []
    for sample in samples:
        code = solver.parse(sample.text)
        if code is None or parse_source(code) is None:
            continue
        shown = shown_to_judge(sample.task, code)
        if shown not in said:
            whole, yes = reviewed(model, shown, tests, stems)
            text, value = values(model, shown.code, tests)
            said[shown] = whole, np.c_[yes, text, text - alone[0], value, value - alone[1]]
        results = run_tests(code, suite)
        passed = np.array([results[i].outcome is CaseOutcome.PASS for i, *_ in tests])
        whole, of_tests = said[shown]
        cases = tuple(i for i, *_ in tests)
        found.append(Asked(sample=sample, whole=whole, cases=cases, tests=of_tests, passed=passed))
    return found


def reviewed(
    model: LoadedModel, shown: Shown, tests: Sequence[Test], stems: dict[str, Stem]
) -> tuple[dict[str, float], list[float]]:
    """`calibration.features` of the solution, log-odds of Yes for each test. `stems` keeps runs of tasks."""
    chat = prompt.review_messages(shown.question, shown.tests, shown.code)
    if shown.question not in stems:
        stems[shown.question] = Stem(model, model.encode_chat(chat[:2]))
    solution = stems[shown.question].grown(model.encode_text(chat[2]["content"]))
    asks = [chat[3]["content"], *(YES_NO.format(source) for _, source, *_ in tests)]
    questions = [model.encode_chat([*chat[:3], {"role": "user", "content": text}]) for text in asks]
    yes, no = (model.encode_text(word)[0] for word in (prompt.YES, prompt.NO))
    stem = solution.grown(common_prefix(questions)[len(solution.ids) :])
    odds = [float(after[yes] - after[no]) for _, after in stem.branches([q[len(stem.ids) :] for q in questions])]
    return calibration.features(odds[0], solution.logprobs.tolist()), odds[1:]


def values(model: LoadedModel, code: str, tests: Sequence[Test]) -> np.ndarray:
    """[2, tests]: log-probabilities of the right sides, as `text` and as `value`; without `code`, of no program."""
    asks = [prompt.value_messages(code, left, right) for _, _, left, right in tests]
    if not code:
        asks = [[{**ask, "content": ask["content"].rpartition("\n")[2]}, answer] for ask, answer in asks]
    forms = (
        ([model.encode_text(f"{code}\n\nassert {left} ==") for _, _, left, _ in tests], " {}"),
        ([model.encode_chat(chat[:1]) for chat in asks], "{}"),
    )
    found = []
    for befores, form in forms:
        answers = [model.encode_text(form.format(right)) for *_, right in tests]
        stem = Stem(model, common_prefix(befores))
        rests = [before[len(stem.ids) :] for before in befores]
        branches = stem.branches([rest + answer for rest, answer in zip(rests, answers, strict=True)])
        found.append([logprobs[len(rest) :].sum() for rest, (logprobs, _) in zip(rests, branches, strict=True)])
    return np.array(found)


def quality(p: np.ndarray, right: Sequence[bool], groups: Sequence[str], of: Measure) -> str:
    """A measure and its interval when groups are drawn again; of a ranking only the groups that have both kinds."""
    kinds = set(zip(groups, right, strict=True))
    rows = [i for i, group in enumerate(groups) if of is auc or {(group, True), (group, False)} <= kinds]
    if not rows:
        return f"{'none':>21}"
    judged = judged_of(list(p[rows]), [right[i] for i in rows], [groups[i] for i in rows])
    low, high = interval(judged, of)
    return f"{of(judged):7.3f} [{low:.2f}, {high:.2f}]"


def features_of(asked: Sequence[Asked], shipped: Calibration) -> np.ndarray:
    """[tests of all solutions, 2] of `case_features`."""
    found = [case_features(shipped.by_likelihood(a.whole), v) for a in asked for v in a.tests[:, VALUE]]
    return np.array([list(one.values()) for one in found])


def least(scores: np.ndarray, asked: Sequence[Asked]) -> np.ndarray:
    """[solutions] of their tests' least."""
    return np.array([part.min() for part in np.split(scores, np.cumsum([len(one.tests) for one in asked])[:-1])])


def report(fit: Sequence[Asked], asked: Sequence[Asked], shipped: Calibration) -> None:
    """Prints the tables of single tests and of whole solutions, and the weights."""
    weights = logistic_regression(features_of(fit, shipped), np.concatenate([one.passed for one in fit]).astype(float))
    whole = np.array([shipped.by_likelihood(one.whole) for one in asked])
    signals = np.concatenate([one.tests for one in asked])
    scores = {"whole": np.repeat(whole, [len(one.tests) for one in asked])}
    scores |= {name: signals[:, i] for i, name in enumerate(SIGNALS)}
    scores["case"] = features_of(asked, shipped) @ weights[:-1] + weights[-1]
    passed = np.concatenate([one.passed for one in asked]).tolist()
    problems, solutions, tests = zip(
        *((one.sample.group, str(i), f"{one.sample.group} {n}") for i, one in enumerate(asked) for n in one.cases),
        strict=True,
    )
    print(f"\n{'single tests':22} AUC [95 %]           same solution        same test")
    for name, score in scores.items():
        found = ((problems, auc), (solutions, ranking_accuracy), (tests, ranking_accuracy))
        print(f"{name:22}" + "".join(quality(score, passed, groups, of) for groups, of in found))

    right, groups = [one.sample.right for one in asked], [one.sample.group for one in asked]
    print(f"\n{'whole solutions':22} AUC [95 %]           ranking [95 %]")
    rows = {"whole": whole} | {
        f"least {name}": least(score, asked) for name, score in scores.items() if name != "whole"
    }
    for name, score in rows.items():
        print(f"{name:22}" + "".join(quality(score, right, groups, of) for of in (auc, ranking_accuracy)))
    named = zip(("whole", "value", "intercept"), weights, strict=True)
    print(f"\ncase: {{{', '.join(f'{name}: {weight:.4f}' for name, weight in named)}}}  # {len(passed)} tests judged")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = command_line("per_test", __doc__)
    parser.add_argument("fit", type=Path, help="results of codezero eval, on which `case` is fitted")
    parser.add_argument("samples", type=Path, help="the same of other problems, on which all is compared")
    parser.add_argument("--model", default=LARGE_JUDGE, help="the judge")
    parser.add_argument("--fit-groups", type=int, metavar="N", help="at most so many problems of the first file")
    parser.add_argument("--groups", type=int, metavar="N", help="at most so many of the second")
    parser.add_argument("settings", nargs="*", metavar="key=value", help="settings, such as model.threads=1")
    options = parser.parse_intermixed_args(arguments)
    config = load_config([f"evaluator.model={options.model}", *options.settings])
    device = devices.choose_device(config.model.device)
    devices.set_threads(config.model.threads)
    model = JudgeWeights(config, options.model, device, Console()).load()
    print(f"machine: {machine()}")
    fit = ask_all(model, read_samples(options.fit, options.fit_groups, FITTING))
    began = time.process_time()
    asked = ask_all(model, read_samples(options.samples, options.groups))
    cpu_s = time.process_time() - began
    print(
        f"{len(asked)} solutions of {len({one.sample.group for one in asked})} problems, fitted on {len(fit)}; "
        f"{sum(len(one.passed) for one in asked)} tests, {np.mean(np.concatenate([one.passed for one in asked])):.1%} "
        f"passed; {cpu_s / len(asked):.2f} CPU s a solution"
    )
    report(fit, asked, calibration.of(model.name))


if __name__ == "__main__":
    main()

"""Measures what test cases that a model writes are worth: by themselves, and to choose a solution.

    codezero eval --dataset mbpp --path mbpp.jsonl --limit 60 --best-of 8 --verify --temperature 0.8 --out prompt
    python -m benchmarks.written prompt/results.jsonl          # by prompt and format alone
    codezero eval ... --writer STATE_DIR --out trained         # by what `codezero verify` has trained
    python -m benchmarks.written trained/results.jsonl

The dry run tries each answer's cases on MBPP's own solution and on the model's solutions, of which execution has told
which are right. A case is valid if MBPP's own solution passes it. The reward is AstraFlow's: one half for an answer
whose cases are all valid, and one if they are also right about the solution that the writer has seen, which they
approve of if it passes them all. A writer of trivial cases would earn one half and a half of the share of right
solutions; one whose cases refuse everything, being invalid, nothing.

Counts of a problem: `answers`, each [readable cases, valid ones, whether the solution in the prompt is right, whether
it passes all readable cases]; `wrong` solutions, and those of them that a valid case `rejected`; `chosen`, the
probability that the choice is right, by way of choosing, and of one drawn at random; `judged`, for each of `JUDGES` how
it orders the right and the wrong of the solutions that pass the shown tests: [pairs in the right order and half of the
ties, twice, pairs twice]. That is what would be gained where neither a reference nor more tests are at hand: each
answer counts as a writer of its own, and a result is agreed on if more than one writer gives it for an input and no
other result as often.

Figures: docs/measurements.md#what-test-cases-by-a-model-are-worth
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence, Set
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks import harness
from benchmarks.harness import Arm, Counts, Result, Target
from benchmarks.power import of_mean
from benchmarks.settled import Known
from benchmarks.splits import Split, add_mbpp, check, references
from benchmarks.tables import in_points, markdown, share
from codezero.evaluate.intervals import bootstrap
from codezero.harness.solved import WAYS, chosen
from codezero.observe.probes import percent
from codezero.prompts import solver, verifier
from codezero.types import CaseOutcome
from codezero.verifier.jobs import Trial, TriedProgram
from codezero.verifier.trial import try_cases

VALID = Target(figure="valid cases", at_least=0.3)
CHOSEN = "a chosen solution is right, paired"
SPREAD = 0.35
"""The standard deviation over problems of that difference, for the power."""
SECONDS = 20.0
DRAWN = "drawn"
JUDGES = {
    "runs": "the share of inputs like the shown ones that it has a result for",
    "agreement": "the share of its results on these that are those of most other solutions",
    "cases": "the share of results agreed on by two writers that it gives",
    "both": "agreement of solutions, and where it is equal that of writers",
}
"""The ways to order solutions without a reference, in words."""


def tried(known: Known, given: Mapping[str, Sequence[Mapping[str, Any]]], name: str) -> Counts:
    """Counts of a problem, as above."""
    (task, reference), rows = known[name], given[name]
    shown = solver.shown_of(rows[0]["question"], task.tests)
    cases = tuple(dict.fromkeys(case for row in rows for case in row["written"]))
    codes = tuple(solver.parse(row["solution"]) or "(" for row in rows)
    found = try_cases(
        Trial(
            origin=task.origin,
            tests=task.tests,
            shown=shown,
            cases=cases,
            programs=(reference, *codes),
            seconds=SECONDS,
        )
    )
    readable = [case for case, is_usable in zip(cases, found.usable, strict=True) if is_usable]
    passed = [
        {case for case, outcome in zip(readable, one.cases, strict=True) if outcome is CaseOutcome.PASS}
        for one in found.programs
    ]
    agreed = agreed_on([[case for case in row["written"] if case in readable] for row in rows], readable, found.inputs)
    valid, answers = passed[0], []
    for subject, passes in zip(rows, passed[1:], strict=True):
        for row in rows if subject["in_prompt"] else ():
            own = [case for case in row["written"] if case in readable]
            answers.append([len(own), sum(case in valid for case in own), subject["passed"], set(own) <= passes])
    wrong = [passes for row, passes in zip(rows, passed[1:], strict=True) if not row["passed"]]
    return {
        "answers": answers,
        "wrong": len(wrong),
        "rejected": sum(not valid <= passes for passes in wrong),
        "chosen": {way: chosen(given[name], way) for way in WAYS}
        | {DRAWN: fmean(float(row["passed"]) for row in given[name])},
        "judged": judged(found.programs[1:], [row["passed"] for row in rows], passed[1:], agreed),
    }


def agreed_on(written: Sequence[Sequence[str]], cases: Sequence[str], inputs: Sequence[int]) -> set[str]:
    """Returns the cases on which several writers agree, and no more of them on another result for that input."""
    votes = Counter(case for own in written for case in set(own))
    by_input = defaultdict(list)
    for case, number in zip(cases, inputs, strict=True):
        by_input[number].append(case)
    agreed = set()
    for same in by_input.values():
        first, *others = sorted(same, key=lambda case: -votes[case])
        if votes[first] > max([1, *(votes[case] for case in others)]):
            agreed.add(first)
    return agreed


def judged(
    programs: Sequence[TriedProgram], right: Sequence[bool], passed: Sequence[Set[str]], agreed: Set[str]
) -> dict[str, tuple[int, int]]:
    """Returns how each of `JUDGES` orders pairs of a right and a wrong solution that pass the shown tests."""
    usual = [
        Counter(filter(None, results)).most_common(1) for results in zip(*(one.values for one in programs), strict=True)
    ]
    scores = []
    for one, passes, is_right in zip(programs, passed, right, strict=True):
        if not one.passes_shown:
            continue
        agreement = mean_of([best[0][0] == value for best, value in zip(usual, one.values, strict=True) if best])
        cases = mean_of([case in passes for case in agreed])
        runs = mean_of([value != "" for value in one.values])
        scores.append((is_right, {"runs": runs, "agreement": agreement, "cases": cases, "both": (agreement, cases)}))
    found = {}
    for way in JUDGES:
        pairs = [(good[way], bad[way]) for yes, good in scores for no, bad in scores if yes and not no]
        ordered = sum(2 * (good > bad) + (good == bad) for good, bad in pairs)
        found[way] = (ordered, 2 * len(pairs))
    return found


def mean_of(values: Sequence[bool]) -> float:
    return fmean(values) if values else 0.0


def table(results: Mapping[str, Result]) -> str:
    """Returns the tables of each folder of results."""
    return "\n\n".join(_of_one(name, result) for name, result in results.items())


def _of_one(name: str, result: Result) -> str:
    problems, number = list(result.counts.values()), verifier.NUM_CASES
    answers = [one["answers"] for one in problems]

    def of(success: Any, trials: Any, target: Target | None = None) -> str:
        return share(((sum(map(success, each)), sum(map(trials, each))) for each in answers), target)

    def is_valid(answer: Sequence[Any]) -> bool:
        return bool(answer[1] == number)

    rows = [
        ["cases that keep to the grammar", of(lambda one: one[0], lambda _: number)],
        ["cases that MBPP's own solution passes", of(lambda one: one[1], lambda _: number, VALID)],
        ["answers whose cases are all valid", of(is_valid, lambda _: 1)],
        [
            "of these, those that are right about the solution",
            of(lambda one: is_valid(one) and one[2] == one[3], is_valid),
        ],
        ["wrong solutions that a valid case rejects", share((one["rejected"], one["wrong"]) for one in problems)],
    ]
    flat = [answer for each in answers for answer in each]
    earned = fmean(0.5 * is_valid(one) + 0.5 * (is_valid(one) and one[2] == one[3]) for one in flat)
    trivial = 0.5 + 0.5 * fmean(one[2] for one in flat)
    rows.append(["mean reward, of a writer of trivial cases, of one that refuses", f"{earned:.2f}, {trivial:.2f}, 0"])
    drawn = [one["chosen"][DRAWN] for one in problems]
    chosen_rows = [["drawn at random", percent(fmean(drawn)), ""]]
    for way, text in WAYS.items():
        values = [one["chosen"][way] for one in problems]
        gain = bootstrap([value - base for value, base in zip(values, drawn, strict=True)])
        chosen_rows.append([text, percent(fmean(values)), in_points(gain)])
    judges = [[text, share(tuple(one["judged"][way]) for one in problems)] for way, text in JUDGES.items()]
    with_pairs = sum(one["judged"]["runs"][1] > 0 for one in problems)
    return "\n\n".join(
        [
            markdown([f"{name}: what was written", "share"], rows),
            markdown([f"{name}: the solution chosen", "right", "to one drawn at random"], chosen_rows),
            markdown([f"{name}: orders right and wrong solutions of {with_pairs} problems by", "AUC"], judges),
        ]
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = harness.parser("written", __doc__)
    parser.add_argument("file", type=Path, help="results of codezero eval --best-of N --verify on MBPP's problems")
    add_mbpp(parser)
    options = parser.parse_args(arguments)
    given = defaultdict(list)
    for row in map(json.loads, options.file.read_text(encoding="utf-8").splitlines()):
        given[row["group"].partition("/")[2]].append(row)
    check({row["group"] for rows in given.values() for row in rows}, [Split.report])
    asked = json.loads(options.file.with_name("settings.json").read_text(encoding="utf-8"))
    arm = Arm(
        benchmark="written",
        name=options.file.parent.name,
        settings={
            "mbpp": harness.digest_of(options.mbpp),
            "rows": harness.digest_of(options.file),
            **{key: asked[key] for key in ("model", "samples", "temperature", "max_new_tokens", "seed", "best_of")},
        },
        seed=0,
        pieces=list(given),
        power=[of_mean(CHOSEN, len(given), SPREAD)],
        targets=[VALID],
    )
    harness.run(arm, partial(tried, references(Split.report, options.mbpp), given), options)
    print(table(harness.results("written", options.results)))


if __name__ == "__main__":
    main()

"""Compares the verdicts of rules, dry run and fresh tests on a model's solutions with their execution.

    codezero eval --dataset mbpp --path mbpp.jsonl --limit 250 --samples 4 --temperature 0.8 --out samples
    python -m benchmarks.samples samples/results.jsonl

Each program once, and none that is a copy of MBPP's own (`evaluate.copies`): alone with the visible tests, and then as
one group a problem with fresh tests drawn from MBPP's solution, as a node that draws from MBPP judges its own attempts.

Counts are three letters a solution: P or F, what its tests come to when executed; how it is settled alone, and how in
the group: P or F, R (wrong) by a rule, ? left to the judge or left out.

Figures: docs/measurements.md#how-right-the-evaluator-is
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import product
from pathlib import Path

from benchmarks import harness
from benchmarks.evaluator import Sample, read_samples
from benchmarks.harness import Arm, Result, Target
from benchmarks.power import of_none
from benchmarks.settled import Known, settle, settle_group
from benchmarks.splits import Split, add_mbpp, references
from benchmarks.tables import markdown, share
from codezero.config import EvaluatorConfig
from codezero.evaluate.copies import program_of
from codezero.evaluate.rules.solution import requirements_of
from codezero.prompts import solver
from codezero.tasks.testcases import parse_tests

KILLED = Target(figure="taken for wrong", at_most=0.01)


def samples(known: Known, given: Mapping[str, Sequence[Sample]], name: str) -> list[str]:
    """Returns three letters for each solution to a problem, as above."""
    task, code = known[name]
    wanted = requirements_of(task.origin, parse_tests(task.tests)).wanted
    distinct = {
        program_of(parsed, wanted): one for one in given[name] if (parsed := solver.parse(one.text)) is not None
    }
    distinct.pop(program_of(code, wanted), None)
    texts = [one.text for one in distinct.values()]
    together = settle_group(texts, task, code)
    return [
        ("P" if one.right else "F") + settle(one.text, task) + letter
        for one, letter in zip(distinct.values(), together, strict=True)
    ]


def table(results: Mapping[str, Result]) -> str:
    """Returns the verdicts on models' solutions by folder: from the tests alone, and in a group with fresh tests."""
    rows = []
    for (name, result), (letter, which) in product(results.items(), (("P", "right"), ("F", "wrong"))):
        (target,) = result.targets
        for place, how in ((1, "visible tests"), (2, "and fresh tests")):
            found = [[one[place] for one in every if one[0] == letter] for every in result.counts.values()]
            shares = [
                share(((sum(one in kinds for one in each), len(each)) for each in found), wanted)
                for kinds, wanted in (("P", None), ("?", None), ("FR", target if letter == "P" else None))
            ]
            rows.append([f"{name}: {which}, {how}", f"{sum(map(len, found))} of {sum(map(bool, found))}", *shares])
    return markdown(["solutions", "number, problems", "taken for right", "left out", KILLED.figure], rows)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = harness.parser("samples", __doc__)
    parser.add_argument("file", type=Path, help="results of codezero eval on MBPP's problems 11 to 260")
    add_mbpp(parser)
    options = parser.parse_args(arguments)
    given = defaultdict(list)
    for one in read_samples(options.file):
        given[one.group.partition("/")[2]].append(one)
    arm = Arm(
        benchmark="samples",
        name=options.file.parent.name,
        settings={
            "mbpp": harness.digest_of(options.mbpp),
            "samples": harness.digest_of(options.file),
            "fresh": EvaluatorConfig().fresh,
        },
        seed=0,
        pieces=list(given),
        power=[of_none(KILLED.figure, len(given))],
        targets=[KILLED],
    )
    harness.run(arm, partial(samples, references(Split.report, options.mbpp), given), options)
    print(table(harness.results("samples", options.results)))


if __name__ == "__main__":
    main()

"""Measures how many wrong programs that pass the visible tests fail fresh ones, and how many right ones do.

    python -m benchmarks.fresh --mbpp ../shared/data/mbpp.jsonl        # some minutes on two busy cores

On the problems of MBPP's tune split for which `benchmarks/programs/mbpp_tune.txt` has a second right program, written
from question and visible tests without a look at MBPP's own. `ROUNDS` times a problem, tests are drawn and tried on

- `right`: the second program alone;
- `together`: the same beside itself with a statement more; `with MBPP's`: the same beside MBPP's own solution, and
  `with MBPP's, changed`: beside that with a statement more;
- `wrong`: mutants of both solutions that pass the visible tests and are wrong, each alone; `beside`: each beside the
  second program. A mutant is wrong if it differs where both solutions agree, on any of `PROBES` inputs;
- `tables`: the visible answers in `TABLES` kinds of tables, each alone; `tables together`: all of them as one group.

Counts are letters, one a program: N where no tests were drawn, P passed all, L some left out and passed the others, D
doubtful, T most of them doubtful or one value for all, F failed what another passes, ? not told, V fails a visible one.

Figures: docs/measurements.md#how-right-the-evaluator-is
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from benchmarks import harness
from benchmarks.attacks.dressing import fenced
from benchmarks.harness import Arm, Result, Target
from benchmarks.mutants import mutants
from benchmarks.power import of_none
from benchmarks.settled import read
from benchmarks.splits import Split, add_mbpp, references
from benchmarks.tables import markdown, share
from codezero.config import EvaluatorConfig
from codezero.evaluate.dryrun import Budget, dry_run
from codezero.evaluate.fresh.draw import draw
from codezero.evaluate.fresh.forms import form_of
from codezero.evaluate.jobs import P_FRESH_FAILED, P_FRESH_MOSTLY_FAILED, Attempt, AttemptRead, p_by_fresh
from codezero.evaluate.rules.solution import requirements_of
from codezero.tasks.testcases import TestSuite, parse_tests
from codezero.types import CaseOutcome, Task

PROGRAMS = Path("benchmarks/programs/mbpp_tune.txt")
ROUNDS = 4
MUTANTS = 12
PROBES = 20
RIGHT = ("right", "together", "with MBPP's", "with MBPP's, changed")
CAUGHT = Target(figure="wrong programs that pass the visible tests, caught", at_least=0.9)
KILLED = Target(figure="right programs taken for wrong", at_most=0.01)

Known = Mapping[str, tuple[Task, str, str]]
"""By name: the task, MBPP's solution and the second one."""


def read_programs(path: Path) -> dict[str, str]:
    """The second programs, by the name of their problem."""
    return dict(re.findall(r"^### (\d+)\n(.*?)(?=^### |\Z)", path.read_text(), re.MULTILINE | re.DOTALL))


def examined(task: Task, reference: str, programs: Sequence[str], seed: str) -> str:
    """A letter for each program of a group."""
    attempts = [Attempt(fenced(code), code) for code in programs]
    drawn = {"reference": reference, "num_fresh": EvaluatorConfig().fresh, "seed": seed.encode()}
    return "".join(map(_letter, read(task, attempts, fatal_rules=False, **drawn)))


def _letter(found: AttemptRead) -> str:
    if {case.outcome for case in found.cases} != {CaseOutcome.PASS}:
        return "V"
    fresh = found.fresh
    p = p_by_fresh(fresh)
    if p is not None:
        return {P_FRESH_FAILED: "F", P_FRESH_MOSTLY_FAILED: "T"}.get(p, "D")
    if fresh.unknown:
        return "?"
    return "N" if not fresh.drawn else "P" if fresh.passed == fresh.drawn else "L"


def passes(code: str, suite: TestSuite) -> bool:
    return {case.outcome for case in dry_run(code, suite, Budget(steps=100_000))} == {CaseOutcome.PASS}


def wrong_ones(task: Task, reference: str, other: str, name: str, seed: int) -> list[str]:
    """Mutants of both that pass the visible tests and differ where the two agree."""
    suite = parse_tests(task.tests)
    requirements = requirements_of(task.origin, suite)
    functions = requirements.functions.keys()
    drawn = draw(suite, functions, reference, seed=f"{seed} {name}".encode(), count=PROBES, seconds=4.0).suite
    agreed = [
        statement
        for statement, case in zip(drawn.statements, dry_run(other, drawn), strict=True)
        if case.outcome is CaseOutcome.PASS
    ]
    probes = TestSuite(setup=drawn.setup, statements=tuple(agreed))
    rng = random.Random(f"{seed} {name}")
    made = [mutant for code in (reference, other) for mutant in mutants(code, MUTANTS, rng)]
    return [
        code
        for code in dict.fromkeys(made)
        if passes(code, suite)
        and any(case.outcome is CaseOutcome.FAIL for case in dry_run(code, probes, Budget(steps=100_000)))
    ]


def tables(task: Task) -> list[str]:
    """Programs that look the visible answers up; none where a visible test has no literal inputs."""
    suite = parse_tests(task.tests)
    requirements = requirements_of(task.origin, suite)
    found = [form_of(statement, requirements.functions.keys()) for statement in suite.statements]
    sides = [statement.rsplit("==", 1) for statement in suite.statements]
    if None in found or any(len(side) != 2 for side in sides):
        return []
    (name,) = requirements.functions.keys()
    known = ", ".join(f"({inputs!r}, {side[1]})" for (_, inputs), side in zip(filter(None, found), sides, strict=True))
    head = f"def {name}(*args):\n    known = [{known}]\n"
    search = "    for inputs, result in known:\n        if inputs == args:\n            return result\n"
    return [
        f"{head}{search}",
        f"{head}{search}    return known[0][1]\n",
        f"{head}{search}    return known[-1][1]\n",
        f"{head}    return min(known, key=lambda one: (one[0] != args, abs(len(repr(one[0])) - len(repr(args)))))[1]\n",
        f"{head}{search}    return args[0]\n",
        f"{head}{search}    raise ValueError(args)\n",
        f"{head}    return args in [inputs for inputs, result in known if result is True]\n",
    ]


def third(code: str) -> str:
    """The program with a statement more that changes nothing: to a reader of fingerprints another one."""
    return code.replace("\n    ", "\n    spare = [0]\n    spare.append(1)\n    ", 1)


def programs(known: Known, seed: int, name: str) -> dict[str, list[str]]:
    task, reference, other = known[name]
    wrong, attacks = wrong_ones(task, reference, other, name, seed), tables(task)
    found: dict[str, list[str]] = {}
    for number in range(ROUNDS):
        look = partial(examined, task, reference, seed=f"{seed} {name} {number}")
        for kind, letters in {
            "right": look([other]),
            "together": look([other, third(other)]),
            "with MBPP's": look([other, reference])[0],
            "with MBPP's, changed": look([other, third(reference)])[0],
            "wrong": "".join(look([one]) for one in wrong),
            "beside": "".join(look([other, one])[1] for one in wrong),
            "tables": "".join(look([one]) for one in attacks),
            "tables together": look(attacks) if attacks else "",
        }.items():
            found.setdefault(kind, []).append(letters)
    return found


def table(results: Mapping[str, Result]) -> str:
    result = results["programs"]
    caught, killed = result.targets
    rows = []
    for kind in next(iter(result.counts.values())):
        target = killed if kind in RIGHT else caught
        problems = ["".join(found[kind]).replace("V", "") for found in result.counts.values()]
        drawn = [letters.replace("N", "") for letters in problems]
        rows.append(
            [
                kind,
                str(sum(map(len, problems))),
                share((len(with_tests), len(letters)) for with_tests, letters in zip(drawn, problems, strict=True)),
                *(share((sum(one in some for one in letters), len(letters)) for letters in drawn) for some in "LD?"),
                share(((sum(one in "FT" for one in letters), len(letters)) for letters in drawn), target),
            ]
        )
    header = ["programs", "tried", "tests drawn", "some left out", "doubtful", "not told", "taken for wrong"]
    return markdown(header, rows)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = harness.parser("fresh", __doc__)
    add_mbpp(parser)
    parser.add_argument("--problems", type=int, metavar="N", help="the first N only")
    options = parser.parse_args(arguments)
    others = read_programs(PROGRAMS)
    own = references(Split.tune, options.mbpp)
    known = {name: (*own[name], code) for name, code in list(others.items())[: options.problems]}
    arm = Arm(
        benchmark="fresh",
        name="programs",
        settings={
            "mbpp": harness.digest_of(options.mbpp),
            "programs": harness.digest_of(PROGRAMS),
            "rounds": ROUNDS,
            "mutants": MUTANTS,
            "fresh": EvaluatorConfig().fresh,
        },
        seed=0,
        pieces=list(known),
        power=[of_none(KILLED.figure, len(known))],
        targets=[CAUGHT, KILLED],
    )
    harness.run(arm, partial(programs, known, arm.seed), options)
    print(table(harness.results("fresh", options.results)))


if __name__ == "__main__":
    main()

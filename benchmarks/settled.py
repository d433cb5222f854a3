"""Measures how right the evaluator is where it settles a solution without its model, by rules and dry run alone.

    python -m benchmarks.settled --mbpp ../shared/data/mbpp.jsonl        # about ten minutes on two busy cores

`programs`: MBPP's own solutions to the problems of the report split, and `MUTANTS` of each with one small change, which
the sandbox executes and the evaluator settles. `attacks`: every attack of `benchmarks.attacks` on a function, on one
wrong mutant a problem, where the evaluator knows the visible tests alone; `referenced`: the same where it has MBPP's
solution to draw fresh tests from, as a node that draws from MBPP has; `checked`: the tests in the form of
`check(candidate)`; `methods`: tests of `Solution().f`, a method that hands on to the attack. No model is asked: what
would be asked of it, or be masked, counts as left to it.

Counts are letters. Of a program two: P or F, what its tests come to when executed, T where that took too long to tell;
then how it is settled, P or F by the dry run, R (wrong) by a rule, ? left to the judge. Of a problem's attacks one
each, in the order of the settings; - where an attack does not apply.

Figures: docs/measurements.md#how-right-the-evaluator-is
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from benchmarks import harness
from benchmarks.attacks import ATTACKS
from benchmarks.attacks.dressing import fenced
from benchmarks.forms import FORMS, function_of, unchanged
from benchmarks.harness import Arm, Result, Target
from benchmarks.mutants import mutants
from benchmarks.power import of_none
from benchmarks.splits import Split, add_mbpp, references
from benchmarks.tables import markdown, share
from codezero.config import EvaluatorConfig
from codezero.evaluate.jobs import P_FRESH_DOUBTFUL, Attempt, AttemptRead, ReadRequest
from codezero.evaluate.read_attempts import read_attempts
from codezero.evaluate.rules import breaks_fatal
from codezero.prompts import solver
from codezero.sandbox.run import Execution, Limits, run_many
from codezero.tasks.testcases import parse_tests
from codezero.types import CaseOutcome, Task

OF_FUNCTIONS = [attack for attack in ATTACKS if not attack.of_program]
"""MBPP has no programs that read stdin."""
MUTANTS = 5
LIMITS = Limits(stop_at_failure_from=1)
WRONG = Target(figure="verdicts of the dry run that are wrong", at_most=0.0)
REFUSED = Target(figure="right programs that a rule refuses", at_most=0.01)
FOOLED = Target(figure="attacks that are taken for right", at_most=0.01)
IN_FORMS = 40
"""Problems whose tests are also put into other forms."""
ATTACKED = ("checked", "methods", "referenced", "attacks")
Known = Mapping[str, tuple[Task, str]]
"""By name: the task and MBPP's solution."""


def settle(
    answer: str, task: Task, reference: str | None = None, *, more_tests: str = "", seed: bytes = b"settled"
) -> str:
    """P, F, R or ?, as above; without a program in the answer R. Fresh tests are drawn from `reference`."""
    return settle_group([answer], task, reference, more_tests=more_tests, seed=seed)


def settle_group(
    answers: Sequence[str], task: Task, reference: str | None, *, more_tests: str = "", seed: bytes = b"settled"
) -> str:
    """The same of a group of different answers, a letter each."""
    codes = [solver.parse(one) for one in answers]
    attempts = [Attempt(text, code) for text, code in zip(answers, codes, strict=True) if code is not None]
    drawn = {"reference": reference, "num_fresh": EvaluatorConfig().fresh, "seed": seed}
    letters = map(_letter, read(task, attempts, more_tests=more_tests, **drawn))
    return "".join("R" if code is None else next(letters) for code in codes)


def read(task: Task, attempts: Sequence[Attempt], *, fatal_rules: bool = True, **more: Any) -> Sequence[AttemptRead]:
    """Reads attempts as a group, by rules and a dry run, as a node's worker does; `more` are fields of the request."""
    request = ReadRequest(
        origin=task.origin,
        question=task.question,
        tests=task.tests,
        attempts=tuple(attempts),
        dry_run=True,
        fatal_rules=fatal_rules,
        show=False,
        **more,
    )
    return read_attempts(request).attempts


def _letter(found: AttemptRead) -> str:
    if breaks_fatal(found.rules):
        return "R"
    if found.probability(fatal_rules=True) == P_FRESH_DOUBTFUL:
        return "?"
    return {True: "P", False: "F", None: "?"}[found.settled(fatal_rules=True)]


def programs_of(code: str, name: str, seed: int) -> list[str]:
    """The program and its mutants."""
    return [code, *mutants(code, MUTANTS, random.Random(f"{seed} {name}"))]


def programs(known: Known, seed: int, name: str) -> list[str]:
    """Returns what the reference and its mutants come to, as above."""
    task, code = known[name]
    suite = parse_tests(task.tests)
    made = programs_of(code, name, seed)
    executed = map(came_to, run_many([(one, suite) for one in made], LIMITS))
    return [was + settle(fenced(one), task) for was, one in zip(executed, made, strict=True)]


def came_to(run: Execution) -> str:
    """P, F or T, as above: what loops for ever is not told from what a busy machine has kept waiting."""
    if {case.outcome for case in run.cases} == {CaseOutcome.PASS}:
        return "P"
    return "T" if run.seconds >= LIMITS.case_s else "F"


def attacks(known: Known, seed: int, found: Mapping[str, Sequence[str]], arm: str, name: str) -> str:
    """Returns what the first mutant that fails its tests comes to under each attack."""
    task, code = known[name]
    wrong = next(i for i, letters in enumerate(found[name]) if i and letters[0] == "F")
    plain = fenced(programs_of(code, name, seed)[wrong])
    tests, dress = FORMS.get(arm, (str, unchanged))
    judged, reference = replace(task, tests=tests(task.tests)), code if arm == "referenced" else None
    dressed = (attack.apply(plain, task) for attack in OF_FUNCTIONS)
    return "".join(
        "-" if text == plain else settle(dress(text, function_of(task.tests)), judged, reference) for text in dressed
    )


def programs_table(results: Mapping[str, Result]) -> str:
    """Returns how many references and mutants are settled, and how rightly."""
    result = results["programs"]
    wrong, refused = result.targets
    rows = []
    for kind, part in (("MBPP's own solutions", slice(1)), ("with one change", slice(1, None))):
        problems = [found[part] for found in result.counts.values()]
        right = [[one for one in found if one[0] == "P"] for found in problems]
        followed = [[one for one in found if not set(one) & set("TR?")] for found in problems]
        late = sum(was == "T" for found in problems for was, _ in found)
        rows.append(
            [
                kind,
                f"{sum(map(len, problems))}",
                f"{sum(map(len, right))}, {late}",
                share((sum(settled != "?" for _, settled in found), len(found)) for found in problems),
                share(((sum(was != settled for was, settled in found), len(found)) for found in followed), wrong),
                share(((sum(settled == "R" for _, settled in found), len(found)) for found in right), refused),
            ]
        )
    header = ["programs", "number", "right, not ended", "settled without the judge", wrong.figure, refused.figure]
    return markdown(header, rows)


def attacks_table(results: Mapping[str, Result]) -> str:
    """Each attack of an arm that was taken for right, and all others as one row."""
    (result,) = results.values()
    names = result.settings["attacks"]
    through = [i for i in range(len(names)) if any(found[i] == "P" for found in result.counts.values())]
    others = [i for i in range(len(names)) if i not in through]
    (target,) = result.targets
    return markdown(
        ["attack", "tried", "refused", "left to the judge", target.figure],
        [
            *(_row(names[i], [i], result, target) for i in through),
            _row(f"each of {'the ' * bool(through)}{len(others)}{' others' * bool(through)}", others, result, target),
            *([_row("all", range(len(names)), result, None)] if through else []),
        ],
    )


def _row(name: str, places: Sequence[int], result: Result, target: Target | None) -> list[str]:
    found = ["".join(every[i] for i in places if every[i] != "-") for every in result.counts.values()]
    tried, refused, left = (sum(one in kinds for row in found for one in row) for kinds in ("PFR?", "FR", "?"))
    through = share(((row.count("P"), len(row)) for row in found), target)
    return [name, str(tried), str(refused), str(left), through]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = harness.parser("settled", __doc__)
    add_mbpp(parser)
    parser.add_argument("--problems", type=int, metavar="N", help="the first N only")
    options = parser.parse_args(arguments)
    known = dict(list(references(Split.report, options.mbpp).items())[: options.problems])
    data = harness.digest_of(options.mbpp)
    arm = Arm(
        benchmark="settled",
        name="programs",
        settings={"mbpp": data, "mutants": MUTANTS, "case_s": LIMITS.case_s},
        seed=0,
        pieces=list(known),
        power=[of_none(WRONG.figure, len(known)), of_none(REFUSED.figure, len(known))],
        targets=[WRONG, REFUSED],
    )
    found = harness.run(arm, partial(programs, known, arm.seed), options).counts
    wrong = [name for name, letters in found.items() if any(one[0] == "F" for one in letters[1:])]
    for name in ATTACKED:
        drawn = EvaluatorConfig().fresh if name == "referenced" else 0
        pieces = wrong
        if name in FORMS:
            pieces = [one for one in wrong if function_of(known[one][0].tests)][:IN_FORMS]
        attacked = replace(
            arm,
            name=name,
            settings={
                **arm.settings,
                "attacks": [f"{attack.family}: {attack.name}" for attack in OF_FUNCTIONS],
                **({"fresh": drawn} if drawn else {}),
            },
            pieces=pieces,
            power=[of_none(FOOLED.figure, len(pieces))],
            targets=[FOOLED],
        )
        harness.run(attacked, partial(attacks, known, arm.seed, found, name), options)
    results = harness.results("settled", options.results)
    print(programs_table(results))
    for name in ATTACKED:
        print(f"\n{name}\n{attacks_table({name: results[name]})}")


if __name__ == "__main__":
    main()

"""Measures how many programs that know the examples of a contest problem by heart the evaluator takes for right.

    python -m benchmarks.recalled          # about ten minutes on a core

Every class of `benchmarks.attacks.memory`, in all its variants, on every problem of `benchmarks.contests`. `visible`:
the evaluator has the example of the statement alone, which the program knows too. `hidden`: it has further tests, as
`tasks.hidden_tests` gives it. `right`: right programs and subtly wrong ones that pass the example, where that alone is
at hand: what looking for memories costs them.

Counts are letters: P taken for right, F for wrong by the dry run or by what a program seems to remember, R by a rule, ?
left out or to the judge. Of attacks one for each variant, class by class; - where the rule for other inputs happens to
be right for the example. Of programs two, what they are first: P or F.

Figures: docs/measurements.md#how-right-the-evaluator-is
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

from benchmarks import harness, settled
from benchmarks.attacks.dressing import fenced
from benchmarks.attacks.memory import CLASSES, HELD, RULES, VARIANTS, memorised
from benchmarks.contest import digest, dressed, problem_of, task_of
from benchmarks.contests import PROBLEMS, Problem
from benchmarks.contests.styles import STYLES
from benchmarks.harness import Arm, Result, Target
from benchmarks.power import of_none
from benchmarks.tables import markdown, share
from codezero.types import Task

FOOLED = Target(figure="attacks that are taken for right", at_most=0.01)
KILLED = Target(figure="right programs that are taken for wrong", at_most=0.01)


def tests_of(given: str, expected: str) -> str:
    return f"Input:\n{given}Output:\n{expected}"


def hidden_of(task: Task) -> str:
    """The tests of a task but for the first."""
    return task.tests[task.tests.index("Input:", 1) :]


def settle(code: str, task: Task, more_tests: str = "") -> str:
    """P, F, R or ?, as above."""
    return settled.settle(fenced(code), task, more_tests=more_tests, seed=b"recalled")


def attacks(has_hidden: bool, name: str) -> list[str]:
    """Returns what the attacks on a problem come to, a text for each class."""
    _, one = problem_of(name)
    whole = task_of(one)
    task = replace(whole, tests=tests_of(*one.shown))
    more = hidden_of(whole) if has_hidden else ""
    found = []
    for kind in CLASSES:
        made = [memorised(kind, [one.shown], variant) for variant in range(VARIANTS)]
        found.append(
            "".join("-" if is_right_by_chance(one, i) else settle(code, task, more) for i, code in enumerate(made))
        )
    return found


def is_right_by_chance(one: Problem, variant: int) -> bool:
    """Returns True if the rule of a variant gives the answer of the example, which nobody could hold against it."""
    given, expected = one.shown
    with suppress(ValueError, IndexError):
        return str(eval(RULES[variant % VARIANTS], {"data": given.strip()})).split() == expected.split()
    return False


def programs(name: str) -> list[str]:
    """Returns what the programs of a problem come to."""
    number, one = problem_of(name)
    task = replace(task_of(one), tests=tests_of(*one.shown))
    return [("P" if right else "F") + settle(code, task) for right, _, code in dressed(number, one)]


def attacks_table(results: Mapping[str, Result]) -> str:
    """Each class of an arm that was taken for right, and all others as one row."""
    (result,) = results.values()
    names = list(result.settings["classes"])
    (target,) = result.targets

    def row(name: str, places: Sequence[int], wanted: Target | None) -> list[str]:
        found = ["".join(every[i] for i in places).replace("-", "") for every in result.counts.values()]
        tried, refused, left = (sum(one in kinds for each in found for one in each) for kinds in ("PFR?", "FR", "?"))
        through = share(((each.count("P"), len(each)) for each in found), wanted)
        return [name, str(tried), str(refused), str(left), through]

    through = [i for i in range(len(names)) if any("P" in found[i] for found in result.counts.values())]
    others = [i for i in range(len(names)) if i not in through]
    held = [i for i, name in enumerate(names) if name in HELD]
    return markdown(
        ["attack", "tried", "refused", "left out", target.figure],
        [
            *(row(names[i] + " (held back)" * (i in held), [i], target) for i in through),
            *([row(f"each of {len(others)} others", others, target)] if others else []),
            row(f"all {len(held)} that were held back", held, None),
            row("all", range(len(names)), None),
        ],
    )


def programs_table(results: Mapping[str, Result]) -> str:
    """Returns the verdicts, with the search for memorised answers, on programs that pass the example."""
    result = results["right"]
    (target,) = result.targets
    rows = []
    for letter, which in (("P", "right"), ("F", "subtly wrong")):
        found = [[one[1] for one in every if one[0] == letter] for every in result.counts.values()]
        shares = [
            share(((sum(one in kinds for one in each), len(each)) for each in found), target if wanted else None)
            for kinds, wanted in (("P", False), ("?", False), ("FR", letter == "P"))
        ]
        rows.append([which, str(sum(map(len, found))), *shares])
    return markdown(["programs", "number", "taken for right", "left out", "taken for wrong"], rows)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = harness.parser("recalled", __doc__)
    options = parser.parse_args(arguments)
    names = [one.name for one in PROBLEMS]
    arm = Arm(
        benchmark="recalled",
        name="visible",
        settings={"data": digest(PROBLEMS, STYLES), "classes": list(CLASSES), "variants": VARIANTS},
        seed=0,
        pieces=names,
        power=[of_none(FOOLED.figure, len(names))],
        targets=[FOOLED],
    )
    harness.run(arm, partial(attacks, False), options)
    harness.run(replace(arm, name="hidden"), partial(attacks, True), options)
    data = {"data": arm.settings["data"]}
    power = [of_none(KILLED.figure, len(names))]
    harness.run(replace(arm, name="right", settings=data, power=power, targets=[KILLED]), programs, options)
    results = harness.results("recalled", options.results)
    for name in ("visible", "hidden"):
        print(f"{name}\n{attacks_table({name: results[name]})}\n")
    print(programs_table(results))


if __name__ == "__main__":
    main()

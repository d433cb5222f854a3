"""Measures how right rules and dry run are on contest programs of our own, and on functions under `check(candidate)`.

    python -m benchmarks.contest

`programs`: every problem of `benchmarks.contests`, its core and each wrong change of it, dressed in several styles of
reading, printing and structure. A right program passes all inputs, a wrong one the example of the statement alone;
both are executed, and data that is otherwise ends the benchmark. `functions`: MBPP's own solutions and mutants of them,
under tests in HumanEval's form.

Counts are a list for each program: P or F, what it comes to when executed; how it is settled, P or F by the dry run, R
(wrong) by a rule, ? left to the judge; its style; processor seconds; of ? and R the reason.

Figures: docs/measurements.md#how-right-the-evaluator-is
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from tempfile import TemporaryFile

from benchmarks import harness
from benchmarks.attacks.dressing import fenced
from benchmarks.contests import PROBLEMS, Problem
from benchmarks.contests.styles import STYLES, Style, dress
from benchmarks.forms import function_of, in_check
from benchmarks.harness import Arm, Result, Target
from benchmarks.power import Power, of_none
from benchmarks.settled import LIMITS, MUTANTS, came_to, programs_of, read
from benchmarks.splits import Split, add_mbpp, references
from benchmarks.tables import markdown, share
from codezero.evaluate.jobs import Attempt
from codezero.evaluate.rules import RULES, breaks_fatal
from codezero.sandbox.run import run_many
from codezero.tasks.code_contests import HOW_TO_ANSWER
from codezero.tasks.testcases import parse_tests
from codezero.types import CaseOutcome, Task, TaskOrigin

RIGHT_STYLES = 3
"""The number of styles that each core is dressed in; each wrong change is in one."""
FUNCTIONS = 40
CASE_S = 20.0
"""Wall seconds for one input; a program that takes longer fails it."""
DECIDED = Target(figure="decided without the judge", at_least=0.93)
WRONG = Target(figure="verdicts of the dry run that are wrong", at_most=0.0)
REFUSED = Target(figure="right programs that a rule refuses", at_most=0.01)


def problem_of(name: str) -> tuple[int, Problem]:
    """Returns the problem of this name and its number."""
    return next((i, one) for i, one in enumerate(PROBLEMS) if one.name == name)


def task_of(problem: Problem) -> Task:
    """The problem as CodeContests has it, with all inputs among its tests; outputs are those of its core."""
    given, expected = problem.shown
    core = dress(problem.core, STYLES[0])
    outputs = [printed(core, one) for one in (given, *problem.hidden)]
    if outputs[0] != expected or None in outputs:
        raise SystemExit(f"{problem.name}: its core prints {outputs}, first of all not {expected!r}: mend it")
    tests = zip((given, *problem.hidden), outputs, strict=True)
    return Task(
        origin=TaskOrigin.CODE_CONTESTS,
        question=f"{problem.asks}\n\nExample input:\n{given}\nExample output:\n{expected}\n\n{HOW_TO_ANSWER}",
        tests="".join(f"Input:\n{one}\nOutput:\n{output}\n" for one, output in tests),
    )


def printed(program: str, given: str) -> str | None:
    """Returns the output of a program of ours; None where it fails or takes long. Standard input is a file, as
    contests have it and programs rely on."""
    with TemporaryFile("w+") as stdin:
        stdin.write(given)
        stdin.seek(0)
        command = [sys.executable, "-I", "-c", program]
        try:
            run = subprocess.run(command, stdin=stdin, capture_output=True, text=True, check=False, timeout=CASE_S)
        except subprocess.TimeoutExpired:
            return None
    return None if run.returncode else run.stdout


def dressed(number: int, problem: Problem) -> list[tuple[bool, Style, str]]:
    """Programs of the problem: whether they are meant to be right, their style and their text."""
    right = [(number * RIGHT_STYLES + one) % len(STYLES) for one in range(RIGHT_STYLES)]
    made = [(True, STYLES[style], dress(problem.core, STYLES[style])) for style in right]
    for change, (old, new) in enumerate(problem.wrong):
        if old not in problem.core:
            raise SystemExit(f"{problem.name}: its core has no {old!r} to change: mend it")
        style = STYLES[(number + 5 * change) % len(STYLES)]
        made.append((False, style, dress(problem.core.replace(old, new), style)))
    return made


def programs(name: str) -> list[list[object]]:
    """Returns what the programs of a problem come to, as above."""
    number, problem = problem_of(name)
    task, found = task_of(problem), []
    examples = parse_tests(task.tests).examples
    for right, style, code in dressed(number, problem):
        passed = [(printed(code, one.given) or "").split() == one.expected.split() for one in examples]
        if not passed[0] or all(passed) is not right:
            raise SystemExit(f"{name}, {style.name}: meant to be {right}, passes {passed}: mend it\n{code}")
        found.append(["P" if right else "F", *settle(code, task, style.name)])
    return found


def functions(known: Mapping[str, tuple[Task, str]], seed: int, name: str) -> list[list[object]]:
    """Returns what a reference and its mutants come to, with tests in the form `check(candidate)`."""
    task, code = known[name]
    task = Task(origin=task.origin, question=task.question, tests=in_check(task.tests))
    suite, made = parse_tests(task.tests), programs_of(code, name, seed)
    executed = map(came_to, run_many([(one, suite) for one in made], LIMITS))
    return [[was, *settle(one, task, "check")] for was, one in zip(executed, made, strict=True) if was != "T"]


def settle(code: str, task: Task, style: str) -> tuple[str, str, float, str]:
    """Returns how a program is settled, as above: letter, style, processor seconds, reason."""
    began = time.process_time()
    (found,) = read(task, [Attempt(fenced(code), code)])
    spent = round(time.process_time() - began, 3)
    if breaks_fatal(found.rules):
        broken = next(name for name, score in found.rules.items() if RULES[name].fatal and not score)
        return "R", style, spent, f"{broken}: {found.reasons.get(broken, '')}"
    reason = next((one.reason for one in found.cases if one.outcome is CaseOutcome.UNKNOWN), "")
    return {True: "P", False: "F", None: "?"}[found.settled(fatal_rules=True)], style, spent, reason


def table(results: Mapping[str, Result]) -> str:
    """Returns how many programs of each kind are settled, and how rightly."""
    rows = []
    for kind in ("programs", "functions"):
        result = results[kind]
        decided, wrong, refused = result.targets
        for letter, which in (("P", "right"), ("F", "wrong")):
            problems = [[one for one in found if one[0] == letter] for found in result.counts.values()]
            followed = [[one for one in found if one[1] in "PF"] for found in problems]
            rows.append(
                [
                    f"{kind}, {which}",
                    f"{sum(map(len, problems))} of {sum(map(bool, problems))}",
                    share(((sum(one[1] != "?" for one in found), len(found)) for found in problems), decided),
                    share(((sum(one[1] != letter for one in found), len(found)) for found in followed), wrong),
                    share(((sum(one[1] == "R" for one in found), len(found)) for found in problems), refused)
                    if letter == "P"
                    else "-",
                ]
            )
    return markdown(["programs", "number, problems", *(one.figure for one in result.targets)], rows)


def stopped(result: Result) -> str:
    """Returns in lines the causes of what is left to the judge or refused, wrong verdicts, and the slowest programs."""
    every = [(name, *one) for name, found in result.counts.items() for one in found]
    causes = Counter(
        (settled, "right" if was == "P" else "wrong", reason)
        for _, was, settled, *_, reason in every
        if settled in "?R"
    )
    lines = [f"{count} x {settled} {which}: {reason}" for (settled, which, reason), count in causes.most_common()]
    lines += [f"VERDICT WRONG: {name}, {one}" for name, *one in every if one[1] in "PF" and one[1] != one[0]]
    slowest = sorted(every, key=lambda one: -one[4])[:5]
    return "\n".join([*lines, *(f"{one[4]:.2f} s: {one[0]}, {one[3]}" for one in slowest)])


def main(arguments: Sequence[str] | None = None) -> None:
    parser = harness.parser("contest", __doc__)
    add_mbpp(parser)
    options = parser.parse_args(arguments)
    names = [one.name for one in PROBLEMS]
    arm = Arm(
        benchmark="contest",
        name="programs",
        settings={"data": digest(PROBLEMS, STYLES), "case_s": CASE_S},
        seed=0,
        pieces=names,
        power=power_of(len(names)),
        targets=[DECIDED, WRONG, REFUSED],
    )
    print(stopped(harness.run(arm, programs, options)))
    known = {name: one for name, one in references(Split.report, options.mbpp).items() if function_of(one[0].tests)}
    known = dict(list(known.items())[:FUNCTIONS])
    mbpp = harness.digest_of(options.mbpp)
    of_mbpp = {"mbpp": mbpp, "mutants": MUTANTS}
    arm = replace(arm, name="functions", settings=of_mbpp, pieces=list(known), power=power_of(len(known)))
    print(stopped(harness.run(arm, partial(functions, known, arm.seed), options)))
    print(table(harness.results("contest", options.results)))


def power_of(problems: int) -> list[Power]:
    return [of_none(one.figure, problems) for one in (WRONG, REFUSED)]


def digest(*data: object) -> str:
    return hashlib.sha256(repr(data).encode()).hexdigest()[:16]


if __name__ == "__main__":
    main()

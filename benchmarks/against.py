"""Measures whether a policy that follows nothing but the reward ends on right programs.

    python -m benchmarks.against --mbpp ../shared/data/mbpp.jsonl        # about ten minutes on two cores

A policy that learns finds what pays. Here it is a softmax over classes of programs. `functions`, for MBPP's problems
(report split): the right one, `WRONG` that fail their tests, every attack of `benchmarks.attacks` on a function, and a
right and a wrong one that the dry run cannot decide. `programs`, for those of `benchmarks.contests`, with hidden tests
at hand: a right one, `WRONG` subtly wrong ones, every class of `benchmarks.attacks.memory`, and the undecided two.
`examples`: the same without hidden tests, and without subtly wrong ones, which nobody could tell there.

A step draws `TASKS` problems and G classes for each, takes the rewards that evaluator and reward of a round give the
programs, which are the same each time, and follows the advantages of the product (REINFORCE, Williams 1992) with Adam.
It begins with all classes equally likely. No model is asked; for the judge stands one that finds everything as likely
right as wrong, which is what the 0.5B judge knows of programs that the dry run leaves open: these are masked.

A piece is a run with a seed. Its counts, each `EVERY` steps: the mean reward, the share of right programs, and the
policy's probability of each class that has at least `SEEN`.

Figures: docs/measurements.md#how-right-the-evaluator-is
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import cycle, islice
from pathlib import Path
from statistics import fmean
from typing import Any

import torch

from benchmarks import harness
from benchmarks.attacks.dressing import before, fenced
from benchmarks.attacks.memory import CLASSES, VARIANTS, memorised
from benchmarks.contest import digest, dressed, task_of
from benchmarks.contests import PROBLEMS
from benchmarks.contests.styles import STYLES
from benchmarks.harness import Arm, Result, Target
from benchmarks.power import of_none
from benchmarks.recalled import hidden_of, is_right_by_chance, tests_of
from benchmarks.settled import OF_FUNCTIONS, programs_of
from benchmarks.splits import Split, add_mbpp, references
from benchmarks.tables import markdown, outcome
from codezero.config import EvaluatorConfig, RewardConfig, RewardScale
from codezero.evaluate.evaluator import FrozenEvaluator
from codezero.evaluate.judge import Opinion, Submission
from codezero.evaluate.reading import AttemptReader, Fresh
from codezero.tasks.withheld import Problem
from codezero.train.advantage import group_advantages
from codezero.types import FinishReason, Rollout, RolloutGroup, Task
from codezero.workers import Workers

SEEDS, STEPS, EVERY = 3, 100, 10
TASKS, G = 16, 8
LEARNING_RATE = 0.2
WRONG = 3
SEEN = 0.01
RIGHT, OPEN_RIGHT, OPEN_WRONG = "right", "right, undecided", "wrong, undecided"
OPENING = "import numpy\nnumpy.arange(3)"
"""Before a program, it keeps the dry run from deciding."""
ENDS_RIGHT = Target(figure="share of right programs at the end", at_least=0.95)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A problem, and for each class a completion; equal ones where an attack does not apply."""

    task: Task
    completions: Mapping[str, str]
    more_tests: str = ""
    """Hidden tests that the evaluator has."""


class Indifferent:
    """evaluate.judge.Judge that knows nothing."""

    def judge(self, solutions: Sequence[Submission]) -> list[Opinion]:
        return [Opinion(p_correct=0.5)] * len(solutions)


def choices(path: Path) -> list[Choice]:
    """The problems of which `benchmarks.settled` found `WRONG` mutants that fail, without the mutants that pass."""
    truth = harness.results("settled")["programs"]
    made = []
    for name, (task, code) in references(Split.report, path).items():
        programs = programs_of(code, name, truth.seed)
        letters = truth.counts.get(name, [])
        failing = [fenced(one) for one, was in zip(programs, letters, strict=False) if was[0] == "F"]
        if letters and letters[0][0] == "P" and failing:
            wrong = {f"wrong {number}": text for number, text in enumerate(islice(cycle(failing), WRONG))}
            attacks = {f"{one.family}: {one.name}": one.apply(failing[0], task) for one in OF_FUNCTIONS}
            undecided = {OPEN_RIGHT: fenced(f"{OPENING}\n{code}"), OPEN_WRONG: before(OPENING)(failing[0], task)}
            made.append(Choice(task=task, completions={RIGHT: fenced(code), **wrong, **undecided, **attacks}))
    return made


def contests(has_hidden: bool) -> list[Choice]:
    """The problems of ours. Where the program of an attack is right for the example by chance, another variant is."""
    made = []
    for number, problem in enumerate(PROBLEMS):
        whole, programs = task_of(problem), dressed(number, problem)
        right, other, *_ = [code for is_right, _, code in programs if is_right]
        wrong = [code for is_right, _, code in programs if not is_right]
        variant = next(i % VARIANTS for i in range(number, number + VARIANTS) if not is_right_by_chance(problem, i))
        completions = {
            RIGHT: right,
            **({f"wrong {i}": code for i, code in enumerate(islice(cycle(wrong), WRONG))} if has_hidden else {}),
            OPEN_RIGHT: f"{OPENING}\n{other}",
            OPEN_WRONG: f"{OPENING}\n{wrong[0]}",
            **{name: memorised(name, [problem.shown], variant) for name in CLASSES},
        }
        made.append(
            Choice(
                task=replace(whole, tests=tests_of(*problem.shown)),
                completions={name: fenced(code) for name, code in completions.items()},
                more_tests=hidden_of(whole) if has_hidden else "",
            )
        )
    return made


def paid(given: Sequence[Choice]) -> list[dict[str, float | None]]:
    """The reward of each class for each problem; None where it is masked."""
    problems = {one.task: Problem(task=one.task, more_tests=one.more_tests) for one in given}
    fresh = Fresh(EvaluatorConfig().fresh, b"against")
    groups = [[*islice(one.completions, at, at + G)] for one in given for at in range(0, len(one.completions), G)]
    tasks = [one for one in given for _ in range(0, len(one.completions), G)]
    found = {one.task: dict[str, float | None]() for one in given}
    with Workers(2) as workers:
        attempt_reader = AttemptReader(
            workers, dry_run=True, fatal_rules=True, show=True, problem_of=problems.__getitem__, fresh=fresh
        )
        evaluator = FrozenEvaluator(Indifferent(), EvaluatorConfig(), RewardConfig(), lambda *_: None, attempt_reader)
        asked = ((_group(one, classes), False) for one, classes in zip(tasks, groups, strict=True))
        for group, classes in zip(evaluator.score_groups(asked), groups, strict=True):
            rewards = (None if reward is None else reward.total for reward in group.rewards)
            found[group.group.task].update(zip(classes, rewards, strict=True))
    return list(found.values())


def learn(given: Callable[[], Sequence[Mapping[str, float | None]]], seed: str) -> list[Any]:
    """A run of the policy; its counts. `given` are the rewards of each problem by class."""
    rng = random.Random(seed)
    names = list(given()[0])
    logits = torch.zeros(len(names), requires_grad=True)
    optimizer = torch.optim.Adam([logits], lr=LEARNING_RATE)
    counts = []
    for step in range(STEPS + 1):
        likely = logits.softmax(0).tolist()
        drawn = [(one, rng.choices(names, likely, k=G)) for one in rng.sample(given(), TASKS)]
        scored = [[(name, one[name]) for name in classes] for one, classes in drawn]
        if step % EVERY == 0:
            most = {name: round(p, 3) for name, p in zip(names, likely, strict=True) if p >= SEEN}
            rewards = fmean(reward for group in scored for _, reward in group if reward is not None)
            right = fmean(name in (RIGHT, OPEN_RIGHT) for group in scored for name, _ in group)
            counts.append([step, round(rewards, 3), round(right, 3), most])
        _update(logits, optimizer, names, scored)
    return counts


def _group(one: Choice, classes: Sequence[str]) -> RolloutGroup:
    rollouts = tuple(Rollout(text=one.completions[name], finish=FinishReason.STOP) for name in classes)
    return RolloutGroup(peer_id="", model_id="", policy_version=0, task=one.task, rollouts=rollouts)


def _update(
    logits: torch.Tensor,
    optimizer: torch.optim.Optimizer,
    names: Sequence[str],
    scored: Sequence[Sequence[tuple[str, float | None]]],
) -> None:
    told = [[(name, reward) for name, reward in group if reward is not None] for group in scored]
    counting = [group for group in told if len(group) > 1]
    advantages = group_advantages([[reward for _, reward in group] for group in counting], RewardScale.group)
    chosen = [names.index(name) for group in counting for name, _ in group]
    loss = -(logits.log_softmax(0)[chosen] * torch.tensor([one for group in advantages for one in group])).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def table(results: Mapping[str, Result]) -> str:
    """What was paid and what was right over the steps, as means over the runs, until it stays; and what each run ended
    on."""
    (result,) = results.values()
    (target,) = result.targets
    runs = list(result.counts.values())
    rows = []
    for moments in zip(*runs, strict=True):
        reward, right = (fmean(moment[column] for moment in moments) for column in (1, 2))
        rows.append([str(moments[0][0]), f"{reward:.2f}", f"{right:.0%}"])
    rows = [row for row, before in zip(rows, [[], *rows], strict=False) if row[1:] != before[1:]]
    ends = []
    for name, run in result.counts.items():
        *_, likely = run[-1]
        most = sorted(likely, key=likely.get, reverse=True)[:3]
        right = likely.get(RIGHT, 0.0) + likely.get(OPEN_RIGHT, 0.0)
        verdict = outcome(target, right, "{:.0f} %", 100)
        ends.append([name, ", ".join(f"{one} {likely[one]:.0%}" for one in most), verdict])
    steps = markdown(["step", "mean reward", "right programs"], rows)
    return f"{steps}\n\n{markdown(['run', 'ends on', target.figure], ends)}"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = harness.parser("against", __doc__)
    add_mbpp(parser)
    options = parser.parse_args(arguments)
    data = {"contests": digest(PROBLEMS, STYLES)}
    for name, given, of in (
        ("functions", choices(options.mbpp), {"mbpp": harness.digest_of(options.mbpp)}),
        ("programs", contests(has_hidden=True), data),
        ("examples", contests(has_hidden=False), data),
    ):
        arm = Arm(
            benchmark="against",
            name=name,
            settings={
                **of,
                "classes": list(given[0].completions),
                "problems": len(given),
                "steps": STEPS,
                "tasks": TASKS,
                "generations": G,
                "learning_rate": LEARNING_RATE,
            },
            seed=0,
            pieces=[f"{seed}" for seed in range(SEEDS)],
            power=[of_none("runs that end on wrong programs", SEEDS, "runs")],
            targets=[ENDS_RIGHT],
        )
        harness.run(arm, partial(learn, cache(partial(paid, given))), options)
    for name, result in harness.results("against", options.results).items():
        print(f"{name}\n{table({name: result})}\n")


if __name__ == "__main__":
    main()

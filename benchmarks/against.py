"""Learning against the reward: does a policy that only follows it end on right programs?

    python -m benchmarks.against --mbpp ../shared/data/mbpp.jsonl        # about ten minutes on two cores

A policy that learns finds what pays. Here it is a softmax over classes of programs for MBPP's problems (report split):
the right one, `WRONG` that fail their tests, every attack of `benchmarks.attacks` on a function, and a right and a
wrong one that the dry run cannot decide. A step draws `TASKS` problems and G classes for each, has the programs scored
by the evaluator and the reward of a round, and follows the advantages of the product (REINFORCE, Williams 1992) with
Adam. It begins with all classes equally likely, so with one right program in more than a hundred. No model is asked;
for the judge stands one that finds everything as likely right as wrong, which is what the 0.5B judge knows of programs
that the dry run leaves open: these are masked.

A piece is a run with a seed. Its counts, each `EVERY` steps: the mean reward, the share of right programs, and the
policy's probability of each class that has at least `SEEN`.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from statistics import fmean
from typing import Any

import torch

from benchmarks import harness
from benchmarks.attacks.dressing import before
from benchmarks.harness import Arm, Result, Target
from benchmarks.power import of_none
from benchmarks.settled import OF_FUNCTIONS, answer, programs_of
from benchmarks.splits import MBPP, Split, references
from benchmarks.tables import against, markdown
from codezero.config import EvaluatorConfig, RewardConfig, RewardScale
from codezero.evaluate.evaluator import FrozenEvaluator
from codezero.evaluate.examiner import Examiner
from codezero.evaluate.judge import Opinion, Submission
from codezero.train.advantage import group_advantages
from codezero.types import FinishReason, Rollout, RolloutGroup, ScoredGroup, Task
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


class Indifferent:
    """evaluate.judge.Judge that knows nothing."""

    def judge(self, solutions: Sequence[Submission]) -> list[Opinion]:
        return [Opinion(p_correct=0.5)] * len(solutions)

    def permit(self, external: bool) -> None:
        pass


def choices(path: Path) -> list[Choice]:
    """The problems of which `benchmarks.settled` found `WRONG` mutants that fail, without the mutants that pass."""
    truth = harness.results("settled")["programs"]
    made = []
    for name, (task, code) in references(Split.report, path).items():
        programs = programs_of(code, name, truth.seed)
        letters = truth.counts.get(name, [])
        failing = [answer(one) for one, was in zip(programs, letters, strict=False) if was[0] == "F"]
        if letters and letters[0][0] == "P" and failing:
            wrong = {f"wrong {number}": text for number, text in enumerate(islice(cycle(failing), WRONG))}
            attacks = {f"{one.family}: {one.name}": one.apply(failing[0], task) for one in OF_FUNCTIONS}
            undecided = {OPEN_RIGHT: answer(f"{OPENING}\n{code}"), OPEN_WRONG: before(OPENING)(failing[0], task)}
            made.append(Choice(task=task, completions={RIGHT: answer(code), **wrong, **undecided, **attacks}))
    return made


def learn(given: Sequence[Choice], seed: str) -> list[Any]:
    """A run of the policy; its counts."""
    rng = random.Random(seed)
    names = list(given[0].completions)
    logits = torch.zeros(len(names), requires_grad=True)
    optimizer = torch.optim.Adam([logits], lr=LEARNING_RATE)
    counts = []
    with Workers(2) as workers:
        examiner = Examiner(workers, walk=True, fatal_rules=True, show=True)
        evaluator = FrozenEvaluator(Indifferent(), EvaluatorConfig(), RewardConfig(), lambda *_: None, examiner)
        for step in range(STEPS + 1):
            drawn = [(one, rng.choices(names, logits.softmax(0).tolist(), k=G)) for one in rng.sample(given, TASKS)]
            scored = list(evaluator.score_groups((_group(one, classes), False) for one, classes in drawn))
            if step % EVERY == 0:
                likely = {
                    name: round(p, 3) for name, p in zip(names, logits.softmax(0).tolist(), strict=True) if p >= SEEN
                }
                rewards = fmean(reward.total for group in scored for reward in group.earned)
                right = fmean(name in (RIGHT, OPEN_RIGHT) for _, classes in drawn for name in classes)
                counts.append([step, round(rewards, 3), round(right, 3), likely])
            _update(logits, optimizer, names, [classes for _, classes in drawn], scored)
    return counts


def _group(one: Choice, classes: Sequence[str]) -> RolloutGroup:
    rollouts = tuple(Rollout(text=one.completions[name], finish=FinishReason.STOP) for name in classes)
    return RolloutGroup(peer_id="", model_id="", policy_version=0, task=one.task, rollouts=rollouts)


def _update(
    logits: torch.Tensor,
    optimizer: torch.optim.Optimizer,
    names: Sequence[str],
    drawn: Sequence[Sequence[str]],
    scored: Sequence[ScoredGroup],
) -> None:
    advantages = group_advantages([[reward.total for reward in group.earned] for group in scored], RewardScale.group)
    counting = (
        name
        for group, classes in zip(scored, drawn, strict=True)
        if group.scored
        for name, reward in zip(classes, group.rewards, strict=True)
        if reward is not None
    )
    chosen = [names.index(name) for name in counting]
    loss = -(logits.log_softmax(0)[chosen] * torch.tensor([one for group in advantages for one in group])).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def table(results: Mapping[str, Result]) -> str:
    """What was paid and what was right over the steps, as means over the runs; and what each run ended on."""
    result = results["functions"]
    (target,) = result.targets
    runs = list(result.counts.values())
    rows = []
    for moments in zip(*runs, strict=True):
        reward, right = (fmean(moment[column] for moment in moments) for column in (1, 2))
        rows.append([str(moments[0][0]), f"{reward:.2f}", f"{right:.0%}"])
    ends = []
    for name, run in result.counts.items():
        *_, likely = run[-1]
        most = sorted(likely, key=likely.get, reverse=True)[:3]
        right = likely.get(RIGHT, 0.0) + likely.get(OPEN_RIGHT, 0.0)
        verdict = against(target, right, "{:.0f} %", 100)
        ends.append([name, ", ".join(f"{one} {likely[one]:.0%}" for one in most), verdict])
    steps = markdown(["step", "mean reward", "right programs"], rows)
    return f"{steps}\n\n{markdown(['run', 'ends on', target.figure], ends)}"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = harness.parser("against", __doc__)
    parser.add_argument("--mbpp", type=Path, default=MBPP, metavar="FILE", help=f"MBPP's problems (default: {MBPP})")
    options = parser.parse_args(arguments)
    given = choices(options.mbpp)
    arm = Arm(
        benchmark="against",
        name="functions",
        settings={
            "mbpp": hashlib.sha256(options.mbpp.read_bytes()).hexdigest()[:16],
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
    harness.run(arm, partial(learn, given), options)
    print(table(harness.results("against", options.results)))


if __name__ == "__main__":
    main()

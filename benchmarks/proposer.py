"""Measures how many of the problems that a model writes are fit to be published, by level and by prompt.

    python -m benchmarks.proposer --answers 40 --solve 4

All variants are written by the same model in one run. `naive` is the prompt that a first attempt would be, kept here as
the baseline only; `solution` asks for a reference solution too, as `proposer.reference=dry_run` does, and counts a
problem as published only if that passes the tests; `corrected` puts the results that it gives into tests that it fails,
as a proposer does. Solved: share of the published problems that some of M attempts
solves, made from the question alone and followed by the dry run: their tests are right as far as can be told. The
rest are wrong, too vague, or too hard for the solver.

Figures: docs/measurements.md#how-good-the-problems-are
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from enum import Enum

from benchmarks.harness import MODEL, command_line
from benchmarks.measure import machine
from benchmarks.power import wilson
from codezero.config import ProposerConfig, Reference
from codezero.config.load import load_config
from codezero.evaluate.dryrun import dry_run
from codezero.harness import policy
from codezero.llm.sample import sample_groups
from codezero.policy.solver import measuring_solver
from codezero.prompts import proposer as prompt
from codezero.prompts import solver as solver_prompt
from codezero.proposals import LEVELS
from codezero.proposer.duplicates import Seen
from codezero.proposer.jobs import why_not
from codezero.proposer.models import LocalModel
from codezero.proposer.reference import ReferenceCheck
from codezero.proposer.write import Draft, Writer
from codezero.tasks.testcases import parse_tests
from codezero.types import CaseOutcome, Task, TaskOrigin
from codezero.workers import Workers

HEADER = (
    f"{'variant':12}{'level':10}{'answers':>8}{'parsed':>8}{'valid':>8}{'published [95 %]':>19}{'solved [95 %]':>19}"
    f"{'tokens: each':>14}{'per published':>15}{'answers/min':>13}"
)
NAIVE = (
    "Generate a Python coding problem of difficulty {level}. Give a question that names one function, and at most "
    'four unit tests as assert statements. Answer with a JSON object with the keys "question" and "tests" in a '
    "```json block."
)
Write = Callable[[int, int], Sequence[Draft]]


@dataclass
class Tally:
    """The answers of one variant at one level, counted by how they were used."""

    written: int = 0
    parsed: int = 0
    valid: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    """The reasons for all that was not published."""
    published: list[Task] = field(default_factory=list)
    solved: int | None = None
    tokens: int = 0
    seconds: float = 0.0

    def row(self, variant: str, level: str) -> str:
        num = max(self.written, 1)
        solved = "-" if self.solved is None else share(self.solved, len(self.published))
        per_published = self.tokens / len(self.published) if self.published else float("nan")
        return (
            f"{variant:12}{level:10}{self.written:8}{self.parsed / num:8.0%}{self.valid / num:8.0%}"
            f"{share(len(self.published), self.written):>19}{solved:>19}{self.tokens / num:14.0f}{per_published:15.0f}"
            f"{60 * self.written / max(self.seconds, 1e-9):13.1f}"
        )


def share(successes: int, trials: int) -> str:
    """Returns `70% [55, 82]`, the interval by Wilson; a dash without trials."""
    if not trials:
        return "-"
    found = wilson(successes, trials)
    return f"{found.value:.0%} [{100 * found.low:.0f}, {100 * found.high:.0f}]"


def total(tallies: Sequence[Tally]) -> Tally:
    """All levels together."""
    solved = [tally.solved for tally in tallies if tally.solved is not None]
    return Tally(
        written=sum(tally.written for tally in tallies),
        parsed=sum(tally.parsed for tally in tallies),
        valid=sum(tally.valid for tally in tallies),
        reasons=sum((tally.reasons for tally in tallies), Counter()),
        published=[task for tally in tallies for task in tally.published],
        solved=sum(solved) if solved else None,
        tokens=sum(tally.tokens for tally in tallies),
        seconds=sum(tally.seconds for tally in tallies),
    )


def naive(model: LocalModel) -> Write:
    """The baseline's writer."""

    def write(level: int, count: int) -> Sequence[Draft]:
        chat = [{"role": "user", "content": NAIVE.format(level=LEVELS[level - 1])}]
        written = model.answer([chat] * count, [""] * count)
        return [
            Draft(level=level, raw=one.text, answer=prompt.parse_answer(one.text), tokens=one.tokens) for one in written
        ]

    return write


class Vouch(Enum):
    """The condition that a problem's own solution has to meet."""

    nothing = "nothing"
    passes = "passes"
    settles = "settles"


def variants(load: Callable[[ProposerConfig], LocalModel], config: ProposerConfig) -> dict[str, tuple[Write, Vouch]]:
    """Returns the variants that are compared, by name."""

    def shipped(**changes: object) -> Write:
        changed = ProposerConfig(**{**vars(config), **changes})
        return Writer(load(changed), changed, seed=0).write

    return {
        "naive": (naive(load(config)), Vouch.nothing),
        "shipped": (shipped(reference=Reference.none), Vouch.nothing),
        "repair": (shipped(reference=Reference.none, repair=True), Vouch.nothing),
        "solution": (shipped(reference=Reference.dry_run), Vouch.passes),
        "corrected": (shipped(reference=Reference.dry_run), Vouch.settles),
    }


def tally(
    workers: Workers, write: Write, level: int, num_answers: int, batch_size: int, seen: Seen, vouch: Vouch
) -> Tally:
    """Has so many problems of a level written, and checks them as a proposer does."""
    result = Tally()
    check = ReferenceCheck(Reference.dry_run, workers)
    for count in batches(num_answers, batch_size):
        start = time.perf_counter()
        drafts = write(level, count)
        result.seconds += time.perf_counter() - start
        for draft in drafts:
            result.written += 1
            result.tokens += len(draft.tokens.completion_ids) if draft.tokens else 0
            answer = draft.answer
            if answer is None:
                result.reasons["unreadable"] += 1
                continue
            result.parsed += 1
            reason = why_not(workers, answer.question, answer.tests) or seen.why_not(answer.question, answer.tests)
            result.valid += reason is None
            tests = answer.tests
            if reason is None and vouch is not Vouch.nothing:
                tests, reason = check.confirm_or_correct_tests(answer.solution, tests)
            if reason is None and vouch is Vouch.passes and tests != answer.tests:
                reason = "reference_fails"
            if reason is not None:
                result.reasons[reason] += 1
                continue
            seen.add(answer.question, answer.tests)
            result.published.append(Task(origin=TaskOrigin.PROPOSER, question=answer.question, tests=tests))
    return result


def batches(number: int, size: int) -> Iterator[int]:
    for start in range(0, number, size):
        yield min(size, number - start)


def num_solved(model: policy.LoadedModel, tasks: Sequence[Task], attempts: int, batch_size: int) -> int:
    """Returns the number of tasks that some attempt solves, as far as the dry run can tell."""
    solver = measuring_solver(model, attempts, 256, 1.0, 0, lambda *_: None, sample_groups)
    solved = 0
    for start in range(0, len(tasks), batch_size):
        for group in solver.solve(tasks[start : start + batch_size], 0):
            codes = [solver_prompt.parse(rollout.text) for rollout in group.rollouts]
            suite = parse_tests(group.task.tests)
            passed = (all(case.outcome is CaseOutcome.PASS for case in dry_run(code, suite)) for code in codes if code)
            solved += any(passed)
    return solved


def main(arguments: Sequence[str] | None = None) -> None:
    parser = command_line("proposer", __doc__)
    parser.add_argument("--model", default=MODEL, help="writes problems, and solves them")
    parser.add_argument("--levels", default="12345", help="such as 135")
    parser.add_argument("--answers", type=int, default=40, metavar="N", help="problems a level and variant")
    parser.add_argument("--solve", type=int, default=0, metavar="M", help="attempts at each published problem")
    parser.add_argument(
        "--variants", default="naive,shipped,corrected", help="of naive, shipped, repair, solution, corrected"
    )
    parser.add_argument("settings", nargs="*", metavar="key=value", help="settings, such as proposer.temperature=1.0")
    options = parser.parse_args(arguments)
    config = load_config(options.settings)
    chosen = config.model
    model, where = policy.load_policy(
        options.model, chosen.cache_dir, chosen.device, chosen.dtype, chosen.threads, None
    )
    print(f"machine: {machine()}; {options.model} on {where}\n{HEADER}", flush=True)

    def load(settings: ProposerConfig) -> LocalModel:
        return LocalModel(model, settings, seed=0, progress=lambda *_: None, weights=nullcontext)

    made = variants(load, config.proposer)
    for name in options.variants.split(","):
        write, vouch = made[name]
        seen = Seen(
            remembered=config.proposer.remembered,
            similarity=config.proposer.similarity,
            known=[prompt.EXAMPLE.question],
        )
        tallies = []
        for level in map(int, options.levels):
            with Workers(1) as workers:
                one = tally(workers, write, level, options.answers, config.proposer.batch_size, seen, vouch)
            if options.solve:
                one.solved = num_solved(model, one.published, options.solve, config.proposer.batch_size)
            print(one.row(name, LEVELS[level - 1]), flush=True)
            tallies.append(one)
        whole = total(tallies)
        print(whole.row(name, "all"))
        shares = [f"{reason} {count / whole.written:.0%}" for reason, count in whole.reasons.most_common()]
        print(f"  not published: {', '.join(shares) or 'none'}", flush=True)


if __name__ == "__main__":
    main()

"""Measures whether a solver and a test writer learn more from each other than alone, with small models.

    python -m benchmarks.pair            # three arms, three seeds: twenty minutes of a core

Two copies of a model of 0.4 million parameters, which solves half of the held-out problems of `benchmarks.formulas`
and writes valid cases for few of them, play `ROUNDS` rounds: one solves problems, the other writes cases about one of
the solutions to each, right and wrong ones equally often as far as there are both. Rewards of cases, advantages, loss
and optimizer are the product's, but all weights learn; programs are compared exactly, where the product makes dry runs.

    alone     the solver learns from its attempts
    frozen    it also tries solutions again that cases have refused, shown one that failed; the writer never learns
    pair      the same, and the writer learns

A piece is a seed: held-out scores each `EVERY` rounds.

Figures: docs/measurements.md#what-a-solver-and-a-test-writer-learn-from-each-other
"""

from __future__ import annotations

import copy
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import fmean

import torch

from benchmarks import arithmetic, formulas, harness
from benchmarks.formulas import CHARACTERS, MAX_CASES, MAX_PROGRAM, Problem, Program, program_of
from benchmarks.harness import Arm, Counts, Result
from benchmarks.power import of_seeds
from benchmarks.sharing import difference, late_score
from benchmarks.sides import PLAIN
from benchmarks.small_swarm import make_learner
from benchmarks.tables import markdown
from codezero.config import LossType, RewardScale
from codezero.llm.load import LoadedModel
from codezero.observe.probes import percent
from codezero.types import Reward, SampledTokens, ScoredGroup
from codezero.verifier.reward import CaseResults, JudgedAnswer, judge

BENCHMARK = "pair"
ARMS = ("alone", "frozen", "pair")
ROUNDS, EVERY, SEEDS = 160, 16, 3
PROBLEMS, G = 8, 8
START, HELD_OUT, BATCH = 0.5, 256, 64
RATE = 1e-4
SPREAD = 0.03
"""The standard deviation over seeds of a held-out score, for the power."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempts:
    """The attempts at a problem, or the answers about a solution, with their rewards."""

    problem: Problem
    tokens: Sequence[SampledTokens]
    texts: Sequence[str]
    rewards: Sequence[Reward]


class Player:
    """A model that learns from groups of completions."""

    def __init__(self, start: LoadedModel, seed: int) -> None:
        self.model = replace(start, model=copy.deepcopy(start.model))
        self._sampling = torch.Generator().manual_seed(seed)
        train = replace(PLAIN, learning_rate=RATE, loss_type=LossType.dr_grpo, scale_rewards=RewardScale.none)
        self._learner = make_learner(self.model, train, MAX_PROGRAM)
        self.num_tokens = 0

    def complete(self, prompts: Sequence[str], longest: int) -> list[tuple[list[SampledTokens], list[str]]]:
        """Returns G completions of each prompt, as tokens and as texts."""
        groups = arithmetic.complete(self.model, prompts, G, self._sampling, longest)
        self.num_tokens += sum(len(one.completion_ids) for group in groups for one in group)
        return [(group, [arithmetic.text_of(self.model, one) for one in group]) for group in groups]

    def learn(self, groups: Sequence[Attempts]) -> None:
        self._learner.step([ScoredGroup.of_tokens(one.tokens, one.rewards, policy_version=0) for one in groups])


def attempts(solver: Player, problems: Sequence[Problem], prompts: Sequence[str]) -> list[Attempts]:
    """Returns the solver's attempts, with a reward of 1 for the right program and else 0."""
    found = []
    for problem, (tokens, texts) in zip(problems, solver.complete(prompts, MAX_PROGRAM), strict=True):
        right = [float(str(problem.solution) == text) for text in texts]
        rewards = [Reward(total=one, parts={"correct": one}) for one in right]
        found.append(Attempts(problem=problem, tokens=tokens, texts=texts, rewards=rewards))
    return found


def candidate_of(one: Attempts, rng: random.Random) -> tuple[Program | None, list[Program]]:
    """Returns a candidate, right or wrong equally often as far as there are both, and all wrong programs; no candidate
    if no attempt is a program."""
    programs = [program for text in dict.fromkeys(one.texts) if (program := program_of(text))]
    right = [program for program in programs if program.equals(one.problem.solution)]
    wrong = [program for program in programs if program not in right]
    wanted = (right if rng.random() < 0.5 else wrong) or programs
    return (rng.choice(wanted) if wanted else None), wrong


def judged(solution: Program, candidate: Program, wrong: Sequence[Program], text: str) -> JudgedAnswer:
    """Returns the judgement of an answer of cases by the rule of the product."""
    cases = formulas.cases_of(text)
    results = CaseResults(
        inputs=[value for value, _ in cases],
        reference=formulas.results(solution, cases),
        candidate=formulas.results(candidate, cases),
        wrong=[formulas.results(one, cases) for one in wrong],
    )
    found = judge(results, candidate.equals(solution))
    assert found is not None  # every result is known
    return found


def play_round(solver: Player, writer: Player | None, rng: random.Random, learns: bool) -> None:
    """The solver attempts problems; with a writer, cases are written and refused solutions tried again; all learn."""
    problems = [formulas.problem(rng) for _ in range(PROBLEMS)]
    first = attempts(solver, problems, [formulas.solve(one) for one in problems])
    second: list[Attempts] = []
    if writer is not None:
        chosen = [(one, *candidate_of(one, rng)) for one in first]
        asked = [(one, candidate, wrong) for one, candidate, wrong in chosen if candidate is not None]
        answers = writer.complete([formulas.write(one.problem, candidate) for one, candidate, _ in asked], MAX_CASES)
        written, refused = [], []
        for (one, candidate, wrong), (tokens, texts) in zip(asked, answers, strict=True):
            found = [judged(one.problem.solution, candidate, wrong, text) for text in texts]
            rewards = [answer.reward for answer in found]
            written.append(Attempts(problem=one.problem, tokens=tokens, texts=texts, rewards=rewards))
            if case := _failed(rng, candidate, texts) if candidate in wrong else "":
                refused.append((one.problem, formulas.solve_again(one.problem, candidate, case)))
        if refused:
            second = attempts(solver, [problem for problem, _ in refused], [prompt for _, prompt in refused])
        if learns:
            writer.learn(written)
    solver.learn([*first, *second])


def _failed(rng: random.Random, candidate: Program, texts: Sequence[str]) -> str:
    """Returns a case that the candidate fails, of one of the answers at random, whether valid or not, since where a
    solver is used nobody knows; empty if there is none."""
    failed = [
        [f"{value}={result}" for value, result in formulas.cases_of(text) if candidate.at(value) != result]
        for text in texts
    ]
    refusing = [cases for cases in failed if cases]
    return rng.choice(refusing)[0] if refusing else ""


def scores(solver: Player, writer: Player, rng: torch.Generator, seed: int) -> list[float]:
    """Returns held-out shares: problems that one attempt solves; answers of cases that are valid, and whose diagnosis
    is right, about programs of which half are right; and the mean reward of these."""
    problems, choice = formulas.held_out(HELD_OUT), random.Random(seed)
    programs = arithmetic.complete(solver.model, [formulas.solve(one) for one in problems], 1, rng, MAX_PROGRAM)
    right = [
        arithmetic.text_of(solver.model, given) == str(one.solution)
        for one, (given,) in zip(problems, programs, strict=True)
    ]
    shown = [one.solution if choice.random() < 0.5 else formulas.spoilt(choice, one.solution) for one in problems]
    asked = [formulas.write(one, program) for one, program in zip(problems, shown, strict=True)]
    found = []
    for one, program, (given,) in zip(
        problems, shown, arithmetic.complete(writer.model, asked, 1, rng, MAX_CASES), strict=True
    ):
        wrong = [] if program == one.solution else [program]
        found.append(judged(one.solution, program, wrong, arithmetic.text_of(writer.model, given)))
    return [
        fmean(right),
        fmean(one.valid for one in found),
        fmean(one.right for one in found),
        fmean(one.reward.total for one in found),
    ]


def beginner(seed: int, folder: Path) -> LoadedModel:
    """Returns a model that solves `START` of held-out problems, and has seen all three kinds of prompts; from the
    folder, where it is kept."""
    made, path = arithmetic.blank(seed, CHARACTERS), folder / f"beginner-{seed}.pt"
    if not path.exists():
        rng, optimizer = random.Random(seed), torch.optim.Adam(made.model.parameters(), arithmetic.RATE)
        asked = formulas.held_out(HELD_OUT)
        for step in range(20_000):
            arithmetic.supervise(made, optimizer, [_shown(rng) for _ in range(BATCH)])
            if step % arithmetic.LOOKS == 0:
                given = arithmetic.complete(
                    made, [formulas.solve(one) for one in asked], 1, torch.Generator(), MAX_PROGRAM
                )
                texts = [arithmetic.text_of(made, one) for (one,) in given]
                if fmean(text == str(one.solution) for text, one in zip(texts, asked, strict=True)) >= START:
                    break
        else:
            raise SystemExit(f"the model does not learn to solve {START:.0%}: a fault of this benchmark")
        arithmetic.keep(made, path)
    made.model.load_state_dict(torch.load(path, weights_only=True))
    return made


def _shown(rng: random.Random) -> tuple[str, str]:
    """Returns a prompt of one of the three kinds, half of them for cases, with a right answer."""
    one = formulas.problem(rng)
    wrong = formulas.spoilt(rng, one.solution)
    cases = [f"{value}={one.solution.at(value)}" for value in rng.sample(formulas.INPUTS, 2)]
    kind = rng.randrange(4)
    if kind == 0:
        return formulas.solve(one), str(one.solution)
    if kind == 1:
        return formulas.solve_again(one, wrong, cases[0]), str(one.solution)
    return formulas.write(one, rng.choice((wrong, one.solution))), ",".join(cases)


def play(arm: str, rounds: int, folder: Path, seed: str) -> Counts:
    """Plays an arm with a seed. Returns [rounds played, solver's tokens, *scores] of each look."""
    torch.set_num_threads(1)
    start, rng = beginner(int(seed), folder), random.Random(int(seed))
    solver, writer = Player(start, 2 * int(seed)), Player(start, 2 * int(seed) + 1)
    looking, counts = torch.Generator().manual_seed(int(seed)), []
    for number in range(rounds + 1):
        if number % EVERY == 0:
            found = scores(solver, writer, looking, number)
            counts.append([number, solver.num_tokens, *(round(one, 4) for one in found)])
        play_round(solver, None if arm == "alone" else writer, rng, learns=arm == "pair")
    return counts


def table(results: Mapping[str, Result]) -> str:
    """Returns each arm's late held-out scores, and the solver's difference to the one alone after equal rounds and
    after equal numbers of its own tokens."""

    def late(run: Counts, tokens: float, column: int = 2) -> float:
        return late_score(run, tokens, score=column, used=1)

    runs = {name: list(result.counts.values()) for name, result in results.items()}
    rows = [["before", "", *(percent(fmean(run[0][column] for run in runs["pair"])) for column in (2, 3)), "", ""]]
    alone = results["alone"].counts
    for name in ARMS:
        pairs = [(run, alone[seed]) for seed, run in results[name].counts.items() if seed in alone]
        equal = [(run, other, min(run[-1][1], other[-1][1])) for run, other in pairs]
        rows.append(
            [
                name,
                f"{fmean(run[-1][1] for run in runs[name]) / 1000:.0f}",
                *(percent(fmean(late(run, run[-1][1], column) for run in runs[name])) for column in (2, 3)),
                difference([late(run, run[-1][1]) - late(other, other[-1][1]) for run, other in pairs]),
                difference([late(run, fewest) - late(other, fewest) for run, other, fewest in equal]),
            ]
        )
    header = ["arm", "solver's tokens, thousands", "problems solved", "answers whose cases are valid"]
    return markdown([*header, "solved to alone, equal rounds", "solved to alone, equal tokens"], rows)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = harness.parser(BENCHMARK, __doc__)
    parser.add_argument("arms", nargs="*", default=ARMS, metavar="ARM", help=f"default: {' '.join(ARMS)}")
    parser.add_argument("--seeds", type=int, default=SEEDS, metavar="N", help=f"runs of each arm (default {SEEDS})")
    parser.add_argument("--rounds", type=int, default=ROUNDS, metavar="N", help=f"of a run (default {ROUNDS})")
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.arms if name not in ARMS]:
        parser.error(f"{unknown[0]} is no arm: choose from {', '.join(ARMS)}")
    settings = {"problems": PROBLEMS, "generations": G, "start": START, "held out": HELD_OUT, "learning_rate": RATE}
    for name in options.arms:
        arm = Arm(
            benchmark=BENCHMARK,
            name=name,
            settings={**settings, "rounds": options.rounds},
            seed=0,
            pieces=[str(seed) for seed in range(options.seeds)],
            power=[of_seeds("held-out score", options.seeds, SPREAD)],
        )
        harness.run(arm, partial(play, name, options.rounds, options.state / BENCHMARK), options)
    found = harness.results(BENCHMARK, options.results)
    if len(found) == len(ARMS):
        print(table(found))


if __name__ == "__main__":
    main()

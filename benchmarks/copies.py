"""Measures how often independent groups are equal, so that one would count as a copy of the other (`evaluate.copies`).

    codezero eval --dataset mbpp --path mbpp.jsonl --split train --samples 16 --temperature 1 --out samples
    python -m benchmarks.copies samples/results.jsonl

Of the samples of a problem two groups without a common one are drawn, again and again: what two peers with the same
weights publish, who are more alike than peers ever are once they have learnt. A row shows by the least number of tokens
of a group's distinct programs how many of the groups have so many, and which share of all pairs are taken for copies.

Figures: docs/measurements.md#how-often-honest-groups-are-equal
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from random import Random

from benchmarks.evaluator import read_samples
from benchmarks.harness import command_line
from benchmarks.splits import Split
from codezero.evaluate.copies import program_of
from codezero.evaluate.jobs import MIN_TOKENS, ProgramPrint
from codezero.evaluate.rules.solution import requirements_of
from codezero.prompts import solver as prompt
from codezero.tasks.testcases import parse_tests

SIZES = (1, 2, 4, 8)
"""G; 1 shows single programs."""
LEAST = (1, 25, 50, 75, 100, 150, 200, 300)
DRAWS = 2000
"""The number of pairs of groups drawn for a problem."""

Group = frozenset[ProgramPrint]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = command_line("copies", __doc__)
    parser.add_argument("samples", type=Path, help="results of codezero eval on MBPP's problems")
    problems = programs_of(parser.parse_args(arguments).samples)
    num = sum(map(len, problems))
    print(f"{len(problems)} problems, {num} samples, {sum(p is None for one in problems for p in one)} do not parse")
    print("G    tokens  groups so long  pairs taken for copies")
    for size in SIZES:
        pairs = [pair for i, programs in enumerate(problems) for pair in drawn(programs, size, Random(i))]
        for least in LEAST if pairs else ():
            long = [pair for pair in pairs if num_tokens(pair[0]) >= least]
            share = sum(first == second for first, second in long) / len(pairs)
            shipped = "  <- shipped" if least == MIN_TOKENS else ""
            print(f"{size}  {least:7}  {len(long) / len(pairs):14.1%}  {share:22.3%}{shipped}")


def programs_of(path: Path) -> list[list[ProgramPrint | None]]:
    """Returns the program of each sample, by problem; None where it does not parse."""
    found: dict[str, list[ProgramPrint | None]] = defaultdict(list)
    for sample in read_samples(path, splits=tuple(Split)):
        code = prompt.parse(sample.text)
        wanted = requirements_of(sample.task.origin, parse_tests(sample.task.tests)).wanted
        found[sample.group].append(None if code is None else program_of(code, wanted))
    return list(found.values())


def drawn(programs: Sequence[ProgramPrint | None], size: int, dice: Random) -> list[tuple[Group, Group]]:
    """Pairs of groups of so many samples of a problem each."""
    if len(programs) < 2 * size:
        return []
    lots = (dice.sample(programs, 2 * size) for _ in range(DRAWS))
    return [(frozenset(filter(None, lot[:size])), frozenset(filter(None, lot[size:]))) for lot in lots]


def num_tokens(group: Group) -> int:
    return sum(program.num_tokens for program in group)


if __name__ == "__main__":
    main()

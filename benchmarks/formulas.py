"""Small functions for `benchmarks.pair`: problems that a model of 0.4 million parameters solves, and cases of them.

    3x+4+2x+9=          a problem: the function of x whose terms are to be summed
    5x+13               its solution, the program
    3x+4+2x+9?5x+12>    a writer of cases is asked about a program, which may be wrong
    0=13,3=28           two cases: of 0 comes 13, of 3 comes 28
    3x+4+2x+9!5x+12,0=13=   the problem again, with the program and a case that it fails

Programs are compared on the inputs 0 to 3. A tenth of all problems, by their hash, is held out.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass

from codezero.prompts.verifier import NUM_CASES
from codezero.types import CaseOutcome

CHARACTERS = "0123456789x+=?!>,"
INPUTS = range(4)
MAX_PROGRAM, MAX_CASES = 7, 10
"""Tokens of the longest answers, with their end."""
_PROGRAM = re.compile(r"(\d+)x\+(\d+)")
_CASE = re.compile(r"(\d)=(\d+)")


@dataclass(frozen=True, slots=True)
class Program:
    """factor x + term"""

    factor: int
    term: int

    def __str__(self) -> str:
        return f"{self.factor}x+{self.term}"

    def at(self, value: int) -> int:
        return self.factor * value + self.term

    def equals(self, other: Program) -> bool:
        return all(self.at(value) == other.at(value) for value in INPUTS)


def program_of(text: str) -> Program | None:
    """Returns the program that a text is; None if it is none."""
    match = _PROGRAM.fullmatch(text)
    return Program(int(match[1]), int(match[2])) if match else None


@dataclass(frozen=True, slots=True)
class Problem:
    question: str
    solution: Program


def problem(rng: random.Random, *, is_held_out: bool = False) -> Problem:
    """Draws a problem."""
    while True:
        factors, terms = (rng.randint(1, 4), rng.randint(1, 4)), (rng.randint(1, 9), rng.randint(1, 9))
        text = f"{factors[0]}x+{terms[0]}+{factors[1]}x+{terms[1]}"
        if (hashlib.sha256(text.encode()).digest()[0] < 26) == is_held_out:
            return Problem(text, Program(sum(factors), sum(terms)))


def held_out(count: int) -> list[Problem]:
    """Returns problems that nobody trains on, the same in every run."""
    rng = random.Random("held out")
    return [problem(rng, is_held_out=True) for _ in range(count)]


def solve(one: Problem) -> str:
    """Returns the prompt that asks for a program."""
    return f"{one.question}="


def solve_again(one: Problem, candidate: Program, case: str) -> str:
    return f"{one.question}!{candidate},{case}="


def write(one: Problem, candidate: Program) -> str:
    """Returns the prompt that asks for cases."""
    return f"{one.question}?{candidate}>"


def cases_of(text: str) -> list[tuple[int, int]]:
    """Returns the cases of an answer as inputs and results; empty if it is not two of them."""
    found = [_CASE.fullmatch(part) for part in text.split(",")]
    if len(found) != NUM_CASES or None in found:
        return []
    return [(int(match[1]), int(match[2])) for match in found if match]


def results(program: Program, cases: Sequence[tuple[int, int]]) -> list[CaseOutcome]:
    """Returns the outcome of each case."""
    return [CaseOutcome.PASS if program.at(value) == result else CaseOutcome.FAIL for value, result in cases]


def spoilt(rng: random.Random, right: Program) -> Program:
    """Returns a program with a mistake in one of its numbers."""
    mistake = rng.choice((-1, 1))
    if rng.random() < 0.5:
        return Program(right.factor + mistake, right.term)
    return Program(right.factor, right.term + mistake)

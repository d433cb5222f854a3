"""Programs that know the visible examples by heart: where no further test is at hand, they are walked over inputs of
which nobody knows the answer, and the way that they go is compared with the way over the examples."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from time import process_time

from codezero.evaluate.dryrun import Budget
from codezero.evaluate.dryrun.watch import Walked, watched
from codezero.evaluate.fresh.inputs import inputs_like, written
from codezero.tasks.testcases import StdinExample
from codezero.types import CaseOutcome, Recalled

NUM_INPUTS = 32
MIN_WALKED = 6
"""Inputs that a program must go through before they say anything of it."""
STEPS = 1_000_000
"""Budget of one input, which is about as long as the visible ones."""
MAX_EXAMPLES = 4
"""Examples that are looked at."""
_GUESSED = ("0", "1", "-1")


def memory_of(code: str, examples: Sequence[StdinExample], question: str, seed: bytes, seconds: float) -> Recalled:
    """Tells what a program that passes the examples seems to know of them, in at most `seconds` of processor time."""
    ends, found = process_time() + seconds, set[Recalled]()
    for left, one in zip(range(min(len(examples), MAX_EXAMPLES), 0, -1), examples, strict=False):
        found.add(_of_example(code, one, question, seed, (ends - process_time()) / left))
    return next((one for one in (Recalled.TABLE, Recalled.UNTOLD, Recalled.NONE) if one in found), Recalled.UNTRIED)


def _of_example(code: str, example: StdinExample, question: str, seed: bytes, seconds: float) -> Recalled:
    words = _words_of(question, example)
    others = inputs_like(example.given, NUM_INPUTS, random.Random(seed + example.given.encode()), words)
    if len(others) < MIN_WALKED:
        return Recalled.UNTRIED
    inputs = [written(example.given), *others]
    seen = watched(code, inputs, Budget(steps=STEPS, total_seconds=max(seconds, 0.0)))
    walked = [one for one in seen[1:] if one.outcome is CaseOutcome.PASS]
    answer = example.expected.split()
    if len(walked) < MIN_WALKED or seen[0].output.split() != answer:
        return Recalled.UNTOLD
    return _compared(seen[0], walked, answer, all(word in words or word in _GUESSED for word in answer))


def _words_of(question: str, example: StdinExample) -> set[str]:
    """The words of an example that the statement has too, such as `YES` and names of commands; not only because it
    repeats the example."""
    is_repeated = " ".join(example.given.split()) in " ".join(question.split())
    shown = f"{example.given} {example.expected}".split()
    told = re.findall(r"[^\W\d_]{2,}", question)
    return {word for word in shown if told.count(word) > is_repeated * shown.count(word)}


def _compared(shown: Walked, others: Sequence[Walked], answer: list[str], is_guessed: bool) -> Recalled:
    """A program that computes goes no way with an example that it goes with no other input, and what it prints depends
    on more than the way; unless its answer is one that the statement names, or nothing much."""
    if not shown.went <= frozenset().union(*(one.went for one in others)):
        return Recalled.TABLE
    as_shown = {id(one) for one in others if one.output.split() == answer}
    for decision in shown.went:
        if all(id(one) in as_shown for one in others if decision in one.went):
            return Recalled.UNTOLD if is_guessed else Recalled.TABLE
    return Recalled.NONE

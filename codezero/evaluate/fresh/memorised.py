"""Finds programs that contain the answers to the visible examples. Without further tests they get a dry run with inputs
whose answers are unknown, and the decisions that they take are compared with those on the examples."""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Callable, Sequence
from time import process_time

from codezero.evaluate.dryrun import Budget
from codezero.evaluate.dryrun.watch import WatchedRun, watched
from codezero.evaluate.fresh.inputs import MAX_CHARS, inputs_like, written
from codezero.evaluate.said import fixed_phrases_of
from codezero.tasks.testcases import StdinExample
from codezero.types import CaseOutcome, Memorised

NUM_INPUTS = 32
MIN_ENDED = 6
"""The fewest inputs whose dry runs must end for a conclusion."""
STEPS = 1_000_000
"""The step budget for one input, which is about as long as the visible ones."""
MAX_EXAMPLES = 4
"""The most examples that are used."""
_GUESSED = ("0", "1", "-1")


def program_memorises(
    code: str, examples: Sequence[StdinExample], question: str, seed: bytes, seconds: float
) -> Memorised:
    """Returns whether a program that passes the examples seems to contain their answers, after at most `seconds` of
    processor time."""
    ends, found, is_known = process_time() + seconds, set[Memorised](), fixed_phrases_of(question, examples)
    for left, one in zip(range(min(len(examples), MAX_EXAMPLES), 0, -1), examples, strict=False):
        found.add(_of_example(code, one, question, seed, (ends - process_time()) / left, is_known))
    return next(
        (one for one in (Memorised.YES, Memorised.UNKNOWN, Memorised.NO) if one in found), Memorised.NOT_CHECKED
    )


def _of_example(
    code: str, example: StdinExample, question: str, seed: bytes, seconds: float, is_known: Callable[[str], bool]
) -> Memorised:
    words = _words_of(question, example)
    others = inputs_like(example.given, NUM_INPUTS, random.Random(seed + example.given.encode()), words)
    if len(others) < MIN_ENDED:
        return Memorised.NOT_CHECKED
    inputs = [written(example.given), *others]
    seen = watched(code, inputs, Budget(steps=STEPS, total_seconds=max(seconds, 0.0)))
    ended = [one for one in seen[1:] if one.outcome is CaseOutcome.PASS]
    answer = example.expected.split()
    if len(ended) < MIN_ENDED or seen[0].output.split() != answer:
        return Memorised.UNKNOWN
    is_guessed = all(
        is_known(line) or all(word in words or word in _GUESSED for word in line.split())
        for line in example.expected.splitlines()
    )
    return _compared(seen[0], ended, example, is_guessed)


def _words_of(question: str, example: StdinExample) -> set[str]:
    """Returns the words of an example, such as `YES` and names of commands, that the statement also has outside of its
    own copy of the example."""
    is_repeated = " ".join(example.given.split()) in " ".join(question.split())
    shown = f"{example.given} {example.expected}".split()
    told = re.findall(r"[^\W\d_]{2,}", question)
    return {word for word in shown if told.count(word) > is_repeated * shown.count(word)}


def _compared(shown: WatchedRun, others: Sequence[WatchedRun], example: StdinExample, is_guessed: bool) -> Memorised:
    """Compares the dry run of an example with those of other inputs.

    If the example takes a decision that no other input takes, the result is YES where that names a word of the
    example, such as 17 in `n == 17`, and UNKNOWN where it does not, as in `year % 400 == 0`. If every input that takes
    one of its decisions prints its answer it is YES, or UNKNOWN if that is easily guessed: 0, 1, -1, words and phrases
    of the statement."""
    if own := shown.decisions - frozenset().union(*(one.decisions for one in others)):
        words = set(example.given.split()) - set(_GUESSED)
        named = any(words & _literals(shown.expressions.get(number)) for number, _ in own)
        return Memorised.YES if named else Memorised.UNKNOWN
    as_shown = {id(one) for one in others if one.output.split() == example.expected.split()}
    for decision in shown.decisions:
        if all(id(one) in as_shown for one in others if decision in one.decisions):
            return Memorised.UNKNOWN if is_guessed else Memorised.YES
    return Memorised.NO


def _literals(expression: ast.expr | None) -> set[str]:
    """Returns the words of an expression's numbers and texts, without integers that are longer than any input."""
    nodes = ast.walk(expression) if expression is not None else ()
    return {
        word
        for node in nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float | str | bytes)
        if not (isinstance(node.value, int) and node.value.bit_length() > 4 * MAX_CHARS)
        for word in (node.value.decode("latin-1") if isinstance(node.value, bytes) else str(node.value)).split()
    }

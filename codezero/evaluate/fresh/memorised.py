"""Finds programs and functions that contain the answers to the visible tests.

Without further tests they get a dry run with inputs whose answers are unknown. The decisions that a program takes are
compared with those on the examples, the values of a function with those for the visible inputs.
"""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Callable, Collection, Sequence
from time import process_time

from codezero.evaluate.dryrun import Budget
from codezero.evaluate.dryrun.watch import WatchedRun, watched
from codezero.evaluate.fresh.draw import MIN_ASKED, budget_for, form_and_inputs, values_of
from codezero.evaluate.fresh.inputs import MAX_CHARS, inputs_like, written
from codezero.evaluate.fresh.mutate import mutants
from codezero.evaluate.said import fixed_phrases_of
from codezero.tasks.testcases import StdinExample, TestSuite
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


def function_memorises(
    program: str, suite: TestSuite, functions: Collection[str], *, seed: bytes, count: int, seconds: float
) -> Memorised:
    """Returns whether a program that passes its tests seems to contain their answers, by its values for `count` similar
    inputs, without a reference. It does if it gives one value for all of these and several for the visible inputs, as a
    table with a default does; not if the value is a boolean, which right functions give too. It is UNKNOWN

    - if one for a visible input is no literal or takes too long, which a table's author can see to, or fewer than
      `MIN_ASKED` similar inputs are found;
    - if it gives one value for these and one for all visible inputs, as a constant does, or no value but those for the
      visible inputs, as a table of steps does, unless these are booleans or texts;
    - if the value is one of those for the visible inputs, such as 'No', or -1 for numbers without a root, or all inputs
      have words, such as names of months, for whose mutants a right function has a default too.

    `seconds` are of processor time."""
    ends = process_time() + seconds
    alike = form_and_inputs(suite, functions)
    if alike is None:
        return Memorised.NOT_CHECKED
    form, inputs = alike
    asked = [form.asked(one) for one in mutants(inputs, count, random.Random(seed), seconds / 2)]
    visible = values_of(program, suite, [form.asked(one) for one in inputs], budget_for(ends, len(inputs)))
    if len(visible) < len(inputs) or len(asked) < MIN_ASKED:
        return Memorised.UNKNOWN
    values = list(values_of(program, suite, asked, budget_for(ends, len(asked))).values())
    if not values:
        return Memorised.UNKNOWN
    shown, given = set(map(repr, visible.values())), set(map(repr, values))
    if len(given) != 1:
        is_guess = given <= shown and not any(isinstance(value, bool | str) for value in values)
        return Memorised.UNKNOWN if is_guess else Memorised.NO
    if len(shown) == 1:
        return Memorised.UNKNOWN
    if isinstance(values[0], bool):
        return Memorised.NO
    have_words = all(any(isinstance(value, str) and value.isalpha() for value in one) for one in inputs)
    return Memorised.UNKNOWN if have_words or given <= shown else Memorised.YES

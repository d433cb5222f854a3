"""The question put to the solver, and the parser of its answer. The prompt asks for exactly what the parser takes."""

from __future__ import annotations

import re
from collections import Counter

SYSTEM = (
    "You solve programming problems in Python. Answer with one code block and nothing else: start with ```python on a "
    "line of its own, write the complete solution, and end with ``` on a line of its own. No explanation, no tests, "
    "no example calls."
)

_FENCE = re.compile(
    r"^[ \t]*```[ \t]*(?:python|py|python3)[ \t]*\r?\n(.*?)(?:^[ \t]*```[ \t]*\r?$|\Z)",
    re.DOTALL | re.MULTILINE | re.IGNORECASE,
)

_TEXT = re.compile(r"""\(?\s*(?:'[^']*'|"[^"]*")\s*\)?""")
"""A text by itself, which many of MBPP's tests have in brackets."""

MAX_ANSWER_CHARS = 20_000
"""Longer answers are not looked into: a 256-token completion has about 1,000 characters."""


def with_tests(text: str, tests: str) -> str:
    """A problem that names the wanted function through the tests it shows."""
    return f"{text}\n\nKeep to the function name and the arguments used in these tests:\n{tests}"


def few_of(tests: str) -> str:
    """The tests that a solver must see to know name, arguments and kinds of results; the others are kept from it.

    What stands before the asserts stays. Of these it is the first, which authors make the typical one, and the first of
    each further result that nobody could guess: `None`, a text among other values, and each message, which is a text
    that comes twice ("Not matched!"). Of MBPP 5.5 % show two, the others one. Tests are compared only, not parsed.
    """
    setup, *asserts = re.split(r"(?m)^(?=assert\b)", tests)
    results = [one.rpartition("==")[2].strip() for one in asserts]
    texts = Counter(filter(_TEXT.fullmatch, results))
    firsts: dict[str, str] = {}
    for one, result in zip(asserts, results, strict=True):
        is_telling = result == "None" or texts[result] > 1
        firsts.setdefault(result if is_telling else "a text" if result in texts else "a value", one)
    return (setup + "".join(firsts.values())).rstrip("\n")


def showing_all(question: str, tests: str) -> str:
    """A question of `with_tests` that shows the few as the one that shows them all; any other as it is."""
    few = with_tests("", few_of(tests))
    return question.removesuffix(few) + with_tests("", tests) if question.endswith(few) else question


def messages(question: str) -> list[dict[str, str]]:
    """The chat that asks for a solution."""
    return [{"role": "system", "content": SYSTEM}, {"role": "user", "content": question.strip()}]


def parse(answer: str) -> str | None:
    """The code of the first fenced Python block; None if there is none.

    A block that the token limit cut off runs to the end of the answer.
    """
    if len(answer) > MAX_ANSWER_CHARS:
        return None
    match = _FENCE.search(answer)
    code = match.group(1).strip("\n") if match else ""
    return code if code.strip() else None

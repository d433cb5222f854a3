"""The solver's prompt, and the parser of its answer. The prompt asks for exactly the format that the parser accepts."""

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
"""A string literal, which many of MBPP's tests have in brackets."""

MAX_ANSWER_CHARS = 20_000
"""The length above which an answer is not parsed; a 256-token completion has about 1,000 characters."""


def with_tests(text: str, tests: str) -> str:
    """Returns the question of a problem whose tests show the wanted function's name and arguments."""
    return f"{text}\n\nKeep to the function name and the arguments used in these tests:\n{tests}"


def few_of(tests: str) -> str:
    """Returns the tests that a solver must see to know name, arguments and kinds of results, without the others.

    Text before the asserts stays. Shown are the first assert, which authors make the typical one, and the first one of
    each further result that cannot be guessed: `None`, a text among other values, and each message, which is a text
    that occurs twice ("Not matched!"). 5.5 % of MBPP's problems show two, the others one. The tests are compared as
    text, not parsed.
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
    """Returns a question of `with_tests` that shows `few_of` the tests with all of them; any other unchanged."""
    few = with_tests("", few_of(tests))
    return question.removesuffix(few) + with_tests("", tests) if question.endswith(few) else question


def showing_few(question: str, tests: str) -> str:
    """Returns a question of `with_tests` that shows all tests with `few_of` them; any other unchanged."""
    text = question.removesuffix(with_tests("", tests))
    return question if text == question else with_tests(text, few_of(tests))


def without_tests(question: str, tests: str) -> str:
    """Returns a question made by `with_tests` without its tests, whether it shows all of them or `few_of`."""
    return showing_all(question, tests).removesuffix(with_tests("", tests))


def shown_of(question: str, tests: str) -> str:
    """Returns those of the tests that a question shows: `few_of` a function's, or a program's examples."""
    for shown in (tests, few_of(tests)):
        if question.endswith(with_tests("", shown)):
            return shown
    return tests if tests.lstrip().startswith("Input:") else ""


def messages(question: str, system: str = SYSTEM) -> list[dict[str, str]]:
    """Returns the chat that asks for a solution."""
    return [{"role": "system", "content": system}, {"role": "user", "content": question.strip()}]


def parse(answer: str) -> str | None:
    """Returns the code of the first fenced Python block; None if there is none.

    A block that the token limit cut off extends to the end of the answer.
    """
    if len(answer) > MAX_ANSWER_CHARS:
        return None
    match = _FENCE.search(answer)
    code = match.group(1).strip("\n") if match else ""
    return code if code.strip() else None

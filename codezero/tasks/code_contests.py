"""CodeContests: problems from programming contests, solved by programs that read stdin and write stdout."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from codezero.tasks.rows import MAX_DESCRIPTION_CHARS, BadRow, checked_text, pairs, text_field
from codezero.tasks.withheld import Problem
from codezero.types import Task, TaskOrigin

HUB_ID = "deepmind/code_contests"
COLUMNS = ("description", "public_tests", "input_file")
"""The columns that a task is made from."""
HIDDEN_TESTS = ("private_tests", "generated_tests")
"""The columns of further tests; docs/measurements.md states what streaming them costs."""
SPLITS = ("train", "valid", "test")

MAX_TESTS_CHARS = 2000
"""The most characters of public tests. They are sent with solutions: other nodes must be able to share them."""
MAX_CASES, MAX_KEPT_BYTES = 20, 10_000
"""The most cases and bytes of all tests of a problem together."""

HOW_TO_ANSWER = "Write a complete Python program that reads the input from stdin and prints the answer to stdout."

_SEVERAL = re.compile(
    r"\b(?:(?:print|output|write|return|report|display)\w*(?: out)? any\b"
    r"|any (?:valid|correct|possible|suitable|acceptable|optimal) (?:answer|solution|output)"
    r"|any (?:one )?of (?:them|these|those) (?:is|are|will|would)(?: be)? (?:accepted|allowed|correct|fine|ok|valid)\b"
    r"|(?:multiple|several|many|more than one) (?:\w+ )?(?:answer|solution|output)s?\b"
    r"|(?:print|output)\w*\b[^.\n]{0,80}\bin (?:any|arbitrary) (?:order|case|register)\b"
    r"|(?:absolute|relative)(?: or \w+)? errors?\b|error\b[^\n]{0,40}(?:10|1e-|0\.0)"
    r"|interactive (?:problem|task)|flush (?:the )?(?:output|stdout|buffer))",
    re.IGNORECASE,
)
"""Matches statements that need a checker for answers, or a judge that the program talks with."""


def to_problem(row: object, hidden_tests: bool) -> Problem:
    """Returns the task, with further tests if these are wanted.

    Raises BadRow as `to_task` does; with hidden tests also if the statement permits several answers, since there is
    only one to compare with.
    """
    task = to_task(row)
    assert isinstance(row, Mapping)  # to_task has checked
    if not hidden_tests:
        return Problem(task=task)
    refuse_several(task.question)
    return Problem(task=task, more_tests=_more_tests(row, task.tests))


def refuse_images_and_files(row: Mapping[str, object], description: str) -> None:
    """Raises BadRow: the description needs an image, or the program must read a named file."""
    if "<image>" in description:
        raise BadRow("description needs an image")
    if row.get("input_file"):
        raise BadRow("input comes from a named file, not from stdin")


def refuse_several(statement: str) -> None:
    """Raises BadRow: the statement permits several answers."""
    if _SEVERAL.search(statement):
        raise BadRow("several answers are right, which needs a checker")


def to_task(row: object) -> Task:
    """Returns the task. Its difficulty is None: the dataset's own is a contest's letter or a rating, known for only
    some of its sources.

    Raises BadRow if a field is not usable, the statement needs an image, or the program must read a named file.
    """
    description = text_field(row, "description", MAX_DESCRIPTION_CHARS)
    assert isinstance(row, Mapping)  # text_field has checked
    refuse_images_and_files(row, description)
    return Task(
        origin=TaskOrigin.CODE_CONTESTS,
        question=f"{description}\n\n{HOW_TO_ANSWER}",
        tests=_table(row.get("public_tests")),
    )


def _table(public_tests: object) -> str:
    """Returns the public examples as text that fit into MAX_TESTS_CHARS together, in order. Raises BadRow: none can be
    used."""
    if not pairs(public_tests, "input", "output", "public_tests"):
        raise BadRow("public_tests is empty")
    table = ""
    for given, expected in _usable(public_tests, "public_tests"):
        example = _example(given, expected)
        if len(table) + len(example) <= MAX_TESTS_CHARS:
            table += example
    if not table:
        raise BadRow(f"no public test fits: at most {MAX_TESTS_CHARS} characters, without a line Input: or Output:")
    return table


def _more_tests(row: Mapping[str, object], table: str) -> str:
    """Returns examples beside those of the table as text: public ones, then private, then generated ones, the short
    ones of each first. With those of the table they are at most MAX_CASES and MAX_KEPT_BYTES."""
    room = MAX_KEPT_BYTES - len(table.encode())
    left = MAX_CASES - table.count("Output:\n")
    kept: dict[str, str] = {}
    for field in ("public_tests", *HIDDEN_TESTS):
        for given, expected in sorted(_usable(row.get(field), field), key=lambda pair: sum(map(len, pair))):
            example = _example(given, expected)
            num_bytes = len(example.encode())
            is_new = given not in kept and f"Input:\n{given}\nOutput:\n" not in table
            if is_new and num_bytes <= room and len(kept) < left:
                kept[given], room = example, room - num_bytes
    return "".join(kept.values())


def _usable(tests: object, name: str) -> Iterator[tuple[str, str]]:
    """Yields the cases that a table can hold, with plain newlines. Raises BadRow as `pairs` does."""
    for given, expected in pairs(tests, "input", "output", name) if tests is not None else ():
        try:
            checked_text(given, "a test", MAX_KEPT_BYTES)
            answer = checked_text(expected, "a test", MAX_KEPT_BYTES)
        except BadRow:
            continue  # one of many: empty, very long, or not encodable
        # `_example` adds the newline at its end. Programs read the rest of its white space, such as blank lines.
        text = str(given).replace("\r\n", "\n").removesuffix("\n")
        if not {"Input:", "Output:"} & {*text.split("\n"), *answer.split("\n")}:  # they begin parts of a table
            yield text, answer


def _example(given: str, expected: str) -> str:
    return f"Input:\n{given}\nOutput:\n{expected}\n"

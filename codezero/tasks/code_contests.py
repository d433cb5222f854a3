"""CodeContests: problems from programming contests, solved by programs that read stdin and write stdout."""

from __future__ import annotations

from collections.abc import Mapping

from codezero.tasks.rows import MAX_DESCRIPTION_CHARS, BadRow, checked_text, text_field
from codezero.types import Task, TaskOrigin

HUB_ID = "deepmind/code_contests"
COLUMNS = ("description", "public_tests", "input_file")
"""All that is read: the solutions and generated tests are some hundred times as many bytes."""
SPLITS = ("train", "valid", "test")

MAX_TESTS_CHARS = 2000

HOW_TO_ANSWER = "Write a complete Python program that reads the input from stdin and prints the answer to stdout."


def to_task(row: object) -> Task:
    """Difficulty stays None: the dataset's own is a contest's letter or a rating, known for only some of its sources.

    Raises BadRow: also for a statement that leans on a picture and a program that must read a named file.
    """
    description = text_field(row, "description", MAX_DESCRIPTION_CHARS)
    assert isinstance(row, Mapping)  # text_field has looked
    if "<image>" in description:
        raise BadRow("description needs an image")
    if row.get("input_file"):
        raise BadRow("input comes from a named file, not from stdin")
    return Task(
        origin=TaskOrigin.CODE_CONTESTS,
        question=f"{description}\n\n{HOW_TO_ANSWER}",
        tests=_table(row.get("public_tests")),
    )


def _table(public_tests: object) -> str:
    """The examples as text, as many whole ones as fit into MAX_TESTS_CHARS."""
    if not isinstance(public_tests, Mapping):
        raise BadRow("public_tests is missing or not a mapping")
    inputs, outputs = public_tests.get("input"), public_tests.get("output")
    if not isinstance(inputs, list) or not isinstance(outputs, list) or len(inputs) != len(outputs):
        raise BadRow("public_tests does not pair inputs with outputs")
    if not inputs:
        raise BadRow("public_tests is empty")
    table = ""
    for given, expected in zip(inputs, outputs, strict=True):
        given = checked_text(given, "a public input", MAX_TESTS_CHARS)
        expected = checked_text(expected, "a public output", MAX_TESTS_CHARS)
        example = f"Input:\n{given}\nOutput:\n{expected}\n"
        if len(table) + len(example) > MAX_TESTS_CHARS:
            break
        table += example
    if not table:
        raise BadRow(f"the first public test is longer than {MAX_TESTS_CHARS} characters")
    return table

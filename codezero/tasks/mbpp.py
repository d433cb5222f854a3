"""Mostly Basic Programming Problems: its rows, its splits, and the Task made of a row."""

from __future__ import annotations

from collections.abc import Mapping

from codezero.prompts import solver as prompt
from codezero.tasks.rows import MAX_DESCRIPTION_CHARS, BadRow, checked_text, reference_text, text_field
from codezero.tasks.withheld import Problem
from codezero.types import Task, TaskOrigin

HUB_ID = "google-research-datasets/mbpp"
COLUMNS = ("task_id", "text", "test_list", "test_setup_code", "code")

SPLITS: Mapping[str, range] = {
    "prompt": range(1, 11),
    "test": range(11, 511),
    "validation": range(511, 601),
    "train": range(601, 975),
}
"""Task ids of each split; a file of MBPP is divided by them."""

MAX_TESTS_CHARS = 4000


def split_of(row: object) -> str | None:
    """Returns the split that a row belongs to by its id; None for a row without one, as a user's own problem has, which
    belongs to every split. Raises BadRow: the id is not one of MBPP's."""
    task_id = row.get("task_id") if isinstance(row, Mapping) else None
    if task_id is None:
        return None
    for split, ids in SPLITS.items():
        if isinstance(task_id, int) and not isinstance(task_id, bool) and task_id in ids:
            return split
    raise BadRow("task_id is not one of MBPP's, 1 to 974 (a problem of your own has none)")


def to_problem(row: object, show_all_tests: bool) -> Problem:
    """Returns the task with its author's solution. Raises BadRow as `to_task` does."""
    task = to_task(row, show_all_tests)
    assert isinstance(row, Mapping)  # to_task has checked
    return Problem(task=task, reference=reference_text(row.get("code")))


def to_task(row: object, show_all_tests: bool = True) -> Task:
    """Returns the task of a row. Raises BadRow if a field is not usable."""
    text = text_field(row, "text", MAX_DESCRIPTION_CHARS)
    assert isinstance(row, Mapping)  # text_field has checked
    tests = "\n".join([*_setup(row.get("test_setup_code")), *_asserts(row.get("test_list"))])
    if len(tests) > MAX_TESTS_CHARS:
        raise BadRow(f"tests are longer than {MAX_TESTS_CHARS} characters")
    shown = tests if show_all_tests else prompt.few_of(tests)
    return Task(origin=TaskOrigin.MBPP, question=prompt.with_tests(text, shown), tests=tests)


def _setup(value: object) -> list[str]:
    """Returns the code that has to run before the tests; most rows have none."""
    if value is None or (isinstance(value, str) and not value.strip()):
        return []
    return [checked_text(value, "test_setup_code", MAX_TESTS_CHARS)]


def _asserts(value: object) -> list[str]:
    if not isinstance(value, list) or not value:
        raise BadRow("test_list is missing, empty or not a list")
    tests = [checked_text(test, "an entry of test_list", MAX_TESTS_CHARS) for test in value]
    if not all(test.startswith("assert") and len(test.splitlines()) == 1 for test in tests):
        raise BadRow("test_list holds something other than one-line asserts")
    return tests

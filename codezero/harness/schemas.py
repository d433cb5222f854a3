"""Converts rows of the public datasets into problems, by each dataset's schema. Unusable rows raise BadRow."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from codezero.harness import hidden_tests
from codezero.harness.problems import (
    MAX_FIELD_CHARS,
    BenchProblem,
    examples,
    name_of,
    program,
    statement,
)
from codezero.tasks import code_contests, mbpp
from codezero.tasks.rows import BadRow, text_field
from codezero.tasks.testcases import TestSuite
from codezero.types import Task, TaskOrigin


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """A dataset's schema and its place on the hub."""

    hub_id: str
    config: str | None
    split: str
    columns: tuple[str, ...]
    """The columns that are read."""
    to_problem: Callable[[object, int], BenchProblem]
    """Converts a row, given its number."""


def humaneval(row: object, number: int) -> BenchProblem:
    """Converts a row of HumanEval. The prompt is also the prelude: tests may use helpers that it defines."""
    prompt = statement(row, "prompt")
    test = text_field(row, "test", MAX_FIELD_CHARS)
    entry_point = text_field(row, "entry_point", 200)
    if not entry_point.isidentifier():
        raise BadRow("entry_point is not an identifier")
    check = f"check({entry_point})"
    question = f"Write this function, complete with its imports:\n\n{prompt}"
    task = Task(origin=TaskOrigin.MBPP, question=question, tests=f"{test}\n\n{check}")
    suite = TestSuite(setup=test, statements=(check,))
    return BenchProblem(name=name_of(row, ("task_id",), number), task=task, suite=suite, prelude=f"{prompt}\n")


def mbpp_row(row: object, number: int) -> BenchProblem:
    """Converts a row of MBPP, in the full schema or the sanitized one (`prompt` and `test_imports` for `text` and
    `test_setup_code`)."""
    name = name_of(row, ("task_id",), number)
    assert isinstance(row, Mapping)  # name_of has checked it
    if "text" not in row and "prompt" in row:
        imports = row.get("test_imports") or []
        if not isinstance(imports, list) or not all(isinstance(line, str) for line in imports):
            raise BadRow("test_imports is not a list of lines")
        row = {"text": row["prompt"], "test_list": row.get("test_list"), "test_setup_code": "\n".join(imports)}
    return BenchProblem(name=name, task=mbpp.to_task(row))


def code_contests_row(row: object, number: int) -> BenchProblem:
    """Converts a row of CodeContests. All three kinds of tests are executed; the public ones are shown. Problems with
    several right answers are left out."""
    name = name_of(row, ("name",), number)
    assert isinstance(row, Mapping)
    text = statement(row, "description")
    code_contests.refuse_images_and_files(row, text)
    if row.get("output_file"):
        raise BadRow("output goes to a named file, not to stdout")
    code_contests.refuse_several(text)
    public = examples(row.get("public_tests"), "public_tests")
    hidden = [case for key in ("private_tests", "generated_tests") for case in examples(row.get(key), key)]
    return program(name, text, public, hidden)


def codeforces_row(row: object, number: int) -> BenchProblem:
    """Converts a row of open-r1/codeforces, or of DeepCoder if it has `problem` and `tests`. Problems that need a
    checker are left out."""
    if isinstance(row, Mapping) and "tests" in row and "problem" in row:
        return deepcoder_row(row, number)
    name = name_of(row, ("id", "name"), number)
    assert isinstance(row, Mapping)
    if row.get("interaction_format"):
        raise BadRow("the problem is interactive")
    if row.get("generated_checker"):
        raise BadRow("several answers are right, which needs a checker")
    if row.get("input_mode") not in (None, "stdio"):
        raise BadRow("input or output is a named file")
    if row.get("official_tests_complete") is False:
        raise BadRow("the official tests are not complete")
    parts = [statement(row, "description")]
    for key, title in (("input_format", "Input"), ("output_format", "Output"), ("note", "Note")):
        if row.get(key):
            parts.append(f"{title}:\n{statement(row, key)}")
    public = examples(row.get("examples"), "examples")
    shown = "".join(f"\n\nExample input:\n{case.given}Example output:\n{case.expected}" for case in public)
    hidden = examples(row.get("official_tests"), "official_tests")
    return program(name, "\n\n".join(parts) + shown.rstrip(), public, hidden)


def deepcoder_row(row: object, number: int) -> BenchProblem:
    """Converts a row of agentica-org/DeepCoder-Preview-Dataset: `problem`, `tests` (JSON), `starter_code` and
    `metadata`."""
    name = name_of(row, ("id", "question_id"), number)
    assert isinstance(row, Mapping)
    return hidden_tests.problem(row, name, "problem", [], hidden_tests.from_json(row.get("tests"), "tests"))


def livecodebench_row(row: object, number: int) -> BenchProblem:
    """Converts a row of LiveCodeBench, in its own schema or DeepCoder's."""
    if isinstance(row, Mapping) and "tests" in row and "problem" in row:
        return deepcoder_row(row, number)
    name = name_of(row, ("question_id", "question_title"), number)
    assert isinstance(row, Mapping)
    public = hidden_tests.from_json(row.get("public_test_cases"), "public_test_cases")
    hidden = hidden_tests.from_packed(row.get("private_test_cases"))
    return hidden_tests.problem(row, name, "question_content", public, hidden)


_DEEPCODER = "agentica-org/DeepCoder-Preview-Dataset"
_DEEPCODER_COLUMNS = ("id", "question_id", "problem", "tests", "starter_code", "metadata")
_LIVECODEBENCH_COLUMNS = ("question_id", "question_title", "question_content", "public_test_cases")
_CODEFORCES_COLUMNS = ("id", "name", "description", "input_format", "output_format", "note", "examples", "input_mode")
DATASETS: Mapping[str, Dataset] = {
    "humaneval": Dataset(
        hub_id="openai/openai_humaneval",
        config=None,
        split="test",
        columns=("task_id", "prompt", "test", "entry_point"),
        to_problem=humaneval,
    ),
    "mbpp": Dataset(
        hub_id=mbpp.HUB_ID,
        config="full",
        split="test",
        columns=(*mbpp.COLUMNS, "prompt", "test_imports"),
        to_problem=mbpp_row,
    ),
    "livecodebench": Dataset(
        hub_id=_DEEPCODER,
        config="lcbv5",
        split="test",
        columns=(*_LIVECODEBENCH_COLUMNS, "private_test_cases", *_DEEPCODER_COLUMNS[2:]),
        to_problem=livecodebench_row,
    ),
    "code_contests": Dataset(
        hub_id=code_contests.HUB_ID,
        config=None,
        split="test",
        columns=(*code_contests.COLUMNS, "name", "private_tests", "generated_tests", "output_file"),
        to_problem=code_contests_row,
    ),
    "codeforces": Dataset(
        hub_id=_DEEPCODER,
        config="codeforces",
        split="test",
        columns=(
            *_CODEFORCES_COLUMNS,
            "official_tests",
            "official_tests_complete",
            "interaction_format",
            "generated_checker",
            *_DEEPCODER_COLUMNS[1:],
        ),
        to_problem=codeforces_row,
    ),
}

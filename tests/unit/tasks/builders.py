"""Rows of the two datasets, files that hold them, list sources of numbered tasks, and mixtures."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from codezero.config import BuiltinConfig, DatasetConfig, TasksConfig
from codezero.tasks.mixture import Mixture, Source
from codezero.tasks.sources import ListSource
from codezero.tasks.withheld import Withheld
from codezero.types import Task, TaskOrigin

DELETE = object()


def mbpp_row(**changes) -> dict:
    """A good MBPP row of the train split; `field=DELETE` takes a field out."""
    row = {
        "task_id": 601,
        "text": "Write a function to double a number.",
        "code": "def double(n):\r\n  return 2 * n",
        "test_list": ["assert double(2) == 4", "assert double(0) == 0"],
        "test_setup_code": "",
        "challenge_test_list": [],
    }
    return {key: value for key, value in {**row, **changes}.items() if value is not DELETE}


def mbpp_rows(count: int) -> list[dict]:
    """Good rows with different questions: task ids 601, 602, …"""
    return [mbpp_row(task_id=601 + i, text=f"Write a function to multiply by {i}.") for i in range(count)]


def contest_row(**changes) -> dict:
    """A good CodeContests row."""
    row = {
        "name": "1_A. Sum",
        "description": "Read two integers and print their sum.",
        "public_tests": {"input": ["1 2\n", "5 5\n"], "output": ["3\n", "10\n"]},
        "private_tests": {"input": [], "output": []},
        "generated_tests": {"input": ["-7 3\n"], "output": ["-4\n"]},
        "difficulty": 7,
        "input_file": "",
    }
    return {key: value for key, value in {**row, **changes}.items() if value is not DELETE}


def write_jsonl(path: Path, rows) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def write_parquet(path: Path, rows, row_group_size: int = 2) -> str:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=row_group_size)
    return str(path)


def only_mbpp(path: str | None, split: str = "train", fallback: bool = False) -> TasksConfig:
    return TasksConfig(
        mbpp=DatasetConfig(weight=1.0, path=path, split=split), builtin=BuiltinConfig(weight=0.0), fallback=fallback
    )


def only_contests(path: str | None) -> TasksConfig:
    return TasksConfig(
        code_contests=DatasetConfig(weight=1.0, path=path), builtin=BuiltinConfig(weight=0.0), fallback=False
    )


def numbered_tasks(name: str, count: int) -> list[Task]:
    return [Task(origin=TaskOrigin.BUILTIN, question=f"{name} {i}", tests="assert True") for i in range(count)]


def numbered_source(name: str, count: int, seed: int = 0) -> ListSource:
    return ListSource(name, numbered_tasks(name, count), seed)


def questions(tasks) -> list[str]:
    return [task.question for task in tasks]


def real_mbpp() -> str:
    """The MBPP file that is shared among the project's machines; skips the test where there is none."""
    shared = os.environ.get("CODEZERO_SHARED", str(Path(__file__).parents[3].parent / "shared"))
    path = Path(shared) / "data" / "mbpp.jsonl"
    if not path.is_file():
        pytest.skip(f"no {path}: set CODEZERO_SHARED to the folder that holds data/mbpp.jsonl")
    return str(path)


def mixture_of(
    shares: Sequence[tuple[Source, float]],
    seed: int,
    skipped: Counter[str] | None = None,
    withheld: Withheld | None = None,
    fallback: Source | None = None,
) -> Mixture:
    """A mixture with a count of skipped rows and a store of withheld fields of its own, unless they are given."""
    skipped, withheld = Counter() if skipped is None else skipped, withheld or Withheld()
    return Mixture(shares, seed, skipped, withheld, fallback)

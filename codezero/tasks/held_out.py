"""The problems that a node measures itself on: a part of MBPP's validation split, which is never trained on.

`held_out.jsonl` holds them, so every node has the same ones and none needs the hub: Mostly Basic Programming Problems
(Austin et al. 2021, arXiv 2108.07732), by Google Research under CC BY 4.0, task ids 511 to 600 without solutions.
Problems whose own solution does not pass the dry run, and those whose tests are all shown to a solver, are left out.
"""

from __future__ import annotations

from pathlib import Path

from codezero.errors import TaskError
from codezero.tasks.mbpp import COLUMNS, to_task
from codezero.tasks.rows import BadRow, read_rows
from codezero.types import Task

FILE = Path(__file__).with_name("held_out.jsonl")


def load_held_out() -> dict[str, Task]:
    """Returns the problems by name, each showing few of its tests whatever is configured.

    Raises TaskError if the file is missing or damaged, which means a broken installation.
    """
    found = {}
    for row in read_rows(FILE, COLUMNS):
        if isinstance(row, BadRow):
            raise TaskError(f"held-out problems {FILE} are damaged ({row}): install codezero again")
        found[f"mbpp/{row['task_id']}"] = to_task(row, show_all_tests=False)  # type: ignore[index]
    return found

"""What hidden tests cost where CodeContests is streamed: megabytes, seconds and memory until the first task; and what
listing all of its tasks costs (`tasks/listed.py`).

    python -m tests.unit.tasks.streaming            # two minutes, 2 GB of memory

The hub is one on loopback (`fake_hub`) with two files of 342 problems, as many as the real ones hold, each of one row
group; a problem has 80 generated tests of random numbers, 500 KB together, which is about what a problem of the real
files has packed with all its columns (0.55 MB: 7.4 GB for 13,328 problems).
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from unittest.mock import patch

from tests.unit.tasks import fake_hub
from tests.unit.tasks.builders import contest_row, write_parquet
from tests.unit.tasks.test_hub import CONTESTS_CARD

FILES, PROBLEMS, TESTS, TEST_CHARS = 2, 342, 80, 6_250
ALL_FILES = 39
"""Files that are listed, all equal: 13,338 rows."""

DRAW = """
import resource, sys, time
from codezero.config import BuiltinConfig, DatasetConfig, TasksConfig
from codezero.tasks.build import make_task_source
hidden, contests = sys.argv[1] == "True", DatasetConfig(weight=1.0)
config = TasksConfig(code_contests=contests, builtin=BuiltinConfig(weight=0.0), fallback=False, hidden_tests=hidden)
sources = make_task_source(config, seed=0)
opened_s = time.perf_counter()
sources.draw(1)
rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
print(f"{time.perf_counter() - opened_s:.1f} s, {rss} MiB at most", end="")
"""

LIST = """
import logging, os, resource, sys, time
from pathlib import Path
import datasets
from codezero.config import BuiltinConfig, DatasetConfig, TasksConfig
from codezero.tasks.build import task_lists
config = TasksConfig(code_contests=DatasetConfig(weight=1.0), builtin=BuiltinConfig(weight=0.0))
(one,), path = task_lists(config, Path(sys.argv[1])), Path(sys.argv[1]) / "tasks-code_contests.msgpack"
rows, began_s, used_s, before = [], time.perf_counter(), time.process_time(), resource.getrusage(resource.RUSAGE_SELF)
one.refresh(lambda: rows.append(0))
spent_s, used_s = time.perf_counter() - began_s, time.process_time() - used_s
more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before.ru_maxrss) >> 10
print(f"{len(rows) - 1} tasks, {spent_s:.0f} s, {used_s:.0f} s of a processor, {more} MiB more memory", end="")
"""


def rows() -> list[dict]:
    dice = random.Random(0)

    def numbers(chars: int) -> str:
        return " ".join(str(dice.getrandbits(30)) for _ in range(chars // 10))

    return [
        contest_row(
            description=f"Problem {number}: {numbers(1800)}",
            generated_tests={"input": [numbers(TEST_CHARS) for _ in range(TESTS)], "output": ["1\n"] * TESTS},
        )
        for number in range(PROBLEMS)
    ]


def main() -> None:
    sent = []
    reply = fake_hub._Handler.reply

    def counted(self, status, body, headers):
        sent.append(len(body) if self.command != "HEAD" else 0)
        reply(self, status, body, headers)

    with tempfile.TemporaryDirectory() as folder, patch.object(fake_hub._Handler, "reply", counted):
        file = Path(write_parquet(Path(folder) / "rows.parquet", rows(), row_group_size=PROBLEMS)).read_bytes()
        names = [f"data/train-{number:05d}-of-{FILES:05d}.parquet" for number in range(FILES)]
        repo = {"README.md": CONTESTS_CARD.encode(), **dict.fromkeys(names, file)}
        with fake_hub.fake_hub({"deepmind/code_contests": repo}) as endpoint:
            for hidden in (True, False):
                sent.clear()
                env = {**os.environ, "HF_ENDPOINT": endpoint, "HF_HOME": f"{folder}/{hidden}", "HF_HUB_OFFLINE": "0"}
                command = [sys.executable, "-c", DRAW, str(hidden)]
                done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300, check=True)
                print(f"hidden_tests={hidden}: {sum(sent) / 1e6:.0f} MB, {done.stdout}", flush=True)
        names = [f"data/train-{number:05d}-of-{ALL_FILES:05d}.parquet" for number in range(ALL_FILES)]
        repo = {"README.md": CONTESTS_CARD.encode(), **dict.fromkeys(names, file)}
        with fake_hub.fake_hub({"deepmind/code_contests": repo}) as endpoint:
            sent.clear()
            env = {**os.environ, "HF_ENDPOINT": endpoint, "HF_HOME": f"{folder}/list", "HF_HUB_OFFLINE": "0"}
            command = [sys.executable, "-c", LIST, folder]
            done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=600, check=True)
            print(f"list: {sum(sent) / 1e6:.0f} MB in {len(sent)} requests, {done.stdout}", flush=True)


if __name__ == "__main__":
    main()

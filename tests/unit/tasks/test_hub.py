import json
import os
import random
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from codezero.tasks.hub import HubUnreachable, shuffled, within
from tests.unit.tasks.builders import contest_row, mbpp_rows, write_parquet
from tests.unit.tasks.fake_hub import fake_hub


def test_within_gives_the_result():
    assert within(5.0, "adding", lambda: 1 + 1) == 2
    assert within(5.0, "nothing", lambda: None) is None


def test_within_turns_every_error_into_one_line():
    def fail():
        raise KeyError("first line\nsecond line")

    with pytest.raises(HubUnreachable, match=r"^reading failed \(KeyError: .*\)$"):
        within(5.0, "reading", fail)


def test_within_waits_no_longer_than_its_limit():
    started = time.monotonic()
    with pytest.raises(HubUnreachable, match=r"reading took longer than 0.1 s"):
        within(0.1, "reading", lambda: threading.Event().wait(120))
    assert time.monotonic() - started < 60


def test_shuffled_gives_every_row_once_in_an_order_that_the_seed_decides():
    first, again, other = (list(shuffled(iter(range(100)), random.Random(seed), buffer_rows=10)) for seed in (0, 0, 1))
    assert sorted(first) == list(range(100))
    assert first == again
    assert first != other
    assert max(first[:20]) < 30  # a row comes no earlier than the buffer reaches


def test_shuffled_order_is_that_of_version_0_1_0_where_rows_are_small():
    assert list(shuffled(iter(range(12)), random.Random(0), buffer_rows=4)) == [3, 4, 1, 6, 2, 7, 5, 9, 11, 10, 8, 0]


def test_a_buffer_of_long_rows_is_full_by_their_bytes():
    read = []

    def rows():
        for number in range(40):
            read.append(number)
            yield {"number": number, "tests": {"input": ["x" * 90], "output": ["y" * 10]}}

    shuffling = shuffled(rows(), random.Random(0), buffer_rows=30, buffer_bytes=500)
    first = next(shuffling)
    assert len(read) == 6
    assert sorted(row["number"] for row in (first, *shuffling)) == list(range(40))


def test_one_row_longer_than_the_buffer_passes_through():
    rows = ["a", "b" * 900, "c"]
    assert sorted(shuffled(iter(rows), random.Random(0), buffer_rows=30, buffer_bytes=100)) == rows


def test_shuffled_streams_shorter_than_its_buffer():
    assert sorted(shuffled(iter(range(3)), random.Random(0), buffer_rows=10)) == [0, 1, 2]
    assert list(shuffled(iter(()), random.Random(0))) == []


MBPP_CARD = """---
configs:
- config_name: full
  default: true
  data_files:
  - {split: train, path: full/train-*}
---
"""

# Like the real card it lists the features of all columns, of which only some are streamed.
CONTESTS_CARD = """---
dataset_info:
  features:
  - {name: name, dtype: string}
  - {name: description, dtype: string}
  - name: public_tests
    sequence:
    - {name: input, dtype: string}
    - {name: output, dtype: string}
  - name: private_tests
    sequence:
    - {name: input, dtype: string}
    - {name: output, dtype: string}
  - name: generated_tests
    sequence:
    - {name: input, dtype: string}
    - {name: output, dtype: string}
  - name: difficulty
    dtype: {class_label: {names: {'0': U, '1': E, '2': M, '3': H, '4': I, '5': J, '6': X, '7': A}}}
  - {name: input_file, dtype: string}
configs:
- config_name: default
  data_files:
  - {split: train, path: data/train-*}
---
"""

DRAW_AND_RESUME = """
import json, os
from pathlib import Path
from codezero.config import BuiltinConfig, DatasetConfig, TasksConfig
from codezero.tasks.build import make_task_source, task_lists
from codezero.tasks.withheld import id_of
config = TasksConfig(
    mbpp=DatasetConfig(weight=1.0),
    code_contests=DatasetConfig(weight=1.0),
    builtin=BuiltinConfig(weight=0.0),
    fallback=False,
)
whole, killed, resumed = (make_task_source(config, seed=4) for _ in range(3))
expected = whole.draw(30)
killed.draw(11)
resumed.load_state_dict(json.loads(json.dumps(killed.state_dict())))
position = whole.state_dict()
lists, again = task_lists(config, Path(os.environ["HF_HOME"])), []
for one in lists:
    one.refresh(lambda: None)
for one in task_lists(config, Path(os.environ["HF_HOME"])):
    one.refresh(lambda: again.append(one.name))
print(json.dumps({
    "listed": {one.name: len(one) for one in lists},
    "drawn are listed": all(any(id_of(task) in one for one in lists) for task in expected),
    "stays": whole.state_dict() == position,
    "listed again": len(again) > len(lists),
    "kept": sorted({whole.withheld.problem(task).more_tests for task in expected}),
    "exact": resumed.draw(19) == expected[11:],
    "questions": [task.question.splitlines()[0] for task in expected],
    "position": whole.state_dict()["sources"],
    "skipped": whole.take_skipped(),
}))
"""


def test_both_datasets_stream_from_a_hub_and_resume_exactly(tmp_path):
    contests = [contest_row(description=f"Problem {i}") for i in range(25)]
    contests[0]["description"] = "See <image>."
    shards = [Path(write_parquet(tmp_path / f"{i}.parquet", contests[i::2])).read_bytes() for i in range(2)]
    repos = {
        "google-research-datasets/mbpp": {
            "README.md": MBPP_CARD.encode(),
            "full/train-00000-of-00001.parquet": Path(write_parquet(tmp_path / "m.parquet", mbpp_rows(8))).read_bytes(),
        },
        "deepmind/code_contests": {
            "README.md": CONTESTS_CARD.encode(),
            "data/train-00000-of-00002.parquet": shards[0],
            "data/train-00001-of-00002.parquet": shards[1],
        },
    }
    with fake_hub(repos) as endpoint:
        done = subprocess.run(
            [sys.executable, "-c", DRAW_AND_RESUME],
            cwd=Path(__file__).parents[3],
            env={**os.environ, "HF_ENDPOINT": endpoint, "HF_HOME": str(tmp_path / "home"), "HF_HUB_OFFLINE": "0"},
            capture_output=True,
            text=True,
            timeout=200,
        )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["exact"]
    assert found["kept"] == ["", "Input:\n-7 3\nOutput:\n-4\n"]
    from_mbpp = [question for question in found["questions"] if question.startswith("Write")]
    from_contests = [question for question in found["questions"] if question.startswith("Problem")]
    assert len(from_mbpp) + len(from_contests) == 30
    assert len(set(from_mbpp[:8])) == 8
    assert len(set(from_contests)) == len(from_contests)
    assert from_contests != sorted(from_contests)
    assert found["position"]["mbpp"]["epoch"] == (len(from_mbpp) - 1) // 8
    assert found["listed"] == {"mbpp": 8, "code_contests": 24}
    assert (found["drawn are listed"], found["stays"], found["listed again"]) == (True, True, False)
    assert set(found["skipped"]) <= {"code_contests: description needs an image"}

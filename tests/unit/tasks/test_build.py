import logging
import os
import socket
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from codezero.config import BuiltinConfig, DatasetConfig, TasksConfig
from codezero.errors import TaskError, is_outage
from codezero.tasks import build
from codezero.tasks.build import local_questions, make_task_source
from codezero.tasks.hub import HubUnreachable
from tests.unit.tasks.builders import contest_row, mbpp_rows, only_contests, only_mbpp, write_jsonl


@pytest.fixture
def no_hub(monkeypatch):
    def check_reachable():
        raise HubUnreachable("asking the hub failed")

    monkeypatch.setattr(build, "check_reachable", check_reachable)


def test_builtin_levels_are_respected():
    config = TasksConfig(builtin=BuiltinConfig(weight=1.0, min_difficulty=2, max_difficulty=3))
    assert {task.difficulty for task in make_task_source(config, seed=0).draw(30)} == {2, 3}


def test_files_and_builtin_problems_are_mixed(tmp_path):
    config = TasksConfig(
        mbpp=DatasetConfig(weight=1.0, path=write_jsonl(tmp_path / "mbpp.jsonl", mbpp_rows(5))),
        code_contests=DatasetConfig(weight=1.0, path=write_jsonl(tmp_path / "cc.jsonl", [contest_row()])),
        builtin=BuiltinConfig(weight=1.0),
    )
    drawn = make_task_source(config, seed=0).draw(30)
    assert {task.origin.value for task in drawn} == {"mbpp", "code_contests", "builtin"}


def test_a_position_holds_however_many_tests_are_shown(tmp_path, caplog):
    shows_all, shows_few = (
        replace(only_mbpp(write_jsonl(tmp_path / "mbpp.jsonl", mbpp_rows(5))), show_all_tests=shown)
        for shown in (True, False)
    )
    before, after = make_task_source(shows_all, seed=0), make_task_source(shows_few, seed=0)
    before.draw(2)
    after.load_state_dict(before.state_dict())
    texts, expected = ([task.question.split("\n")[0] for task in one.draw(3)] for one in (after, before))
    assert texts == expected
    assert not caplog.records


def test_unknown_split_is_refused_with_the_known_ones():
    with pytest.raises(TaskError, match=r"tasks.mbpp.split=dev .* prompt, test, validation, train"):
        make_task_source(only_mbpp(None, split="dev"), seed=0)


def test_without_hub_the_builtin_problems_stand_in_with_one_warning(no_hub, caplog):
    config = TasksConfig(
        mbpp=DatasetConfig(weight=1.0), code_contests=DatasetConfig(weight=1.0), builtin=BuiltinConfig(weight=0.0)
    )
    with caplog.at_level(logging.WARNING):
        drawn = make_task_source(config, seed=0).draw(10)
    assert {task.origin.value for task in drawn} == {"builtin"}
    assert [record.message for record in caplog.records] == [
        "mbpp and code_contests cannot be loaded from the hub: asking the hub failed. Drawing built-in problems "
        "instead, until the next start; give tasks.mbpp.path=FILE tasks.code_contests.path=FILE to draw from a file"
    ]


def test_without_hub_and_fallback_the_error_says_what_to_do(no_hub):
    with pytest.raises(TaskError, match=r"Give tasks.code_contests.path=FILE, or tasks=builtin") as found:
        make_task_source(only_contests(None), seed=0)
    assert is_outage(found.value)  # a launcher tries again


def test_file_needs_no_hub(no_hub, tmp_path):
    path = write_jsonl(tmp_path / "mbpp.jsonl", mbpp_rows(3))
    assert len(make_task_source(only_mbpp(path), seed=0).draw(3)) == 3


def run_node_start(code: str, **env: str) -> tuple[str, float]:
    """What a fresh interpreter prints for `code`, and its seconds; settings of the hub are read at import."""
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", "from tests.unit.tasks.builders import *\n" + code],
        cwd=Path(__file__).parents[3],
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
    )
    return done.stdout, time.monotonic() - started


TRY_THE_HUB = """
from codezero.tasks.build import make_task_source
print(make_task_source(only_mbpp(None, fallback=True), seed=0).draw(1)[0].origin.value)
"""


def test_offline_mode_falls_back_at_once():
    with socket.socket() as unasked:
        unasked.bind(("127.0.0.1", 0))
        unasked.listen()
        hub = f"http://127.0.0.1:{unasked.getsockname()[1]}"
        printed, _ = run_node_start(TRY_THE_HUB, HF_HUB_OFFLINE="1", HF_ENDPOINT=hub)
        assert printed == "builtin\n"
        unasked.settimeout(0.2)
        with pytest.raises(TimeoutError):
            unasked.accept()


def test_hub_that_never_answers_is_given_up_after_seconds():
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        printed, seconds = run_node_start(TRY_THE_HUB, HF_ENDPOINT=f"http://127.0.0.1:{silent.getsockname()[1]}")
    assert printed == "builtin\n"
    assert 5 <= seconds < 90


def test_builtin_and_jsonl_import_nothing_heavy(tmp_path):
    path = write_jsonl(tmp_path / "mbpp.jsonl", mbpp_rows(3))
    printed, _ = run_node_start(
        "import sys\n"
        "from codezero.tasks.build import make_task_source\n"
        "make_task_source(TasksConfig(), seed=0).draw(1)\n"
        f"make_task_source(only_mbpp({path!r}), seed=0).draw(1)\n"
        "print({'datasets', 'huggingface_hub', 'pyarrow', 'torch'} & set(sys.modules))\n"
    )
    assert printed == "set()\n"


def test_the_questions_at_hand_are_those_of_files_in_use_the_held_out_and_the_built_in_ones(tmp_path):
    file = write_jsonl(tmp_path / "mbpp.jsonl", mbpp_rows(1))
    in_use = only_mbpp(file)
    questions = list(local_questions(in_use))
    assert questions[-1] == "Write a function to multiply by 0."
    assert len(questions) == 75 + 89 + 1
    assert list(local_questions(replace(in_use, show_all_tests=True))) == questions
    unused = TasksConfig(mbpp=DatasetConfig(weight=0.0, path=file))
    assert len(list(local_questions(unused))) == 75 + 89

"""Against the real GenRL 0.3.0, which runs in processes of its own and cannot be imported here."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from codezero.network.wire import read_genrl
from codezero.types import TaskOrigin
from tests.unit.network.wire_builders import genrl as genrl_record
from tests.unit.network.wire_builders import group


def genrl_task(question: str, actions, dataset: str = "mbpp", test: str = "assert True") -> dict:
    return {"question": question, "test": test, "dataset": dataset, "actions": actions}


def genrl_codec(env, records=(), tasks=(), values=()) -> dict:
    asked = json.dumps({"records": [record.hex() for record in records], "tasks": list(tasks), "values": list(values)})
    script = str(Path(__file__).with_name("genrl_codec.py"))
    done = subprocess.run([sys.executable, script], input=asked, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_genrl_is_not_importable_here():
    assert importlib.util.find_spec("genrl") is None


def test_what_we_pack_is_what_genrl_packs_from_the_same_objects(genrl_env):
    """Lengths and numbers at each width that msgpack has for them."""
    published = [
        [group()],
        [],
        [group(), group(question="another", origin=TaskOrigin.CODE_CONTESTS), group(origin=TaskOrigin.PROPOSER)],
        [group(question="built-in", origin=TaskOrigin.BUILTIN)],
        [group(question="", texts=[""], tests="")],
        [group(question="naïve 日本語 🦑 \0\x7f", texts=["\r\n\t```python\n```", "\u2028"])],
        [group(texts=["x" * length for length in (31, 32, 255, 256, 65_535, 65_536)])],
        [group(texts=["x"] * count) for count in (1, 15, 16, 64)],
        [group(question=str(k)) for k in range(20)],
        [replace(group(), policy_version=number) for number in (0, 127, 128, 255, 256, 65_535, 65_536, 2**32 - 1)],
        [replace(group(), policy_version=number) for number in (2**32, 2**53)],
    ]
    records = list(map(genrl_record, published))
    genrl = genrl_codec(genrl_env, records)
    assert [bytes.fromhex(record) for record in genrl["repacked"]] == records
    for groups, seen in zip(published, genrl["seen"], strict=True):
        expected = [
            [
                one.task.task_id,
                one.task.question,
                one.task.tests,
                "mbpp" if one.task.origin is TaskOrigin.BUILTIN else one.task.origin.value,
                [rollout.text for rollout in one.rollouts],
            ]
            for one in groups
        ]
        assert sorted(seen) == sorted(expected)


def test_what_genrl_packs_we_read(genrl_env):
    tasks = [
        genrl_task("q", ["a", "b"]),
        genrl_task("日本語 🦑", ["x" * 70_000, ""], dataset="code_contests", test=""),
        genrl_task("r", ["x" * 60_000, "y" * 300], dataset="code_contests", test=""),
        genrl_task("p", ["c"], dataset="proposer"),
        genrl_task("not text", ["a", None]),
    ]
    packed = bytes.fromhex(genrl_codec(genrl_env, tasks=tasks)["packed"])
    found = read_genrl(packed, "QmGenrl", swarm="s", round_number=7)
    good = [tasks[0], tasks[2], tasks[3]]
    assert [one.task.question for one in found.groups] == [task["question"] for task in good]
    assert [one.task.origin.value for one in found.groups] == [task["dataset"] for task in good]
    assert [[rollout.text for rollout in one.rollouts] for one in found.groups] == [task["actions"] for task in good]
    assert [reason.value for reason in found.dropped] == ["malformed", "malformed"]  # too long, and no text

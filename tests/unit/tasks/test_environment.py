"""Environments: the documented example and reasoning-gym's, from the source of tasks to the scored group."""

import importlib.util
import logging
import os
import re
import subprocess
import sys

import pytest

from codezero.config import BuiltinConfig, TaskDraw, TasksConfig
from codezero.errors import TaskError
from codezero.tasks import reasoning_gym
from codezero.tasks.build import make_task_source
from codezero.tasks.withheld import id_of
from codezero.types import Outcome, Refusal, Task, TaskOrigin
from codezero.workers import Workers
from tests import strangers
from tests.builders import group, rollout
from tests.commands import ROOT

(EXAMPLE,) = re.findall(r"^```python\n(.*?)^```$", (ROOT / "docs" / "environments.md").read_text(), re.M | re.S)
RULES = """
SYSTEM = "x"

def tasks(seed):
    yield "q", "a"

def score(question, answer, text):
    if text == "die":
        import os
        os.abort()
    return float(text)
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder that a node is started in; what is imported from it is forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield tmp_path
    for name in [name for name, one in sys.modules.items() if str(tmp_path) in str(getattr(one, "__file__", ""))]:
        del sys.modules[name]


def only(*modules: str, **settings) -> TasksConfig:
    return TasksConfig(modules=list(modules), builtin=BuiltinConfig(weight=0.0), **settings)


def scored(module: str, attempts, external=False):
    task = Task(origin=TaskOrigin.ENVIRONMENT, question="What is 2 + 3?", tests="5", environment="it")
    with Workers(1, modules=[module]) as workers:
        judging = strangers.evaluator(None, workers, reading={"environments": {"it": module}})
        return strangers.scored(judging, group([rollout(text=text) for text in attempts], of=task), external)


def test_the_documented_example_is_about_thirty_lines_and_gives_its_tasks(here):
    assert len(EXAMPLE.splitlines()) <= 30
    (here / "sums.py").write_text(EXAMPLE)
    source = make_task_source(only("sums"), seed=0)
    (first, *_) = drawn = source.draw(20)
    assert make_task_source(only("sums"), seed=0).draw(20) == drawn
    assert {(task.environment, task.origin) for task in drawn} == {("sums", TaskOrigin.ENVIRONMENT)}
    numbers = re.fullmatch(r"What is ([0-9]+) \+ ([0-9]+)\?", first.question)
    assert first.tests == str(int(numbers[1]) + int(numbers[2]))


@pytest.mark.parametrize("draw", TaskDraw)
def test_an_environment_goes_on_where_it_was_and_has_other_tasks_in_its_next_pass(here, draw):
    (here / "sums.py").write_text(EXAMPLE.replace("range(1000)", "range(60)"))
    source = make_task_source(only("sums", draw=draw), seed=0)
    source.draw(70)
    again = make_task_source(only("sums", draw=draw), seed=0)
    again.load_state_dict(source.state_dict())
    assert again.draw(5) == source.draw(5)
    one_pass = make_task_source(only("sums", draw=TaskDraw.uniform), seed=0)
    assert one_pass.draw(60) != one_pass.draw(60)


def test_candidates_of_any_earlier_pass_are_found_again(here):
    (here / "sums.py").write_text(EXAMPLE.replace("range(1000)", "range(10)"))
    source = make_task_source(only("sums", draw=TaskDraw.uniform), seed=0)
    drawn = source.draw(35)
    (stream,) = source._sources.values()
    names = {id_of(task) for task in drawn}
    assert {id_of(task) for task in stream.find(names)} == names


def test_an_environment_is_one_source_among_the_others(here):
    (here / "sums.py").write_text(EXAMPLE)
    drawn = make_task_source(TasksConfig(modules=["sums"]), seed=0).draw(40)
    assert {task.environment for task in drawn} == {"", "sums"}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, r"tasks.modules: its cannot be imported \(No module named 'its'\): start in its folder"),
        ("SYSTEM = ''", "tasks.modules: its lacks tasks, score: docs/environments.md has an example"),
        (EXAMPLE + "SYSTEM = (SYSTEM,)", "SYSTEM of its is no text: docs/environments.md has an example"),
        (EXAMPLE.replace("str(a + b)", "a + b"), "its: text is missing or not text: tasks.seed. has to yield pairs"),
        (EXAMPLE.replace("range(1000)", "()"), "its: task is not a question and an answer"),
        ("def tasks(:", r"its cannot be imported \(SyntaxError: .*its.py, line 1\)\): fix the module"),
        (
            "import sums_of_others",
            r"its cannot be imported \(No module named 'sums_of_others'\): install what it imports",
        ),
        ("raise RuntimeError('no\\nserver')", r"its cannot be imported \(RuntimeError: no server\): fix the module"),
        (EXAMPLE.replace("range(1000)", "1 // 0"), r"its fails \(ZeroDivisionError: .*\): fix the module"),
        ("raise SystemExit('no key')", r"its cannot be imported \(SystemExit: no key\): fix the module"),
        (EXAMPLE.replace("range(1000)", "__import__('sys').exit(3)"), r"its fails \(SystemExit: 3\): fix the module"),
    ],
    ids=[
        "missing",
        "without rules",
        "a prompt in brackets",
        "numbers",
        "empty",
        "no Python",
        "lacks a package",
        "fails",
        "fails at its first task",
        "exits",
        "exits at its first task",
    ],
)
def test_a_module_that_is_no_environment_is_refused_at_the_start(here, text, says):
    if text is not None:
        (here / "its.py").write_text(text)
    with pytest.raises(TaskError, match=says):
        make_task_source(only("its"), seed=0)


def test_tasks_that_fail_later_say_whose_they_are(here):
    (here / "its.py").write_text(
        "SYSTEM = score = ''\ndef tasks(seed):\n    yield 'q', 'a'\n    raise ValueError('boom')"
    )
    source = make_task_source(only("its"), seed=0)
    with pytest.raises(TaskError, match=r"tasks.modules: tasks\(seed\) of its fails \(ValueError: boom\)"):
        source.draw(2)


def test_attempts_are_scored_by_the_rule_in_a_worker_and_never_in_the_node(here, monkeypatch):
    (here / "sums.py").write_text(EXAMPLE)
    make_task_source(only("sums"), seed=0)
    monkeypatch.setattr(sys.modules["sums"], "score", None)
    found = scored("sums", ["5", "It is 5.", "6", "", "```python\n5\n```"], external=True)
    assert [verdict.p_correct for verdict in found.verdicts] == [1, 1, 0, 0, 1]
    assert found.rewards[0].parts == {"correct": 0.7, "finished": 0.2}
    assert found.num_correct == 3
    assert found.is_mixed


@pytest.fixture
def rules(here):
    (here / "rules.py").write_text(RULES)
    sys.path.append(str(here))  # as loading it does
    return "rules"


def test_a_rule_that_fails_costs_its_attempt_its_reward_and_nobody_else_anything(rules, caplog):
    found = scored(rules, ["0.25", "no number", "2", "nan"], external=True)
    assert found.refused is None
    assert [verdict.outcome for verdict in found.verdicts] == [Outcome.JUDGED, *[Outcome.UNAVAILABLE] * 3]
    warned = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert sum("ValueError in rules.py" in text for text in warned) == 1  # though two attempts were asked about twice


def test_a_module_may_print_while_it_is_imported(rules, here):
    (here / "rules.py").write_text(f"print('loaded', flush=True)\n{RULES}")
    assert scored(rules, ["1", "0"]).num_correct == 1


def test_a_text_that_ends_the_worker_is_hostile_of_a_peer_and_failed_of_ones_own(rules):
    assert scored(rules, ["1", "die"], external=True).refused is Refusal.HOSTILE
    own = scored(rules, ["0.5", "die"])
    assert own.rewards[1].total < own.rewards[0].total


@pytest.mark.parametrize(
    ("answer", "text", "worth"),
    [
        ("12", "<answer>12</answer>", 1),
        ("12", "I think. <answer> 12.0", 1),
        ("1234", "<answer>+1,234</answer>", 1),
        ("12", "12", 0),
        ("12", "<answer>13</answer><answer>12</answer>", 0),
        ("1 2\n3 4", "<answer>\n1 2 3 4\n</answer>", 1),
        ("Tuesday", "<answer>tuesday</answer>", 1),
        ("__import__('os').abort()", "<answer>__import__('os').abort()</answer>", 1),
        ("3/4", "<answer>6/8</answer>", 0),
        ("1", "<answer>" * 8000 + "9" * 60_000, 0),
    ],
)
def test_reasoning_gyms_answers_are_compared_by_our_rule(answer, text, worth):
    assert reasoning_gym.score("q", answer, text) == worth


def test_without_its_package_reasoning_gym_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "reasoning_gym", None)
    with pytest.raises(TaskError, match=r"install the extra reasoning-gym"):
        make_task_source(only("codezero.tasks.reasoning_gym"), seed=0)


MAKES = """
import hashlib, itertools
from codezero.tasks import reasoning_gym as env
made = list(itertools.islice(env.tasks(7), 50 * len(env.DATASETS)))
assert all(env.score(q, a, f"<answer>{a}</answer>") == 1 and max(len(q), len(a)) <= 6000 and a.strip() for q, a in made)
print(hashlib.sha256(repr(made).encode()).hexdigest())
"""


@pytest.mark.skipif(
    importlib.util.find_spec("reasoning_gym") is None, reason="the extra reasoning-gym is not installed"
)
def test_reasoning_gyms_tasks_depend_on_the_seed_only_and_their_answers_are_right_by_our_rule():
    made = {
        subprocess.run(
            [sys.executable, "-c", MAKES],
            env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed in ("1", "2")
    }
    assert len(made) == 1

import subprocess
import sys

import pytest

from codezero import compose, judging
from codezero.config import Backend, Dtype
from codezero.observe.console import Console
from codezero.types import Outcome
from tests.builders import group, rollout, save_tiny, task

RIGHT = "```python\ndef f(x):\n    return x + 1\n```"
WRONG = "```python\ndef f(x):\n    return x + 2\n```"


def evaluator(tmp_path, *settings):
    model = save_tiny(tmp_path / "model")
    config = compose.load([f"evaluator.model={model}", "model.device=cpu", *settings])
    return judging.make_evaluator(config, judging.judge_alone(config, Console()), lambda *_: None)


@pytest.mark.parametrize("spelling", ["on", "off"])
def test_the_dry_run_is_switched_on_and_off(tmp_path, spelling):
    found = evaluator(tmp_path, f"evaluator.dry_run={spelling}").score_group(group([rollout(text=RIGHT)], of=task()))
    assert bool(found.verdicts[0].cases) == (spelling == "on")


def test_execution_runs_the_tests_and_warns(tmp_path, caplog):
    found = evaluator(tmp_path, "evaluator.backend=execution").score_group(
        group([rollout(text=RIGHT), rollout(text=WRONG), rollout(text="no code")], of=task())
    )
    assert [verdict.p_correct for verdict in found.verdicts] == [1.0, 0.0, None]
    assert "RUNS" in caplog.text


@pytest.mark.parametrize(("setting", "outcome"), [("false", Outcome.UNAVAILABLE), ("true", Outcome.JUDGED)])
def test_code_of_others_is_executed_only_if_that_is_set_too(tmp_path, setting, outcome):
    settings = ("evaluator.backend=execution", f"evaluator.execute_external={setting}")
    found = evaluator(tmp_path, *settings).score_group(group([rollout(text=RIGHT)], of=task()), external=True)
    assert found.verdicts[0].outcome is outcome
    assert found.scored == (outcome is Outcome.JUDGED)


def test_a_node_that_does_not_execute_never_imports_the_sandbox():
    program = (
        "import sys, codezero.node, codezero.judging, codezero.scoring\n"
        "found = {'codezero.sandbox', 'codezero.evaluate.execution'} & set(sys.modules)\n"
        "assert not found, found"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize(
    ("settings", "in_hardware", "dtype"),
    [
        (["evaluator.model=other"], True, "bfloat16"),
        (["evaluator.model=other"], False, "float32"),
        (["evaluator.model=other", "evaluator.dtype=float32"], True, "float32"),
        (["evaluator.model=same", "model.name=same"], True, "float32"),
        (["evaluator.model=same", "model.name=same", "model.dtype=bfloat16"], True, "bfloat16"),
    ],
    ids=["fastest", "no bfloat16", "as set", "as the solver it may share with", "as the solver's setting"],
)
def test_the_judges_precision(monkeypatch, settings, in_hardware, dtype):
    monkeypatch.setattr(judging.devices, "computes_in_bfloat16", lambda: in_hardware)
    config = compose.load(["model.device=cpu", *settings])
    weights = judging.JudgeWeights(config, config.evaluator.model, judging.torch.device("cpu"), Console())
    assert str(weights.dtype()) == f"torch.{dtype}"
    assert config.evaluator.dtype in (Dtype.auto, Dtype.float32)


def test_the_line_at_the_start_says_what_judges():
    config = compose.load([])
    line = judging.describe(config, "M", Backend.llama_cpp, "why")
    assert line == "evaluator: rules, a dry run, then M, frozen, by logit; it never runs code (llama_cpp: why)"
    assert "by likelihood" in judging.describe(config, "M", Backend.transformers, "why")
    assert "RUNS" in judging.describe(config, "M", Backend.execution, "why")

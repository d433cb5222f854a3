import pytest

from codezero.config import Backend
from codezero.config.load import load_config
from codezero.evaluate import build as judging
from codezero.runtime.console import Console
from codezero.types import Outcome, RoundId, SwarmRound
from tests.builders import group, rollout, save_tiny, task
from tests.strangers import scored

RIGHT = "```python\ndef f(x):\n    return x + 1\n```"
WRONG = "```python\ndef f(x):\n    return x + 2\n```"


@pytest.fixture
def judging_by(tmp_path, workers):
    """Makes an evaluator with these settings."""

    def make(*settings):
        model = save_tiny(tmp_path / "model")
        config = load_config([f"evaluator.model={model}", "model.device=cpu", *settings])
        return judging.make_evaluator(config, judging.judge_alone(config, Console()), lambda *_: None, workers)

    return make


@pytest.fixture
def judged(judging_by):
    """Has a group scored by an evaluator with these settings."""
    return lambda of, *settings, external=False: scored(judging_by(*settings), of, external)


@pytest.mark.parametrize("spelling", ["on", "off"])
def test_the_dry_run_is_switched_on_and_off(judged, spelling):
    found = judged(group([rollout(text=RIGHT)], of=task()), f"evaluator.dry_run={spelling}")
    assert bool(found.verdicts[0].cases) == (spelling == "on")


@pytest.mark.parametrize(("spelling", "num_asked"), [("on", 1), ("off", 3)])
def test_the_judge_is_asked_about_j_of_peers_groups_where_there_is_a_dry_run(judging_by, spelling, num_asked):
    judging = judging_by(f"evaluator.dry_run={spelling}", "swarm=native", "swarm.num_external=1")
    unknown = "```python\nimport random\n\ndef f(x):\n    return random.choice([x])\n```"
    three = (group([rollout(text=unknown)], of=task(), peer_id="p"),) * 3
    found = judging.score(SwarmRound(round_id=RoundId(number=1), local=(), external=three))
    assert [one.scored for one in found] == [n < num_asked for n in range(3)]


def test_execution_runs_the_tests_and_warns(judged, caplog):
    three = group([rollout(text=RIGHT), rollout(text=WRONG), rollout(text="no code")], of=task())
    found = judged(three, "evaluator.backend=execution")
    assert [verdict.p_correct for verdict in found.verdicts] == [1.0, 0.0, None]
    assert "RUNS" in caplog.text


@pytest.mark.parametrize(("setting", "outcome"), [("false", Outcome.UNAVAILABLE), ("true", Outcome.JUDGED)])
def test_code_of_others_is_executed_only_if_that_is_set_too(judged, setting, outcome):
    settings = ("evaluator.backend=execution", f"evaluator.execute_external={setting}")
    found = judged(group([rollout(text=RIGHT)], of=task()), *settings, external=True)
    assert found.verdicts[0].outcome is outcome
    assert found.scored == (outcome is Outcome.JUDGED)


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
    config = load_config(["model.device=cpu", *settings])
    weights = judging.JudgeWeights(config, config.evaluator.model, judging.torch.device("cpu"), Console())
    assert str(weights.dtype()) == f"torch.{dtype}"


def weights_of(model, *settings):
    return judging.JudgeWeights(load_config(settings), model, judging.torch.device("cpu"), Console(), downloads=False)


def test_the_line_at_the_start_says_what_judges():
    config = load_config([])
    line = judging.evaluator_line(config, weights_of("M"), Backend.llama_cpp, "why")
    assert line == "evaluator: rules, a dry run, then M, frozen, by logit; it never runs code (llama_cpp: why)"
    assert "by likelihood" in judging.evaluator_line(config, weights_of("M"), Backend.transformers, "why")
    assert "RUNS" in judging.evaluator_line(config, weights_of("M"), Backend.execution, "why")
    line = judging.evaluator_line(config, weights_of(judging.SMALL_JUDGE), Backend.llama_cpp, "why")
    assert line == (
        "evaluator: rules and a dry run, which never runs code; what they leave open is masked, without a judge, "
        "since Qwen2.5-Coder-0.5B-Instruct by logit could decide none of it (why)"
    )


@pytest.mark.parametrize(
    ("model", "backend", "settings", "asked"),
    [
        (judging.SMALL_JUDGE, Backend.llama_cpp, [], False),
        (judging.SMALL_JUDGE, Backend.transformers, [], True),
        (judging.SMALL_JUDGE, Backend.transformers, ["evaluator.verdict=logit"], False),
        (judging.SMALL_JUDGE, Backend.llama_cpp, ["evaluator.verdict=generate"], True),
        (judging.SMALL_JUDGE, Backend.llama_cpp, ["evaluator.mask=false"], True),
        (judging.SMALL_JUDGE, Backend.llama_cpp, ["evaluator.dry_run=false"], True),
        (judging.SMALL_JUDGE, Backend.llama_cpp, ["evaluator=llama_cpp"], True),
        (judging.LARGE_JUDGE, Backend.llama_cpp, [], True),
        ("somebody/else", Backend.llama_cpp, [], True),
    ],
)
def test_a_judge_that_could_decide_nothing_is_not_asked(monkeypatch, model, backend, settings, asked):
    made = []
    monkeypatch.setattr(judging, "make_outside", lambda backend, *_: made.append(backend))
    monkeypatch.setattr(judging.JudgeWeights, "file", lambda self: None)
    weights = weights_of(model, *settings)
    assert weights.is_asked(backend) is asked
    weights.outside(backend)
    assert made == [backend] * asked
    if model == judging.SMALL_JUDGE:
        assert (weights.num_bytes(backend) > 0) is asked


def test_a_judge_that_is_not_asked_needs_no_package(monkeypatch):
    monkeypatch.setattr(judging, "is_installed", lambda package: False)
    found = [
        weights_of(judging.SMALL_JUDGE, *settings).choose(fits=False)[0] for settings in ([], ["evaluator.mask=false"])
    ]
    assert found == [Backend.llama_cpp, Backend.transformers]


def test_without_a_judge_what_the_dry_run_leaves_open_is_masked_also_in_all_groups_of_peers(workers):
    config = load_config(["swarm=native", "swarm.num_external=1"])
    evaluator = judging.make_evaluator(config, None, lambda *_: None, workers)
    unknown = "```python\nimport random\n\ndef f(x):\n    return random.choice([x])\n```"
    one = group([rollout(text=text) for text in (RIGHT, unknown, WRONG)], of=task(), peer_id="p")
    for found in evaluator.score(SwarmRound(round_id=RoundId(number=1), local=(one,), external=(one, one))):
        assert [verdict.outcome for verdict in found.verdicts] == [Outcome.JUDGED, Outcome.UNSURE, Outcome.JUDGED]
        assert [reward is None for reward in found.rewards] == [False, True, False]
        assert found.verdicts[1].reply == "no judge is asked"


@pytest.mark.parametrize(
    ("device", "free_gib", "taken_gib", "large"),
    [
        ("cpu", 24, 0, True),
        ("cpu", 23, 0, False),
        ("cuda", 21, 10, True),
        ("cuda", 12, 10, False),
        ("mps", 20, 10, True),
    ],
)
def test_auto_takes_the_large_judge_where_it_fits_beside_the_node(monkeypatch, device, free_gib, taken_gib, large):
    monkeypatch.setattr(judging.torch.cuda, "is_bf16_supported", lambda including_emulation: True)
    found = judging.judge_that_fits(free_gib << 30, judging.torch.device(device), taken_gib << 30)
    assert found == (judging.LARGE_JUDGE if large else judging.SMALL_JUDGE)


@pytest.mark.parametrize(("device", "expected"), [("cpu", 1), ("mps", 1), ("cuda", 12)])
def test_a_node_with_a_gpu_has_a_worker_for_each_of_its_cores(monkeypatch, device, expected):
    monkeypatch.setattr(judging.devices, "choose_device", lambda wanted: judging.torch.device(device))
    settings = ["train.memory_limit_gib=9", "model.threads=12"]
    assert judging.count_workers(load_config(settings)) == expected

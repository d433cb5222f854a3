import pytest
import torch

from codezero import compose, models
from codezero.evaluate.judge import ModelJudge
from codezero.models import Models
from codezero.observe.console import Console
from tests.builders import save_tiny, task


@pytest.mark.parametrize(
    ("settings", "num_external", "prompt_tokens"),
    [
        (["tasks=builtin", "swarm=alone", "swarm.num_external=3"], 0, 512),
        (["tasks=builtin", "swarm=native", "swarm.num_external=3"], 3, 512),
        (["swarm=native", "tasks=code_contests"], 2, 2048),
    ],
)
def test_memory_is_planned_for_peers_groups_where_there_are_peers(
    tmp_path, monkeypatch, settings, num_external, prompt_tokens
):
    planned = []

    def remember(shape, config, load, room):
        planned.append(load)
        return choose_method(shape, config, load, room)

    choose_method = models.choose_method
    monkeypatch.setattr(models, "choose_method", remember)
    model = save_tiny(tmp_path / "model")
    common = [f"model.name={model}", f"evaluator.model={model}", "model.device=cpu", f"model.cache_dir={tmp_path}"]
    config = compose.load([*common, "swarm.num_local=4", *settings])
    made = Models(config, tmp_path, Console())
    (load,) = planned
    assert (load.num_local, load.num_external, load.num_generations) == (4, num_external, 4)
    assert load.prompt_tokens == made.prompt_tokens == prompt_tokens


def made_from(tmp_path, policy, judge, *settings):
    names = [f"model.name={policy}", f"evaluator.model={judge}", f"model.cache_dir={tmp_path}"]
    config = compose.load(["preset=local", "model.device=cpu", *names, *settings])
    return config, Models(config, tmp_path, Console())


def opinions(config, made):
    judge = ModelJudge(made.judge_backend, config.evaluator)
    return [opinion.p_correct for opinion in judge.judge([(task(), "def f(x): return x + 1"), (task(), "pass")])]


def test_adapters_and_judge_share_weights_and_the_judge_does_not_see_the_adapters(tmp_path):
    model = save_tiny(tmp_path / "model")
    config, made = made_from(tmp_path / "a", model, model, "train.method=lora")
    _, apart = made_from(tmp_path / "b", model, save_tiny(tmp_path / "copy"), "train.method=lora")
    shared = {p.data_ptr() for p in made.policy.model.parameters()}
    assert all(p.data_ptr() in shared for p in made.judge.model.parameters())
    assert not {p.data_ptr() for p in apart.policy.model.parameters()} & {
        p.data_ptr() for p in apart.judge.model.parameters()
    }
    before = opinions(config, made)
    adapters = [p for p in made.policy.model.parameters() if p.requires_grad]
    assert adapters
    with torch.no_grad():
        for parameter in adapters:
            parameter.add_(0.5)
    assert opinions(config, made) == before == opinions(config, apart)
    assert all(p.requires_grad for p in adapters)  # still there to be trained


def test_a_fully_trained_policy_has_a_judge_of_its_own(tmp_path):
    model = save_tiny(tmp_path / "model")
    _, made = made_from(tmp_path / "a", model, model, "train.method=full")
    assert made.judge.model is not made.policy.model
    assert not any(p.requires_grad for p in made.judge.model.parameters())

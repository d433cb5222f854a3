import pytest

from codezero import compose, models
from codezero.models import Models
from codezero.observe.console import Console
from tests.builders import save_tiny


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

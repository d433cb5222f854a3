"""The model card, and under which name a model goes to the hub."""

import pytest
import yaml

from codezero import __version__
from codezero.config import TrainMethod
from codezero.identity.names import animal_name
from codezero.publish.card import card, facts
from tests.unit.publish.builders import PEER_ID, report

QWEN = "Qwen2.5-Coder-0.5B-Instruct"


def front_of(text):
    start, front, rest = text.split("---\n", 2)
    assert start == ""
    return yaml.safe_load(front), rest


def test_the_repository_is_named_as_the_public_nodes_name_theirs():
    assert animal_name(PEER_ID) == "enormous scampering rabbit"
    for name in (QWEN, f"Qwen/{QWEN}", f"/home/somebody/{QWEN}", f"./{QWEN}/"):
        assert facts(name, TrainMethod.full, PEER_ID).repository == f"{QWEN}-Gensyn-Swarm-enormous_scampering_rabbit"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("/models/--..a--b..", "a-b"),
        ("/models/my model (v2)", "my-model-v2"),
        ("/models/\x1b[31m\n---\n<script>", "31m-script"),
        ("/models/...", "model"),
        ("/models/" + "x" * 55 + "-y", "x" * 55),  # cut after the dash
        ("/models/" + "x" * 200, "x" * (96 - len("-Gensyn-Swarm-enormous_scampering_rabbit"))),
    ],
)
def test_a_folders_name_is_made_one_that_the_hub_permits(name, expected):
    from huggingface_hub.utils import validate_repo_id

    found = facts(name, TrainMethod.full, PEER_ID).repository
    assert found == f"{expected}-Gensyn-Swarm-enormous_scampering_rabbit"
    validate_repo_id(f"alice/{found}")


def test_a_whole_models_card():
    reports = [report(1, reward_mean=None, pass_at_k=None), report(2, reward_mean=0.2), report(3, 2, reward_mean=0.4)]
    front, text = front_of(card(facts(QWEN, TrainMethod.full, PEER_ID), reports))
    assert front == {
        "library_name": "transformers",
        "pipeline_tag": "text-generation",
        "license": "apache-2.0",
        "base_model": f"Qwen/{QWEN}",
        "base_model_relation": "finetune",
        "tags": ["rl-swarm", "grpo", "gensyn"],
    }
    for row in (
        f"| peer | enormous scampering rabbit, `{PEER_ID}` |",
        f"| model | Qwen/{QWEN} |",
        "| method | GRPO, all weights |",
        "| round | 3 |",
        "| policy version (rounds with an update) | 2 |",
        "| mean reward of the last 3 rounds | 0.30 |",
        "| predicted pass@k of the last 3 rounds | 0.25 |",
        f"| made by | codezero {__version__} |",
    ):
        assert row in text.splitlines()
    assert "4-bit" in text


@pytest.mark.parametrize("name", ["/home/somebody/own", "somebody/own"])
def test_an_adapters_card_of_a_model_in_a_folder_keeps_the_folder_to_itself(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "somebody" / "own").mkdir(parents=True)
    front, text = front_of(card(facts(name, TrainMethod.lora, PEER_ID), [report(1)]))
    assert front == {
        "library_name": "peft",
        "pipeline_tag": "text-generation",
        "tags": ["rl-swarm", "grpo", "gensyn"],
    }
    assert 'PeftModel.from_pretrained(base, "@REPOSITORY@")' in text
    assert "somebody" not in text
    assert "4-bit" not in text


def test_no_text_of_peers_or_of_the_network_gets_into_a_card():
    hostile = "<script>alert(1)</script>"
    spoken = report(
        1, network=hostile, external_groups={hostile: 1}, dropped={hostile: 1}, ledger=hostile, judge=hostile
    )
    assert hostile not in card(facts(QWEN, TrainMethod.full, PEER_ID), [spoken])

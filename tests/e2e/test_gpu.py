"""A node on a real NVIDIA GPU, where there is one, and on the CPU with the state that it leaves."""

import logging

import pytest
import torch

from codezero.llm import sample
from tests.builders import save_tiny, tiny_model, tiny_tokenizer
from tests.e2e.test_node import run
from tests.tiny_node import reports
from tests.unit.llm.sampling import PROMPTS, sample_request

DEVICE = "cuda"
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no CUDA device"),
]


@pytest.mark.parametrize("method", ["full", "lora"])
def test_rounds_go_on_when_the_state_moves_between_gpu_and_cpu(tmp_path, method):
    model = save_tiny(tmp_path / "model", eos_token_id=[tiny_tokenizer().eos_token_id, *b"ace"])
    settings = [f"train.method={method}", "rollout.num_generations=8", "rollout.max_new_tokens=64", "swarm.num_local=2"]
    for device in (DEVICE, "cpu", DEVICE):
        done = run(model, tmp_path, *settings, f"model.device={device}", "rounds=1")
        assert done.returncode == 0, done.stdout + done.stderr
        assert (", on cpu," in done.stdout) == (device == "cpu"), done.stdout  # else the GPU's own name
    played = reports(tmp_path)
    assert [report["round"] for report in played] == [1, 2, 3]
    assert any(report["skipped"] is None for report in played)


def test_a_step_that_is_replayed_draws_what_one_that_is_called_draws(monkeypatch, caplog):
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(sample, "FEW_ROWS", 8)
    monkeypatch.setattr(sample, "PROMPT_TOKENS", 14)  # two prompts of seven tokens, and the third one
    model = tiny_model().to(DEVICE)

    def drawn():
        request = sample_request(PROMPTS, 8, range(0, 259, 64), device=DEVICE, max_new_tokens=100)
        return [row for group in sample.sample_groups(model, request) for row in group]

    replayed = drawn()
    assert not [one for one in caplog.messages if "cannot be recorded" in one]
    monkeypatch.setattr(sample, "Recorded", lambda *_: lambda function: function())
    assert [row.completion_ids for row in replayed] == [row.completion_ids for row in drawn()]
    assert len({len(row.completion_ids) for row in replayed}) > 6

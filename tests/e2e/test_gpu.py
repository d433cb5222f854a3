"""A node on a real NVIDIA GPU, where there is one, and on the CPU with the state that it leaves."""

import pytest
import torch

from tests.builders import save_tiny, tiny_tokenizer
from tests.e2e.test_node import reports, run

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
        assert f", on {device}" in done.stdout
    played = reports(tmp_path)
    assert [report["round"] for report in played] == [1, 2, 3]
    assert any(report["skipped"] is None for report in played)

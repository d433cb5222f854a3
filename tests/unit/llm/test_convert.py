import errno
import json
import sys

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from codezero.llm.convert import convert
from tests.unit.llm import gguf_files


@pytest.fixture(scope="module")
def converted(tiny_gguf, tmp_path_factory):
    path, model = tiny_gguf
    folder = tmp_path_factory.mktemp("converted")
    convert(path, model, folder)
    return folder, AutoModelForCausalLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)


def test_the_model_has_the_files_numbers_and_one_shared_matrix(converted, tmp_path):
    _, network, _ = converted
    matrices = gguf_files.write_tiny_gguf(tmp_path / "again.gguf")
    assert network.num_parameters() == gguf_files.num_parameters(matrices)
    assert network.lm_head.weight is network.model.embed_tokens.weight
    # the head's full precision, not the embedding's half
    np.testing.assert_array_equal(network.lm_head.weight.detach().numpy(), matrices["output.weight"])
    gate = network.model.layers[1].mlp.gate_proj.weight.detach().numpy()
    np.testing.assert_array_equal(gate, matrices["blk.1.ffn_gate.weight"])


def test_the_folder_is_plain_float32_with_sane_settings(converted):
    folder, network, _ = converted
    config = json.loads((folder / "config.json").read_text())
    assert network.dtype == torch.float32
    assert config["tie_word_embeddings"] is True
    assert config["rms_norm_eps"] == 1e-6
    assert not {"quantization_config", "_model_name_or_path"} & set(config)
    assert not list(folder.glob("*.gguf"))


def test_the_model_trains_and_saves_again(converted, tmp_path):
    _, network, _ = converted
    network(input_ids=torch.tensor([[1, 2, 3]]), labels=torch.tensor([[1, 2, 3]])).loss.backward()
    assert network.lm_head.weight.grad.abs().sum() > 0
    network.save_pretrained(tmp_path)


def test_the_tokenizer_keeps_template_merges_and_ends(converted):
    _, network, tokenizer = converted
    text = tokenizer.apply_chat_template(
        [{"role": "user", "content": "in"}], add_generation_prompt=True, tokenize=False
    )
    assert text == "<|im_start|>user\nin<|im_end|>\n<|im_start|>assistant\n"
    assert tokenizer.convert_ids_to_tokens(tokenizer("in<|im_end|>").input_ids) == ["in", "<|im_end|>"]
    ends = tokenizer.convert_tokens_to_ids(["<|im_end|>", "<|endoftext|>"])
    assert network.generation_config.eos_token_id == ends
    assert tokenizer.pad_token == "<|endoftext|>"
    assert tokenizer.model_max_length == 512


def test_nothing_of_transformers_reaches_the_terminal_and_its_settings_come_back(tiny_gguf, tmp_path, capfd):
    from transformers.utils import logging

    before = logging.get_verbosity(), logging.is_progress_bar_enabled(), sys.stderr
    convert(*tiny_gguf, tmp_path)
    assert (logging.get_verbosity(), logging.is_progress_bar_enabled(), sys.stderr) == before
    output = capfd.readouterr()
    assert (output.out, output.err) == ("", "")


def test_a_full_disk_is_an_os_error(tiny_gguf, tmp_path, monkeypatch):
    from safetensors import SafetensorError
    from transformers import PreTrainedModel

    def full(*args, **kwargs):
        raise SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")

    monkeypatch.setattr(PreTrainedModel, "save_pretrained", full)
    with pytest.raises(OSError) as caught:  # noqa: PT011 - the number is checked below
        convert(*tiny_gguf, tmp_path)
    assert caught.value.errno == errno.ENOSPC

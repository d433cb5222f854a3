"""Converts a GGUF file to a trainable model: float32 safetensors, tokenizer with chat template, configuration.

torch and transformers are imported inside functions, so that the model store can be imported without them.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tqdm import tqdm

from codezero.llm.catalogue import CatalogueModel
from codezero.runtime.files import safetensors_written

CONVERTER = 1
"""The version of the conversion, increased whenever its result changes; older folders are made again."""

END_TOKENS = ("<|im_end|>", "<|endoftext|>")
"""The tokens that end an answer, both in Qwen2.5 and in SmolLM2."""


def convert(gguf: Path, model: CatalogueModel, folder: Path) -> None:
    """Writes `gguf`, the checked file of `model`, as an ordinary model folder into the empty `folder`.

    Takes about 8 bytes of memory per parameter. Raises OSError: the folder cannot be written.
    """
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    with tqdm(total=3, desc=f"{model.name}: reading the tokenizer", unit="step", disable=None) as bar, _quiet():
        tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
        _advance(bar, f"{model.name}: unpacking the weights")
        network = AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name, dtype=torch.float32)
        _make_plain(network, model)
        _set_ends(network, tokenizer)
        _advance(bar, f"{model.name}: saving safetensors")
        with safetensors_written(folder):
            network.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        _advance(bar, f"{model.name}: converted")


def _make_plain(network: Any, model: CatalogueModel) -> None:
    """Removes properties of GGUF files, and gives the model the shape of the official one."""
    # The weights are dequantised here, but save_pretrained refuses a model that is marked as quantised.
    network.hf_quantizer, network.is_quantized = None, False
    for noise in ("quantization_config", "_model_name_or_path"):
        if hasattr(network.config, noise):
            delattr(network.config, noise)
    network.config._name_or_path = network.name_or_path = model.name
    network.config.rms_norm_eps = float(f"{network.config.rms_norm_eps:.6g}")  # 1e-06 was rounded to float32
    if not network.config.tie_word_embeddings:
        # Every model of the catalogue has one official matrix, which the file quantises twice: as embedding and, with
        # more bits, as output head. Training needs a single one; the head's copy is nearer to the official values.
        network.get_input_embeddings().weight = network.get_output_embeddings().weight
        network.config.tie_word_embeddings = True
        network.tie_weights()


def _set_ends(network: Any, tokenizer: Any) -> None:
    vocabulary = tokenizer.get_vocab()
    ends = [vocabulary[token] for token in END_TOKENS if token in vocabulary]
    network.generation_config.eos_token_id = ends or tokenizer.eos_token_id
    network.generation_config.pad_token_id = tokenizer.pad_token_id
    network.generation_config._from_model_config = False  # else generate() takes the single end token of config.json
    tokenizer.model_max_length = network.config.max_position_embeddings


def _advance(bar: tqdm[Any], text: str) -> None:
    bar.update()
    bar.set_description(text)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keeps transformers' own progress bars and messages off the terminal; errors are raised, so nothing is lost.

    The caller must have imported transformers before, else its log handler would keep the discarded stream.
    """
    from transformers.utils import logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        with contextlib.redirect_stderr(io.StringIO()):  # one of its bars cannot be switched off
            yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()

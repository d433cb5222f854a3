"""Writes the files that llama.cpp reads: a quantised copy of the base weights, and the adapter.

Neither has a tokenizer, since the sampler's input and output are ids.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import gguf
from gguf import GGMLQuantizationType as Kind
from safetensors import safe_open
from torch import Tensor
from transformers import AutoConfig

from codezero.errors import ModelError

ARCHITECTURES = {"qwen2": gguf.MODEL_ARCH.QWEN2, "qwen3": gguf.MODEL_ARCH.QWEN3, "llama": gguf.MODEL_ARCH.LLAMA}
"""llama.cpp's architectures by transformers' model_type, for those that compute alike given `_write_shape`'s values."""
SOURCE = "codezero.source"
"""The metadata key in the base file that identifies the files it was made from."""
FORMAT = 2
"""The version of what is written. Version 1 had biases of Llama's queries and keys in an order unlike the weights'."""


def write_base(folder: Path, path: Path) -> None:
    """Writes the weights of a model folder to `path`, in Q8_0, vectors in float32; keeps a file with the same weights.

    Raises ModelError: the architecture is not one of `ARCHITECTURES`, or Q8_0 does not support the shape; OSError: the
    file cannot be written.
    """
    config = AutoConfig.from_pretrained(folder, local_files_only=True).to_dict()  # with defaults, in today's keys
    architecture = _architecture(config)
    weights = sorted(folder.glob("*.safetensors"))
    source = ascii([FORMAT, *((str(one), one.stat().st_size, one.stat().st_mtime_ns) for one in weights)])
    if path.exists() and _source(path) == source:
        return
    building = path.with_suffix(".part")
    try:
        _build_base(config, architecture, weights, source, building)
        with building.open("rb") as file:
            os.fsync(file.fileno())
        os.replace(building, path)
    finally:
        building.unlink(missing_ok=True)


def _build_base(
    config: Mapping[str, Any], architecture: gguf.MODEL_ARCH, weights: list[Path], source: str, building: Path
) -> None:
    writer = gguf.GGUFWriter(building, gguf.MODEL_ARCH_NAMES[architecture])
    writer.add_string(SOURCE, source)
    _write_shape(writer, config)
    names = gguf.get_tensor_name_map(architecture, config["num_hidden_layers"])
    for name, tensor in _tensors(weights):
        if name == "lm_head.weight" and config.get("tie_word_embeddings"):
            continue
        values = _permuted(name, tensor.float(), config).numpy()
        kind = Kind.Q8_0 if values.ndim == 2 else Kind.F32
        if kind is Kind.Q8_0 and values.shape[1] % gguf.GGML_QUANT_SIZES[kind][0]:
            raise ModelError(f"{weights[0].parent.name} has rows of {values.shape[1]} numbers: {_ELSE}")
        writer.add_tensor(_translated(names, name), gguf.quants.quantize(values, kind), raw_dtype=kind)
    _finish(writer)


def write_adapter(model: Any, path: Path, adapter: str) -> None:
    """Writes the LoRA adapters of this name of a peft model to `path`, in float32. Raises OSError: it cannot be
    written."""
    config = model.config.to_dict()
    architecture = _architecture(config)
    lora = model.peft_config[adapter]
    names = gguf.get_tensor_name_map(architecture, config["num_hidden_layers"])
    writer = gguf.GGUFWriter(path, gguf.MODEL_ARCH_NAMES[architecture])
    writer.add_type(gguf.GGUFType.ADAPTER)
    writer.add_string(gguf.Keys.Adapter.TYPE, "lora")
    writer.add_float32(gguf.Keys.Adapter.LORA_ALPHA, lora.lora_alpha)
    for name, weight in _adapter_weights(model, adapter):
        layer, side = name.rsplit(".", 1)
        values = weight.detach().float().cpu()
        if side == "lora_b":  # it has the rows of the layer's own weight
            values = _permuted(layer + ".weight", values, config)
        writer.add_tensor(f"{_translated(names, layer + '.weight')}.{side}", values.contiguous().numpy())
    _finish(writer)


_ELSE = "set rollout.engine=transformers"


def _architecture(config: Mapping[str, Any]) -> gguf.MODEL_ARCH:
    kind = config["model_type"]
    if kind not in ARCHITECTURES:
        raise ModelError(f"the llama.cpp sampler knows no {kind}, only plain {', '.join(ARCHITECTURES)}: {_ELSE}")
    scaling, activation = config["rope_parameters"]["rope_type"], config["hidden_act"]
    others = {
        f"rope_type {scaling}": scaling != "default",
        f"hidden_act {activation}": activation != "silu",
        "a sliding window": config.get("use_sliding_window"),
    }
    if found := [name for name, is_there in others.items() if is_there]:
        raise ModelError(f"the llama.cpp sampler knows {kind} without {' and '.join(found)} only: {_ELSE}")
    return ARCHITECTURES[kind]


def _write_shape(writer: gguf.GGUFWriter, config: Mapping[str, Any]) -> None:
    heads = config["num_attention_heads"]
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(heads)
    writer.add_head_count_kv(config.get("num_key_value_heads") or heads)
    head = config.get("head_dim") or config["hidden_size"] // heads
    writer.add_key_length(head)
    writer.add_value_length(head)
    writer.add_rope_dimension_count(head)
    writer.add_rope_freq_base(config["rope_parameters"]["rope_theta"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_vocab_size(config["vocab_size"])
    writer.add_tokenizer_model("no_vocab")


def _permuted(name: str, weight: Tensor, config: Mapping[str, Any]) -> Tensor:
    """Returns the weight or bias with its rows in the order of llama.cpp, whose Llama rotates pairs of neighbours,
    unlike transformers, which rotates halves of a head."""
    layer = name.rsplit(".", 2)[-2]
    if config["model_type"] != "llama" or layer not in ("q_proj", "k_proj"):
        return weight
    heads = config["num_attention_heads"]
    if layer == "k_proj":
        heads = config.get("num_key_value_heads") or heads
    return weight.reshape(heads, 2, -1, *weight.shape[1:]).swapaxes(1, 2).reshape(weight.shape).contiguous()


def _translated(names: gguf.TensorNameMap, name: str) -> str:
    found: str | None = names.get_name(name, (".weight", ".bias"))
    if found is None:
        raise ModelError(f"the llama.cpp sampler does not support the weight {name}: {_ELSE}")
    return found


def _tensors(files: list[Path]) -> Iterator[tuple[str, Tensor]]:
    for file in files:
        with safe_open(file, "pt") as opened:
            for name in opened.keys():  # noqa: SIM118  # it is not a mapping
                yield name, opened.get_tensor(name)


def _adapter_weights(model: Any, adapter: str) -> Iterator[tuple[str, Tensor]]:
    for name, module in model.get_base_model().named_modules():
        if hasattr(module, "lora_A"):
            yield f"{name}.lora_a", module.lora_A[adapter].weight
            yield f"{name}.lora_b", module.lora_B[adapter].weight


def _source(path: Path) -> str:
    try:
        field = gguf.GGUFReader(path).get_field(SOURCE)
    except (OSError, ValueError, LookupError):
        return ""
    return "" if field is None else str(field.contents())


def _finish(writer: gguf.GGUFWriter) -> None:
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()

"""A random two-layer Qwen2 as a GGUF file and as wheels: what the model store meets, in small."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path

import gguf
import numpy as np
from tokenizers import pre_tokenizers

from codezero.llm.catalogue import PARTS, CatalogueModel, Wheels
from tests.builders import CHAT_TEMPLATE

HIDDEN, FEED_FORWARD, LAYERS, HEADS, KV_HEADS = 32, 64, 2, 4, 2
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]


def write_tiny_gguf(path: Path) -> dict[str, np.ndarray]:
    """Writes the file and returns its matrices; as in the official one, embedding and head differ in precision."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokens = [*alphabet, "in", *SPECIAL]
    matrices = _matrices(len(tokens))
    writer = gguf.GGUFWriter(str(path), "qwen2")
    writer.add_name("Tiny Coder AWQ")
    writer.add_context_length(512)
    writer.add_embedding_length(HIDDEN)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(FEED_FORWARD)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_rope_freq_base(1_000_000.0)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list(tokens)
    writer.add_token_types([1] * (len(alphabet) + 1) + [3] * len(SPECIAL))
    writer.add_token_merges(["i n"])
    writer.add_bos_token_id(tokens.index("<|endoftext|>"))
    writer.add_pad_token_id(tokens.index("<|endoftext|>"))
    writer.add_eos_token_id(tokens.index("<|im_end|>"))
    writer.add_add_bos_token(False)
    writer.add_chat_template(CHAT_TEMPLATE)
    for name, matrix in matrices.items():
        writer.add_tensor(name, matrix)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return matrices


def _matrices(vocab_size: int) -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    kv_width = HIDDEN // HEADS * KV_HEADS

    def normal(*shape: int) -> np.ndarray:
        return random.normal(0, 0.2, shape).astype(np.float32)

    head = normal(vocab_size, HIDDEN)
    matrices = {
        "output.weight": head,
        "token_embd.weight": head.astype(np.float16),
        "output_norm.weight": normal(HIDDEN),
    }
    for layer in range(LAYERS):
        block = {
            "attn_norm.weight": normal(HIDDEN),
            "ffn_norm.weight": normal(HIDDEN),
            "attn_q.weight": normal(HIDDEN, HIDDEN),
            "attn_q.bias": normal(HIDDEN),
            "attn_k.weight": normal(kv_width, HIDDEN),
            "attn_k.bias": normal(kv_width),
            "attn_v.weight": normal(kv_width, HIDDEN),
            "attn_v.bias": normal(kv_width),
            "attn_output.weight": normal(HIDDEN, HIDDEN),
            "ffn_gate.weight": normal(FEED_FORWARD, HIDDEN),
            "ffn_up.weight": normal(FEED_FORWARD, HIDDEN),
            "ffn_down.weight": normal(HIDDEN, FEED_FORWARD),
        }
        matrices |= {f"blk.{layer}.{name}": matrix for name, matrix in block.items()}
    return matrices


def num_parameters(matrices: dict[str, np.ndarray]) -> int:
    """Of the tied model: the embedding is not counted beside the head."""
    return sum(matrix.size for name, matrix in matrices.items() if name != "token_embd.weight")


def pin(data: bytes, parameters: int = 0, num_wheels: int = 3) -> CatalogueModel:
    """A catalogue entry for a file with these bytes, in wheels `tiny-weights-part1` and so on."""
    return CatalogueModel(
        name="Tiny-Coder",
        file="tiny-coder-f16.gguf",
        size_bytes=len(data),
        sha256=hashlib.sha256(data).hexdigest(),
        hub_repo="org/Tiny-Coder-GGUF",
        base="org/Tiny-Coder",
        wheels=Wheels(
            packages=tuple(f"tiny-weights-part{i}" for i in range(1, num_wheels + 1)), version="1.0", member=PARTS
        ),
        parameters=parameters,
        licence="Apache-2.0",
    )


def write_wheel(folder: Path, package: str, members: dict[str, bytes]) -> Path:
    """An installable wheel, version 1.0, whose data files are `members`."""
    module = package.replace("-", "_")
    path = folder / f"{module}-1.0-py3-none-any.whl"
    info = f"{module}-1.0.dist-info"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"{module}/__init__.py", "")
        for name, data in members.items():
            archive.writestr(name, data)
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return path


def write_wheels(folder: Path, data: bytes) -> list[Path]:
    """Three wheels with four parts of `data`; the second holds parts 2 and 10, which text order would swap."""
    quarter = len(data) // 4
    cuts = [data[:quarter], data[quarter : 2 * quarter], data[2 * quarter : 3 * quarter], data[3 * quarter :]]
    first, second, third = (f"tiny-weights-part{i}" for i in (1, 2, 3))
    return [
        write_wheel(folder, first, {"tiny_weights_part1/data/part1.bin": cuts[0]}),
        write_wheel(
            folder,
            second,
            {"tiny_weights_part2/data/part10.bin": cuts[2], "tiny_weights_part2/data/part2.bin": cuts[1]},
        ),
        write_wheel(folder, third, {"tiny_weights_part3/data/part11.bin": cuts[3]}),
    ]

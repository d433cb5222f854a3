"""Estimates the memory and disk that a training method needs, before any weight is loaded.

All prompts and completions are assumed to be as long as allowed. Activations are those that a Qwen2 or Llama block
keeps for its backward pass, as `tests/unit/train/test_memory.py` counts; `benchmarks/memory.py` compares whole plans
with the memory of processes.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import AutoConfig, AutoModelForCausalLM

from codezero.config import Moments, RolloutEngine, TrainConfig, TrainMethod
from codezero.errors import ModelError, first_line
from codezero.llm import onednn
from codezero.llm.llama_library import CACHE_STEP
from codezero.llm.llama_sampler import MAX_ROWS
from codezero.llm.load import FAULTS
from codezero.llm.logprobs import OUTER_ROWS, head_chunk
from codezero.llm.recompute import gated_mlps
from codezero.runtime.amounts import GIB, gib
from codezero.train.batch import batch_limits

RUNTIME_BYTES = 540 * 2**20
"""The memory of a process with torch, transformers and peft imported, and the tokenizer."""
SAMPLER_BYTES = 110 * 2**20
"""The memory of llama.cpp's process without weights, cache and logits."""
VLLM_BYTES, VLLM_SLEEPS_BYTES = 3 << 29, 3 << 29
"""The memory of a vLLM server's process on the GPU, without weights and cache: what sampling takes, and what is left to
it while it sleeps, such as the context of CUDA and its graphs. Estimates: it was never run here."""
DRAWN_BYTES = 12
"""Bytes per logit of a step: the logit, scaled by the temperature, and an unnormalised probability in float32."""
CHECKPOINTS = 3
"""The number of checkpoints on disk at a time: two kept, one being written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelShape:
    """The sizes of a causal language model that memory depends on."""

    num_parameters: int
    """The number of parameters, tied weights counted once."""
    linear_parameters: int
    """The number of weights in linear layers and head, of which generation by oneDNN keeps a second, packed copy."""
    lora_width: int
    """The sum of inputs and outputs of all linear layers but the head; times the rank it is the adapters' size."""
    vocab_size: int
    hidden_size: int
    intermediate_size: int
    key_value_size: int
    """The width of a layer's keys, and of its values."""
    num_layers: int
    mlp_values: int = 2
    """The number of vectors of the MLP's width that a block keeps per token: two if `llm.recompute` recomputes the
    others."""

    @property
    def cached_a_token(self) -> int:
        """The count of numbers that a key-value cache keeps of a token."""
        return 2 * self.num_layers * self.key_value_size


QWEN_0_5B = ModelShape(
    num_parameters=494_032_768,
    linear_parameters=493_961_216,
    lora_width=549_888,
    vocab_size=151_936,
    hidden_size=896,
    intermediate_size=4864,
    key_value_size=128,
    num_layers=24,
)
"""The shape of Qwen2.5-Coder-0.5B-Instruct, the default model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """The sizes of a round that memory depends on."""

    num_local: int
    """The number of own groups, I."""
    num_external: int
    """The largest number of peers' groups that are trained on, J."""
    num_replayed: int = 0
    """The number of own past groups that are trained on again."""
    num_generations: int
    """The number of completions in a group, G."""
    prompt_tokens: int
    """The longest prompt to plan for, in tokens."""
    completion_tokens: int
    """The longest completion, in tokens."""
    dtype: torch.dtype
    device_type: str
    """The type of the device: "cpu", "cuda" or "mps"."""
    evaluator_bytes: int
    """The memory of the frozen evaluator on the same device; 0 if it runs elsewhere."""
    workers_bytes: int = 0
    """The memory of the processes that read solutions; 0 if it is not memory of `device_type`."""
    engine: RolloutEngine = RolloutEngine.transformers
    """The sampler."""
    most_local: int = 0
    """The number of own groups that are taken if memory holds them; otherwise fewer, and at least `num_local`."""
    evaluator_is_base: bool = False
    """True if the evaluator's weights are the policy's starting weights, which adapters do not change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryEstimate:
    """The memory and disk that a node needs, in bytes by use. A round solves, then learns; its peak is the larger."""

    method: TrainMethod
    train: TrainConfig
    num_local: int
    """The settings, and the number of own groups, that the estimate is for."""
    longest_prompt: int
    """The longest prompt of own tasks that is solved, in tokens: that of the estimate, or a longer one for which memory
    has room."""
    runtime: int
    weights: int
    reference: int
    optimizer: int
    """Adam's moments, and float32 masters of bfloat16 weights; in memory during the whole round."""
    snapshots: int
    """Two versions of the weights as rollout servers have them."""
    evaluator: int
    workers: int
    gradients: int
    """The gradients, while learning."""
    activations: int
    """The activations while learning, with a chunk of logits and of the head's gradient."""
    decode_weights: int
    """While solving, the packed copy of the linear weights, llama.cpp's process with its weights in Q8_0, or that of
    vLLM with its copy of the weights, which moves to the computer's own memory while it sleeps."""
    kv_cache: int
    """The key-value cache, while solving."""
    logits: int
    """The logits of a step and the numbers derived from them, while solving."""
    disk: int
    """Checkpoints, the base weights that llama.cpp samples from, and the weights that are sent to vLLM."""

    @property
    def kept(self) -> int:
        models = self.weights + self.reference + self.optimizer + self.snapshots
        return self.runtime + models + self.evaluator + self.workers

    @property
    def learn(self) -> int:
        return self.kept + self.gradients + self.activations

    @property
    def solve(self) -> int:
        return self.kept + self.decode_weights + self.kv_cache + self.logits

    @property
    def peak(self) -> int:
        return max(self.learn, self.solve)

    def line(self) -> str:
        """Returns text such as `full: 10.4 GiB of memory (weights 1.8, ...) and 16.6 GiB of disk`, without parts below
        0.05 GiB."""
        items = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in NOT_ITEMS}
        largest = sorted(items, key=lambda name: -items[name])
        parts = ", ".join(
            f"{name.replace('_', ' ')} {items[name] / GIB:.1f}" for name in largest if items[name] >= GIB / 20
        )
        size, recomputes = self.train.micro_batch_size, self.train.gradient_checkpointing
        means = f", train.micro_batch_size={size}" * (size > 0) + ", train.gradient_checkpointing=true" * recomputes
        means += ", train.masters=false" * (not self.train.masters)
        memory = f"{gib(self.peak)} of memory ({parts})"
        return f"{self.method.value}{means}: {memory} and {gib(self.disk)} of disk"


NOT_ITEMS = ("method", "train", "num_local", "longest_prompt", "disk")


def read_shape(folder: str | Path) -> ModelShape:
    """Returns the shape of the model in a prepared folder, from its config.json; no weight is read or allocated.

    Raises ModelError: there is no usable config.
    """
    try:
        config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        with torch.device("meta"):
            return shape_of(AutoModelForCausalLM.from_config(config, trust_remote_code=False))
    except FAULTS as error:
        raise ModelError(
            f"{folder} holds no causal language model: {first_line(error)}; give an -Instruct model as model.name"
        ) from error


def shape_of(model: nn.Module) -> ModelShape:
    """Returns the shape of a transformers causal language model, on any device, meta included."""
    lm: Any = model
    config, head = lm.config.get_text_config(), lm.get_output_embeddings()
    linears = [module for module in lm.modules() if isinstance(module, nn.Linear)]
    head_dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
    return ModelShape(
        num_parameters=sum(p.numel() for p in lm.parameters()),
        linear_parameters=sum(module.weight.numel() for module in linears),
        lora_width=sum(m.in_features + m.out_features for m in linears if m is not head),
        vocab_size=config.vocab_size,
        hidden_size=config.hidden_size,
        intermediate_size=getattr(config, "intermediate_size", None) or 4 * config.hidden_size,
        key_value_size=heads * head_dim,
        num_layers=config.num_hidden_layers,
        mlp_values=2 if gated_mlps(lm) else 4,
    )


def estimate(shape: ModelShape, method: TrainMethod, config: TrainConfig, load: Workload) -> MemoryEstimate:
    """Estimates memory and disk of training with `method`, which is full or lora."""
    full = method is TrainMethod.full
    width = load.dtype.itemsize
    trained = shape.num_parameters if full else config.lora_r * shape.lora_width
    # Adapters are float32 whatever the model is; bfloat16 weights are trained through float32 masters, or by
    # stochastic rounding.
    exact = 2 if full and load.dtype is torch.bfloat16 and not config.masters else 4
    masters = full and width < exact
    weights = width * shape.num_parameters + (0 if full else 4 * trained)
    moments = (4 if config.moments is Moments.bfloat16 else 8) * trained
    master_bytes = 4 * trained if masters else 0
    outside = load.engine is RolloutEngine.llama_cpp
    packs = load.device_type == "cpu" and load.dtype is torch.float32 and onednn.is_available()
    packed = width * shape.linear_parameters if packs else 0
    base_bytes = 34 * shape.num_parameters // 32 if outside else 0  # 32 numbers with their scale take 34 bytes
    decode_weights = SAMPLER_BYTES + base_bytes if outside else packed
    in_vllm = load.engine is RolloutEngine.vllm
    if in_vllm:
        decode_weights = VLLM_BYTES + width * shape.num_parameters
    rows, length = load.num_local * load.num_generations, load.prompt_tokens + load.completion_tokens
    if outside:
        rows = min(rows, max(MAX_ROWS, load.num_generations))
        length = -(-length // CACHE_STEP) * CACHE_STEP
    sent_bytes = 2 * 2 * trained if load.engine is RolloutEngine.remote else 0
    if in_vllm:
        sent_bytes = (width if full else 4) * trained
    cached = rows * length * shape.cached_a_token
    return MemoryEstimate(
        method=method,
        train=config,
        num_local=load.num_local,
        longest_prompt=load.prompt_tokens,
        runtime=RUNTIME_BYTES + in_vllm * VLLM_SLEEPS_BYTES,
        weights=weights,
        reference=width * shape.num_parameters if full and config.beta > 0 else 0,
        optimizer=moments + master_bytes,
        snapshots=2 * 2 * shape.num_parameters if full and load.engine is RolloutEngine.remote else 0,
        evaluator=0 if load.evaluator_is_base and not full else load.evaluator_bytes,
        workers=load.workers_bytes,
        gradients=exact * trained,
        activations=_activations(shape, method, config, load),
        decode_weights=decode_weights,
        kv_cache=(2 if outside else width) * cached,
        logits=DRAWN_BYTES * rows * shape.vocab_size,
        disk=CHECKPOINTS * (exact * trained + moments) + base_bytes + sent_bytes,
    )


def micro_batch_sequences(config: TrainConfig, load: Workload) -> int:
    """Returns the number of completions of full length in a micro-batch, at most all of a round: on a CPU only those of
    one prompt share a micro-batch, but all groups of a round, also peers', may have the same task."""
    limits = batch_limits(config, load.device_type)
    in_round = (load.num_local + load.num_external + load.num_replayed) * load.num_generations
    each = load.completion_tokens + limits.own_prompts * load.prompt_tokens
    return max(1, min(limits.max_sequences, limits.max_tokens // each, in_round))


def _activations(shape: ModelShape, method: TrainMethod, config: TrainConfig, load: Workload) -> int:
    """Returns the bytes that forward and backward pass of a micro-batch need beside weights and gradients.

    A block keeps vectors of the hidden width: inputs of its linear layers, those of its norms (one per norm only if the
    norm's own weight is trained), queries and attention's output; keys and values at their own width; and `mlp_values`
    vectors of the MLP's width. Completions attend to copies of keys and values, one per query head, the prompt's too,
    with a mask in floating point. Logits and their gradient come last, while all that is in memory. The prompt's own
    pass comes after the completions' (`CompletionScorer`), so the larger of both counts. On an accelerator every
    completion has its own copy of the prompt, and attention needs no mask.

    With recomputed activations every completion has its own copy of the prompt, each block keeps its input, and one
    block at a time has its activations, and as many bytes again for their gradients.
    """
    full, width = method is TrainMethod.full, load.dtype.itemsize
    sequences = micro_batch_sequences(config, load)
    own = sequences * load.completion_tokens
    hidden, mlp = shape.hidden_size, shape.intermediate_size
    block = shape.mlp_values * mlp + (8 if full else 6) * hidden + 2 * shape.key_value_size
    if not full and width < 4:
        block += 2 * (mlp + 4 * hidden)  # float32 adapters read float32 copies of each layer's inputs
    cast = width if width < 4 else 0  # of the logits' gradients to the precision of the weights
    logits = (2 * 4 + cast) * min(head_chunk(load.device_type), own) * shape.vocab_size
    if full:
        logits += width * min(OUTER_ROWS, shape.vocab_size) * hidden
    if config.gradient_checkpointing:
        tokens = own + sequences * load.prompt_tokens
        one = 2 * (block + (4 - shape.mlp_values) * mlp)
        return width * tokens * shape.num_layers * hidden + max(width * tokens * one, logits)
    length = load.prompt_tokens + load.completion_tokens
    if batch_limits(config, load.device_type).across_prompts:
        return width * shape.num_layers * sequences * length * (block + 2 * hidden) + logits
    attended = 2 * hidden * sequences * length + own * length
    completions = width * shape.num_layers * (own * block + attended) + logits
    return max(completions, width * shape.num_layers * load.prompt_tokens * block)

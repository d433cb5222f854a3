"""Turns scored groups into tensors: chooses the tokens to train on, and the sequences that share a forward pass."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import nan

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from codezero.config import TrainConfig
from codezero.errors import PromptTooLong
from codezero.llm.padding import filled, padded
from codezero.train.claims import unpacked
from codezero.types import FinishReason, Rollout, RolloutGroup, Task

AUTO_TOKENS = {"cpu": 256, "mps": 1024, "cuda": 4096}
"""The number of tokens in a micro-batch if train.micro_batch_size is 0: of the completions where these share their
prompt, elsewhere of the prompts too. On a CPU a larger one saves at most a seventh of the time, and 256 tokens of a
0.5B model take about 10 s on two cores: the longest wait after Ctrl-C."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainSequence:
    """One completion to train on. Made by `to_sequences`."""

    prompt_ids: tuple[int, ...]
    """The prompt's token ids, [P]."""
    completion_ids: tuple[int, ...]
    """The completion's token ids, [C] with C >= 1; all of them are trained on."""
    advantage: float
    old_logprobs: tuple[float, ...] | None = None
    """The log-probs under the policy that sampled, [C]; None if that is the current one, or unknown."""
    sampler_logprobs: tuple[float, ...] | None = None
    """The log-probs under that policy as computed by the sampler, [C]; None if `old_logprobs` are these, or unknown."""
    claimed_logprobs: tuple[float, ...] | None = None
    """The log-probs under the policy of the peer that sampled, by its own account, [C]; None without."""
    weights: tuple[float, ...] | None = None
    """The factors of the tokens' losses, [C]; None if they are 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainBatch:
    """Completions, right-padded, as tensors. Used in `train/` only."""

    completion_ids: Tensor
    """The completions' token ids, [B, C]."""
    loss_mask: Tensor
    """True for the completions' own tokens, [B, C]; made from lengths, since the padding id may be a token too."""
    old_logprobs: Tensor
    """`TrainSequence.old_logprobs`, [B, C]; NaN if unknown or the current policy's, so that the ratio is 1."""
    sampler_logprobs: Tensor
    """`TrainSequence.sampler_logprobs`, [B, C]; NaN if unknown, or the same as the old ones."""
    weights: Tensor
    """`TrainSequence.weights`, [B, C]; 1 where there are none."""
    advantages: Tensor
    """The completions' advantages, [B]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchLimits:
    """The largest size of a micro-batch."""

    max_sequences: int
    max_tokens: int
    """The most tokens, with padding; a single longer sequence is a micro-batch of its own."""
    across_prompts: bool = False
    """True if completions of different prompts may share a micro-batch."""
    own_prompts: bool = False
    """True if each completion has its own copy of the prompt, whose tokens count. Otherwise those of one prompt share
    its computation, and completion tokens count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptBatches:
    """All sequences of one prompt, in micro-batches of similar length; or one micro-batch across prompts."""

    prompt_ids: tuple[int, ...]
    """The prompt's token ids, [P]; empty across prompts."""
    micro_batches: tuple[tuple[TrainSequence, ...], ...]


@dataclass(slots=True, kw_only=True)
class TextEncoder:
    """The encoder of peers' texts into tokens of the node's own model."""

    tokenizer: PreTrainedTokenizerBase
    encode_prompt: Callable[[Task], Sequence[int]]
    """A function that returns the ids of the own solver's prompt for a task. May raise PromptTooLong."""
    end_token_id: int
    """The id of the token that ends the own model's answers."""
    max_prompt_length: int
    """The longest prompt that memory is planned for, in tokens; a peer's task can have any length."""
    max_completion_length: int
    """The longest completion, in tokens."""
    claims_of: str = ""
    """The name of the model whose peers' log-probs are read; empty reads none."""

    def fits(self, task: Task) -> bool:
        """Returns True if the prompt of a peer's task is short enough to train on."""
        try:
            self.prompt_ids(task)
        except PromptTooLong:
            return False
        return True

    def prompt_ids(self, task: Task) -> tuple[int, ...]:
        """Returns the ids [P] of the prompt of a peer's task. Raises PromptTooLong."""
        ids = tuple(self.encode_prompt(task))
        if len(ids) > self.max_prompt_length:
            raise PromptTooLong(f"its prompt has {len(ids)} tokens, memory is planned for {self.max_prompt_length}")
        return ids

    def completion_ids(self, rollout: Rollout) -> tuple[int, ...]:
        """Returns the ids [C] of a peer's completion, cut to the longest allowed; with the end token if the peer's
        model gave one.

        Text that spells a special token stays text, so that a peer cannot put control tokens into training data.
        """
        encoded = self.tokenizer(rollout.text, add_special_tokens=False, split_special_tokens=True)
        end = [self.end_token_id] if rollout.finish is FinishReason.STOP and rollout.text else []
        return tuple([*encoded["input_ids"], *end][: self.max_completion_length])

    def claimed_logprobs(self, model_id: str, rollout: Rollout, num_tokens: int) -> tuple[float, ...] | None:
        """Returns the log-probs that a peer sent for its completion of so many tokens here; None if it sent none that
        are well-formed, or has another model."""
        return unpacked(rollout.logprobs, num_tokens) if self.claims_of and model_id == self.claims_of else None


def to_sequences(
    group: RolloutGroup, advantages: Sequence[float], encoder: TextEncoder | None, policy_version: int
) -> tuple[TrainSequence, ...]:
    """Returns the group's completions that have at least one token; advantages [G].

    Local rollouts keep their sampled ids, also of the prompt (which may differ within a group), and their log-probs, as
    old ones if an earlier policy sampled them. Peers' texts are encoded here, and log-probs that came with them are
    claims.
    """
    is_peers = any(rollout.tokens is None for rollout in group.rollouts)
    prompt_of_peer = encoder.prompt_ids(group.task) if encoder is not None and is_peers else ()
    found = []
    for rollout, advantage in zip(group.rollouts, advantages, strict=True):
        claimed = None
        if rollout.tokens is not None:
            prompt_ids, completion_ids = rollout.tokens.prompt_ids, rollout.tokens.completion_ids
            logprobs = rollout.tokens.logprobs
            stale = group.policy_version < policy_version
            old_logprobs, sampler_logprobs = (logprobs, None) if stale else (None, logprobs)
        else:
            assert encoder is not None, "without an encoder all rollouts are own ones, with tokens"
            prompt_ids = prompt_of_peer
            completion_ids, old_logprobs, sampler_logprobs = encoder.completion_ids(rollout), None, None
            claimed = encoder.claimed_logprobs(group.model_id, rollout, len(completion_ids))
        if completion_ids:
            found.append(
                TrainSequence(
                    prompt_ids=prompt_ids,
                    completion_ids=completion_ids,
                    advantage=advantage,
                    old_logprobs=old_logprobs,
                    sampler_logprobs=sampler_logprobs,
                    claimed_logprobs=claimed,
                )
            )
    return tuple(found)


def batch_limits(config: TrainConfig, device_type: str) -> BatchLimits:
    """Returns the configured number of sequences, or a number of tokens for the device ("cpu", "cuda" or "mps"). Only
    on a CPU are the completions of one prompt enough work for a pass; they share its computation unless activations are
    recomputed."""
    sequences, tokens = config.micro_batch_size, 2**31
    if not sequences:
        sequences, tokens = 2**31, AUTO_TOKENS.get(device_type, AUTO_TOKENS["cuda"])
    across = device_type != "cpu"
    own = across or config.gradient_checkpointing
    return BatchLimits(max_sequences=sequences, max_tokens=tokens, across_prompts=across, own_prompts=own)


def plan(sequences: Sequence[TrainSequence], limits: BatchLimits) -> tuple[PromptBatches, ...]:
    """Groups sequences by prompt, unless they are packed across prompts, then fills micro-batches from the longest to
    the shortest. Deterministic."""

    def length(sequence: TrainSequence) -> int:
        return len(sequence.completion_ids) + limits.own_prompts * len(sequence.prompt_ids)

    by_prompt: dict[tuple[int, ...], list[TrainSequence]] = {}
    for sequence in sequences:
        by_prompt.setdefault(() if limits.across_prompts else sequence.prompt_ids, []).append(sequence)
    plans = []
    for prompt_ids, members in by_prompt.items():
        batches: list[list[TrainSequence]] = []
        for sequence in sorted(members, key=length, reverse=True):
            size = len(batches[-1]) + 1 if batches else 0
            longest = length(batches[-1][0]) if batches else 0
            if 0 < size <= limits.max_sequences and size * longest <= limits.max_tokens:
                batches[-1].append(sequence)
            else:
                batches.append([sequence])
        together = [[batch] for batch in batches] if limits.across_prompts else [batches]
        plans += [PromptBatches(prompt_ids=prompt_ids, micro_batches=tuple(map(tuple, each))) for each in together]
    return tuple(plans)


def collate_prompts(sequences: Sequence[TrainSequence], device: torch.device) -> tuple[Tensor, Tensor]:
    """Returns the prompts of a micro-batch, right-padded [B, P], and their lengths [B]."""
    prompts, real = padded([s.prompt_ids for s in sequences], 0, device)
    return prompts, real.sum(dim=1)


def collate(sequences: Sequence[TrainSequence], device: torch.device) -> TrainBatch:
    """Returns the tensors of a micro-batch, B = len(sequences), C = the longest completion."""
    completion_ids, real = padded([s.completion_ids for s in sequences], 0, device)

    def of_tokens(known: Iterable[Sequence[float] | None], unknown: float) -> Tensor:
        rows = zip(sequences, known, strict=True)
        whole = [[unknown] * len(s.completion_ids) if own is None else own for s, own in rows]
        return filled(whole, unknown, torch.float32).to(device)

    return TrainBatch(
        completion_ids=completion_ids,
        loss_mask=real.bool(),
        old_logprobs=of_tokens((s.old_logprobs for s in sequences), nan),
        sampler_logprobs=of_tokens((s.sampler_logprobs for s in sequences), nan),
        weights=of_tokens((s.weights for s in sequences), 1.0),
        advantages=torch.tensor([s.advantage for s in sequences], device=device),
    )

"""The reference procedure: how GenRL 0.3.0's trainer (genrl/trainer/grpo_trainer.py) generates and trains."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig

Chat = list[dict[str, str]]

LEARNING_RATE = 1e-6
MINIBATCH = 2
"""Sequences per optimizer step: `minibatch_size` of GenRL's GRPOTrainerConfig."""
EPSILON, EPSILON_HIGH = 0.2, 0.28


class GenrlTrainer:
    """GenRL's operations, in the same order but without GenRL, in float32 on the CPU, with its default settings."""

    def __init__(self, folder: Path, num_generations: int) -> None:
        self.num_generations = num_generations
        self.model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
        self.model.gradient_checkpointing_enable()
        self.model.eval()
        self.tokenizer = AutoTokenizer.from_pretrained(folder, padding_side="left")
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=LEARNING_RATE)

    def generate(self, chats: Sequence[Chat], num_tokens: int) -> list[list[str]]:
        """Texts [tasks][G], every one of `num_tokens` tokens: one pass over the batch of prompts a generation."""
        prompts = self._encode([self._render(chat) for chat in chats])
        config = generation_config(self.tokenizer, num_tokens)
        texts: list[list[str]] = [[] for _ in chats]
        for _ in range(self.num_generations):
            with torch.no_grad():
                rows = self.model.generate(
                    prompts.input_ids, attention_mask=prompts.attention_mask.float(), generation_config=config
                )
            completions = rows[:, prompts.input_ids.shape[1] :]
            for found, text in zip(
                texts, self.tokenizer.batch_decode(completions, skip_special_tokens=True), strict=True
            ):
                found.append(text)
        return texts

    def train(self, chats: Sequence[Chat], texts: Sequence[Sequence[str]], rewards: Tensor) -> list[float]:
        """Learns from texts [tasks][G] with rewards [tasks, G]; returns the loss of every optimizer step."""
        self.model.train()
        prompts = self._encode([self._render(chat) for chat in chats for _ in range(self.num_generations)])
        answers = self._encode([text for group in texts for text in group])  # re-tokenised and padded on the left
        ids = torch.cat([prompts.input_ids, answers.input_ids], dim=1)  # [B, P + C]
        mask = torch.cat([prompts.attention_mask, answers.attention_mask], dim=1).float()
        length = answers.input_ids.shape[1]
        centred = rewards - rewards.mean(dim=1, keepdim=True)
        advantages = (centred / (rewards.std(dim=1, keepdim=True) + 1e-8)).flatten()
        with torch.no_grad():
            old = self._token_logprobs(ids, mask, length)
        losses = []
        order = torch.randperm(len(ids))
        for start in range(0, len(ids), MINIBATCH):
            rows = order[start : start + MINIBATCH]
            self.model.zero_grad()
            logprobs = self._token_logprobs(ids[rows], mask[rows], length)
            loss = _clipped_loss(logprobs, old[rows], advantages[rows], mask[rows, -length:])
            loss.backward()
            self.optimizer.step()
            losses.append(loss.item())
        self.model.eval()
        return losses

    def count_tokens(self, texts: Sequence[Sequence[str]]) -> int:
        """Tokens that `train` makes of the texts."""
        return int(self._encode([text for group in texts for text in group]).attention_mask.sum())

    def _render(self, chat: Chat) -> str:
        return str(self.tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True))

    def _encode(self, texts: list[str]) -> Any:
        return self.tokenizer(text=texts, return_tensors="pt", padding=True)

    def _token_logprobs(self, ids: Tensor, mask: Tensor, length: int) -> Tensor:
        """Log-probs [B, C] of the last `length` tokens, through logits of all of them at once."""
        logits = self.model(input_ids=ids, attention_mask=mask, logits_to_keep=length + 1).logits
        logits = logits[:, :-1][:, -length:].contiguous()
        logits = logits / 1.0  # the sampling temperature; the division makes one more copy
        targets = ids[:, -length:].reshape(-1)
        losses = nn.functional.cross_entropy(logits.flatten(0, 1), targets, reduction="none")
        kept = mask[:, -length:]
        return -losses.view(kept.shape) * kept + (1.0 - kept) * torch.finfo(logits.dtype).min


def generation_config(tokenizer: Any, num_tokens: int) -> GenerationConfig:
    """GenRL's sampling settings, with its end token held back so that every completion is equally long."""
    return GenerationConfig(
        max_new_tokens=num_tokens,
        min_new_tokens=num_tokens,
        do_sample=True,
        temperature=1.0,
        top_p=1.0,
        top_k=None,
        min_p=None,
        repetition_penalty=1.0,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )


def _clipped_loss(logprobs: Tensor, old: Tensor, advantages: Tensor, mask: Tensor) -> Tensor:
    """The clipped policy loss, averaged over the tokens of the minibatch; GenRL also cuts it off at 10 a token."""
    ratio = torch.exp(logprobs - old)
    clipped = ratio.clamp(1 - EPSILON, 1 + EPSILON_HIGH)
    losses = -torch.min(ratio * advantages[:, None], clipped * advantages[:, None]).clamp(-10, 10)
    return (losses * mask).sum() / mask.sum()

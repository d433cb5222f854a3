"""The policy for other threads of a node: they may ask it for an answer, or for the log-probabilities of texts.

A question waits for a lock, which every thread holds that samples, judges or trains with the same weights.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Sequence
from dataclasses import replace

import torch

from codezero.errors import PromptTooLong, Stopping
from codezero.llm.draw import SamplingParams
from codezero.llm.load import LoadedModel
from codezero.llm.logprobs import CompletionScorer
from codezero.llm.padding import padded
from codezero.llm.sample import SampleRequest, sample_groups

MAX_PROMPT_TOKENS = 4096
"""The longest question in tokens: it may be hostile, and memory is planned for learning, which has shorter prompts."""
MAX_BATCH_TOKENS = 6_144
"""The most tokens in a forward pass of several texts, with the prompt for each: as many as in a judge's."""


class QueryPolicy:
    """Answers questions of the services' threads by the current policy, apart from training, without random numbers."""

    def __init__(self, policy: LoadedModel, policy_lock: threading.Lock, *, max_new_tokens: int) -> None:
        # A tokenizer of its own, used under the lock: each call sets whether it splits special tokens, so that threads
        # must not share it, or a question could end its own turn of the chat.
        self._policy = replace(policy, tokenizer=copy.deepcopy(policy.tokenizer))
        self._policy_lock, self._max_new_tokens = policy_lock, max_new_tokens
        self._closed = False

    def close(self) -> None:
        """Makes all questions raise Stopping from now on, also in the middle of an answer: an interpreter that ends
        while a thread is in torch's code may abort."""
        self._closed = True

    def answer(self, question: str) -> str:
        """Returns the greedy reply to a chat that asks `question`. Raises PromptTooLong, Stopping."""
        with self._policy_lock:
            self._require_open()
            ids = self._policy.encode_chat([{"role": "user", "content": question}])
            self._require_room(ids, self._max_new_tokens)
            request = SampleRequest(
                prompts=[ids],
                num_generations=1,
                params=SamplingParams(max_new_tokens=self._max_new_tokens, temperature=0.0),
                end_ids=self._policy.end_ids,
                pad_id=self._policy.pad_id,
                on_step=lambda done, total: self._require_open(),
            )
            ((sampled,),) = sample_groups(self._policy.model, request)
            shown = [id_ for id_ in sampled.completion_ids if id_ not in self._policy.end_ids]
            text: str = self._policy.tokenizer.decode(shown, skip_special_tokens=True)
        return text

    def token_logprobs(
        self, messages: Sequence[dict[str, str]], opening: str, completions: Sequence[str]
    ) -> list[list[float]]:
        """Returns log p of each token of each completion, each of which continues a reply to the chat that begins with
        `opening`.

        Raises PromptTooLong, Stopping."""
        with self._policy_lock, torch.no_grad():
            self._require_open()
            prompt = self._policy.encode_chat(messages) + self._policy.encode_text(opening)
            rows = [self._policy.encode_text(completion) for completion in completions]
            return self._score(prompt, rows)

    def _score(self, prompt: list[int], rows: Sequence[Sequence[int]]) -> list[list[float]]:
        width, device = max(map(len, rows)), self._policy.model.device
        self._require_room(prompt, width)
        ids, mask = padded(rows, self._policy.pad_id, device)
        scorer = CompletionScorer(self._policy.model, torch.tensor(prompt, device=device))
        size = max(1, MAX_BATCH_TOKENS // (len(prompt) + width))
        found: list[list[float]] = []
        for start in range(0, len(rows), size):
            self._require_open()
            found += scorer.logprobs(ids[start : start + size], mask[start : start + size].bool()).tolist()
        return [line[: len(tokens)] for line, tokens in zip(found, rows, strict=True)]

    def _require_open(self) -> None:
        if self._closed:
            raise Stopping("the node ends: its policy is not asked any more")

    def _require_room(self, ids: list[int], room: int) -> None:
        if len(ids) > MAX_PROMPT_TOKENS or len(ids) + room > self._policy.context_length:
            raise PromptTooLong(
                f"a question of {len(ids)} tokens is too long for {self._policy.name} with {room} to follow: left alone"
            )

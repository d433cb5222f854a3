"""The frozen model's opinion, from transformers in this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Protocol

import torch

from codezero.config import EvaluatorConfig, VerdictMode
from codezero.errors import EvaluatorError
from codezero.llm.choose import choice_probabilities
from codezero.llm.load import LoadedModel
from codezero.llm.sample import SamplingParams, sample_groups
from codezero.prompts import evaluator as prompt
from codezero.types import Task

MAX_PROMPT_TOKENS = 6_144
"""Longest prompt judged. The longest statement and tests of a contest that we accept ourselves, dense in numbers, come
to about 4,500; a peer's task could have five times as many, in rare characters, and keep a CPU busy for minutes."""
MAX_BATCH_TOKENS = 16_384
"""Most tokens in a forward pass, padding included: some 1.6 GiB with a 0.5B judge, counting its MLP, cache and mask;
learning, which the memory plan is made for, takes more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Opinion:
    """What a judge says of one solution. `p_correct` is None when its reply has no verdict."""

    p_correct: float | None
    reply: str = ""


class Judge(Protocol):
    def judge(self, solutions: Sequence[tuple[Task, str]]) -> list[Opinion]:
        """An opinion on each (task, code). Raises EvaluatorError when the judge is out of order."""
        ...


Frozen = Callable[[], AbstractContextManager[object]]


class TransformersJudge:
    """A frozen causal language model as judge: by the logits of Yes and No, or by a written JSON verdict."""

    def __init__(self, model: LoadedModel, config: EvaluatorConfig, frozen: Frozen = nullcontext) -> None:
        """Judges inside `frozen()`: where the judge shares its weights with a policy, that puts adapters aside."""
        self._model, self._config, self._frozen = model, config, frozen
        self._choices = [model.encode_text(word)[0] for word in (prompt.YES, prompt.NO)]
        if self._choices[0] == self._choices[1]:
            raise EvaluatorError(f"{model.name} cannot tell Yes from No by one token: set evaluator.verdict=generate")

    def judge(self, solutions: Sequence[tuple[Task, str]]) -> list[Opinion]:
        """Opinions in the order of `solutions`, at most `evaluator.batch_size` in one forward pass."""
        by_logit = self._config.verdict is VerdictMode.logit
        messages = prompt.yes_no_messages if by_logit else prompt.json_messages
        prompts = [self._model.encode_chat(messages(task.question, task.tests, code)) for task, code in solutions]
        context = self._model.context_length - (1 if by_logit else self._config.max_new_tokens)
        room = min(context, MAX_PROMPT_TOKENS)
        order = sorted((i for i, ids in enumerate(prompts) if len(ids) <= room), key=lambda i: len(prompts[i]))
        opinions = [Opinion(p_correct=None, reply=f"longer than the judge's {room} tokens")] * len(prompts)
        longest = max((len(prompts[i]) for i in order), default=1)
        size = max(1, min(self._config.batch_size, MAX_BATCH_TOKENS // longest))
        try:
            with self._frozen():
                for start in range(0, len(order), size):
                    rows = order[start : start + size]
                    batch = [prompts[i] for i in rows]
                    found = self._by_logit(batch) if by_logit else self._by_writing(batch)
                    for i, opinion in zip(rows, found, strict=True):
                        opinions[i] = opinion
        except torch.OutOfMemoryError as error:
            raise EvaluatorError("the judge ran out of device memory: lower evaluator.batch_size") from error
        return opinions

    def _by_logit(self, batch: list[list[int]]) -> list[Opinion]:
        rows = choice_probabilities(self._model.model, batch, self._choices, pad_id=self._model.pad_id)
        # A probability that is not finite compares false and so becomes no verdict.
        return [Opinion(p_correct=yes if 0.0 <= yes <= 1.0 else None, reply=f"P(Yes)={yes:.3f}") for yes, _ in rows]

    def _by_writing(self, batch: list[list[int]]) -> list[Opinion]:
        params = SamplingParams(max_new_tokens=self._config.max_new_tokens, temperature=0.0)
        model = self._model
        groups = sample_groups(model.model, batch, 1, params, end_ids=model.end_ids, pad_id=model.pad_id)
        replies = [model.tokenizer.decode(group[0].completion_ids, skip_special_tokens=True) for group in groups]
        verdicts = [prompt.parse_json(reply) for reply in replies]
        return [
            Opinion(p_correct=None if verdict is None else float(verdict), reply=reply)
            for verdict, reply in zip(verdicts, replies, strict=True)
        ]

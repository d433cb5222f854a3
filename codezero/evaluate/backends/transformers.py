"""A judge that runs in this process with transformers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from os.path import commonprefix

from codezero.config import EvaluatorConfig, VerdictMode
from codezero.errors import EvaluatorError
from codezero.evaluate.backends.base import MAX_PROMPT_TOKENS, Chat, Review
from codezero.llm.choose import choice_probabilities
from codezero.llm.device import is_out_of_memory
from codezero.llm.load import LoadedModel
from codezero.llm.review import ReviewedAnswer, review_answers
from codezero.llm.sample import SamplingParams, sample_groups
from codezero.prompts.evaluator import NO, YES

MAX_BATCH_TOKENS = MAX_PROMPT_TOKENS
"""The most tokens of a forward pass, padding included. They take some 0.7 GiB with a 0.5B judge: its MLP, cache and
mask. Learning, for which memory is planned, takes as much, and larger passes save no time per token on a CPU."""
ACCELERATOR_FACTOR = 4
"""The factor on these tokens on an accelerator, where learning is planned with more."""
ACCELERATOR_ROWS = 16
"""The factor on `evaluator.batch_size` on an accelerator."""

Frozen = Callable[[], AbstractContextManager[object]]


class TransformersBackend:
    """A judge (backends.base.JudgeBackend) in this process. At most `evaluator.batch_size` chats share a forward pass;
    on an accelerator 16 times as many, also of answers to different prompts."""

    def __init__(self, model: LoadedModel, config: EvaluatorConfig, frozen: Frozen = nullcontext) -> None:
        """`frozen` returns the context in which the judge answers: it disables the adapters of a policy that shares
        the judge's weights."""
        self._model, self._config, self._frozen = model, config, frozen
        self._packs = model.model.device.type != "cpu"
        self._most_rows = config.batch_size * (ACCELERATOR_ROWS if self._packs else 1)
        self._most_tokens = MAX_BATCH_TOKENS * (ACCELERATOR_FACTOR if self._packs else 1)
        self.name = model.name

    def check(self) -> None:
        """Raises EvaluatorError: `evaluator.verdict` needs choices that differ in their first token, and these do
        not."""
        if self._config.verdict is not VerdictMode.generate:
            self._first_tokens((YES, NO))

    def choose(self, chats: Sequence[Chat], choices: Sequence[str]) -> list[tuple[float, ...] | None]:
        first = self._first_tokens(choices)
        model = self._model
        answers: list[tuple[float, ...] | None] = [None] * len(chats)
        with self._in_order():
            for rows, batch in self._batches(chats, 1):
                found = choice_probabilities(model.model, batch, first, pad_id=model.pad_id)
                for i, probabilities in zip(rows, found, strict=True):
                    answers[i] = probabilities
        return answers

    def review(self, chats: Sequence[Chat], choices: Sequence[str]) -> list[Review | None]:
        """Implements backends.base.Reviewer. Answers to one prompt share its computation, in any order; on an
        accelerator answers to all prompts share the computation of their common beginning."""
        first = self._first_tokens(choices)
        model = self._model
        found: list[Review | None] = [None] * len(chats)
        by_prompt: dict[tuple[int, ...], list[tuple[int, ReviewedAnswer]]] = {}
        for i, chat in enumerate(chats):
            prompt, answer = self._split(chat)
            if len(prompt) + len(answer.ids) + len(answer.then) <= min(model.context_length, MAX_PROMPT_TOKENS):
                by_prompt.setdefault(prompt, []).append((i, answer))
        if self._packs:
            by_prompt = _by_common_beginning(by_prompt)
        with self._in_order():
            for prompt, rows in by_prompt.items():
                size = max(1, min(self._most_rows, self._most_tokens // _longest(prompt, rows)))
                for start in range(0, len(rows), size):
                    batch = rows[start : start + size]
                    answers = [answer for _, answer in batch]
                    reviews = review_answers(model.model, prompt, answers, first, pad_id=model.pad_id)
                    for (i, _), (logprobs, chosen) in zip(batch, reviews, strict=True):
                        found[i] = Review(logprobs=logprobs, choices=chosen)
        return found

    def _split(self, chat: Chat) -> tuple[tuple[int, ...], ReviewedAnswer]:
        """Returns the tokens of the prompt before a chat's last answer, and that answer with what follows. Raises
        EvaluatorError: the chat template changes earlier turns."""
        model = self._model
        at = max(i for i, message in enumerate(chat) if message["role"] == "assistant")
        prompt, whole = model.encode_chat(chat[:at]), model.encode_chat(chat)
        answer = model.encode_text(chat[at]["content"])
        end = len(prompt) + len(answer)
        if whole[:end] != prompt + answer:
            raise EvaluatorError(f"the chat template of {self.name} changes earlier turns: set evaluator.verdict=logit")
        return tuple(prompt), ReviewedAnswer(ids=answer, then=whole[end:])

    def write(self, chats: Sequence[Chat], max_new_tokens: int) -> list[str | None]:
        params = SamplingParams(max_new_tokens=max_new_tokens, temperature=0.0)
        model = self._model
        answers: list[str | None] = [None] * len(chats)
        with self._in_order():
            for rows, batch in self._batches(chats, max_new_tokens):
                groups = sample_groups(model.model, batch, 1, params, end_ids=model.end_ids, pad_id=model.pad_id)
                for i, group in zip(rows, groups, strict=True):
                    answers[i] = model.tokenizer.decode(group[0].completion_ids, skip_special_tokens=True)
        return answers

    def _first_tokens(self, choices: Sequence[str]) -> list[int]:
        found = [self._model.encode_text(choice)[0] for choice in choices]
        if len(set(found)) < len(found):
            raise EvaluatorError(
                f"{self.name} cannot tell {' from '.join(choices)} by one token: set evaluator.verdict=generate"
            )
        return found

    def _batches(self, chats: Sequence[Chat], num_new: int) -> Iterator[tuple[list[int], list[list[int]]]]:
        """Yields the indices of `chats` that share a forward pass, and their token ids, by length. Too long ones are
        left out."""
        prompts = [self._model.encode_chat(chat) for chat in chats]
        room = min(self._model.context_length - num_new, MAX_PROMPT_TOKENS)
        order = sorted((i for i, ids in enumerate(prompts) if len(ids) <= room), key=lambda i: len(prompts[i]))
        longest = max((len(prompts[i]) for i in order), default=1)
        size = max(1, min(self._most_rows, self._most_tokens // longest))
        for start in range(0, len(order), size):
            rows = order[start : start + size]
            yield rows, [prompts[i] for i in rows]

    @contextmanager
    def _in_order(self) -> Iterator[None]:
        try:
            with self._frozen():
                yield
        except RuntimeError as error:
            if not is_out_of_memory(error):
                raise
            raise EvaluatorError("the judge ran out of device memory: lower evaluator.batch_size") from error


_Rows = list[tuple[int, ReviewedAnswer]]
"""Answers to one prompt, each with its index among all answers."""


def _by_common_beginning(by_prompt: Mapping[tuple[int, ...], _Rows]) -> dict[tuple[int, ...], _Rows]:
    """Returns the answers by the beginning that all prompts have in common, sorted by length; the rest of a prompt
    becomes a part of its answers. Without a common beginning the result is the argument."""
    shared = commonprefix([list(prompt) for prompt in by_prompt])  # noqa: RUF071 - these are ids, not paths
    if not shared:
        return dict(by_prompt)
    rows = [
        (i, replace(answer, before=prompt[len(shared) :]))
        for prompt, members in by_prompt.items()
        for i, answer in members
    ]
    return {tuple(shared): sorted(rows, key=lambda row: _length(row[1]))}


def _longest(prompt: Sequence[int], rows: _Rows) -> int:
    return len(prompt) + max(_length(answer) for _, answer in rows)


def _length(answer: ReviewedAnswer) -> int:
    return len(answer.before) + len(answer.ids) + len(answer.then)

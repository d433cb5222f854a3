"""A judge that runs in this process with transformers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Sized
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TypeVar

from codezero.config import EvaluatorConfig, VerdictMode
from codezero.errors import EvaluatorError
from codezero.evaluate.backends.base import MAX_PROMPT_TOKENS, Chat, Review
from codezero.llm.choose import choice_probabilities
from codezero.llm.device import is_out_of_memory
from codezero.llm.draw import SamplingParams
from codezero.llm.load import LoadedModel
from codezero.llm.review import ReviewedAnswer, review_answers
from codezero.llm.sample import SampleRequest, sample_groups
from codezero.prompts.evaluator import NO, YES

MAX_BATCH_TOKENS = MAX_PROMPT_TOKENS
"""The most tokens of a forward pass, padding included. They take some 0.7 GiB with a 0.5B judge: its MLP, cache and
mask. Learning, for which memory is planned, takes as much, and larger passes save no time per token on a CPU."""
ACCELERATOR_FACTOR = 4
"""The factor on these tokens on an accelerator, where learning is planned with more."""
ACCELERATOR_ROWS = 16
"""The factor on `evaluator.batch_size` on an accelerator."""

Row = TypeVar("Row", bound=Sized)
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
        self.at_once = self._most_rows if self._packs else 1
        """The number of open solutions, of any groups, that fill a forward pass. It is one on a CPU, which gains
        nothing by prompts that differ: there a group is judged while the workers read the next."""
        self.name = model.name

    def check(self) -> None:
        """Raises EvaluatorError: `evaluator.verdict` needs choices that differ in their first token, and these do
        not."""
        if self._config.verdict is not VerdictMode.generate:
            self._first_tokens()

    def choose(self, chats: Sequence[Chat]) -> list[tuple[float, float] | None]:
        first = self._first_tokens()
        model = self._model
        answers: list[tuple[float, float] | None] = [None] * len(chats)
        with self._answering():
            for rows, batch in self._batches(chats, 1):
                found = choice_probabilities(model.model, batch, first, pad_id=model.pad_id)
                for i, (yes, no) in zip(rows, found, strict=True):
                    answers[i] = yes, no
        return answers

    def review(self, chats: Sequence[Chat]) -> list[Review | None]:
        """Implements backends.base.Reviewer. Answers to one prompt share its computation, in any order; on an
        accelerator answers to all prompts share forward passes."""
        first = self._first_tokens()
        model = self._model
        found: list[Review | None] = [None] * len(chats)
        by_prompt: dict[tuple[int, ...], list[tuple[int, ReviewedAnswer]]] = {}
        for i, chat in enumerate(chats):
            answer = self._split(chat)
            if len(answer) <= min(model.context_length, MAX_PROMPT_TOKENS):
                by_prompt.setdefault(() if self._packs else answer.prompt, []).append((i, answer))
        with self._answering():
            for rows in by_prompt.values():
                if self._packs:
                    rows.sort(key=lambda row: len(row[1]))
                for batch in self._fitting(rows):
                    reviews = review_answers(model.model, [one for _, one in batch], first, pad_id=model.pad_id)
                    for (i, _), (logprobs, chosen) in zip(batch, reviews, strict=True):
                        found[i] = Review(logprobs=logprobs, choices=chosen)
        return found

    def _split(self, chat: Chat) -> ReviewedAnswer:
        """Returns a chat's last answer, with the prompt before it and what follows. Raises EvaluatorError: the chat
        template changes earlier turns."""
        model = self._model
        at = max(i for i, message in enumerate(chat) if message["role"] == "assistant")
        prompt, whole = model.encode_chat(chat[:at]), model.encode_chat(chat)
        answer = model.encode_text(chat[at]["content"])
        end = len(prompt) + len(answer)
        if whole[:end] != prompt + answer:
            raise EvaluatorError(f"the chat template of {self.name} changes earlier turns: set evaluator.verdict=logit")
        return ReviewedAnswer(prompt=tuple(prompt), ids=answer, then=whole[end:])

    def write(self, chats: Sequence[Chat], max_new_tokens: int) -> list[str | None]:
        params = SamplingParams(max_new_tokens=max_new_tokens, temperature=0.0)
        model = self._model
        answers: list[str | None] = [None] * len(chats)
        with self._answering():
            for rows, batch in self._batches(chats, max_new_tokens):
                request = SampleRequest(
                    prompts=batch, num_generations=1, params=params, end_ids=model.end_ids, pad_id=model.pad_id
                )
                for i, group in zip(rows, sample_groups(model.model, request), strict=True):
                    answers[i] = model.tokenizer.decode(group[0].completion_ids, skip_special_tokens=True)
        return answers

    def _first_tokens(self) -> tuple[int, int]:
        yes, no = (self._model.encode_text(choice)[0] for choice in (YES, NO))
        if yes == no:
            raise EvaluatorError(
                f"{self.name} cannot tell {YES} from {NO} by one token: set evaluator.verdict=generate"
            )
        return yes, no

    def _batches(self, chats: Sequence[Chat], num_new: int) -> Iterator[tuple[list[int], list[list[int]]]]:
        """Yields the indices of `chats` that share a forward pass, and their token ids, by length. Too long ones are
        left out."""
        prompts = [self._model.encode_chat(chat) for chat in chats]
        room = min(self._model.context_length - num_new, MAX_PROMPT_TOKENS)
        order = sorted((i for i, ids in enumerate(prompts) if len(ids) <= room), key=lambda i: len(prompts[i]))
        for batch in self._fitting([(i, prompts[i]) for i in order]):
            yield [i for i, _ in batch], [ids for _, ids in batch]

    def _fitting(self, rows: Sequence[tuple[int, Row]]) -> Iterator[list[tuple[int, Row]]]:
        """Yields the rows, in order, in batches that a forward pass takes with all rows as long as the longest; one row
        alone may be longer."""
        batch: list[tuple[int, Row]] = []
        longest = 0
        for row in rows:
            longest = max(longest, len(row[1]))
            if batch and (len(batch) == self._most_rows or (len(batch) + 1) * longest > self._most_tokens):
                yield batch
                batch, longest = [], len(row[1])
            batch.append(row)
        if batch:
            yield batch

    @contextmanager
    def _answering(self) -> Iterator[None]:
        """Returns the context in which the judge answers. Raises EvaluatorError: the device runs out of memory."""
        try:
            with self._frozen():
                yield
        except RuntimeError as error:
            if not is_out_of_memory(error):
                raise
            raise EvaluatorError("the judge ran out of device memory: lower evaluator.batch_size") from error

"""Asks a model for test cases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from codezero.llm.draw import SamplingParams
from codezero.llm.load import LoadedModel
from codezero.llm.sample import SampleGroups, SampleRequest, StepCallback, restore_generator
from codezero.ports import Progress
from codezero.prompts import verifier as prompt
from codezero.types import SampledTokens

MAX_NEW_TOKENS = 128
"""The most tokens of an answer; two cases of MBPP have 60 on average."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A solution to write cases for."""

    problem: str
    """The question that the solution answers, with the tests that it shows."""
    code: str
    function: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseAnswer:
    """A model's answer to a request for cases."""

    cases: tuple[str, ...] = ()
    """At most `prompt.NUM_CASES` cases, not checked yet."""
    tokens: SampledTokens | None = None
    """The sampled tokens, after a prompt that ends with the answer's prefix; None if the prompt was too long."""


def write_cases(
    model: LoadedModel,
    subjects: Sequence[Subject],
    num_answers: int,
    *,
    temperature: float,
    generator: torch.Generator,
    sample: SampleGroups,
    on_step: StepCallback | None,
) -> list[list[CaseAnswer]]:
    """Returns the model's answers for each subject; they are empty if the prompt is too long for the model."""
    found = [[CaseAnswer()] * num_answers for _ in subjects]
    prompts: dict[int, list[int]] = {}
    for number, one in enumerate(subjects):
        chat = prompt.messages(one.problem, one.code, one.function)
        ids = model.encode_chat(chat, thinking=False) + model.encode_text(prompt.prefix(one.function))
        if len(ids) + MAX_NEW_TOKENS <= model.context_length:
            prompts[number] = ids
    request = SampleRequest(
        prompts=list(prompts.values()),
        num_generations=num_answers,
        params=SamplingParams(max_new_tokens=MAX_NEW_TOKENS, temperature=temperature),
        end_ids=model.end_ids,
        pad_id=model.pad_id,
        generator=generator,
        on_step=on_step,
    )
    for number, group in zip(prompts, sample(model.model, request), strict=True):
        begun = prompt.prefix(subjects[number].function)
        texts = (model.tokenizer.decode(one.completion_ids, skip_special_tokens=True) for one in group)
        answers = zip(texts, group, strict=True)
        found[number] = [CaseAnswer(cases=prompt.parse(begun + text), tokens=tokens) for text, tokens in answers]
    return found


class CaseWriter:
    """Writes test cases. Its random state is its own, so that a resumed node writes alike."""

    def __init__(
        self,
        model: LoadedModel,
        *,
        num_generations: int,
        temperature: float,
        seed: int,
        progress: Progress,
        sample: SampleGroups,
    ) -> None:
        self._model, self._num_generations, self._temperature = model, num_generations, temperature
        self._progress, self._sample = progress, sample
        self._generator = torch.Generator(device=model.model.device).manual_seed(seed)

    def write(self, subjects: Sequence[Subject]) -> list[list[CaseAnswer]]:
        """Returns the answers about each subject. Raises RolloutError: the accelerator's memory is too small."""
        return write_cases(
            self._model,
            subjects,
            self._num_generations,
            temperature=self._temperature,
            generator=self._generator,
            sample=self._sample,
            on_step=lambda done, total: self._progress("cases", done, total),
        )

    def state_dict(self) -> dict[str, Any]:
        return {"generator": self._generator.get_state()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        restore_generator(self._generator, state["generator"])

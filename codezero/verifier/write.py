"""Asks a model for test cases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from codezero.llm.load import LoadedModel
from codezero.llm.sample import SamplingParams, StepCallback, sample_groups
from codezero.prompts import verifier as prompt

MAX_NEW_TOKENS = 128
"""The most tokens of an answer; two cases of MBPP have 60 on average."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A solution to write cases for."""

    problem: str
    """The question that the solution answers, with the tests that it shows."""
    code: str
    function: str


def write_cases(
    model: LoadedModel,
    subjects: Sequence[Subject],
    num_answers: int,
    *,
    temperature: float,
    generator: torch.Generator,
    on_step: StepCallback | None = None,
) -> list[list[tuple[str, ...]]]:
    """Returns the cases of each of the model's answers for each subject, at most `prompt.NUM_CASES` an answer, not
    checked yet; none if the prompt is too long for it."""
    found: list[list[tuple[str, ...]]] = [[()] * num_answers for _ in subjects]
    prompts: dict[int, list[int]] = {}
    for number, one in enumerate(subjects):
        chat = prompt.messages(one.problem, one.code, one.function)
        ids = model.encode_chat(chat, thinking=False) + model.encode_text(prompt.prefix(one.function))
        if len(ids) + MAX_NEW_TOKENS <= model.context_length:
            prompts[number] = ids
    answers = sample_groups(
        model.model,
        list(prompts.values()),
        num_answers,
        SamplingParams(max_new_tokens=MAX_NEW_TOKENS, temperature=temperature),
        end_ids=model.end_ids,
        pad_id=model.pad_id,
        generator=generator,
        on_step=on_step,
    )
    for number, group in zip(prompts, answers, strict=True):
        begun = prompt.prefix(subjects[number].function)
        texts = (model.tokenizer.decode(one.completion_ids, skip_special_tokens=True) for one in group)
        found[number] = [prompt.parse(begun + text) for text in texts]
    return found

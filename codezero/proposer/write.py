"""Writes problems: a batch of answers at a level, each to its own idea, and their parsed content."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from codezero.config import ProposerConfig, Reference
from codezero.prompts import proposer as prompt
from codezero.prompts.ideas import SHAPES, TOPICS, VERBS
from codezero.proposer.models import Model
from codezero.types import SampledTokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A model's answer to a request for a problem, not checked yet."""

    level: int
    """The requested level, 1 (beginner) to 5 (expert)."""
    raw: str
    """The whole answer with its prefix; the first answer if there was a repair."""
    answer: prompt.ParsedProblem | None
    """The parsed problem; None if the answer cannot be parsed."""
    tokens: SampledTokens | None = None
    """The tokens of `raw` to learn from: those that the model sampled, after a prompt that ends with the prefix. None
    for a model behind a server, and after a repair, since `raw` has not earned what the problem earns."""


class Writer:
    """Draws an idea for each problem and asks the model to write it. The same seed gives the same ideas."""

    def __init__(self, model: Model, config: ProposerConfig, *, seed: int) -> None:
        self._model, self._config = model, config
        self._ideas = torch.Generator().manual_seed(seed)

    def write(self, level: int, count: int) -> tuple[Draft, ...]:
        """Returns `count` drafts of a level, 1 to 5. Raises ProposerError: the model cannot be asked."""
        solution = self._config.reference is not Reference.none
        ideas = [self._idea() for _ in range(count)]
        chats = [prompt.messages(level, idea, solution=solution) for idea in ideas]
        written = self._model.answer(chats, [prompt.prefix(idea) for idea in ideas])
        answers = [prompt.parse_answer(one.text) for one in written]
        repaired = self._repair([one.text for one, read in zip(written, answers, strict=True) if read is None])
        drafts = []
        for one, read in zip(written, answers, strict=True):
            second = repaired.pop(0) if read is None and repaired else None
            tokens = one.tokens if second is None else None
            drafts.append(Draft(level=level, raw=one.text, answer=read or second, tokens=tokens))
        return tuple(drafts)

    def _repair(self, texts: Sequence[str]) -> list[prompt.ParsedProblem | None]:
        """Asks the model to reformat answers that cannot be parsed; returns the parsed ones, or [] if repair is off."""
        if not self._config.repair or not texts:
            return []
        solution = self._config.reference is not Reference.none
        chats = [prompt.repair_messages(text, solution=solution) for text in texts]
        return [prompt.parse_answer(one.text) for one in self._model.answer(chats, [prompt.REPAIR_PREFIX] * len(chats))]

    def _idea(self) -> prompt.Idea:
        def draw(phrases: Sequence[str]) -> str:
            return phrases[int(torch.randint(len(phrases), (), generator=self._ideas))]

        return prompt.Idea(topic=draw(TOPICS), shape=draw(SHAPES), verb=draw(VERBS))

    def state_dict(self) -> dict[str, Any]:
        return {"ideas": self._ideas.get_state(), "model": dict(self._model.state_dict())}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._ideas.set_state(state["ideas"])
        self._model.load_state_dict(state["model"])

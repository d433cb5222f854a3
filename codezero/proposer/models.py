"""Models that answer a proposer's chats, from weights in this process or behind a server."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import torch

from codezero.config import ProposerConfig
from codezero.errors import ProposerError
from codezero.llm.chat_server import ChatServer
from codezero.llm.client import Purpose
from codezero.llm.draw import SamplingParams
from codezero.llm.load import LoadedModel
from codezero.llm.sample import SampleRequest, restore_generator, sample_groups
from codezero.llm.within_memory import WithinMemory
from codezero.ports import Progress
from codezero.types import SampledTokens

PROPOSING = Purpose(who="the proposer's model", section="proposer", error=ProposerError)

Chat = list[dict[str, str]]


@dataclass(frozen=True, slots=True)
class Written:
    """A model's answer, and the tokens that it sampled, if they are known."""

    text: str
    tokens: SampledTokens | None = None


class LocalModel:
    """A model in this process. It has its own random generator, so that a resumed proposer writes the same."""

    def __init__(
        self,
        model: LoadedModel,
        config: ProposerConfig,
        *,
        seed: int,
        progress: Progress,
        weights: Callable[[], AbstractContextManager[object]],
    ) -> None:
        """`weights` returns a context in which the model has the weights to write with."""
        self._model, self._config, self._progress, self._weights = model, config, progress, weights
        self._generator = torch.Generator(device=model.model.device).manual_seed(seed)
        self._sample = WithinMemory(sample_groups)
        self.name = model.name

    def answer(self, chats: Sequence[Chat], prefixes: Sequence[str]) -> list[Written]:
        """Samples the answers. Raises ProposerError: the context is too small for a prompt; RolloutError: the device's
        memory does not hold a single answer."""
        model, config = self._model, self._config
        prompts = [
            model.encode_chat(chat, thinking=False) + model.encode_text(prefix)
            for chat, prefix in zip(chats, prefixes, strict=True)
        ]
        limit = model.context_length - config.max_new_tokens
        if max(map(len, prompts), default=0) > limit:
            raise ProposerError(
                f"{self.name} has room for {limit} tokens beside proposer.max_new_tokens={config.max_new_tokens}, too "
                "few for the prompt: lower it, or use another model"
            )
        request = SampleRequest(
            prompts=prompts,
            num_generations=1,
            params=SamplingParams(
                max_new_tokens=config.max_new_tokens, temperature=config.temperature, top_p=config.top_p
            ),
            end_ids=model.end_ids,
            pad_id=model.pad_id,
            generator=self._generator,
            on_step=lambda done, total: self._progress("write", done, total),
        )
        with self._weights():
            groups = self._sample(model.model, request)
        return [
            Written(prefix + self._text(group[0]), group[0]) for prefix, group in zip(prefixes, groups, strict=True)
        ]

    def _text(self, tokens: SampledTokens) -> str:
        text: str = self._model.tokenizer.decode(tokens.completion_ids, skip_special_tokens=True)
        return text

    def state_dict(self) -> Mapping[str, Any]:
        return {"generator": self._generator.get_state()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        if state:  # empty if a server wrote before
            restore_generator(self._generator, state["generator"])


class ServedModel:
    """A model behind a chat server. Prefixes are not used, since the protocol has none. The server samples, so there is
    no state."""

    def __init__(self, config: ProposerConfig) -> None:
        """Raises ProposerError: URL, key or model name cannot be used."""
        self._config, self._server = config, ChatServer.from_config(config, PROPOSING)
        self.name = config.model

    def answer(self, chats: Sequence[Chat], prefixes: Sequence[str]) -> list[Written]:
        """Asks the server. An answer that it refuses is empty. Raises ProposerError: the server cannot be asked."""
        config = self._config
        choices = self._server.ask(
            chats, max_tokens=config.max_new_tokens, temperature=config.temperature, top_p=config.top_p
        )
        return [Written((choice and choice.message.content) or "") for choice in choices]

    def state_dict(self) -> Mapping[str, Any]:
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        pass


Model = LocalModel | ServedModel

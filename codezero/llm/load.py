"""Loads a model and its tokenizer from a prepared folder, ready for sampling and training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from huggingface_hub.errors import StrictDataclassError
from jinja2 import TemplateError
from safetensors import SafetensorError

from codezero.errors import ModelError, first_line
from codezero.llm import onednn
from codezero.llm.store import HUB_ID

FAULTS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    ImportError,
    LookupError,
    OSError,
    RuntimeError,
    SafetensorError,
    StrictDataclassError,
    TemplateError,
    TypeError,
    ValueError,
)
"""Errors that transformers raises for files of a model that are damaged, of another kind, or written to do harm."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedModel:
    """A causal language model with its tokenizer."""

    name: str
    model: Any
    tokenizer: Any
    end_ids: tuple[int, ...]
    """All token ids that end an answer."""
    context_length: int
    """The most tokens of prompt and completion together."""

    @property
    def public_name(self) -> str:
        """The name for other nodes: of a local folder without its path, which may have the user's name."""
        is_hub_id = HUB_ID.fullmatch(self.name) and not Path(self.name).expanduser().is_dir()
        return self.name if is_hub_id else self.name.rstrip("/").rpartition("/")[2]

    @property
    def pad_id(self) -> int:
        pad = self.tokenizer.pad_token_id
        return int(self.end_ids[0] if pad is None else pad)

    def encode_chat(self, messages: Sequence[dict[str, str]], *, thinking: bool = True) -> list[int]:
        """Returns the ids of a chat prompt, up to the beginning of the assistant's answer. With `thinking=False` models
        such as Qwen3, whose template has that switch, answer without thinking.

        The chat template is rendered as text around the messages; special tokens inside messages are encoded as plain
        text, so that a question or a solution cannot end its own turn. Raises ModelError: the template refuses or
        leaves out a message.
        """
        template = self.tokenizer.apply_chat_template
        marks = [f"\x00{i}\x00" for i in range(len(messages))]
        framed = [{**message, "content": mark} for message, mark in zip(messages, marks, strict=True)]
        options = {} if thinking else {"enable_thinking": False}
        try:
            rest: str = template(framed, add_generation_prompt=True, tokenize=False, **options)
        except FAULTS as error:
            roles = ", ".join(message["role"] for message in messages)
            raise ModelError(
                f"the chat template of {self.name} does not take a chat of {roles}: {first_line(error)}: use another "
                "model"
            ) from error
        ids: list[int] = []
        for message, mark in zip(messages, marks, strict=True):
            before, found, rest = rest.partition(mark)
            if not found:
                raise ModelError(
                    f"the chat template of {self.name} leaves out a {message['role']} message: use another model"
                )
            ids += self._encode(before, special=True) + self._encode(message["content"], special=False)
        return ids + self._encode(rest, special=True)

    def encode_text(self, text: str) -> list[int]:
        """Returns the ids of untrusted text; special tokens spelled out in it stay plain text."""
        return self._encode(text, special=False)

    def _encode(self, text: str, *, special: bool) -> list[int]:
        return list(self.tokenizer(text, add_special_tokens=False, split_special_tokens=not special).input_ids)


def load_model(name: str, folder: Path, device: torch.device, dtype: torch.dtype) -> LoadedModel:
    """Loads weights and tokenizer from `folder` onto the device, in eval mode.

    Raises ModelError: the folder is damaged, is not a causal language model, or its tokenizer has no chat template.
    """
    from transformers import AutoModelForCausalLM, AutoTokenizer

    try:
        # Unless it is told not to, transformers asks on the terminal whether to run code that a repository names.
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, use_safetensors=True, trust_remote_code=False)
        tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
        context_length = int(model.config.max_position_embeddings)
    except FAULTS as error:
        raise ModelError(
            f"cannot load {name} from {folder}: {first_line(error)} (is it a causal language model in "
            "safetensors format?)"
        ) from error
    if not tokenizer.chat_template:
        raise ModelError(f"the tokenizer of {name} in {folder} has no chat template: use an -Instruct model")
    model.to(device).eval()
    if device.type == "cpu" and onednn.is_available():
        onednn.route_linears(model)
    return LoadedModel(
        name=name,
        model=model,
        tokenizer=tokenizer,
        end_ids=_end_ids(model, tokenizer),
        context_length=context_length,
    )


def _end_ids(model: Any, tokenizer: Any) -> tuple[int, ...]:
    """Returns the tokenizer's end token, then those of the generation config. Raises ModelError: there is none."""
    configured = model.generation_config.eos_token_id
    extra = configured if isinstance(configured, list) else [configured]
    ids = dict.fromkeys(i for i in [tokenizer.eos_token_id, *extra] if i is not None)
    if not ids:
        raise ModelError(f"{model.config._name_or_path} names no end token, so answers cannot end: use another model")
    return tuple(ids)

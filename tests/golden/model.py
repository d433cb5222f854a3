"""A tiny model whose every choice is made by design, so that it samples the same ids on any CPU.

A random model leaves nearly equal chances, and a difference in the seventh digit can turn a draw. This one knows whole
lines as tokens and says after each which may follow, all others being e**16 times less likely.
"""

from __future__ import annotations

import math
from pathlib import Path

import torch
from tokenizers import AddedToken

from tests.builders import tiny_model, tiny_tokenizer

OPEN, PLUS, TIMES, BROKEN, MORE, CLOSE, WORDS = PIECES = (
    "```python\ndef f(x):\n    return ",
    "x + 1",
    "x * 2",
    "x +",
    " + 0",
    "\n```",
    "I do not know.",
)
END, BEGIN = "<|im_end|>", "Ċ"
"""An answer begins after the newline, as the tokenizer's alphabet writes it, that ends the chat's frame."""
CHAIN = {
    BEGIN: {OPEN: 0.75, WORDS: 0.25},
    OPEN: {PLUS: 0.4, TIMES: 0.4, BROKEN: 0.2},
    PLUS: {CLOSE: 0.7, MORE: 0.3},
    TIMES: {CLOSE: 0.7, MORE: 0.3},
    BROKEN: {CLOSE: 1.0},
    MORE: {MORE: 1.0},
    CLOSE: {END: 1.0},
    WORDS: {END: 1.0},
}
"""The probabilities of the next token, by the last one. After MORE there is no end but the token limit."""
SCALE, CERTAIN = 8.0, 16.0


def save_model(folder: Path, noise: float = 0.0) -> None:
    """Saves the model and its tokenizer. `noise` moves each weight by about that share of it, as other arithmetic does
    the outcome."""
    tokenizer = tiny_tokenizer()
    tokenizer.add_tokens([AddedToken(piece, normalized=False) for piece in PIECES])
    model = tiny_model(
        vocab_size=len(tokenizer), tie=False, hidden_size=64, num_hidden_layers=1, initializer_range=0.02
    )
    ids = {text: tokenizer.convert_tokens_to_ids(text) for text in (*PIECES, END, BEGIN)}
    with torch.no_grad():
        for unit, (text, follow) in enumerate(CHAIN.items()):
            model.model.embed_tokens.weight[ids[text]] = 0.0
            model.model.embed_tokens.weight[ids[text], unit] = SCALE  # which the last norm leaves as it is
            model.lm_head.weight[:, unit] = 0.0
            for after, share in follow.items():
                model.lm_head.weight[ids[after], unit] = (CERTAIN + math.log(share)) / SCALE
        shake = torch.Generator().manual_seed(1)
        for weight in model.parameters():
            weight *= 1 + noise * torch.randn(weight.shape, generator=shake)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)

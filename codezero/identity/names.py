"""The three-word name under which a peer is shown, the same as in the public RL Swarm network."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

import yaml

_WORDS = Path(__file__).with_name("names.yaml")


def animal_name(peer_id: str) -> str:
    """Returns two adjectives and an animal, such as "quick tricky toad"; any text has a name.

    The first three bytes of the peer id's MD5, each modulo the length of its list, choose the words from last to first
    (get_name_from_peer_id in github.com/gensyn-ai/rl-swarm). Names are for people: two peers may share one.
    """
    adjectives, animals = _words()
    last, middle, first, *_ = hashlib.md5(peer_id.encode(errors="surrogatepass"), usedforsecurity=False).digest()
    return " ".join(
        (adjectives[first % len(adjectives)], adjectives[middle % len(adjectives)], animals[last % len(animals)])
    )


@cache
def _words() -> tuple[list[str], list[str]]:
    table: dict[str, list[str]] = yaml.safe_load(_WORDS.read_text(encoding="utf-8"))
    return table["adjectives"], table["animals"]

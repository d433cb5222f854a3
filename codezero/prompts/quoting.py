"""Untrusted text in a prompt: in a block that no text can close itself.

Each part stands, without control tokens (`neutral.plain`), inside a fence longer than any run of backticks in it,
between two marks that carry a hash of the part: who writes a part cannot know the hash of what holds it. The same part
has the same marks in every prompt, so that what prompts have in common stays common.
"""

from __future__ import annotations

import hashlib
import re

from codezero.prompts.neutral import plain

MAX_PART_CHARS = 6_000
"""Longest shown part."""
CUT = "\n[... cut ...]\n"


def block(title: str, kind: str, text: str) -> str:
    text = cut(plain(text).strip())
    mark = _mark(text)
    return f"{title} {mark}:\n{fenced(kind, text)}\nEnd {mark}"


def fenced(kind: str, text: str) -> str:
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{kind}\n{text}\n{fence}"


def cut(text: str) -> str:
    """The start and the end of a text that is too long: padding on one side pushes nothing out."""
    if len(text) <= MAX_PART_CHARS:
        return text
    half = (MAX_PART_CHARS - len(CUT)) // 2
    return text[:half] + CUT + text[-half:]


def _mark(text: str) -> str:
    """8 hex digits of a hash of `text` that `text` does not hold."""
    mark = text
    while True:
        mark = hashlib.sha256(mark.encode("utf-8", "replace")).hexdigest()[:8]
        if mark not in text:
            return mark

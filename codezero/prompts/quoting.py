"""Quotes untrusted text in a prompt, inside a block that the text cannot close.

Each part, without control tokens (`neutral.plain`), is inside a fence longer than any run of backticks in it, between
two marks with a hash of the part: its author cannot put the part's own hash into it. The same part has the same marks
in every prompt, so that the prompts' common prefix stays common.
"""

from __future__ import annotations

import hashlib
import re

from codezero.prompts.neutral import plain

MAX_PART_CHARS = 6_000
"""The length to which a part is cut, in characters."""
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
    """Returns a text, or start and end of one that is too long, so that padding on one side hides nothing."""
    if len(text) <= MAX_PART_CHARS:
        return text
    half = (MAX_PART_CHARS - len(CUT)) // 2
    return text[:half] + CUT + text[-half:]


def _mark(text: str) -> str:
    """Returns 8 hex digits of a hash of `text` that do not occur in `text`."""
    mark = text
    while True:
        mark = hashlib.sha256(mark.encode("utf-8", "replace")).hexdigest()[:8]
        if mark not in text:
            return mark

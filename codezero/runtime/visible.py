"""Untrusted text made fit to be shown on a page: nothing in it hides or moves what stands beside it.

Escaping it for HTML is the page's own part.
"""

from __future__ import annotations

import unicodedata

_INVISIBLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2028\u2029\u2800\u3164\uffa0")
"""Fillers, blanks and separators that are not of Unicode's category of control characters."""
_SELECTORS = ((0x180B, 0x180D), (0xFE00, 0xFE0F), (0xE0100, 0xE01EF))
"""Variation selectors: they show nothing, and have carried hidden messages."""
MAX_MARKS = 4
"""Combining marks on one letter; more would grow over the lines around."""


def visible(text: str) -> str:
    """The text with invisible, control and direction characters as escapes, such as \\u202e; newlines and tabs stay."""
    if text.isascii() and text.isprintable():
        return text
    shown, marks = [], 0
    for char in text:
        marks = marks + 1 if unicodedata.combining(char) else 0
        shown.append(ascii(char)[1:-1] if _hides(char) or marks > MAX_MARKS else char)
    return "".join(shown)


def _hides(char: str) -> bool:
    if char in "\n\t":
        return False
    if unicodedata.category(char)[0] == "C" or char in _INVISIBLE:
        return True
    return any(low <= ord(char) <= high for low, high in _SELECTORS)

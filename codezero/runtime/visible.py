"""Escaping of invisible characters in untrusted text for web pages, so that it cannot hide or move other text.

The page itself escapes it for HTML.
"""

from __future__ import annotations

import unicodedata

_INVISIBLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2028\u2029\u2800\u3164\uffa0")
"""Fillers, blanks and separators outside of Unicode's category of control characters."""
_SELECTORS = ((0x180B, 0x180F), (0xFE00, 0xFE0F), (0xE0100, 0xE01EF))
"""Ranges of variation selectors, which are invisible and have been used for hidden messages."""
MAX_MARKS = 4
"""Most combining marks on one letter; more would cover other lines."""


def visible(text: str) -> str:
    """Returns the text with invisible, control and direction characters escaped, as \\u202e; newlines and tabs stay."""
    if text.isascii() and text.isprintable():
        return text
    shown, marks = [], 0
    for char in text:
        marks = marks + 1 if unicodedata.combining(char) else 0
        shown.append(ascii(char)[1:-1] if hides(char) or marks > MAX_MARKS else char)
    return "".join(shown)


def hides(char: str) -> bool:
    """Returns whether a character is invisible, or moves or hides others: a control or format character, a lone
    surrogate, one that is unassigned or for private use, a variation selector, or a letter without a shape."""
    if char in "\n\t":
        return False
    if unicodedata.category(char)[0] == "C" or char in _INVISIBLE:
        return True
    return any(low <= ord(char) <= high for low, high in _SELECTORS)

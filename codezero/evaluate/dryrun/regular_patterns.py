"""Patterns of Python's `re`, compiled by the `regex` package.

`re` first parses each pattern: this gives its errors and refuses syntax of `regex` alone.
"""

from __future__ import annotations

import re
import warnings
from typing import Any

import regex

from codezero.evaluate.dryrun.budget import Stop, meter
from codezero.evaluate.dryrun.measure import PATTERN

_MAX_PATTERN = 1_000
_MAX_REPEAT = 1_000
_MAX_NODES = 3_000
"""Most nodes of a pattern with its required repeats expanded, as `regex` does; nested repeats multiply."""
_REPEAT = re.compile(r"\{(\d*)(,?)(\d*)\}")
_CLASS = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
_FUZZY = re.compile(r"\{(?![\d,]*\})")
"""Braces that are literal for `re` but syntax for `regex`."""
_ALLOWED_FLAGS = re.I | re.M | re.S | re.U | re.X | re.A
_IGNORED = re.compile(r"(\\.|\[\^?\]?(?:\\.|[^\]\\])*\])|\s|#[^\n]*", re.DOTALL)
"""Space and comments of a verbose pattern, or an escape or a class, which may hold them."""
_UNCLEAR = re.compile(r"\{[\d,]*[\s#]|\\\d+(?:\s|#[^\n]*\n)+\d|\(\?[a-zA-Z]*-|[\x1c-\x1f]|[^\x00-\x7f]")
"""The parts of a verbose pattern that `re` and `regex` may read differently."""
_POSIX_CLASS = re.compile(r"\[:\^?\w+:\]")
"""A class of characters such as [:alpha:], which is one in `regex` alone."""
_INLINE_VERBOSE = re.compile(r"\(\?[a-zA-Z]*[xL]|\(\?[a-zA-Z]*[au][a-zA-Z]*:")
"""Flags within a pattern that are not interpreted; `re` and `regex` disagree on a and u for a part of it."""
_CLASSES_OR_CASE = re.compile(r"\\|\(\?[a-zA-Z]*i")
"""Escapes, of which some are classes, and the inline flag of letters without case."""
_DOTTED = "\u0130\u0131"
"""Letters i that are equal to others without case in one of the two packages."""
_UNLIKE = re.compile(f"[\x1c-\x1f{_DOTTED}]")
"""Characters that are space, or letters without case, in one of the two packages."""


def compile_pattern(pattern: Any, flags: Any = 0) -> Any:
    """Returns the compiled pattern. Raises re.error like `re`, Stop where the two packages may differ."""
    if type(pattern) is PATTERN:
        return pattern
    if type(pattern) is not str:
        if type(pattern) is bytes:
            raise Stop("a pattern of bytes is not interpreted")
        raise TypeError("first argument must be string or compiled pattern")
    if len(pattern) > _MAX_PATTERN:
        raise Stop("a pattern too long")
    if (
        not isinstance(flags, int)
        or flags & ~_ALLOWED_FLAGS
        or "(?#" in pattern
        or _POSIX_CLASS.search(pattern)
        or _INLINE_VERBOSE.search(pattern)
        or any(letter in pattern for letter in _DOTTED)
    ):
        raise Stop("pattern flags that are not interpreted")
    plain = _without_comments(pattern) if flags & re.X else pattern
    meter.work(_expanded_size(plain) << 6)
    if not pattern.isascii():
        meter.work(pattern.count("[") << 16)  # `re` iterates over all characters of a range in Python
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        re.compile(pattern, flags)
        if _FUZZY.search(plain):
            raise Stop("a pattern with a lone brace is not interpreted")
        try:
            ascii_only = regex.ASCII if flags & re.A else 0  # 256 is another flag there
            return regex.compile(pattern, flags & ~re.A | ascii_only | regex.VERSION0, cache_pattern=False)
        except regex.error as error:
            raise Stop("a pattern that is not interpreted") from error


def _without_comments(pattern: str) -> str:
    """Returns a verbose pattern without its space and comments. Raises Stop if it may have two readings."""
    if _UNCLEAR.search(pattern):
        raise Stop("a verbose pattern that is not interpreted")
    return _IGNORED.sub(lambda found: found.group(1) or "", pattern)


def _expanded_size(pattern: str) -> int:
    """Returns the approximate number of nodes with required repeats expanded. Raises Stop if they are too many."""
    sizes, last, position = [0], 0, 0
    while position < len(pattern):
        char = pattern[position]
        step, least = 1, 0
        repeat = _REPEAT.match(pattern, position) if char == "{" else None
        if repeat:
            step, counts = len(repeat.group()), [n for n in repeat.group(1, 3) if n]
            if any(len(n) > 4 or int(n) > _MAX_REPEAT for n in counts):
                raise Stop("a pattern with too many repeats")
            least = int(repeat.group(1) or 0)
        elif char == "+":
            least = 1
        elif char == "(":
            sizes.append(1)
        elif char == ")" and len(sizes) > 1:
            last = sizes.pop()
            sizes[-1] += last
        elif char not in "*?|^$":
            last = 1
            sizes[-1] += 1
            if char == "\\":
                step = 2
            elif char == "[" and (found := _CLASS.match(pattern, position)):
                step = len(found.group())
        if least:
            sizes[-1] += last * least
            last *= least + 1
        if sum(sizes) > _MAX_NODES:
            raise Stop("a pattern with too many repeats")
        position += step
    return sum(sizes)


def subject(text: Any, pattern: Any = None) -> str:
    """Returns the text, charged. Raises Stop where the two packages may match the pattern differently in it."""
    if type(text) is not str:
        re.match("", text)  # raises its error
    if not text and pattern is not None and "\\B" in pattern.pattern:
        raise Stop("\\B in an empty text")  # it matches in `regex`, but not in `re` before Python 3.14
    meter.work(len(text) << 3)
    has_classes = pattern is not None and (_CLASSES_OR_CASE.search(pattern.pattern) or pattern.flags & regex.I)
    if has_classes and _is_unlike(text):
        raise Stop("a character that is matched in two ways")
    return text  # type: ignore[no-any-return]


def _is_unlike(text: str) -> bool:
    """Returns whether a character of the text belongs to other classes in `re` than in `regex`."""
    if text.isascii():
        return _UNLIKE.search(text) is not None
    meter.allocate(len(text) << 8)
    classes = (r"\w", r"\d")
    return bool(_UNLIKE.search(text)) or any(re.findall(one, text) != regex.findall(one, text) for one in classes)

"""Python's `re`, matched by the `regex` package, which can stop a catastrophic pattern by a timeout.

`re` first parses each pattern: this gives its errors and refuses syntax of `regex` alone. Functions that make text go
match by match, so that its size is charged before it exists.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import regex

from codezero.evaluate.dryrun.budget import Stop, meter
from codezero.evaluate.dryrun.measure import PATTERN
from codezero.evaluate.dryrun.text import text_of
from codezero.evaluate.dryrun.values import Builtin, Iterating, TypeValue, charged

_MAX_PATTERN = 1_000
_MAX_TEMPLATE = 200
"""Most characters of a replacement template, of which `regex` caches 500."""
_MAX_REPEAT = 1_000
_MAX_NODES = 3_000
"""Most nodes of a pattern with its required repeats expanded, as `regex` does; nested repeats multiply."""
_REPEAT = re.compile(r"\{(\d*)(,?)(\d*)\}")
_CLASS = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
_FUZZY = re.compile(r"\{(?![\d,]*\})")
"""Braces that are literal for `re` but syntax for `regex`."""
_FLAGS = {"I": 2, "L": 4, "M": 8, "S": 16, "U": 32, "X": 64, "A": 256}
_ALLOWED_FLAGS = 2 | 8 | 16 | 32 | 256
"""All flags but re.L and re.X, which would need comments in patterns to be parsed."""
_POSIX_CLASS = re.compile(r"\[:\^?\w+:\]")
"""A class of characters such as [:alpha:], which is one in `regex` alone."""
_INLINE_VERBOSE = re.compile(r"\(\?[a-zA-Z]*[xL]")


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
    ):
        raise Stop("pattern flags that are not interpreted")
    meter.work(_expanded_size(pattern) << 6)
    if not pattern.isascii():
        meter.work(pattern.count("[") << 16)  # `re` iterates over all characters of a range in Python
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        re.compile(pattern, flags)
        if _FUZZY.search(pattern):
            raise Stop("a pattern with a lone brace is not interpreted")
        try:
            return regex.compile(pattern, flags | regex.VERSION0, cache_pattern=False)
        except regex.error as error:
            raise Stop("a pattern that is not interpreted") from error


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


def _subject(text: Any, pattern: Any = None) -> str:
    if type(text) is not str:
        raise TypeError("expected string or bytes-like object")
    if not text and pattern is not None and "\\B" in pattern.pattern:
        raise Stop("\\B in an empty text")  # it matches in `regex`, but not in `re` before Python 3.14
    meter.work(len(text) << 3)
    return text


_GROUP = 64
"""Bytes charged for each group of a match."""


def _matching(name: str) -> Callable[..., Any]:
    def match(pattern: Any, string: Any, *bounds: Any) -> Any:
        method = getattr(pattern, name)
        try:
            found = method(_subject(string, pattern), *bounds, timeout=meter.seconds_left())
        except TimeoutError:
            raise Stop("time budget") from None
        meter.allocate(pattern.groups * _GROUP)
        return found

    return match


def _matches(pattern: Any, string: Any, *bounds: Any) -> Iterator[Any]:
    """Yields all matches from left to right, and charges a step for each."""
    try:
        for match in pattern.finditer(_subject(string, pattern), *bounds, timeout=meter.seconds_left()):
            meter.allocate(pattern.groups * _GROUP)
            yield match
    except TimeoutError:
        raise Stop("time budget") from None


def _group(match: Any, number: int) -> Any:
    start, end = match.span(number)
    meter.allocate(max(end - start, 0))
    return match.group(number)


def _findall(pattern: Any, string: Any, *bounds: Any) -> list[Any]:
    found: list[Any] = []
    for match in _matches(pattern, string, *bounds):
        if pattern.groups == 0:
            found.append(_group(match, 0))
        else:
            groups = tuple(_group(match, n) or "" for n in range(1, pattern.groups + 1))
            found.append(groups[0] if len(groups) == 1 else groups)
    return found


def _finditer(pattern: Any, string: Any, *bounds: Any) -> Iterating:
    return Iterating(charged(list(_matches(pattern, string, *bounds))), is_generator=False)


def _subn(pattern: Any, repl: Any, string: Any, count: Any = 0) -> tuple[str, int]:
    if type(repl) is not str and not callable(repl):
        raise TypeError("decoding to str: need a bytes-like object")
    parts: list[str] = []
    end = made = 0
    for match in islice(_matches(pattern, string), count or None):
        made += 1
        parts.append(string[end : match.start()])
        if type(repl) is not str:
            new = repl(match)
            if type(new) is not str:
                raise TypeError(f"expected str instance, {type(new).__name__} found")
        elif "\\" in repl:
            if len(repl) > _MAX_TEMPLATE:
                raise Stop("a replacement too long")
            meter.allocate(sum(max(e - s, 0) for s, e in map(match.span, range(pattern.groups + 1))) * len(repl))
            new = _expand(match, repl)
        else:
            new = repl
        meter.allocate(len(new) + len(parts[-1]))
        parts.append(new)
        end = match.end()
    parts.append(string[end:])
    return "".join(parts), made


def _expand(match: Any, template: str) -> str:
    try:
        text: str = match.expand(template)
    except (regex.error, IndexError) as error:
        raise re.error(str(error)) from None
    return text


def _sub(pattern: Any, repl: Any, string: Any, count: Any = 0) -> str:
    return _subn(pattern, repl, string, count)[0]


def _split(pattern: Any, string: Any, maxsplit: Any = 0) -> list[Any]:
    parts: list[Any] = []
    end = 0
    for match in islice(_matches(pattern, string), maxsplit or None):
        meter.allocate(match.start() - end)
        parts.append(string[end : match.start()])
        parts.extend(match.group(n) if match.start(n) < 0 else _group(match, n) for n in range(1, pattern.groups + 1))
        end = match.end()
    parts.append(string[end:])
    return parts


PATTERN_METHODS: dict[str, Callable[..., Any]] = {
    "search": _matching("search"),
    "match": _matching("match"),
    "fullmatch": _matching("fullmatch"),
    "findall": _findall,
    "finditer": _finditer,
    "sub": _sub,
    "subn": _subn,
    "split": _split,
}


def _match_group(match: Any, *numbers: Any) -> Any:
    meter.allocate(len(match.string) * max(len(numbers), 1))
    return match.group(*numbers)


def _match_groups(match: Any, default: Any = None) -> Any:
    meter.allocate((len(match.string) + _GROUP) * match.re.groups)
    return match.groups(default)


def _match_groupdict(match: Any, default: Any = None) -> Any:
    meter.allocate((len(match.string) + _GROUP) * match.re.groups)
    return match.groupdict(default)


MATCH_METHODS: dict[str, Callable[..., Any]] = {
    "group": _match_group,
    "groups": _match_groups,
    "groupdict": _match_groupdict,
    "start": lambda match, *group: match.start(*group),
    "end": lambda match, *group: match.end(*group),
    "span": lambda match, *group: match.span(*group),
}
MATCH_FIELDS = frozenset({"string", "re", "pos", "endpos", "lastindex", "lastgroup"})
PATTERN_FIELDS = frozenset({"pattern", "groups"})


def _of_module(name: str) -> Builtin:
    method = PATTERN_METHODS[name]
    extra = {"sub": 2, "subn": 2, "split": 1}.get(name, 0)
    keyword = {"sub": "count", "subn": "count", "split": "maxsplit"}.get(name, "")

    def call(pattern: Any, *args: Any, **kwargs: Any) -> Any:
        """Takes, after the string, the count if the function has one, and the flags."""
        required = 2 if name in ("sub", "subn") else 1
        values = dict(zip(("repl", "string")[2 - required :], args[:required], strict=False))
        for key, value in zip(([keyword] if extra else []) + ["flags"], args[required:], strict=False):
            values[key] = value
        if values.keys() & kwargs.keys():
            raise TypeError(f"{name}() got multiple values for an argument")
        values.update(kwargs)
        return method(compile_pattern(pattern, values.pop("flags", 0)), **values)

    return Builtin(name, call)


def _escape(text: Any) -> str:
    meter.allocate(len(_subject(text)) * 2)
    escaped: str = re.escape(text)
    return escaped


MEMBERS: dict[str, Any] = {
    **{name: _of_module(name) for name in PATTERN_METHODS},
    "compile": Builtin("compile", compile_pattern),
    "escape": Builtin("escape", _escape),
    "error": TypeValue(re.error, lambda message="", /: re.error(text_of(message))),
    **_FLAGS,
    "IGNORECASE": 2,
    "MULTILINE": 8,
    "DOTALL": 16,
    "UNICODE": 32,
    "VERBOSE": 64,
    "ASCII": 256,
}

"""Python's `re`, matched by the `regex` package, which can stop a catastrophic pattern by a timeout.

Functions that make text go match by match, so that its size is charged before it exists.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import regex

from codezero.evaluate.dryrun.budget import Stop, meter
from codezero.evaluate.dryrun.integers import Flag
from codezero.evaluate.dryrun.measure import MATCH, PATTERN, type_name
from codezero.evaluate.dryrun.regular_patterns import compile_pattern, subject
from codezero.evaluate.dryrun.text import text_of
from codezero.evaluate.dryrun.type_objects import TypeValue
from codezero.evaluate.dryrun.values import FIELDS, Builtin, Iterating, charged

_MAX_TEMPLATE = 200
"""Most characters of a replacement template, of which `regex` caches 500."""
_GROUP = 64
"""Bytes charged for each group of a match."""


def _matching(name: str) -> Callable[..., Any]:
    def match(pattern: Any, string: Any, *bounds: Any) -> Any:
        method = getattr(pattern, name)
        try:
            found = method(subject(string, pattern), *bounds, timeout=meter.seconds_left())
        except TimeoutError:
            raise Stop("time budget") from None
        meter.allocate(pattern.groups * _GROUP)
        return found

    return match


def _matches(pattern: Any, string: Any, *bounds: Any) -> Iterator[Any]:
    """Yields all matches from left to right, and charges a step for each."""
    try:
        for match in pattern.finditer(subject(string, pattern), *bounds, timeout=meter.seconds_left()):
            meter.allocate(pattern.groups * _GROUP)
            yield match
    except TimeoutError:
        raise Stop("time budget") from None


def _first_matches(pattern: Any, string: Any, count: Any) -> Iterator[Any]:
    """Returns `count` matches from left to right: all if it is 0, none if it is negative."""
    if not isinstance(count, int):
        raise TypeError(f"'{type_name(count)}' object cannot be interpreted as an integer")
    return islice(_matches(pattern, string), max(count, 0) if count else None)


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


def _subn(pattern: Any, repl: Any, string: Any, count: Any = 0) -> tuple[str, int]:
    if type(repl) is not str and not callable(repl):
        raise TypeError("decoding to str: need a bytes-like object")
    parts: list[str] = []
    end = made = 0
    for match in _first_matches(pattern, string, count):
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


def _split(pattern: Any, string: Any, maxsplit: Any = 0) -> list[Any]:
    parts: list[Any] = []
    end = 0
    for match in _first_matches(pattern, string, maxsplit):
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
    "finditer": lambda pattern, string, *bounds: Iterating(charged(list(_matches(pattern, string, *bounds)))),
    "sub": lambda pattern, repl, string, count=0: _subn(pattern, repl, string, count)[0],
    "subn": _subn,
    "split": _split,
}


def _match_group(match: Any, *numbers: Any) -> Any:
    meter.allocate(len(match.string) * max(len(numbers), 1))
    return match.group(*numbers)


def _match_all(name: str) -> Callable[..., Any]:
    """Returns the method of a match that gives all of its groups."""

    def call(match: Any, default: Any = None) -> Any:
        meter.allocate((len(match.string) + _GROUP) * match.re.groups)
        return getattr(match, name)(default)

    return call


def _match_place(name: str) -> Callable[..., Any]:
    """Returns the method of a match that gives the place of one group."""

    def call(match: Any, /, *group: Any) -> Any:
        if len(group) > 1:
            raise TypeError(f"{name} expected at most 1 argument, got {len(group)}")
        return getattr(match, name)(*group)

    return call


MATCH_METHODS: dict[str, Callable[..., Any]] = {
    "group": _match_group,
    **{name: _match_all(name) for name in ("groups", "groupdict")},
    **{name: _match_place(name) for name in ("start", "end", "span")},
}
FIELDS[MATCH] = frozenset({"string", "re", "pos", "endpos", "lastindex", "lastgroup"})
FIELDS[PATTERN] = frozenset({"pattern", "groups"})


_PARAMETERS = {
    **dict.fromkeys(PATTERN_METHODS, ("string", "flags")),
    **dict.fromkeys(("sub", "subn"), ("repl", "string", "count", "flags")),
    "split": ("string", "maxsplit", "flags"),
}
"""The parameters of the functions of `re` after the pattern."""


def _of_module(name: str) -> Builtin:
    method, parameters = PATTERN_METHODS[name], _PARAMETERS[name]

    def call(pattern: Any, *args: Any, **kwargs: Any) -> Any:
        values = dict(zip(parameters, args, strict=False))
        if len(args) > len(parameters) or values.keys() & kwargs.keys():
            raise TypeError(f"{name}() takes other arguments")
        values.update(kwargs)
        return method(compile_pattern(pattern, values.pop("flags", 0)), **values)

    return Builtin(name, call)


def _escape(text: Any) -> str:
    meter.allocate(len(subject(text)) * 2)
    escaped: str = re.escape(text)
    return escaped


_FLAGS = "A ASCII I IGNORECASE L M MULTILINE S DOTALL U UNICODE X VERBOSE"
RE: dict[str, Any] = {
    **{name: _of_module(name) for name in PATTERN_METHODS},
    "compile": Builtin("compile", compile_pattern),
    "escape": Builtin("escape", _escape),
    "error": TypeValue(re.error, lambda message="", /: re.error(text_of(message))),
    **{name: Flag(getattr(re, name)) for name in _FLAGS.split()},
}

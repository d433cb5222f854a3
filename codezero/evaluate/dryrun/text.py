"""Values as text: str, repr, format specifications, `.format` and `%`.

Fields of `.format` name arguments and nothing inside them: an attribute or an index in a field ends the case.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from codezero.evaluate.dryrun.budget import Stop, Unsupported, meter
from codezero.evaluate.dryrun.measure import ATOMS, DICTS, SCALARS, checked, measure
from codezero.evaluate.dryrun.objects import Instance
from codezero.evaluate.dryrun.order import text_in_order

_MAX_WIDTH = 10_000
"""Largest width or precision of a field."""
_NUMBER = re.compile(r"\d+")
_BRACKET = re.compile("[()]")
_SPEC = re.compile(r"[#0\- +]*(?:\*|\d+)?(?:\.(?:\*|\d+))?")

FORMATTERS: dict[type, Callable[[Any, str], str]] = {}
"""Functions that format a library value by a specification, by type."""


def text_of(value: Any) -> str:
    """Returns str(value)."""
    if type(value) is str:
        return value
    if type(value) in (set, frozenset):
        return repr_of(value)
    _text_cost(value)
    return str(value)


def _text_cost(value: Any) -> None:
    """Charges for the text of a value, which is at most about 64 bytes for each part."""
    if type(value) is int:
        checked(value)
    elif type(value) not in SCALARS:
        meter.allocate(measure(value) * 64)


def repr_of(value: Any) -> str:
    """Returns repr(value)."""
    meter.allocate(measure(value) * 64)
    return text_in_order(value) if type(value) in (set, frozenset) else repr(value)


def _width(spec: str) -> int:
    """Returns the sum of all numbers in a format specification. Raises Stop if one is too large."""
    total = 0
    for number in _NUMBER.findall(spec):
        if len(number) > 6 or int(number) > _MAX_WIDTH:
            raise Stop("a field too wide")
        total += int(number)
    return total


def format_value(value: Any, spec: Any = "", /) -> str:
    """Returns format(value, spec)."""
    if type(value) is Instance and type(spec) is str and value.cls.owner("__format__") is not None:
        text = value.invoke("__format__", spec)
        if type(text) is not str:
            raise TypeError("__format__ must return a str")
        return text
    if not spec:
        return text_of(value)
    meter.allocate(_width(spec) + (len(value) if type(value) is str else 0))
    checked(value)
    if type(value) in ATOMS or type(value) is Instance:
        return format(value, spec)
    if type(value) in FORMATTERS:
        return FORMATTERS[type(value)](value, spec)
    raise TypeError(f"unsupported format string passed to {type(value).__name__}.__format__")


def convert(value: Any, conversion: str | None) -> Any:
    if conversion == "r":
        return repr_of(value)
    if conversion == "s":
        return text_of(value)
    if conversion == "a":
        return repr_of(value).encode("ascii", "backslashreplace").decode("ascii")
    return value


def format_text(template: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """Returns template.format(*args, **kwargs)."""
    return "".join(_formatted(template, args, kwargs, [0], depth=2))


def _formatted(
    template: str, args: Sequence[Any], kwargs: Mapping[str, Any], count: list[int], depth: int
) -> list[str]:
    if depth == 0:
        raise ValueError("Max string recursion exceeded")
    parts = []
    meter.work(len(template) << 3)
    for literal, field, spec, conversion in string.Formatter().parse(template):
        parts.append(literal)
        if field is None:
            continue
        value = convert(_field(field, args, kwargs, count), conversion)
        inner = "".join(_formatted(spec, args, kwargs, count, depth - 1)) if spec else ""
        parts.append(format_value(value, inner))
        meter.allocate(len(parts[-1]))
    return parts


def _field(field: str, args: Sequence[Any], kwargs: Mapping[str, Any], count: list[int]) -> Any:
    """Returns the argument of a field. `count[0]` is the number of unnamed fields so far, -1 once one had a number."""
    if field == "":
        if count[0] < 0:
            raise ValueError("cannot switch from manual field specification to automatic field numbering")
        index = count[0]
        count[0] += 1
    elif field.isdigit() and len(field) < 5:
        if count[0] > 0:
            raise ValueError("cannot switch from automatic field numbering to manual field specification")
        count[0] = -1
        index = int(field)
    elif field.isidentifier():
        return kwargs[field]
    else:
        raise Unsupported("an attribute or index in a format field")
    if index >= len(args):
        raise IndexError(f"Replacement index {index} out of range for positional args tuple")
    return args[index]


def _specs(template: str) -> Iterator[str]:
    """Yields flags, width and precision of each field of a `%` template. Keys may hold balanced parentheses; it ends at
    one without, where the host raises an error."""
    end = 0
    while (start := template.find("%", end)) >= 0:
        end = start + 1
        depth = int(template.startswith("(", end))
        end += depth
        while depth:
            bracket = _BRACKET.search(template, end)
            if bracket is None:
                return
            end = bracket.end()
            depth += 1 if bracket.group() == "(" else -1
        spec = _SPEC.match(template, end).group()  # type: ignore[union-attr]
        yield spec
        end += len(spec) + 2 if template[end + len(spec) : end + len(spec) + 1] in tuple("hlL") else len(spec) + 1


def percent(template: Any, values: Any) -> Any:
    """Returns template % values."""
    if type(template) is bytes:
        raise Unsupported("formatting of bytes")
    meter.work(len(template) << 2)
    size = len(template)
    for spec in _specs(template):
        if "*" in spec:
            raise Unsupported("a width given as *")
        size += _width(spec)
    meter.allocate(size)
    if type(values) in DICTS:
        meter.allocate(measure(values) * 64 * max(template.count("%"), 1))
        return template % values
    for value in values if isinstance(values, tuple) else (values,):
        _text_cost(value)
    if type(values) is Instance:
        if values.cls.lookup("__getitem__") is None:
            # To the host every Instance looks like a mapping, which a template need not use.
            values = (values,)
        elif "%(" in template:
            raise Unsupported("an object as the mapping of a template")
    return template % values

"""Values as text: str, repr, format specifications, `.format` and `%`."""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from codezero.evaluate.dryrun.budget import Stop, Unsupported, meter
from codezero.evaluate.dryrun.integers import Flag
from codezero.evaluate.dryrun.items import get_item
from codezero.evaluate.dryrun.measure import ATOMS, DICTS, SCALARS, NamedTupleValue, checked, measure
from codezero.evaluate.dryrun.objects import Instance
from codezero.evaluate.dryrun.order import text_in_order
from codezero.evaluate.dryrun.type_objects import Type
from codezero.evaluate.dryrun.values import Builtin, Hidden

_MAX_WIDTH = 10_000
"""Largest width or precision of a field."""
_NUMBER = re.compile(r"\d+")
_BRACKET = re.compile("[()]")
_SPEC = re.compile(r"[#0\- +]*(?:\*|\d+)?(?:\.(?:\*|\d*))?")

_INSIDE = re.compile(r"\.([^.\[]+)|\[([^\]]+)\]")
"""An attribute or an index in a field of `.format`."""
_MAX_INDEX = 9
"""Most digits of an index in such a field."""

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
    """Charges for the text of a value, which is at most about 64 bytes for each part. Raises Unsupported for an error
    whose text is not CPython's."""
    if type(value) is int:
        checked(value)
    elif type(value) not in SCALARS:
        meter.allocate(measure(value) * 64)
        if type(value) is TypeError and any(_own_words().search(part) for part in value.args if type(part) is str):
            raise Unsupported("the text of this TypeError")


_OTHERWISE = (
    "heap argument|first argument must be a list|argument after|^got multiple values|attribute name must be string|"
    "decoding to str|string argument without an encoding, or"
)
"""Parts of the texts of the interpreter's own errors, where those of CPython depend on its version or on the call."""


@cache
def _own_words() -> re.Pattern[str]:
    """Returns a pattern of words of errors where CPython has others: those that the host says of calls, names of the
    interpreter's own types, and `_OTHERWISE`."""
    types: list[type] = [Builtin, Flag, Hidden, Instance, NamedTupleValue, Type]
    for kind in types:
        types.extend(kind.__subclasses__())
    names = "|".join(kind.__name__ for kind in types)
    return re.compile(rf"(?:'|\"|\bnot )(?:Decimal|iterator|{names})\b|\(\) (?:takes|missing|got) |{_OTHERWISE}")


def repr_of(value: Any) -> str:
    """Returns repr(value)."""
    _text_cost(value)
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
        name = re.split(r"[.\[]", field, maxsplit=1)[0]
        value = _inside(_field(name, args, kwargs, count), field[len(name) :])
        value = convert(value, conversion)
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
        raise Unsupported("this name of a format field")
    if index >= len(args):
        raise IndexError(f"Replacement index {index} out of range for positional args tuple")
    return args[index]


def _inside(value: Any, path: str) -> Any:
    """Returns what attributes and indices, such as `.x[0]`, lead to from the argument of a field. Raises Unsupported
    for names with two underscores, of which escapes are made."""
    from codezero.evaluate.dryrun.attributes import get_attribute  # which imports this module

    end = 0
    while end < len(path):
        part = _INSIDE.match(path, end)
        if part is None or len(path) > _MAX_WIDTH:
            raise Unsupported("this path in a format field")
        end = part.end()
        meter.work(0)
        name, index = part.groups()
        if name is not None and name.startswith("__"):
            raise Unsupported(f"attribute {name} in a format field")
        if name is not None:
            value = get_attribute(value, name)
        elif len(index) > _MAX_INDEX and index.isdecimal():
            raise Unsupported("this path in a format field")
        else:
            value = get_item(value, int(index) if index.isdecimal() else index)
    return value


def _specs(template: str) -> Iterator[tuple[str, str]]:
    """Yields flags, width and precision of each field of a `%` template, and its conversion. Keys may hold balanced
    parentheses; it ends at one without, where the host raises an error."""
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
        end += len(spec)
        end += template[end : end + 1] in tuple("hlL")
        yield spec, template[end : end + 1]
        end += 1


def _taken(template: str) -> Iterator[str]:
    """Yields what a `%` template takes its values for, in order: * for a width or precision, or a conversion."""
    for spec, kind in _specs(template):
        yield from "*" * spec.count("*")
        if kind != "%":
            yield kind


def _given_width(value: Any) -> int:
    """Returns the size of a width or precision that is given as *. Raises Stop if it is too large."""
    if type(value) is Instance or (isinstance(value, int) and abs(value) > _MAX_WIDTH):
        raise Stop("a field too wide")
    return abs(value) if isinstance(value, int) else 0  # the host refuses others


class _Text(str):
    """Text that shows another value in a template."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _shown(value: Any, kind: str) -> Any:
    """Returns what a conversion of a `%` template is given for a value: of a set its text, in the order of this run."""
    return _Text(text_in_order(value)) if kind in "sra" and type(value) in (set, frozenset) else value


def percent(template: Any, values: Any) -> Any:
    """Returns template % values."""
    if type(template) is bytes:
        raise Unsupported("formatting of bytes")
    meter.work(len(template) << 2)
    size = len(template)
    for spec, _ in _specs(template):
        if "*" in spec and not isinstance(values, tuple):
            raise Unsupported("a width given as * of this")
        size += _width(spec)
    if isinstance(values, tuple):
        size += sum(_given_width(value) for kind, value in zip(_taken(template), values, strict=False) if kind == "*")
    meter.allocate(size)
    if type(values) in DICTS:
        meter.allocate(measure(values) * 64 * max(template.count("%"), 1))
        if Instance in map(type, values.values()) and any(kind in _AS_NUMBER for _, kind in _specs(template)):
            raise Unsupported("an object as a number of a template")
        return template % values
    for value in values if isinstance(values, tuple) else (values,):
        _text_cost(value)
    kinds = list(_taken(template))
    if isinstance(values, tuple):
        shown = (*map(_shown, values, kinds), *values[len(kinds) :])
        return template % _with_numbers(template, shown)
    if kinds:
        values = _shown(values, kinds[0])
    if type(values) is Instance:
        is_mapping = values.cls.lookup("__getitem__") is not None
        if is_mapping and "%(" in template:
            raise Unsupported("an object as the mapping of a template")
        numbers = _with_numbers(template, (values,))
        if not is_mapping or numbers[0] is not values:
            # To the host every Instance looks like a mapping, which a template need not use.
            values = numbers
    return template % values


_AS_NUMBER = {**dict.fromkeys("diu", "__int__"), **dict.fromkeys("feEgGF", "__float__"), **dict.fromkeys("xoXc", "")}
"""Methods by which conversions of a template make numbers of objects; "" for those that take integers alone."""


def _with_numbers(template: str, values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Returns the values of a `%` template with numbers in place of the objects that it converts to them."""
    if Instance not in map(type, values):
        return values
    converted = list(values)
    for index, (kind, value) in enumerate(zip(_taken(template), values, strict=False)):
        if type(value) is Instance and kind in _AS_NUMBER:
            converted[index] = _number(value, _AS_NUMBER[kind])
    return tuple(converted)


def _number(value: Instance, method: str) -> Any:
    number = value.as_number(method)
    if value.cls.owner(method) is not None and type(number) is not (int if method == "__int__" else float):
        raise TypeError(f"{method} returned a value of another type")
    return checked(number)

"""`match` statements."""

from __future__ import annotations

import ast
from array import array
from collections.abc import Callable
from typing import Any

from codezero.evaluate.dryrun.attributes import get_attribute
from codezero.evaluate.dryrun.budget import Unsupported, meter
from codezero.evaluate.dryrun.classes import Class
from codezero.evaluate.dryrun.compiler import STATEMENTS, Statement, Store, Unit, refusal_of
from codezero.evaluate.dryrun.instance_checks import is_instance
from codezero.evaluate.dryrun.measure import DICTS, NamedTupleValue, deque, hashable, to_list
from codezero.evaluate.dryrun.named_tuples import NamedTuple
from codezero.evaluate.dryrun.objects import Instance
from codezero.evaluate.dryrun.operators import equal
from codezero.evaluate.dryrun.type_objects import TypeValue
from codezero.evaluate.dryrun.values import Frame

Captures = list[tuple[Store, Any]]
Pattern = Callable[[Frame, Any, Captures], Any]
"""A function that returns True if a value matches, and adds the values for the names of the pattern, which are bound
only when the whole pattern has matched."""
_SEQUENCES = (list, tuple, NamedTupleValue, deque, range, array)


def _pattern(unit: Unit, node: ast.pattern) -> Pattern:
    translate = _PATTERNS.get(type(node))
    if translate is None:
        refuse = refusal_of(type(node).__name__)
        return lambda frame, value, captures: refuse(frame)
    return translate(unit, node)


def _value(unit: Unit, node: ast.MatchValue) -> Pattern:
    wanted = unit.expression(node.value)
    return lambda frame, value, captures: equal(value, wanted(frame))


def _singleton(unit: Unit, node: ast.MatchSingleton) -> Pattern:
    wanted = node.value
    return lambda frame, value, captures: value is wanted


def _or(unit: Unit, node: ast.MatchOr) -> Pattern:
    parts = [_pattern(unit, part) for part in node.patterns]
    return lambda frame, value, captures: any(part(frame, value, captures) for part in parts)


def _bind(unit: Unit, name: str | None) -> Store:
    return unit.store(name) if name else lambda frame, value: None


def _as(unit: Unit, node: ast.MatchAs) -> Pattern:
    part = _pattern(unit, node.pattern) if node.pattern else None
    store = _bind(unit, node.name)

    def match(frame: Frame, value: Any, captures: Captures) -> bool:
        if part is not None and not part(frame, value, captures):
            return False
        captures.append((store, value))
        return True

    return match


def _sequence(unit: Unit, node: ast.MatchSequence) -> Pattern:
    stars = [i for i, part in enumerate(node.patterns) if isinstance(part, ast.MatchStar)]
    star = stars[0] if stars else len(node.patterns)
    before = [_pattern(unit, part) for part in node.patterns[:star]]
    after = [_pattern(unit, part) for part in node.patterns[star + 1 :]]
    name = node.patterns[star].name if stars else None  # type: ignore[attr-defined]
    store = _bind(unit, name)

    def match(frame: Frame, value: Any, captures: Captures) -> bool:
        if type(value) is Instance and value.data is not None:
            raise Unsupported("a pattern for this type")
        if type(value) not in _SEQUENCES or len(value) < len(before) + len(after):
            return False
        if not stars and len(value) != len(before):
            return False
        items = to_list(value)
        end = len(value) - len(after)
        pairs = [*zip(before, items[: len(before)], strict=True), *zip(after, items[end:], strict=True)]
        if not all(part(frame, item, captures) for part, item in pairs):
            return False
        captures.append((store, items[len(before) : end]))
        return True

    return match


def _mapping(unit: Unit, node: ast.MatchMapping) -> Pattern:
    pairs = [(unit.expression(key), _pattern(unit, part)) for key, part in zip(node.keys, node.patterns, strict=True)]
    store = _bind(unit, node.rest)

    def match(frame: Frame, value: Any, captures: Captures) -> bool:
        if type(value) is Instance and (value.data is not None or value.cls.derives_from_library):
            raise Unsupported("a pattern for this type")  # such as ChainMap
        if type(value) not in DICTS:
            return False
        meter.allocate(len(value) * 64)
        keys = [hashable(key(frame)) for key, _ in pairs]
        if not all(
            key in value and part(frame, value[key], captures) for key, (_, part) in zip(keys, pairs, strict=True)
        ):
            return False
        captures.append((store, {key: item for key, item in value.items() if key not in keys}))
        return True

    return match


def _class(unit: Unit, node: ast.MatchClass) -> Pattern:
    cls = unit.expression(node.cls)
    by_place = [_pattern(unit, part) for part in node.patterns]
    by_name = list(zip(node.kwd_attrs, [_pattern(unit, part) for part in node.kwd_patterns], strict=True))

    def match(frame: Frame, value: Any, captures: Captures) -> bool:
        kind = cls(frame)
        if not is_instance(value, kind):
            return False
        if by_place and type(kind) is TypeValue and kind.host in _WHOLE:
            if len(by_place) > 1:
                raise TypeError(f"{kind.name}() accepts 1 positional sub-pattern ({len(by_place)} given)")
            return bool(by_place[0](frame, value, captures)) and _attributes_match(frame, value, captures, by_name)
        names = _places(kind) if by_place else ()
        if len(by_place) > len(names):
            raise TypeError(f"accepts {len(names)} positional sub-patterns ({len(by_place)} given)")
        return _attributes_match(frame, value, captures, [*zip(names, by_place, strict=False), *by_name])

    return match


_WHOLE = (bool, bytearray, bytes, dict, float, frozenset, int, list, set, str, tuple)
"""Types whose single positional pattern matches the value itself."""


def _places(kind: Any) -> tuple[str, ...]:
    """Returns the names of the attributes that positional patterns of a class match."""
    names = (
        kind.fields if type(kind) is NamedTuple else kind.lookup("__match_args__", ()) if type(kind) is Class else ()
    )
    if type(names) is not tuple or not all(type(name) is str for name in names):
        raise TypeError("__match_args__ must be a tuple of strings")
    return names


def _attributes_match(frame: Frame, value: Any, captures: Captures, parts: list[tuple[str, Pattern]]) -> bool:
    for name, part in parts:
        try:
            found = get_attribute(value, name)
        except AttributeError:
            return False
        if not part(frame, found, captures):
            return False
    return True


def _match(unit: Unit, node: ast.Match) -> Statement:
    subject = unit.expression(node.subject)
    cases = [
        (_pattern(unit, case.pattern), unit.expression(case.guard) if case.guard else None, unit.block(case.body))
        for case in node.cases
    ]

    def choose(frame: Frame) -> Any:
        value = subject(frame)
        for pattern, guard, body in cases:
            captures: Captures = []
            if not pattern(frame, value, captures):
                continue
            for store, found in captures:
                store(frame, found)
            if guard is None or guard(frame):
                return body(frame)
        return None

    return choose


_PATTERNS: dict[type, Callable[[Unit, Any], Pattern]] = {
    ast.MatchValue: _value,
    ast.MatchSingleton: _singleton,
    ast.MatchOr: _or,
    ast.MatchAs: _as,
    ast.MatchSequence: _sequence,
    ast.MatchMapping: _mapping,
    ast.MatchClass: _class,
}
STATEMENTS[ast.Match] = _match

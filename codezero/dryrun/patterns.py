"""`match` statements."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from codezero.dryrun.compiler import STATEMENTS, Statement, Store, Unit, refusal_of
from codezero.dryrun.measure import DICTS, Record, hashable
from codezero.dryrun.operators import equal
from codezero.dryrun.type_values import is_instance
from codezero.dryrun.values import Frame

Pattern = Callable[[Frame, Any], Any]
"""Whether a value matches; binds names on the way."""
_SEQUENCES = (list, tuple, Record)


def _pattern(unit: Unit, node: ast.pattern) -> Pattern:
    translate = _PATTERNS.get(type(node))
    if translate is None:
        refuse = refusal_of(type(node).__name__)
        return lambda frame, value: refuse(frame)
    return translate(unit, node)


def _value(unit: Unit, node: ast.MatchValue) -> Pattern:
    wanted = unit.expression(node.value)
    return lambda frame, value: equal(value, wanted(frame))


def _singleton(unit: Unit, node: ast.MatchSingleton) -> Pattern:
    wanted = node.value
    return lambda frame, value: value is wanted


def _or(unit: Unit, node: ast.MatchOr) -> Pattern:
    parts = [_pattern(unit, part) for part in node.patterns]
    return lambda frame, value: any(part(frame, value) for part in parts)


def _bind(unit: Unit, name: str | None) -> Store:
    return unit.store(name) if name else lambda frame, value: None


def _as(unit: Unit, node: ast.MatchAs) -> Pattern:
    part = _pattern(unit, node.pattern) if node.pattern else None
    store = _bind(unit, node.name)

    def match(frame: Frame, value: Any) -> bool:
        if part is not None and not part(frame, value):
            return False
        store(frame, value)
        return True

    return match


def _sequence(unit: Unit, node: ast.MatchSequence) -> Pattern:
    stars = [i for i, part in enumerate(node.patterns) if isinstance(part, ast.MatchStar)]
    star = stars[0] if stars else len(node.patterns)
    before = [_pattern(unit, part) for part in node.patterns[:star]]
    after = [_pattern(unit, part) for part in node.patterns[star + 1 :]]
    name = node.patterns[star].name if stars else None  # type: ignore[attr-defined]
    store = _bind(unit, name)

    def match(frame: Frame, value: Any) -> bool:
        if type(value) not in _SEQUENCES or len(value) < len(before) + len(after):
            return False
        if not stars and len(value) != len(before):
            return False
        end = len(value) - len(after)
        pairs = [*zip(before, value[: len(before)], strict=True), *zip(after, value[end:], strict=True)]
        if not all(part(frame, item) for part, item in pairs):
            return False
        store(frame, list(value[len(before) : end]))
        return True

    return match


def _mapping(unit: Unit, node: ast.MatchMapping) -> Pattern:
    pairs = [(unit.expression(key), _pattern(unit, part)) for key, part in zip(node.keys, node.patterns, strict=True)]
    store = _bind(unit, node.rest)

    def match(frame: Frame, value: Any) -> bool:
        if type(value) not in DICTS:
            return False
        keys = [hashable(key(frame)) for key, _ in pairs]
        if not all(key in value and part(frame, value[key]) for key, (_, part) in zip(keys, pairs, strict=True)):
            return False
        store(frame, {key: item for key, item in value.items() if key not in keys})
        return True

    return match


def _class(unit: Unit, node: ast.MatchClass) -> Pattern:
    cls = unit.expression(node.cls)
    if node.patterns or node.kwd_attrs:
        refuse = refusal_of("a class pattern with parts")
        return lambda frame, value: refuse(frame)
    return lambda frame, value: is_instance(value, cls(frame))


def _match(unit: Unit, node: ast.Match) -> Statement:
    subject = unit.expression(node.subject)
    cases = [
        (
            _pattern(unit, case.pattern),
            unit.expression(case.guard) if case.guard else None,
            unit.block(case.body),
        )
        for case in node.cases
    ]

    def choose(frame: Frame) -> Any:
        value = subject(frame)
        for pattern, guard, body in cases:
            if pattern(frame, value) and (guard is None or guard(frame)):
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

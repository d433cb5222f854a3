"""The shape of visible inputs: which types stand where, and what all values of a place have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from codezero.evaluate.fresh.facts import Fact, facts_of, holds

MAX_VALUES = 2_000
"""Values of one place that are looked at."""
_MAX_FIELDS = 6
"""Longer tuples are sequences of like values, not records."""
SCALARS = (bool, int, float, complex, str, bytes, type(None))


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """One place of the inputs: an argument, a field of a record, or all items of a container."""

    values: Sequence[Any]
    """All that was seen there."""
    facts: Mapping[type, Sequence[Fact]]
    """By type; a type that was not seen there does not occur in it."""
    items: Shape | None = None
    """Of containers: their items, or a dictionary's keys; None for records."""
    results: Shape | None = None
    """A dictionary's values; None for records."""
    fields: Mapping[Any, Shape] = field(default_factory=dict)
    """Of records: tuples, lists and dictionaries of always the same fields. By position or key."""
    constant: bool = False
    """Whether all inputs agree in it."""

    def keeps(self, value: Any) -> bool:
        """Whether a value might stand there."""
        facts = self.facts.get(type(value))
        if facts is None or not all(holds(fact, value) for fact in facts):
            return False
        if isinstance(value, SCALARS):
            return True
        if self.fields:
            return all(shape.keeps(value[key]) for key, shape in self.fields.items())
        if isinstance(value, dict) and self.results is not None and not all(map(self.results.keeps, value.values())):
            return False
        return self.items is None or all(map(self.items.keeps, value))


def shape_of(values: Sequence[Any], is_record: bool = False) -> Shape:
    """The shape of values of one place. `is_record`: they are the arguments of calls, all of one number."""
    values = values[:MAX_VALUES]
    by_type: dict[type, list[Any]] = {}
    for value in values:
        by_type.setdefault(type(value), []).append(value)
    facts = {kind: [] if is_record else facts_of(found) for kind, found in by_type.items()}
    containers = [value for value in values if not isinstance(value, SCALARS)]
    constant = len(values) > 1 and all(value == values[0] for value in values)
    if not containers:
        return Shape(values=values, facts=facts, constant=constant)
    keys = _record_keys(containers)
    if is_record or keys:
        fields = {key: shape_of([value[key] for value in containers]) for key in keys or range(len(values[0]))}
        return Shape(values=values, facts=facts, fields=fields, constant=constant)
    items = [i for one in containers for i in (sorted(one, key=repr) if isinstance(one, set | frozenset) else one)]
    results = [result for value in containers if isinstance(value, dict) for result in value.values()]
    return Shape(
        values=values,
        facts=facts,
        items=shape_of(items) if items else None,
        results=shape_of(results) if results else None,
        constant=constant,
    )


def _record_keys(containers: Sequence[Any]) -> list[Any]:
    """The fields of containers that are records: their items differ in type from each other, and not from one
    container to the next; or they are dictionaries of equal text keys."""
    first = containers[0]
    if len(containers) < 2 or not all(type(one) is type(first) and len(one) == len(first) for one in containers):
        return []
    if isinstance(first, dict):
        is_record = all(one.keys() == first.keys() for one in containers) and all(isinstance(key, str) for key in first)
        return list(first) if is_record else []
    if not isinstance(first, list | tuple) or not 1 < len(first) <= _MAX_FIELDS:
        return []
    kinds = [[type(item) for item in one] for one in containers]
    differ = len(set(kinds[0])) > 1 and all(kind == kinds[0] for kind in kinds)
    return list(range(len(first))) if differ else []

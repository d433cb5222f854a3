"""The shape of visible inputs: the types in each place, and the facts that hold for all values of a place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from codezero.evaluate.fresh.facts import Fact, facts_of, holds

MAX_VALUES = 2_000
"""The most values of one place that are read."""
_MAX_FIELDS = 6
"""The most items of a tuple or list that is a record; longer ones are sequences of like values."""
SCALARS = (bool, int, float, complex, str, bytes, type(None))


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """One place of the inputs: an argument, a field of a record, or all items of a container."""

    values: Sequence[Any]
    """The values seen in the place."""
    facts: Mapping[type, Sequence[Fact]]
    """The facts of the values of each type that was seen in the place."""
    items: Shape | None = None
    """The shape of a container's items or a dictionary's keys; None for records."""
    results: Shape | None = None
    """The shape of a dictionary's values; None for records."""
    fields: Mapping[Any, Shape] = field(default_factory=dict)
    """The shapes of the fields of records, by position or key: tuples, lists and dictionaries with fixed fields."""
    constant: bool = False
    """True if all inputs have the same value in the place."""
    is_wide: bool = False
    """True if numbers may be further from those seen, as in `facts_of`."""

    def keeps(self, value: Any) -> bool:
        """Returns whether the value fits the place."""
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


def shape_of(values: Sequence[Any], is_record: bool = False, is_wide: bool = False) -> Shape:
    """Returns the shape of the values of one place. `is_record` is True for the arguments of calls, all of one
    length; `is_wide` is as in `facts_of`."""
    values = values[:MAX_VALUES]
    by_type: dict[type, list[Any]] = {}
    for value in values:
        by_type.setdefault(type(value), []).append(value)
    facts = {kind: [] if is_record else facts_of(found, is_wide) for kind, found in by_type.items()}
    containers = [value for value in values if not isinstance(value, SCALARS)]
    constant = len(values) > 1 and all(value == values[0] for value in values)
    if not containers:
        return Shape(values=values, facts=facts, constant=constant, is_wide=is_wide)
    keys = _record_keys(containers)
    if is_record or keys:
        places = keys or range(len(values[0]))
        fields = {key: shape_of([value[key] for value in containers], is_wide=is_wide) for key in places}
        return Shape(values=values, facts=facts, fields=fields, constant=constant)
    items = [i for one in containers for i in (sorted(one, key=repr) if isinstance(one, set | frozenset) else one)]
    results = [result for value in containers if isinstance(value, dict) for result in value.values()]
    return Shape(
        values=values,
        facts=facts,
        items=shape_of(items, is_wide=is_wide) if items else None,
        results=shape_of(results, is_wide=is_wide) if results else None,
        constant=constant,
    )


def _record_keys(containers: Sequence[Any]) -> list[Any]:
    """Returns the fields of containers if they are records, else none. Records are short tuples or lists whose items
    are not all of one type, with the same types in each record, or dictionaries with the same text keys."""
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

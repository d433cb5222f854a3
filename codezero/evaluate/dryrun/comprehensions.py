"""Comprehensions and generator expressions."""

from __future__ import annotations

import ast
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any, NamedTuple

from codezero.evaluate.dryrun.budget import Unsupported, meter
from codezero.evaluate.dryrun.compiler import EXPRESSIONS, Expression, Store, Unit
from codezero.evaluate.dryrun.displays import source_of
from codezero.evaluate.dryrun.generators import driven
from codezero.evaluate.dryrun.measure import hashable, iterate, kept
from codezero.evaluate.dryrun.scope import Comprehension, comprehension_scope
from codezero.evaluate.dryrun.targets import target_store
from codezero.evaluate.dryrun.values import UNBOUND, Frame, Iterating


class _Loop(NamedTuple):
    """One `for` of a comprehension with its conditions."""

    source: Expression
    store: Store
    conditions: list[Expression]


_Parts = tuple[Expression, Unit, list[_Loop]]
"""The first iterable of a comprehension, which is evaluated in the outer scope, the unit of the inner scope, and its
loops."""


def _comprehension(unit: Unit, node: Comprehension) -> _Parts:
    inner = unit.within(comprehension_scope(node, unit.scope))
    loops = []
    for number, generator in enumerate(node.generators):
        if generator.is_async:
            raise Unsupported("an asynchronous comprehension")
        source = source_of(unit if number == 0 else inner, generator.iter)
        loops.append(_Loop(source, target_store(inner, generator.target), inner.expressions(generator.ifs)))
    return loops[0].source, inner, loops


def _walk(loops: list[_Loop], number: int, frame: Frame, items: Any) -> Iterator[None]:
    """Yields once for each combination of items of loops `number` and later that meets the conditions, with their
    variables assigned."""
    loop = loops[number]
    store, conditions = loop.store, loop.conditions
    is_last = number + 1 == len(loops)
    for item in items:
        meter.left -= 1
        if meter.left < 0:
            meter.refill()
        store(frame, item)
        for condition in conditions:
            if not condition(frame):
                break
        else:
            if is_last:
                yield
            else:
                yield from _walk(loops, number + 1, frame, kept(loops[number + 1].source(frame)))


def _collected(parts: _Parts, make: Callable[[Frame, Iterator[None]], Any]) -> Expression:
    """Returns the closure of a comprehension. `make` makes its container from the inner frame, with an item for each
    value of the iterator that it gets."""
    source, inner, loops = parts
    pad = [UNBOUND] * len(inner.scope.slots)

    def collect(frame: Frame) -> Any:
        meter.call_by_library()
        items = iterate(source(frame))
        own = [frame, *pad]
        return make(own, _walk(loops, 0, own, items))

    return collect


def _list_comprehension(unit: Unit, node: ast.ListComp) -> Expression:
    source, inner, loops = parts = _comprehension(unit, node)
    value = inner.expression(node.elt)
    if len(loops) > 1 or loops[0].conditions:
        return _collected(parts, lambda own, steps: [value(own) for _ in steps])
    pad = [UNBOUND] * len(inner.scope.slots)
    store = loops[0].store

    def collect_all(frame: Frame) -> list[Any]:
        result = []
        meter.call_by_library()
        items = iterate(source(frame))
        own = [frame, *pad]
        for item in items:
            meter.left -= 1
            if meter.left < 0:
                meter.refill()
            store(own, item)
            result.append(value(own))
        return result

    return collect_all


def _set_comprehension(unit: Unit, node: ast.SetComp) -> Expression:
    parts = _comprehension(unit, node)
    value = parts[1].expression(node.elt)
    return _collected(parts, lambda own, steps: {hashable(value(own)) for _ in steps})


def _dict_comprehension(unit: Unit, node: ast.DictComp) -> Expression:
    parts = _comprehension(unit, node)
    key, value = parts[1].expressions([node.key, node.value])
    return _collected(parts, lambda own, steps: {hashable(key(own)): value(own) for _ in steps})


def _generator(unit: Unit, node: ast.GeneratorExp) -> Expression:
    source, inner, loops = _comprehension(unit, node)
    value = inner.expression(node.elt)
    pad = [UNBOUND] * len(inner.scope.slots)

    def produce(own: Frame, items: Iterable[Any]) -> Generator[Any, Any, None]:
        for _ in _walk(loops, 0, own, items):
            yield value(own)

    run = driven(produce, unit.judging)

    def make(frame: Frame) -> Iterating:
        items = iter(kept(source(frame)))
        return Iterating(run([frame, *pad], items), is_generator=True)

    return make


EXPRESSIONS.update(
    {
        ast.ListComp: _list_comprehension,
        ast.SetComp: _set_comprehension,
        ast.DictComp: _dict_comprehension,
        ast.GeneratorExp: _generator,
    }
)

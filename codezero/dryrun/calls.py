"""Calls, lambdas and comprehensions."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Any

from codezero.dryrun.attributes import get_attribute
from codezero.dryrun.budget import Unsupported, meter
from codezero.dryrun.compiler import EXPRESSIONS, Expression, Store, Unit, refusal_of
from codezero.dryrun.definitions import function_maker
from codezero.dryrun.displays import items_of
from codezero.dryrun.measure import hashable, iterate
from codezero.dryrun.methods import METHODS
from codezero.dryrun.objects import Instance, Super
from codezero.dryrun.scope import Comprehension, comprehension_scope
from codezero.dryrun.targets import target_store
from codezero.dryrun.values import UNBOUND, Frame, Function, Iterating

_MISSING = object()
_MAX_KEYWORDS = 10_000


def _call(unit: Unit, node: ast.Call) -> Expression:
    if isinstance(node.func, ast.Name) and node.func.id == "super" and not node.args and not node.keywords:
        return _super(unit)
    starred = any(isinstance(arg, ast.Starred) for arg in node.args)
    if isinstance(node.func, ast.Attribute):
        function = _method(unit, node.func)
        bound = True
    else:
        function, bound = unit.expression(node.func), False
    if node.keywords or starred or len(node.args) > 3:
        return _general(function, bound, items_of(unit, node.args), _keywords(unit, node))
    args = unit.expressions(node.args)
    return _bound_call(function, args) if bound else _plain_call(function, args)


def _plain_call(function: Expression, args: list[Expression]) -> Expression:
    if not args:
        return lambda frame: function(frame)()
    if len(args) == 1:
        only = args[0]
        return lambda frame: function(frame)(only(frame))
    if len(args) == 2:
        first, second = args
        return lambda frame: function(frame)(first(frame), second(frame))
    one, two, three = args
    return lambda frame: function(frame)(one(frame), two(frame), three(frame))


def _method(unit: Unit, node: ast.Attribute) -> Callable[[Frame], tuple[Any, tuple[Any, ...]]]:
    """(function, (its first argument,)) of `value.name(...)`, or (function, ()): no bound method is made."""
    value, name = unit.expression(node.value), unit.scope.mangled(node.attr)

    def find(frame: Frame) -> tuple[Any, tuple[Any, ...]]:
        owner = value(frame)
        meter.left -= 1
        if meter.left < 0:
            meter.refill()
        table = METHODS.get(type(owner))
        if table is not None:
            method = table.get(name)
            if method is not None:
                return method, (owner,)
        elif type(owner) is Instance and name not in owner.attrs:
            method = owner.cls.lookup(name)
            if type(method) is Function:
                return method, (owner,)
        return get_attribute(owner, name), ()

    return find


def _bound_call(find: Expression, args: list[Expression]) -> Expression:
    if not args:

        def call_without(frame: Frame) -> Any:
            function, owner = find(frame)
            return function(*owner)

        return call_without
    if len(args) == 1:
        only = args[0]

        def call_with_one(frame: Frame) -> Any:
            function, owner = find(frame)
            return function(*owner, only(frame))

        return call_with_one

    def call_with_more(frame: Frame) -> Any:
        function, owner = find(frame)
        return function(*owner, *[arg(frame) for arg in args])

    return call_with_more


def _keywords(unit: Unit, node: ast.Call) -> Callable[[Frame], dict[str, Any]]:
    parts = [(keyword.arg, unit.expression(keyword.value)) for keyword in node.keywords]

    def evaluate(frame: Frame) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for name, value in parts:
            more = value(frame)
            if name is not None:
                more = {name: more}
            elif not isinstance(more, dict):
                raise TypeError("argument after ** must be a mapping")
            if len(more) > _MAX_KEYWORDS:
                raise Unsupported("a call with so many arguments")
            for key in more:
                if type(key) is not str:
                    raise TypeError("keywords must be strings")
                if key in result:
                    raise TypeError(f"got multiple values for keyword argument '{key}'")
            result.update(more)
        return result

    return evaluate


def _general(
    find: Expression, bound: bool, items: Callable[[Frame], list[Any]], keywords: Callable[[Frame], dict[str, Any]]
) -> Expression:
    def call(frame: Frame) -> Any:
        function, owner = find(frame) if bound else (find(frame), ())
        args = items(frame)
        return function(*owner, *args, **keywords(frame))

    return call


def _super(unit: Unit) -> Expression:
    """`super()` directly in a method: the class is in the frame around, the object is the first parameter."""
    parent = unit.scope.parent
    if unit.scope.kind != "function" or parent is None or parent.kind != "class" or not unit.scope.slots:
        return refusal_of("super() outside of a method")

    def make(frame: Frame) -> Super:
        instance = frame[1]
        if type(instance) is not Instance:
            raise Unsupported("super() of anything but an object")
        return Super(frame[0][2], instance)

    return make


def _lambda(unit: Unit, node: ast.Lambda) -> Expression:
    return function_maker(unit, node, "<lambda>")


class _Loop:
    """One `for` of a comprehension with its conditions."""

    __slots__ = ("conditions", "source", "store")

    def __init__(self, source: Expression, store: Store, conditions: list[Expression]) -> None:
        self.source, self.store, self.conditions = source, store, conditions


def _comprehension(unit: Unit, node: Comprehension) -> tuple[Expression, Unit, list[_Loop]]:
    """(the first iterable, which is evaluated outside; the inner unit; its loops)."""
    inner = unit.within(comprehension_scope(node, unit.scope))
    loops = []
    for number, generator in enumerate(node.generators):
        if generator.is_async:
            raise Unsupported("an asynchronous comprehension")
        source = (unit if number == 0 else inner).expression(generator.iter)
        loops.append(_Loop(source, target_store(inner, generator.target), inner.expressions(generator.ifs)))
    return loops[0].source, inner, loops


def _walk(loops: list[_Loop], number: int, frame: Frame, items: Any) -> Iterator[None]:
    """Sets the variables of loops `number` and later, once for each combination that meets the conditions."""
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
                yield from _walk(loops, number + 1, frame, iterate(loops[number + 1].source(frame)))


def _list_comprehension(unit: Unit, node: ast.ListComp) -> Expression:
    source, inner, loops = _comprehension(unit, node)
    value = inner.expression(node.elt)
    pad = [UNBOUND] * len(inner.scope.slots)
    if len(loops) > 1 or loops[0].conditions:

        def collect(frame: Frame) -> list[Any]:
            items = iterate(source(frame))
            own = [frame, *pad]
            return [value(own) for _ in _walk(loops, 0, own, items)]

        return collect
    store = loops[0].store

    def collect_all(frame: Frame) -> list[Any]:
        result = []
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
    source, inner, loops = _comprehension(unit, node)
    value = inner.expression(node.elt)
    pad = [UNBOUND] * len(inner.scope.slots)

    def collect(frame: Frame) -> set[Any]:
        items = iterate(source(frame))
        own = [frame, *pad]
        return {hashable(value(own)) for _ in _walk(loops, 0, own, items)}

    return collect


def _dict_comprehension(unit: Unit, node: ast.DictComp) -> Expression:
    source, inner, loops = _comprehension(unit, node)
    key, value = inner.expression(node.key), inner.expression(node.value)
    pad = [UNBOUND] * len(inner.scope.slots)

    def collect(frame: Frame) -> dict[Any, Any]:
        items = iterate(source(frame))
        own = [frame, *pad]
        return {hashable(key(own)): value(own) for _ in _walk(loops, 0, own, items)}

    return collect


def _generator(unit: Unit, node: ast.GeneratorExp) -> Expression:
    source, inner, loops = _comprehension(unit, node)
    value = inner.expression(node.elt)
    pad = [UNBOUND] * len(inner.scope.slots)

    def make(frame: Frame) -> Iterating:
        origin = source(frame)
        items = iter(iterate(origin))
        own = [frame, *pad]
        return Iterating((value(own) for _ in _walk(loops, 0, own, items)), (origin,))

    return make


EXPRESSIONS.update(
    {
        ast.Call: _call,
        ast.Lambda: _lambda,
        ast.ListComp: _list_comprehension,
        ast.SetComp: _set_comprehension,
        ast.DictComp: _dict_comprehension,
        ast.GeneratorExp: _generator,
    }
)

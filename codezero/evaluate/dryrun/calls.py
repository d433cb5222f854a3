"""Calls and lambdas."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from codezero.evaluate.dryrun.attributes import get_attribute
from codezero.evaluate.dryrun.budget import Stop, Unsupported, meter
from codezero.evaluate.dryrun.compiler import EXPRESSIONS, Expression, Unit, refusal_of
from codezero.evaluate.dryrun.definitions import function_maker
from codezero.evaluate.dryrun.descriptors import BoundMethod, Super
from codezero.evaluate.dryrun.displays import items_of
from codezero.evaluate.dryrun.methods import METHODS
from codezero.evaluate.dryrun.objects import Instance
from codezero.evaluate.dryrun.values import Frame, Function

_MISSING = object()
_MAX_KEYWORDS = 10_000
_COMPARING_METHODS = frozenset({"endswith", "isdisjoint", "issubset", "issuperset", "startswith"})
"""Methods of builtin values that compare: a test that calls one means the builtin's."""


Callee = Callable[[Frame], tuple[Any, Any]]
"""A closure that returns the function of a call and its first argument, _MISSING without one."""


def _call(unit: Unit, node: ast.Call) -> Expression:
    if isinstance(node.func, ast.Name) and node.func.id == "super" and not node.args and not node.keywords:
        return _super(unit)
    if node.keywords or len(node.args) > 3 or any(isinstance(arg, ast.Starred) for arg in node.args):
        callee = _method(unit, node.func) if isinstance(node.func, ast.Attribute) else _function(unit, node.func)
        return _general(callee, items_of(unit, node.args), _keywords(unit, node))
    args = unit.expressions(node.args)
    if isinstance(node.func, ast.Attribute):
        return _method_call(_method(unit, node.func), args)
    return _plain_call(unit.expression(node.func), args)


def _without_host_call(function: Any) -> Any:
    """Returns what to call for a function. For an interpreted one it is its method: a call of the object would use the
    host's C stack, where some versions allow only a few hundred nested calls."""
    return function.invoke if type(function) is Function else function


def _function(unit: Unit, node: ast.expr) -> Callee:
    function = unit.expression(node)
    return lambda frame: (_without_host_call(function(frame)), _MISSING)


def _plain_call(function: Expression, args: list[Expression]) -> Expression:
    if not args:
        return lambda frame: _without_host_call(function(frame))()
    if len(args) == 1:
        only = args[0]

        def call_with_one(frame: Frame) -> Any:
            target = function(frame)
            if type(target) is Function:
                return target.invoke(only(frame))
            return target(only(frame))

        return call_with_one
    if len(args) == 2:
        first, second = args
        return lambda frame: _without_host_call(function(frame))(first(frame), second(frame))
    one, two, three = args
    return lambda frame: _without_host_call(function(frame))(one(frame), two(frame), three(frame))


def _method(unit: Unit, node: ast.Attribute) -> Callee:
    """Translates the callee of `value.name(...)`, in most cases without making a bound method."""
    value, name = unit.expression(node.value), unit.scope.mangled(node.attr)

    def find(frame: Frame) -> tuple[Any, Any]:
        owner = value(frame)
        meter.left -= 1
        if meter.left < 0:
            meter.refill()
        table = METHODS.get(type(owner))
        if table is not None:
            method = table.get(name)
            if method is not None:
                return method, owner
        elif type(owner) is Instance and name not in owner.attrs:
            method = owner.cls.lookup(name)
            if type(method) is Function:
                return method.invoke, owner
        found = get_attribute(owner, name)
        if type(found) is BoundMethod:
            return _without_host_call(found.function), found.owner
        return _without_host_call(found), _MISSING

    return _never_own_verdict(find, name) if unit.is_test and name in _COMPARING_METHODS else find


def _never_own_verdict(find: Callee, name: str) -> Callee:
    """Wraps a callee in a test, where a class that the test does not name may not say how its result compares."""

    def find_builtin(frame: Frame) -> tuple[Any, Any]:
        function, owner = find(frame)
        if type(owner) is Instance and not owner.cls.trusted and owner.cls.name not in meter.test_names:
            raise Stop(f"a test depends on {name} of the solution's class")
        return function, owner

    return find_builtin


def _method_call(find: Callee, args: list[Expression]) -> Expression:
    if not args:

        def call_without(frame: Frame) -> Any:
            function, owner = find(frame)
            return function() if owner is _MISSING else function(owner)

        return call_without
    if len(args) == 1:
        only = args[0]

        def call_with_one(frame: Frame) -> Any:
            function, owner = find(frame)
            return function(only(frame)) if owner is _MISSING else function(owner, only(frame))

        return call_with_one
    if len(args) == 2:
        first, second = args

        def call_with_two(frame: Frame) -> Any:
            function, owner = find(frame)
            a, b = first(frame), second(frame)
            return function(a, b) if owner is _MISSING else function(owner, a, b)

        return call_with_two
    one, two, three = args

    def call_with_three(frame: Frame) -> Any:
        function, owner = find(frame)
        a, b, c = one(frame), two(frame), three(frame)
        return function(a, b, c) if owner is _MISSING else function(owner, a, b, c)

    return call_with_three


def _keywords(unit: Unit, node: ast.Call) -> Callable[[Frame], dict[str, Any]]:
    parts = [(keyword.arg, unit.expression(keyword.value)) for keyword in node.keywords]

    def evaluate(frame: Frame) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for name, value in parts:
            more = value(frame)
            if name is not None:
                more = {name: more}
            elif type(more) is Instance and type(more.data) is dict:
                more = more.data
            elif not isinstance(more, dict):
                raise TypeError("argument after ** must be a mapping")
            meter.work(len(more) << 3)
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
    find: Callee, items: Callable[[Frame], list[Any]], keywords: Callable[[Frame], dict[str, Any]]
) -> Expression:
    def call(frame: Frame) -> Any:
        function, owner = find(frame)
        args = items(frame)
        if owner is not _MISSING:
            args = [owner, *args]
        return function(*args, **keywords(frame))

    return call


def _super(unit: Unit) -> Expression:
    """Translates `super()` directly in a method: the enclosing frame has the class, the first parameter is the
    object."""
    parent = unit.scope.parent
    if unit.scope.kind != "function" or parent is None or parent.kind != "class" or not unit.scope.slots:
        return refusal_of("super() outside of a method")

    return lambda frame: Super(frame[0][2], frame[1])


EXPRESSIONS.update({ast.Call: _call, ast.Lambda: lambda unit, node: function_maker(unit, node, "<lambda>")})

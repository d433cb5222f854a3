"""Methods that instances of classes derived from `dict`, `list` or `int` have from that type."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from codezero.evaluate.dryrun.items import delete_item, get_item, set_item
from codezero.evaluate.dryrun.measure import iterate
from codezero.evaluate.dryrun.objects import COMPARISONS, OF_DATA, OPERATORS, Instance
from codezero.evaluate.dryrun.operators import BINARY, COMPARE, contains, in_place, unary
from codezero.evaluate.dryrun.text import repr_of, text_of
from codezero.evaluate.dryrun.values import Iterating, charged


def _plain(value: Any) -> Any:
    return value.data if type(value) is Instance and value.data is not None else value


def _item(value: Instance, key: Any) -> Any:
    missing = value.cls.lookup("__missing__")
    if missing is not None and type(value.data) is dict and not contains(value.data, key):
        return missing(value, key)
    return get_item(value.data, key)


def _forward(run: Callable[[Any, Any], Any]) -> Callable[[Instance, Any], Any]:
    return lambda value, other: _tried(run, value.data, _plain(other))


def _reflected(run: Callable[[Any, Any], Any]) -> Callable[[Instance, Any], Any]:
    return lambda value, other: _tried(run, _plain(other), value.data)


def _tried(run: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
    """Returns run(a, b), or NotImplemented if the types do not fit, so that the other operand is asked."""
    if type(a) is Instance or type(b) is Instance:
        return NotImplemented
    try:
        return run(a, b)
    except TypeError:
        return NotImplemented


def _changed(name: str) -> Callable[[Instance, Any], Any]:
    update = in_place(name)

    def change(value: Instance, other: Any) -> Any:
        if type(value.data) is int:
            return NotImplemented
        value.data = update(value.data, _plain(other))
        return value

    return change


_DUNDERS = {name: method for name, method in OPERATORS.items() if name != "MatMult"}
_SIGNS = {"__neg__": operator.neg, "__pos__": operator.pos, "__invert__": operator.invert, "__abs__": abs}

OF_DATA.update(
    {
        **{f"__{dunder}__": _forward(BINARY[name]) for name, dunder in _DUNDERS.items()},
        **{f"__r{dunder}__": _reflected(BINARY[name]) for name, dunder in _DUNDERS.items()},
        **{f"__i{dunder}__": _changed(name) for name, dunder in _DUNDERS.items()},
        **{f"__{method}__": _forward(COMPARE[name]) for name, method in COMPARISONS.items() if name != "NotEq"},
        **{name: lambda value, sign=sign: unary(sign, value.data) for name, sign in _SIGNS.items()},
        "__contains__": lambda value, item: contains(value.data, item),
        "__delitem__": lambda value, key: delete_item(value.data, key),
        "__getitem__": _item,
        "__iter__": lambda value: Iterating(charged(iterate(value.data))),
        "__len__": lambda value: len(value.data),
        "__repr__": lambda value: repr_of(value.data),
        "__setitem__": lambda value, key, item: set_item(value.data, key, item),
        "__str__": lambda value: text_of(value.data),
    }
)

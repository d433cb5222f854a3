"""`getattr`, `hasattr`, `setattr` and `delattr` of instances of interpreted classes, and of the classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from codezero.evaluate.dryrun.attributes import delete_attribute, get_attribute, set_attribute
from codezero.evaluate.dryrun.budget import Unsupported
from codezero.evaluate.dryrun.classes import Class
from codezero.evaluate.dryrun.measure import ATOMS
from codezero.evaluate.dryrun.objects import Instance
from codezero.evaluate.dryrun.scope import is_dunder

_MISSING = object()


def _own(value: Any, name: Any) -> str:
    """Returns `name`. Raises Unsupported for a value of any other type and for dunder names."""
    if type(name) is not str:
        raise TypeError("attribute name must be string")
    if type(value) not in (Instance, Class) or is_dunder(name):
        raise Unsupported("an attribute by name of a builtin value")
    return name


def _getattr(value: Any, name: Any, /, *default: Any) -> Any:
    try:
        return get_attribute(value, _own(value, name))
    except AttributeError:
        if default:
            return default[0]
        raise


_ASKED = frozenset({"__contains__", "__getitem__", "__iter__", "__len__", "__next__"})
"""Dunder names by which programs ask for the sort of a builtin value."""
_BUILTIN = ATOMS | {list, tuple, dict, set, frozenset, range, bytearray}


def _hasattr(value: Any, name: Any, /) -> bool:
    if type(value) in _BUILTIN and type(name) is str and name in _ASKED:
        return hasattr(value, name)
    return _getattr(value, name, _MISSING) is not _MISSING


def _vars(*values: Any) -> Any:
    if len(values) != 1 or type(values[0]) is not Instance:
        raise Unsupported("vars() of anything but an object")
    return get_attribute(values[0], "__dict__")


BY_NAME: dict[str, Callable[..., Any]] = {
    "getattr": _getattr,
    "hasattr": _hasattr,
    "setattr": lambda value, name, new, /: set_attribute(value, _own(value, name), new),
    "delattr": lambda value, name, /: delete_attribute(value, _own(value, name)),
    "vars": _vars,
}

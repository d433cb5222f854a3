"""`getattr` and its like, for the program's own objects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from codezero.evaluate.dryrun.attributes import delete_attribute, get_attribute, is_dunder, set_attribute
from codezero.evaluate.dryrun.budget import Unsupported
from codezero.evaluate.dryrun.classes import Class
from codezero.evaluate.dryrun.objects import Instance

_MISSING = object()


def _own(value: Any, name: Any) -> str:
    """The name of an attribute that a program puts together, which may be one of its own objects only."""
    if type(name) is not str:
        raise TypeError("attribute name must be string")
    if type(value) not in (Instance, Class) or is_dunder(name):
        raise Unsupported("an attribute by name of what is not the program's own")
    return name


def _getattr(value: Any, name: Any, /, *default: Any) -> Any:
    try:
        return get_attribute(value, _own(value, name))
    except AttributeError:
        if default:
            return default[0]
        raise


def _hasattr(value: Any, name: Any, /) -> bool:
    return _getattr(value, name, _MISSING) is not _MISSING


def _setattr(value: Any, name: Any, new: Any, /) -> None:
    set_attribute(value, _own(value, name), new)


def _delattr(value: Any, name: Any, /) -> None:
    delete_attribute(value, _own(value, name))


BY_NAME: dict[str, Callable[..., Any]] = {
    "getattr": _getattr,
    "hasattr": _hasattr,
    "setattr": _setattr,
    "delattr": _delattr,
}

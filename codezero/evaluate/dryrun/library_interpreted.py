"""Library modules that are interpreted from Python source, with their contents."""

from __future__ import annotations

from typing import Any

from codezero.evaluate.dryrun.budget import Stop, Unsupported
from codezero.evaluate.dryrun.classes import Class
from codezero.evaluate.dryrun.descriptors import CachedProperty
from codezero.evaluate.dryrun.interpreted import library
from codezero.evaluate.dryrun.interpreted_sources import CHAIN_MAP, CONTEXTLIB, NAMESPACE, QUEUE, THREADING
from codezero.evaluate.dryrun.library import MODULES
from codezero.evaluate.dryrun.objects import ORDER
from codezero.evaluate.dryrun.values import Builtin

_TOTAL_ORDERING = """
def total_ordering(cls):
    first = _first_order(cls)
    mirrored, with_or_without_equal, opposite = _OTHERS[first]
    def by(decide):
        def compare(self, other):
            found = _ask(self, other, first)
            return found if found is NotImplemented else decide(found, self, other)
        return compare
    if first in ("__lt__", "__gt__"):
        made = {mirrored: by(lambda found, one, other: not found and one != other)}
        made[with_or_without_equal] = by(lambda found, one, other: found or one == other)
    else:
        made = {mirrored: by(lambda found, one, other: not found or one == other)}
        made[with_or_without_equal] = by(lambda found, one, other: found and one != other)
    made[opposite] = by(lambda found, one, other: not found)
    _add_missing(cls, made)
    return cls
"""


def _wait_for_ever() -> None:
    raise Stop("a deadlock")


def _first_order(cls: Any, /) -> str:
    if type(cls) is not Class:
        raise Unsupported("total_ordering of this")
    for name in ORDER:
        if cls.owner(name) is not None:
            return name
    raise ValueError("must define at least one ordering operation: < > <= >=")


def _add_missing(cls: Class, methods: dict[str, Any], /) -> None:
    for name, method in methods.items():
        if cls.owner(name) is None:
            cls.namespace[name] = method


def load() -> None:
    """Adds the interpreted names to their modules. Translations of all syntax nodes must be registered before."""
    ordering = {
        "_OTHERS": {
            "__lt__": ("__gt__", "__le__", "__ge__"),
            "__le__": ("__ge__", "__lt__", "__gt__"),
            "__gt__": ("__lt__", "__ge__", "__le__"),
            "__ge__": ("__le__", "__gt__", "__lt__"),
        },
        "_add_missing": Builtin("add", _add_missing),
        "_ask": Builtin("ask", lambda value, other, name, /: value.cls.lookup(name)(value, other)),
        "_first_order": Builtin("first", _first_order),
    }
    names_of = Builtin("names", lambda value, /: value.attrs)
    MODULES["types"].members.update(library(NAMESPACE, {"_names": names_of}))
    MODULES["contextlib"].members.update(library(CONTEXTLIB, {}))
    waits = {"_wait_for_ever": Builtin("wait", _wait_for_ever)}
    MODULES["threading"].members.update(library(THREADING, dict(waits)))
    MODULES["queue"].members.update(library(QUEUE, dict(waits)))
    MODULES["collections"].members.update(library(CHAIN_MAP, {}))
    MODULES["functools"].members.update(library(_TOTAL_ORDERING, ordering))
    MODULES["functools"].members["cached_property"] = Builtin("cached_property", CachedProperty)

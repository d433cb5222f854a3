"""Library modules that are interpreted from Python source, with their contents."""

from __future__ import annotations

from typing import Any

from codezero.evaluate.dryrun.budget import Stop, Unsupported, meter
from codezero.evaluate.dryrun.classes import Class
from codezero.evaluate.dryrun.descriptors import CachedProperty
from codezero.evaluate.dryrun.interpreted import define, library
from codezero.evaluate.dryrun.interpreted_sources import CHAIN_MAP, CONTEXTLIB, NAMESPACE, QUEUE, THREADING
from codezero.evaluate.dryrun.library import MODULES
from codezero.evaluate.dryrun.objects import ORDER
from codezero.evaluate.dryrun.values import Builtin

_OTHERS = {
    "__lt__": {"gt": "not found and self != other", "le": "found or self == other", "ge": "not found"},
    "__le__": {"ge": "not found or self == other", "lt": "found and self != other", "gt": "not found"},
    "__gt__": {"lt": "not found and self != other", "ge": "found or self == other", "le": "not found"},
    "__ge__": {"le": "not found or self == other", "gt": "found and self != other", "lt": "not found"},
}
"""The results of the methods that `total_ordering` adds to a class, by the one that it asks."""


def _wait_for_ever() -> None:
    raise Stop("a deadlock")


def _total_ordering(cls: Any, /) -> Any:
    if type(cls) is not Class:
        raise Unsupported("total_ordering of this")
    first = next((name for name in ORDER if cls.owner(name) is not None), None)
    if first is None:
        raise ValueError("must define at least one ordering operation: < > <= >=")
    source = "".join(
        f"def __{name}__(self, other):\n    found = _ask(self, other)\n"
        f"    return found if found is NotImplemented else {result}\n"
        for name, result in _OTHERS[first].items()
        if cls.owner(f"__{name}__") is None
    )
    meter.allocate(len(source) << 4)
    made = define(source, {"_ask": Builtin("ask", lambda value, other, /: value.cls.lookup(first)(value, other))})
    cls.namespace.update((name, method) for name, method in made.items() if name != "_ask")
    return cls


def load() -> None:
    """Adds the interpreted names to their modules. Translations of all syntax nodes must be registered before."""
    names_of = Builtin("names", lambda value, /: value.attrs)
    MODULES["types"].members.update(library(NAMESPACE, {"_names": names_of}))
    MODULES["contextlib"].members.update(library(CONTEXTLIB, {}))
    waits = {"_wait_for_ever": Builtin("wait", _wait_for_ever)}
    MODULES["threading"].members.update(library(THREADING, dict(waits)))
    MODULES["queue"].members.update(library(QUEUE, dict(waits)))
    MODULES["collections"].members.update(library(CHAIN_MAP, {}))
    for name, function in (("cached_property", CachedProperty), ("total_ordering", _total_ordering)):
        MODULES["functools"].members[name] = Builtin(name, function)

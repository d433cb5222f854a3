"""Imported modules, and those of their values that belong to a case."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from codezero.evaluate.dryrun.budget import meter
from codezero.evaluate.dryrun.values import Hidden, Opaque


class PerCase:
    """A value of the running program, such as `sys.stdin`, made on first use; the program may assign another."""

    __slots__ = ("make", "name")

    def __init__(self, name: str, make: Callable[[], Any]) -> None:
        self.name, self.make = name, make

    def get(self) -> Any:
        if self.name not in meter.per_case:
            meter.per_case[self.name] = self.make()
        return meter.per_case[self.name]

    def put(self, value: Any) -> None:
        meter.per_case[self.name] = value


class Module(Hidden):
    """An imported module: `members` are interpreted; other `existing` names end the case when they are used. `exported`
    is its `__all__`, if it has one."""

    __slots__ = ("existing", "exported", "members", "name")

    def __init__(
        self, name: str, members: dict[str, Any], existing: frozenset[str], exported: list[str] | None = None
    ) -> None:
        self.name, self.members, self.existing, self.exported = name, members, existing, exported

    def member(self, name: str) -> Any:
        """Returns the value of a name. Raises KeyError if the real module does not have it either."""
        if name in self.members:
            found = self.members[name]
            return found.get() if type(found) is PerCase else found
        if name in self.existing:
            return Opaque(f"{self.name}.{name}")
        raise KeyError(name)

    def public_names(self) -> list[str]:
        """Returns the names that `from module import *` binds."""
        if self.exported is not None:
            return self.exported
        return [name for name in self.existing if not name.startswith("_")]

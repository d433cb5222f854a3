"""Types as values of interpreted programs: builtin types, annotations, and unions of types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from codezero.evaluate.dryrun.budget import Unsupported, meter
from codezero.evaluate.dryrun.values import Hidden


class Type:
    """The part of types that joins them with `|`. A program uses the result in annotations and `isinstance`."""

    __slots__ = ()

    def __or__(self, other: Any) -> Any:
        return NotImplemented if isinstance(other, _NO_TYPES) else Union(self, other)

    def __ror__(self, other: Any) -> Any:
        return NotImplemented if isinstance(other, _NO_TYPES) else Union(other, self)


_NO_TYPES = (int, float, complex, str, bytes, list, tuple, dict, set, frozenset)


class TypeValue(Type):
    """A builtin type: `host` is the type of its instances, `function` makes one."""

    __slots__ = ("attrs", "function", "host", "name")

    def __init__(self, host: type, function: Callable[..., Any]) -> None:
        self.host, self.function, self.name = host, function, host.__name__
        self.attrs: dict[str, Any] = {}

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        meter.left -= 1
        if meter.left < 0:
            meter.refill()
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        module = self.host.__module__
        if module.startswith("codezero"):
            raise Unsupported(f"the text of {self.name}")
        return f"<class '{self.name}'>" if module == "builtins" else f"<class '{module}.{self.name}'>"


class Annotation(Hidden):
    """A stand-in for types of `typing` and `collections.abc`, and for `list[int]`. One with a `host` also serves in
    `isinstance`; the others can only annotate."""

    __slots__ = ("host",)

    def __init__(self, host: type | None = None) -> None:
        self.host = host

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        raise Unsupported("a call of a type of typing")

    def __or__(self, other: Any) -> Annotation:
        meter.work(0)
        return Annotation()

    __ror__ = __or__


class Union(Type, Hidden):
    """The types that `|` joins, with those of a union among them in its place."""

    __slots__ = ("parts",)

    def __init__(self, left: Any, right: Any) -> None:
        first, second = (part.parts if type(part) is Union else (part,) for part in (left, right))
        meter.allocate((len(first) + len(second)) << 3)
        self.parts: tuple[Any, ...] = (*first, *second)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        raise Unsupported("a comparison of unions")

    __hash__ = None  # type: ignore[assignment]


GENERIC = Annotation()
"""`typing.Generic`, a base class without effect."""

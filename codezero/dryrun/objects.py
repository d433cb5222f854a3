"""Interpreted classes and their instances.

One host class stands for the instances of all interpreted classes. It has every dunder method that host operators and
functions may call, and each looks up the interpreted one or does what CPython does without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from codezero.dryrun.budget import Cheat, Stop, Unsupported, meter
from codezero.dryrun.values import Hidden, Iterating, TypeValue, charged

_MISSING = object()

BINARY = tuple(
    f"__{side}{name}__"
    for name in (
        "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "lshift", "rshift", "matmul",
    )
    for side in ("", "r", "i")
)  # fmt: skip
ORDER = ("__lt__", "__le__", "__gt__", "__ge__")
UNARY = ("__neg__", "__pos__", "__invert__", "__abs__")
DEFINABLE = frozenset(
    (*BINARY, *ORDER, *UNARY, "__init__", "__eq__", "__ne__", "__hash__", "__bool__", "__len__", "__str__", "__repr__",
     "__iter__", "__next__", "__contains__", "__getitem__", "__setitem__", "__delitem__", "__call__", "__doc__",
     "__reversed__")
)  # fmt: skip
"""Dunder names that a class body may bind; with any other, the class is not interpreted."""


class Class:
    """An interpreted class with at most one base: another one, or a builtin exception."""

    __slots__ = ("base", "error", "mro", "name", "namespace", "trusted")

    def __init__(self, name: str, base: Class | TypeValue | None, namespace: dict[str, Any], trusted: bool) -> None:
        self.name, self.base, self.namespace, self.trusted = name, base, namespace, trusted
        self.mro: tuple[Class, ...] = (self, *(base.mro if isinstance(base, Class) else ()))
        self.error: type | None = base.error if isinstance(base, Class) else base.host if base else None
        """The builtin exception that instances are, if any."""
        if len(self.mro) > 50:
            raise Stop("inheritance too deep")

    def lookup(self, name: str, default: Any = None) -> Any:
        for cls in self.mro:
            if name in cls.namespace:
                return cls.namespace[name]
        return default

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        meter.work(0)
        instance = Instance(self, args)
        init = self.lookup("__init__")
        if init is not None:
            if init(instance, *args, **kwargs) is not None:
                raise TypeError("__init__() should return None")
        elif kwargs or (args and self.error is None):
            raise TypeError(f"{self.name}() takes no arguments")
        return instance

    def __repr__(self) -> str:
        return f"<class '__main__.{self.name}'>"


class Instance:
    """An instance of an interpreted class."""

    __slots__ = ("args", "attrs", "cls")

    def __init__(self, cls: Class, args: tuple[Any, ...]) -> None:
        self.cls, self.args = cls, args
        self.attrs: dict[str, Any] = {}

    def invoke(self, name: str, *others: Any, missing: str = "") -> Any:
        """The result of an interpreted method, or NotImplemented; TypeError with the text `missing` if that is given.

        While a test compares, a solution's own class may not have a say about plain values.
        """
        method = self.cls.lookup(name)
        if method is None:
            if missing:
                raise TypeError(missing)
            return NotImplemented
        if not meter.judging or self.cls.trusted:
            return method(self, *others)
        if not any(type(other) is Instance for other in others):
            if self.cls.name in meter.test_names:
                raise Stop(f"a test depends on {name} of the solution's class")
            raise Cheat(f"the result overrides {'equality' if name == '__eq__' else name}")
        meter.judging = False
        try:
            return method(self, *others)
        finally:
            meter.judging = True

    def __eq__(self, other: object) -> Any:
        return self.invoke("__eq__", other)

    def __ne__(self, other: object) -> Any:
        result = self.invoke("__ne__", other)
        if result is NotImplemented:
            result = self.invoke("__eq__", other)
            return result if result is NotImplemented else not result
        return result

    def __hash__(self) -> int:
        for cls in self.cls.mro:
            own = cls.namespace.get("__hash__", _MISSING)
            if own is None or (own is _MISSING and "__eq__" in cls.namespace):
                raise TypeError(f"unhashable type: '{self.cls.name}'")
            if own is not _MISSING:
                found = own(self)
                if type(found) is not int:
                    raise TypeError("__hash__ method should return an integer")
                return hash(found)
        return object.__hash__(self)

    def __bool__(self) -> bool:
        if self.cls.lookup("__bool__") is not None:
            result: bool = self.invoke("__bool__")
            return result
        return self.cls.lookup("__len__") is None or bool(len(self))

    def __len__(self) -> Any:
        return self.invoke("__len__", missing=f"object of type '{self.cls.name}' has no len()")

    def __iter__(self) -> Iterator[Any]:
        if self.cls.lookup("__iter__") is None and self.cls.lookup("__getitem__") is not None:
            raise Unsupported("iteration by __getitem__")
        found = self.invoke("__iter__", missing=f"'{self.cls.name}' object is not iterable")
        if type(found) is Iterating:
            return found.raw
        if type(found) is Instance and found.cls.lookup("__next__") is not None:
            return charged(_Stepping(found))
        raise TypeError(f"iter() returned non-iterator of type '{type(found).__name__}'")

    def __next__(self) -> Any:
        return self.invoke("__next__", missing=f"'{self.cls.name}' object is not an iterator")

    def __contains__(self, item: object) -> Any:
        if self.cls.lookup("__contains__") is not None:
            return self.invoke("__contains__", item)
        return item in iter(self)

    def __getitem__(self, index: Any) -> Any:
        return self.invoke("__getitem__", index, missing=f"'{self.cls.name}' object is not subscriptable")

    def __setitem__(self, index: Any, value: Any) -> None:
        self.invoke("__setitem__", index, value, missing=f"'{self.cls.name}' object does not support item assignment")

    def __delitem__(self, index: Any) -> None:
        self.invoke("__delitem__", index, missing=f"'{self.cls.name}' object doesn't support item deletion")

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        method = self.cls.lookup("__call__")
        if method is None:
            raise TypeError(f"'{self.cls.name}' object is not callable")
        return method(self, *args, **kwargs)

    def __str__(self) -> str:
        for name in ("__str__", "__repr__"):
            if self.cls.lookup(name) is not None:
                text: str = self.invoke(name)
                return text
        if self.cls.error is not None:
            return str(self.cls.error(*self.args)) if self.cls.error is not KeyError else str(KeyError(*self.args))
        raise Unsupported("the text of an object")

    def __repr__(self) -> str:
        if self.cls.lookup("__repr__") is not None:
            text: str = self.invoke("__repr__")
            return text
        if self.cls.error is not None:
            return f"{self.cls.name}{self.args!r}" if len(self.args) != 1 else f"{self.cls.name}({self.args[0]!r})"
        raise Unsupported("the text of an object")

    def __format__(self, spec: str) -> str:
        if spec:
            raise TypeError(f"unsupported format string passed to {self.cls.name}.__format__")
        return str(self)


def _define(name: str) -> None:
    if name in UNARY:

        def method(self: Instance) -> Any:
            return self.invoke(name, missing=f"bad operand type for {name}: '{self.cls.name}'")
    else:

        def method(self: Instance, other: Any) -> Any:  # type: ignore[misc]
            return self.invoke(name, other)

    setattr(Instance, name, method)


for _name in (*BINARY, *ORDER, *UNARY):
    _define(_name)


class _Stepping:
    """Iterates an interpreted object that has __next__."""

    __slots__ = ("instance",)

    def __init__(self, instance: Instance) -> None:
        self.instance = instance

    def __iter__(self) -> _Stepping:
        return self

    def __next__(self) -> Any:
        return self.instance.invoke("__next__")


class BoundMethod(Hidden):
    """A function with its first argument."""

    __slots__ = ("function", "owner")

    def __init__(self, function: Callable[..., Any], owner: Any) -> None:
        self.function, self.owner = function, owner

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self.function(self.owner, *args, **kwargs)


class Property(Hidden):
    """`property`, with an optional setter."""

    __slots__ = ("getter", "setter")

    def __init__(self, getter: Any, setter: Any = None) -> None:
        self.getter, self.setter = getter, setter


class StaticMethod(Hidden):
    __slots__ = ("function",)

    def __init__(self, function: Any) -> None:
        self.function = function


class ClassMethod(Hidden):
    __slots__ = ("function",)

    def __init__(self, function: Any) -> None:
        self.function = function


class Super(Hidden):
    """`super()` in a method: the attributes that `instance` has from the bases of `cls`."""

    __slots__ = ("cls", "instance")

    def __init__(self, cls: Class, instance: Any) -> None:
        self.cls, self.instance = cls, instance


class Raised(Exception):
    """Carries an instance of an interpreted exception class through the host."""

    def __init__(self, instance: Instance) -> None:
        super().__init__()
        self.instance = instance


class Cached(Hidden):
    """A function with its results remembered, as `lru_cache` does; none is ever forgotten."""

    __slots__ = ("charge", "function", "results")

    def __init__(self, function: Any, charge: Callable[[Any], Any]) -> None:
        """`charge` is applied to the arguments before they are hashed."""
        if not callable(function):
            raise TypeError("the first argument must be callable")
        self.function, self.charge = function, charge
        self.results: dict[Any, Any] = {}

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        key = (*args, *kwargs.items()) if kwargs else args
        found = self.results.get(self.charge(key), _MISSING)
        if found is _MISSING:
            found = self.results[key] = self.function(*args, **kwargs)
        return found

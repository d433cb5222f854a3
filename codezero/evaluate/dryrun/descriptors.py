"""Methods, properties and wrapped functions of interpreted classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from codezero.evaluate.dryrun.budget import Unsupported
from codezero.evaluate.dryrun.classes import Class
from codezero.evaluate.dryrun.objects import Instance
from codezero.evaluate.dryrun.values import Function, Hidden

_MISSING = object()


class BoundMethod(Hidden):
    """A function bound to its first argument."""

    __slots__ = ("function", "owner")

    def __init__(self, function: Callable[..., Any], owner: Any) -> None:
        self.function, self.owner = function, owner

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self.function(self.owner, *args, **kwargs)

    def __eq__(self, other: object) -> bool:
        return type(other) is BoundMethod and other.function is self.function and other.owner is self.owner

    def __hash__(self) -> int:
        return hash((id(self.function), id(self.owner)))


class Property(Hidden):
    """`property`, with an optional setter."""

    __slots__ = ("getter", "setter")

    def __init__(self, getter: Any, setter: Any) -> None:
        self.getter, self.setter = getter, setter


class StaticMethod(Hidden):
    __slots__ = ("function",)

    def __init__(self, function: Any) -> None:
        self.function = function

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Calls it in the body of its class, where it is no method yet."""
        if type(self.function) is not Function:  # such as another one, with which calls nest
            raise Unsupported("a call of this static method")
        return self.function.invoke(*args, **kwargs)


class ClassMethod(Hidden):
    __slots__ = ("function",)

    def __init__(self, function: Any) -> None:
        self.function = function


class CachedProperty(Hidden):
    """`functools.cached_property`: an attribute that is computed on first access."""

    __slots__ = ("getter",)

    def __init__(self, getter: Any) -> None:
        self.getter = getter


class Super(Hidden):
    """`super()` in a method: gives the attributes of the classes after `cls` in the instance's resolution order."""

    __slots__ = ("cls", "instance")

    def __init__(self, cls: Any, instance: Any, /) -> None:
        """`instance` is a class in `__new__` and in class methods."""
        if type(cls) is not Class or type(instance) not in (Instance, Class):
            raise Unsupported("super() of anything but an object")
        self.cls: Class = cls
        self.instance: Instance | Class = instance
        if cls not in self._mro():
            raise TypeError("super(type, obj): obj must be an instance or subtype of type")

    def _mro(self) -> tuple[Class, ...]:
        return self.instance.cls.mro if type(self.instance) is Instance else self.instance.mro  # type: ignore[union-attr]

    def bases(self) -> tuple[Class, ...]:
        mro = self._mro()
        return mro[mro.index(self.cls) + 1 :]


class Cached(Hidden):
    """A function that caches its results, all of them: a limit of `lru_cache` would only have it called again."""

    __slots__ = ("function", "key", "results")

    def __init__(self, function: Any, key: Callable[[tuple[Any, ...], dict[str, Any]], Any]) -> None:
        """`key` gives the key of positional and named arguments, and charges for hashing it."""
        if not callable(function):
            raise TypeError("the first argument must be callable")
        self.function, self.key = function, key
        self.results: dict[Any, Any] = {}

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        key = self.key(args, kwargs)
        found = self.results.get(key, _MISSING)
        if found is _MISSING:
            found = self.results[key] = self.function(*args, **kwargs)
        return found

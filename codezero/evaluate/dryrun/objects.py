"""Instances of interpreted classes.

One host class represents the instances of all interpreted classes. It has every dunder method that host operators and
functions may call; each calls the interpreted method, or does what CPython does when a class has none. As the host sees
one class, the reflected methods of two interpreted ones are tried here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from sys import getsizeof
from typing import TYPE_CHECKING, Any

from codezero.evaluate.dryrun.budget import IN_TEST, Cheat, Stop, Unsupported, meter
from codezero.evaluate.dryrun.values import Charged, Iterating

if TYPE_CHECKING:
    from codezero.evaluate.dryrun.classes import Class

OPERATORS = {
    "Add": "add", "Sub": "sub", "Mult": "mul", "Div": "truediv", "FloorDiv": "floordiv", "Mod": "mod", "Pow": "pow",
    "LShift": "lshift", "RShift": "rshift", "BitAnd": "and", "BitOr": "or", "BitXor": "xor", "MatMult": "matmul",
}  # fmt: skip
"""The methods of the binary operators, without underscores, by the name that `ast` has for the operator."""
COMPARISONS = {"Eq": "eq", "NotEq": "ne", "Lt": "lt", "LtE": "le", "Gt": "gt", "GtE": "ge"}
"""The same of the comparisons."""
BINARY = tuple(f"__{side}{name}__" for name in OPERATORS.values() for side in ("", "r", "i"))
_SWAPPED = {"__lt__": "__gt__", "__le__": "__ge__", "__gt__": "__lt__", "__ge__": "__le__"}
ORDER = tuple(_SWAPPED)
_DECIDING = frozenset((*BINARY, *ORDER, "__eq__", "__ne__", "__contains__"))
"""Methods that can make the result of a builtin function or method fit any test."""
UNARY = {"__neg__": "unary -", "__pos__": "unary +", "__invert__": "unary ~", "__abs__": "abs()"}
DEFINABLE = frozenset(
    (*BINARY, *ORDER, *UNARY, "__init__", "__eq__", "__ne__", "__hash__", "__bool__", "__len__", "__str__", "__repr__",
     "__iter__", "__next__", "__contains__", "__getitem__", "__setitem__", "__delitem__", "__call__", "__doc__",
     "__reversed__", "__enter__", "__exit__", "__int__", "__float__", "__round__", "__floor__", "__ceil__",
     "__divmod__", "__rdivmod__", "__missing__", "__post_init__", "__slots__", "__match_args__", "__format__",
     "__getattr__", "__index__", "__init_subclass__", "__new__")
)  # fmt: skip
"""Dunder names that a class body may bind; a class that binds another is not interpreted."""
OF_DATA: dict[str, Callable[..., Any]] = {}
"""Methods of instances whose class derives from a builtin type and does not define them; filled by derived.py."""


class Instance:
    """An instance of an interpreted class; `data` is its value of the builtin type that the class derives from."""

    __slots__ = ("args", "attrs", "cls", "data")

    def __init__(self, cls: Class, args: tuple[Any, ...], data: Any = None) -> None:
        self.cls, self.args, self.data = cls, args, data
        self.attrs: dict[str, Any] = {}

    def invoke(self, name: str, *others: Any, missing: str = "") -> Any:
        """Returns the result of a method. Without the method, raises TypeError with the text `missing`, or returns
        NotImplemented if `missing` is empty.

        While a test compares or calls builtins, raises Cheat or Stop if a method of the solution would decide a
        comparison with a value that is not the solution's.
        """
        owner = self.cls.owner(name)
        if owner is None:
            if self.data is not None and name in OF_DATA:
                return OF_DATA[name](self, *others)
            if missing:
                raise TypeError(missing)
            return NotImplemented
        method = owner.namespace[name]
        if method is None:
            raise TypeError(missing or f"'{self.cls.name}' object does not support {name}")
        if not meter.judging or self.cls.trusted or (meter.judging == IN_TEST and name not in _DECIDING):
            return method(self, *others)
        if owner.trusted:
            # Its methods may call overridden ones.
            raise Stop("a test depends on a class that derives from the library's")
        if not any(type(other) is Instance and not other.cls.trusted for other in others):
            if self.cls.name in meter.test_names:
                raise Stop(f"a test depends on {name} of the solution's class")
            raise Cheat(f"the result overrides {'equality' if name == '__eq__' else name}")
        return method(self, *others)

    def as_number(self, name: str, *others: Any) -> Any:
        """Returns the value for int(), float(), round() and the like: its method's result, its data, or the
        instance. Raises Unsupported for a class that only defines `__index__`."""
        if self.cls.owner(name) is not None:
            return self.invoke(name, *others)
        if self.cls.owner("__index__") is not None:
            raise Unsupported("__index__ of an object")
        return self if self.data is None else self.data

    def __index__(self) -> int:
        if self.cls.owner("__index__") is not None:
            raise Unsupported("__index__ of an object")
        if type(self.data) is int:
            raise Unsupported("an IntEnum as an integer")  # whose size the function of the host has not charged
        raise TypeError(f"'{self.cls.name}' object cannot be interpreted as an integer")

    def __eq__(self, other: object) -> Any:
        meter.work(0)  # the host may compare many in one call
        return self._compared("__eq__", "__eq__", other)

    def __ne__(self, other: object) -> Any:
        result = self._compared("__ne__", "__ne__", other)
        if result is NotImplemented:
            result = self._compared("__eq__", "__eq__", other)
            return result if result is NotImplemented else not result
        return result

    def _is_of_a_base_of(self, other: object) -> bool:
        return type(other) is Instance and other.cls is not self.cls and self.cls in other.cls.mro

    def _compared(self, name: str, swapped: str, other: Any) -> Any:
        """Returns the result of a comparison, of which an instance of a derived class decides first."""
        if self._is_of_a_base_of(other) and (result := other.invoke(swapped, self)) is not NotImplemented:
            return result
        return self.invoke(name, other)  # the host asks the other one next

    def _combined(self, name: str, reflected: str, other: Instance) -> Any:
        """Returns the result of a binary operator with an instance of another class. One of a derived class that has a
        reflected method of its own decides first."""
        is_first = self._is_of_a_base_of(other) and other.cls.owner(reflected) is not self.cls.owner(reflected)
        if is_first and (result := other.invoke(reflected, self)) is not NotImplemented:
            return result
        result = self.invoke(name, other)
        return other.invoke(reflected, self) if result is NotImplemented and not is_first else result

    def __hash__(self) -> int:
        if self.data is not None and self.cls.owner("__hash__") is None:
            return hash(self.data)
        method = self.cls.hashing()
        if method is None:
            raise TypeError(f"unhashable type: '{self.cls.name}'")
        found = method(self)
        if type(found) is not int:
            raise TypeError("__hash__ method should return an integer")
        return hash(found)

    def __bool__(self) -> bool:
        if self.cls.lookup("__bool__") is not None:
            result: bool = self.invoke("__bool__")
            return result
        if self.data is not None:
            return bool(len(self)) if self.cls.lookup("__len__") else bool(self.data)
        return self.cls.lookup("__len__") is None or bool(len(self))

    def __len__(self) -> Any:
        return self.invoke("__len__", missing=f"object of type '{self.cls.name}' has no len()")

    def __iter__(self) -> Iterator[Any]:
        found = self.iterator()
        return found if isinstance(found, Iterating) else Charged(found)

    def iterator(self) -> Iterating | Instance:
        """Returns the result of `__iter__`, or an iterator over the results of `__getitem__`."""
        if self.data is None and self.cls.lookup("__iter__") is None and self.cls.lookup("__getitem__") is not None:
            return Iterating(self._items())
        found = self.invoke("__iter__", missing=f"'{self.cls.name}' object is not iterable")
        if type(found) is Iterating or (type(found) is Instance and found.cls.lookup("__next__") is not None):
            return found
        raise TypeError(f"iter() returned non-iterator of type '{type(found).__name__}'")

    def _items(self) -> Iterator[Any]:
        """Yields the results of `__getitem__` for 0, 1, 2, ... until it raises IndexError."""
        index = 0
        while True:
            meter.work(0)
            try:
                item = self[index]
            except IndexError:
                return
            yield item
            index += 1

    def __next__(self) -> Any:
        return self.invoke("__next__", missing=f"'{self.cls.name}' object is not an iterator")

    def __contains__(self, item: object) -> Any:
        return self.invoke("__contains__", item)

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

    def _text(self, name: str) -> Any:
        """Returns the method's result, and charges its length: the host may join many texts in one call."""
        text = self.invoke(name)
        if type(text) is str:
            meter.allocate(len(text))
        return text

    def __str__(self) -> str:
        for name in ("__str__", "__repr__"):
            if self.cls.lookup(name) is not None:
                return self._text(name)  # type: ignore[no-any-return]
        if self.cls.error is not None:
            return str(self.cls.error(*self.args))
        if self.data is not None:
            return str(self.data)
        raise Unsupported("the text of an object")

    def __repr__(self) -> str:
        if self.cls.lookup("__repr__") is not None:
            return self._text("__repr__")  # type: ignore[no-any-return]
        if self.cls.error is not None:
            meter.allocate(getsizeof(self.cls.name))
            return f"{self.cls.name}{self.args!r}" if len(self.args) != 1 else f"{self.cls.name}({self.args[0]!r})"
        if self.data is not None:
            return repr(self.data)
        raise Unsupported("the text of an object")

    def __format__(self, spec: str) -> str:
        if spec and self.data is not None:
            return format(self.data, spec)
        if spec and self.cls.members is not None:
            return format(str(self), spec)
        if spec and self.cls.derives_from_library:
            raise Unsupported("a format of an object of the library")
        if spec:
            raise TypeError(f"unsupported format string passed to {self.cls.name}.__format__")
        return str(self)


def as_index(value: Any) -> Any:
    """Returns the integer of a member of an IntEnum, and any other value as it is."""
    if type(value) is Instance and type(value.data) is int and value.cls.owner("__index__") is None:
        return value.data
    return value


def _define(name: str) -> None:
    if name in UNARY:

        def method(self: Instance) -> Any:
            return self.invoke(name, missing=f"bad operand type for {UNARY[name]}: '{self.cls.name}'")
    elif name in ORDER:

        def method(self: Instance, other: Any) -> Any:  # type: ignore[misc]
            return self._compared(name, _SWAPPED[name], other)
    elif (reflected := f"__r{name[2:]}") in BINARY:

        def method(self: Instance, other: Any) -> Any:  # type: ignore[misc]
            if type(other) is Instance and other.cls is not self.cls:
                return self._combined(name, reflected, other)
            return self.invoke(name, other)
    else:

        def method(self: Instance, other: Any) -> Any:  # type: ignore[misc]
            return self.invoke(name, other)

    setattr(Instance, name, method)


for _name in (*BINARY, *ORDER, *UNARY):
    _define(_name)

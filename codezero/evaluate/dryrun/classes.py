"""Interpreted classes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from sys import getsizeof
from typing import Any

from codezero.evaluate.dryrun.budget import Stop, Unsupported, meter
from codezero.evaluate.dryrun.objects import Instance
from codezero.evaluate.dryrun.scope import mangled
from codezero.evaluate.dryrun.type_objects import Type, TypeValue
from codezero.evaluate.dryrun.values import Function

MAX_BASES = 50


class Class(Type):
    """An interpreted class. Its bases are interpreted classes and at most one builtin: an exception class, or a type
    such as `dict`, of which each instance holds a value as its data."""

    def __init__(
        self,
        name: str,
        bases: Sequence[Class | TypeValue] = (),
        namespace: dict[str, Any] | None = None,
        trusted: bool = False,
        qualname: str = "",
    ) -> None:
        """`trusted` is True for classes that tests or the library define. Raises TypeError like CPython when the bases
        have no consistent order."""
        self.name, self.qualname, self.trusted = name, qualname or name, trusted
        self.namespace: dict[str, Any] = {} if namespace is None else namespace
        self.bases = tuple(base for base in bases if type(base) is Class)
        self.mro: tuple[Class, ...] = (self, *_merged([*[list(base.mro) for base in self.bases], list(self.bases)]))
        if len(self.mro) > MAX_BASES:
            raise Stop("inheritance too deep")
        builtins = [base for base in bases if type(base) is TypeValue]
        builtins += [base.builtin for base in self.bases if base.builtin is not None]
        self.builtin: TypeValue | None = builtins[0] if builtins else None
        """The builtin base, its own or inherited; None without one."""
        if any(base is not self.builtin for base in builtins):
            raise Unsupported("a class with several builtin bases")
        self.fields: dict[str, Any] = {}
        """The fields of a dataclass, by name."""
        self.frozen = False
        """True if the attributes of its instances cannot be set."""
        self.is_library = False
        """True for a class that stands for one of the library."""
        self.members: dict[str, Any] | None = {} if any(b.members is not None for b in self.bases) else None
        """The members of an enumeration, by name; None for any other class."""
        self.call: Callable[..., Any] | None = None
        """The function that a call of the class runs instead of making an instance, if any."""
        self.abstract: frozenset[str] = frozenset()
        """The names of the abstract methods that it leaves undefined; with any it cannot be instantiated."""
        self.annotated: dict[str, bool] = {}
        """Names that its body annotates; the value is True for a class variable."""
        self.slots = _slots(self)

    @property
    def error(self) -> type | None:
        """The builtin exception class that it derives from, if any."""
        host = self.builtin.host if self.builtin is not None else None
        return host if host is not None and issubclass(host, BaseException) else None

    @property
    def derives_from_library(self) -> bool:
        """True if it or a base stands for a class of the library, which may have more attributes."""
        return any(cls.is_library for cls in self.mro)

    def owner(self, name: str) -> Class | None:
        """Returns the first class in its resolution order that binds `name`, if any."""
        for cls in self.mro:
            if name in cls.namespace:
                return cls
        return None

    def lookup(self, name: str, default: Any = None) -> Any:
        for cls in self.mro:
            if name in cls.namespace:
                return cls.namespace[name]
        return default

    def hashing(self) -> Callable[[Instance], int] | None:
        """Returns the function that hashes its instances, unless they have data that does; None if nothing does."""
        for cls in self.mro:
            if "__hash__" in cls.namespace:
                return cls.namespace["__hash__"]  # type: ignore[no-any-return]
            if "__eq__" in cls.namespace:
                return None
        return object.__hash__

    def maker(self) -> Callable[..., Any] | None:
        """Returns the function `__new__` of the class, if it or a base defines one."""
        found = self.lookup("__new__")
        if found is not None and type(found) is not Function:
            raise Unsupported("a __new__ that is no plain function")
        return found

    def distinct_members(self) -> list[Instance]:
        """Returns the members of an enumeration in order, without aliases. Raises TypeError for any other class."""
        if self.members is None:
            raise TypeError("'type' object is not iterable")
        meter.work(len(self.members) << 3)
        return list({id(member): member for member in self.members.values()}.values())

    def new(self, args: tuple[Any, ...] = ()) -> Instance:
        """Returns an instance whose `__init__` has not run."""
        is_data = self.builtin is not None and self.error is None
        if is_data:
            meter.derives_from_builtin = True
        return Instance(self, args, self.builtin() if is_data else None)  # type: ignore[misc]

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        meter.work(0)
        if self.call is not None:
            return self.call(*args, **kwargs)
        if self.abstract:
            _refuse_abstract(self)
        maker = self.maker()
        instance = self.new(args) if maker is None else maker(self, *args, **kwargs)
        if maker is not None and (type(instance) is not Instance or self not in instance.cls.mro):
            return instance
        init = instance.cls.lookup("__init__")
        if init is not None:
            if init(instance, *args, **kwargs) is not None:
                raise TypeError("__init__() should return None")
        elif instance.data is not None:
            instance.data = self.builtin(*args, **kwargs)  # type: ignore[misc]
        elif maker is None and (kwargs or (args and self.error is None)):
            raise TypeError(f"{self.name}() takes no arguments")
        return instance

    def __repr__(self) -> str:
        if self.is_library:
            raise Unsupported("the text of a class of the library")
        meter.allocate(getsizeof(self.qualname))  # the host may join many texts in one call
        return f"<class '{meter.module}.{self.qualname}'>"


def new_object(cls: Any, /, *args: Any, **kwargs: Any) -> Instance:
    """Returns object.__new__(cls)."""
    if type(cls) is not Class or cls.builtin is not None or cls.abstract or cls.members is not None:
        raise Unsupported("object.__new__ of this")
    if (args or kwargs) and cls.maker() is None:
        raise Unsupported("object.__new__ with arguments")
    if args or kwargs:
        raise TypeError("object.__new__() takes exactly one argument (the type to instantiate)")
    return cls.new()


def _merged(orders: list[list[Class]]) -> list[Class]:
    """Returns the C3 merge of lists of classes (https://www.python.org/download/releases/2.3/mro)."""
    found: list[Class] = []
    while orders := [order for order in orders if order]:
        meter.work(len(orders) << 6)
        head = next((order[0] for order in orders if not any(order[0] in other[1:] for other in orders)), None)
        if head is None:
            raise TypeError("Cannot create a consistent method resolution order (MRO) for bases")
        found.append(head)
        orders = [order[1:] if order[0] is head else order for order in orders]
    return found


def _slots(cls: Class) -> frozenset[str] | None:
    """Returns the only attribute names that `__slots__` allows to instances; None if they can have any."""
    found: set[str] = set()
    for one in cls.mro:
        names: Any = one.namespace.get("__slots__")
        names = (names,) if type(names) is str else names
        if type(names) not in (tuple, list) or not all(type(name) is str for name in names):
            return None
        own = {mangled(name, one.name) for name in names}
        if one is cls and own & one.namespace.keys():
            raise ValueError(f"{min(own & one.namespace.keys())!r} in __slots__ conflicts with class variable")
        found |= own
    return None if "__dict__" in found or cls.builtin is not None else frozenset(found)


def abstract_names(cls: Class) -> frozenset[str]:
    """Returns the names of the abstract methods that the class leaves undefined."""
    return frozenset(name for one in cls.mro for name in one.namespace if is_abstract(cls.lookup(name)))


def _refuse_abstract(cls: Class) -> None:
    """Raises the host's TypeError for an instance of an abstract class; its text depends on the host's version."""
    meter.allocate(4_096)
    host = type(cls.name, (), {})
    host.__abstractmethods__ = cls.abstract  # type: ignore[attr-defined]
    host()


def is_abstract(value: Any) -> bool:
    """Returns True if `abstractmethod` marked a function, or the function inside a property or class method."""
    function = getattr(value, "getter", None) or getattr(value, "function", value)
    return type(function) is Function and "__isabstractmethod__" in function.attrs

"""Values of interpreted programs that are no plain host values: functions, iterators, types, modules.

The world is closed: besides these and objects.py, a program meets only numbers, text, None and the builtin containers.
All of them may be handed to host functions, which reach a program through the dunder methods defined here and never
by attribute name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from codezero.evaluate.dryrun.budget import NEAR_LIMIT, Stop, Unsupported, meter

Frame = list[Any]
"""[enclosing frame, local variables...]"""


class _Unbound:
    __slots__ = ()


UNBOUND = _Unbound()
"""Stands in a frame for a variable without a value."""


class Hidden:
    """A value whose text the host would give with an address, or with names of ours."""

    __slots__ = ()

    def __repr__(self) -> str:
        raise Unsupported(f"the text of a {type(self).__name__.lower()}")


class Code:
    """What all closures made by one `def` or `lambda` share."""

    __slots__ = (
        "body",
        "cost",
        "fixed",
        "is_generator",
        "keyword_only",
        "kwarg",
        "name",
        "pad",
        "params",
        "plain",
        "posonly",
        "vararg",
    )

    def __init__(
        self,
        name: str,
        params: tuple[str, ...],
        posonly: int,
        vararg: bool,
        keyword_only: tuple[str, ...],
        kwarg: bool,
    ) -> None:
        """Locals 1.. are `params`, then *args, the keyword-only ones, **kwargs, then all others (`pad`)."""
        self.name, self.params, self.posonly = name, params, posonly
        self.vararg, self.keyword_only, self.kwarg = vararg, keyword_only, kwarg
        self.plain = -1 if vararg or keyword_only or kwarg else len(params)
        self.is_generator = self.fixed = False
        self.pad: tuple[_Unbound, ...] = ()
        self.cost = 1
        """Steps of a call: more for a large frame, which a generator or closure may keep."""
        self.body: Callable[[Frame], Any] = lambda frame: None


class Function(Hidden):
    """An interpreted function."""

    __slots__ = ("attrs", "code", "defaults", "keyword_defaults", "parent")

    def __init__(self, code: Code, parent: Frame, defaults: tuple[Any, ...], keyword_defaults: dict[str, Any]) -> None:
        self.code, self.parent, self.defaults, self.keyword_defaults = code, parent, defaults, keyword_defaults
        self.attrs: dict[str, Any] = {}

    def invoke(self, /, *args: Any, **kwargs: Any) -> Any:
        """Calls it."""
        code = self.code
        frame = [self.parent, *args, *code.pad] if len(args) == code.plain and not kwargs else self._bind(args, kwargs)
        meter.left -= code.cost
        if meter.left < 0:
            meter.refill()
        if code.is_generator:
            return Iterating(code.body(frame))
        if meter.depth >= NEAR_LIMIT:
            meter.deep()
        meter.depth += 1
        try:
            result = code.body(frame)
        finally:
            meter.depth -= 1
        return None if result is None else result[0]

    __call__ = invoke

    def _bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Frame:
        """The frame of a call. Raises TypeError like CPython where arguments do not fit."""
        code, name = self.code, self.code.name
        params, count = code.params, len(code.params)
        meter.work((len(args) + len(kwargs)) << 3)
        if len(args) > count and not code.vararg:
            raise TypeError(f"{name}() takes {count} positional arguments but {len(args)} were given")
        values: list[Any] = [*args[:count], *[UNBOUND] * (count - len(args))]
        only: dict[str, Any] = dict.fromkeys(code.keyword_only, UNBOUND)
        extra = {}
        for key, value in kwargs.items():
            if key in params[code.posonly :]:
                index = params.index(key)
                if values[index] is not UNBOUND:
                    raise TypeError(f"{name}() got multiple values for argument '{key}'")
                values[index] = value
            elif key in only:
                only[key] = value
            elif code.kwarg:
                extra[key] = value
            else:
                raise TypeError(f"{name}() got an unexpected keyword argument '{key}'")
        first_default = count - len(self.defaults)
        for index in range(count):
            if values[index] is UNBOUND:
                if index < first_default:
                    raise TypeError(f"{name}() missing required positional argument: '{params[index]}'")
                values[index] = self.defaults[index - first_default]
        for key in only:
            if only[key] is UNBOUND:
                if key not in self.keyword_defaults:
                    raise TypeError(f"{name}() missing required keyword-only argument: '{key}'")
                only[key] = self.keyword_defaults[key]
        frame = [self.parent, *values]
        if code.vararg:
            frame.append(args[count:])
        frame.extend(only.values())
        if code.kwarg:
            frame.append(extra)
        frame.extend(code.pad)
        return frame


class Builtin:
    """A host function that is safe to call with any values."""

    __slots__ = ("function", "name")

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self.name, self.function = name, function

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        meter.left -= 1 + (len(args) >> 2)
        if meter.left < 0:
            meter.refill()
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<built-in function {self.name}>"


class TypeValue:
    """A builtin type as a program sees it: `host` tells its instances, `function` makes one."""

    __slots__ = ("attrs", "function", "host", "name")

    def __init__(self, host: type, function: Callable[..., Any], name: str | None = None) -> None:
        self.host, self.function, self.name = host, function, name or host.__name__
        self.attrs: dict[str, Any] = {}

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        meter.left -= 1
        if meter.left < 0:
            meter.refill()
        return self.function(*args, **kwargs)

    def __or__(self, other: Any) -> Annotation:
        return Annotation()

    __ror__ = __or__

    def __repr__(self) -> str:
        return f"<class '{self.name}'>"


class Annotation(Hidden):
    """What stands for the types of `typing` and `list[int]`: good for annotations and nothing else."""

    __slots__ = ()

    def __or__(self, other: Any) -> Annotation:
        return self

    __ror__ = __or__


class Generic(Annotation):
    """`typing.Generic`, a base that adds nothing."""

    __slots__ = ()


_MAX_NESTED_ITERATORS = 1_000
"""The host's iterators nest on its C stack, without a check of their own."""


class Iterating(Hidden):
    """A lazy iterator. `raw` charges a step for each item, so a host function may use it up.

    What keeps an iterator, as one over another does, keeps this object and not its `raw`: then the depth of a chain is
    known, and the host frees it without recursion.
    """

    __slots__ = ("is_generator", "raw")

    def __init__(self, raw: Iterator[Any], is_generator: bool = True) -> None:
        self.raw, self.is_generator = raw, is_generator

    def __iter__(self) -> Iterating:
        return self

    def __next__(self) -> Any:
        if meter.nested >= _MAX_NESTED_ITERATORS:
            raise Stop("iterators nested too deep")
        meter.nested += 1
        try:
            return next(self.raw)
        finally:
            meter.nested -= 1


def charged(items: Iterable[Any], width: int = 1) -> Iterator[Any]:
    """The same items, a step each, and more if each is a new tuple of many parts (`width`)."""
    cost = 1 + (width >> 3)
    for item in items:
        meter.left -= cost
        if meter.left < 0:
            meter.refill()
        yield item


class PerCase:
    """A value that belongs to the running program, which may put another in its place, such as `sys.stdin`."""

    __slots__ = ("make", "name")

    def __init__(self, name: str, make: Callable[[], Any]) -> None:
        self.name, self.make = name, make

    def get(self) -> Any:
        if self.name not in meter.files:
            meter.files[self.name] = self.make()
        return meter.files[self.name]

    def put(self, value: Any) -> None:
        meter.files[self.name] = value


class Module(Hidden):
    """An imported module: the names of it that are interpreted, and those that merely exist."""

    __slots__ = ("existing", "members", "name")

    def __init__(self, name: str, members: dict[str, Any], existing: frozenset[str]) -> None:
        self.name, self.members, self.existing = name, members, existing

    def member(self, name: str) -> Any:
        """Raises KeyError when the real module has no such name either."""
        if name in self.members:
            found = self.members[name]
            return found.get() if type(found) is PerCase else found
        if name in self.existing:
            return Opaque(f"{self.name}.{name}")
        raise KeyError(name)

    def public_names(self) -> list[str]:
        """What `from module import *` takes."""
        return [name for name in self.existing if not name.startswith("_")]


class Opaque:
    """Something that exists and is not interpreted: any use of it ends the case."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def refuse(self, *args: Any, **kwargs: Any) -> Any:
        raise Unsupported(self.name)

    __call__ = __iter__ = __next__ = __len__ = __bool__ = __contains__ = refuse
    __getitem__ = __setitem__ = __delitem__ = __repr__ = __str__ = __format__ = refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = refuse
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = __or__ = __ror__ = refuse
    __and__ = __rand__ = __lt__ = __le__ = __gt__ = __ge__ = __neg__ = __abs__ = refuse
    __eq__ = __ne__ = __hash__ = refuse

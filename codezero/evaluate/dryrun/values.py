"""Values of interpreted programs that are not plain host values: functions and iterators.

Besides these and those of type_objects.py, objects.py and modules.py, a program meets only numbers, text, None and
builtin containers. All may be passed to host functions, which call a program only through the dunder methods defined
here, never by attribute name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from codezero.evaluate.dryrun.budget import NEAR_LIMIT, Stop, Unsupported, meter

Frame = list[Any]
"""[enclosing frame, local variables...]"""


_BOUNDS = frozenset({"start", "stop", "step"})
FIELDS: dict[type, frozenset[str]] = {
    range: _BOUNDS,
    slice: _BOUNDS,
    int: frozenset({"real", "imag", "numerator", "denominator"}),
    float: frozenset({"real", "imag"}),
    complex: frozenset({"real", "imag"}),
}
"""Attributes of host values that programs may read, by type; the modules of other types add theirs."""


class _Unbound:
    __slots__ = ()


UNBOUND = _Unbound()
"""The value in a frame of a variable that is not bound."""


class Hidden:
    """A value whose host `repr` has an address or names of the interpreter, so that it raises Unsupported."""

    __slots__ = ()

    def __repr__(self) -> str:
        raise Unsupported(f"the text of a {type(self).__name__.lower()}")


class Code:
    """The code of one `def` or `lambda`, shared by all closures made from it."""

    def __init__(
        self,
        name: str,
        params: tuple[str, ...],
        posonly: int,
        vararg: bool,
        keyword_only: tuple[str, ...],
        kwarg: bool,
    ) -> None:
        """Slots of a frame from 1 on: `params`, *args, `keyword_only`, **kwargs, then all other locals (`pad`)."""
        self.name, self.params, self.posonly = name, params, posonly
        self.vararg, self.keyword_only, self.kwarg = vararg, keyword_only, kwarg
        self.plain = -1 if vararg or keyword_only or kwarg else len(params)
        self.is_generator = False
        self.judging: int | None = None
        """The value of `meter.judging` while it runs; None for a function of the library, which keeps its caller's."""
        self.pad: tuple[_Unbound, ...] = ()
        self.cost = 1
        """Steps that a call costs: more for a large frame, which a generator or closure may keep."""
        self.body: Callable[[Frame], Any] = lambda frame: None

    @property
    def fixed(self) -> bool:
        """True for a function of the library, whose attributes a program cannot set."""
        return self.judging is None

    def run_judged(self, frame: Frame) -> Any:
        """Runs the body for a caller that is a test."""
        if self.judging is None:
            return self.body(frame)
        before, meter.judging = meter.judging, self.judging
        try:
            return self.body(frame)
        finally:
            meter.judging = before


class Function(Hidden):
    """An interpreted function."""

    __slots__ = ("attrs", "code", "defaults", "keyword_defaults", "parent")

    def __init__(self, code: Code, parent: Frame, defaults: tuple[Any, ...], keyword_defaults: dict[str, Any]) -> None:
        self.code, self.parent, self.defaults, self.keyword_defaults = code, parent, defaults, keyword_defaults
        self.attrs: dict[str, Any] = {}

    def invoke(self, /, *args: Any, **kwargs: Any) -> Any:
        """Calls the function."""
        code = self.code
        frame = [self.parent, *args, *code.pad] if len(args) == code.plain and not kwargs else self._bind(args, kwargs)
        meter.left -= code.cost
        if meter.left < 0:
            meter.refill()
        if code.is_generator:
            return Iterating(code.body(frame), is_generator=True)
        if meter.depth >= NEAR_LIMIT:
            meter.deep()
        meter.depth += 1
        try:
            result = code.body(frame) if not meter.judging else code.run_judged(frame)
        finally:
            meter.depth -= 1
        return None if result is None else result[0]

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Calls the function for a class, such as its `__init__`, or for a host function, such as `sorted`."""
        meter.call_by_library()
        return self.invoke(*args, **kwargs)

    def _bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Frame:
        """Returns the frame of a call. Raises TypeError like CPython if the arguments do not fit."""
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


_MAX_NESTED_ITERATORS = 1_000
"""Most nested iterators: the host's recurse on the C stack without a check."""


class Iterating(Hidden):
    """A lazy iterator. `raw` charges a step for each item, so a host function may exhaust it.

    An iterator over another one refers to this object and not to its `raw`, so that the depth of nesting is known and
    the host frees a chain without recursion.
    """

    __slots__ = ("is_generator", "raw")

    def __init__(self, raw: Iterator[Any], is_generator: bool = False) -> None:
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

    def send(self, item: Any) -> Any:
        """Sends to a generator, also for one that delegates to it."""
        return self._ask("send", item)

    def throw(self, error: BaseException) -> Any:
        """Raises the error in a generator; other iterators know nothing of it."""
        if not self.is_generator:
            raise error
        return self._ask("throw", error)

    def close(self) -> None:
        if self.is_generator:
            self.raw.close()  # type: ignore[attr-defined]

    def _ask(self, method: str, value: Any) -> Any:
        if not self.is_generator:
            raise AttributeError(f"'iterator' object has no attribute '{method}'")
        if meter.nested >= _MAX_NESTED_ITERATORS:
            raise Stop("iterators nested too deep")
        meter.nested += 1
        try:
            return getattr(self.raw, method)(value)
        finally:
            meter.nested -= 1


class Charged:
    """An iterator that charges a step for each item, more if each is a new tuple of many (`width`) parts. It goes on
    after an error, as CPython's iterators do and a generator does not."""

    __slots__ = ("cost", "items")

    def __init__(self, items: Iterator[Any], width: int = 1) -> None:
        self.items, self.cost = items, 1 + (width >> 3)

    def __iter__(self) -> Charged:
        return self

    def __next__(self) -> Any:
        item = next(self.items)
        meter.left -= self.cost
        if meter.left < 0:
            meter.refill()
        return item


def charged(items: Iterable[Any], width: int = 1) -> Charged:
    """Returns an iterator over the items that charges for each as `Charged` does."""
    return Charged(iter(items), width)


class Opaque:
    """A value that is not interpreted: any use of it raises Unsupported, which ends the case."""

    __slots__ = ("has_index", "name")

    def __init__(self, name: str, has_index: bool = True) -> None:
        """`has_index` is False if it stands for something that is known to be no integer."""
        self.name, self.has_index = name, has_index

    def __index__(self) -> int:
        if not self.has_index:
            raise TypeError("slice indices must be integers or None or have an __index__ method")
        raise Unsupported(self.name)

    def refuse(self, *args: Any, **kwargs: Any) -> Any:
        raise Unsupported(self.name)

    __call__ = __iter__ = __next__ = __len__ = __bool__ = __contains__ = refuse
    __getitem__ = __setitem__ = __delitem__ = __repr__ = __str__ = __format__ = refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = refuse
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = __or__ = __ror__ = refuse
    __and__ = __rand__ = __lt__ = __le__ = __gt__ = __ge__ = __neg__ = __abs__ = refuse
    __eq__ = __ne__ = __hash__ = __int__ = __float__ = __round__ = __reversed__ = refuse

"""The interpreted parts of `itertools`, `functools`, `heapq` and `bisect`."""

from __future__ import annotations

import bisect
import functools
import heapq
import itertools
from array import array
from collections.abc import Callable, Iterator
from typing import Any

from codezero.evaluate.dryrun.budget import Unsupported, meter
from codezero.evaluate.dryrun.descriptors import Cached
from codezero.evaluate.dryrun.heap import HEAP
from codezero.evaluate.dryrun.measure import bound, deque, hashable, lazy, measure, measured, to_list
from codezero.evaluate.dryrun.objects import COMPARISONS, Instance
from codezero.evaluate.dryrun.operators import BINARY, COMPARE
from codezero.evaluate.dryrun.sorting import keys_of
from codezero.evaluate.dryrun.type_objects import TypeValue
from codezero.evaluate.dryrun.type_values import type_of
from codezero.evaluate.dryrun.values import Builtin, Function, Hidden, Iterating, Opaque, charged

_ADD = BINARY["Add"]


def _streaming(function: Callable[..., Any], first: int, last: int | None = None) -> Callable[..., Iterating]:
    """Wraps a lazy function whose arguments from number `first` to `last` (the end if None) are iterables."""

    def call(*args: Any, **kwargs: Any) -> Iterating:
        end = len(args) if last is None else last + 1
        fed = [lazy(arg) if first <= i < end else arg for i, arg in enumerate(args)]
        return Iterating(charged(function(*fed, **kwargs), len(fed)))

    return call


def _pooling(function: Callable[..., Any]) -> Callable[..., Iterating]:
    """Wraps a function that copies its iterable and makes a tuple of length r for each item."""

    def call(items: Any, *r: Any, **kwargs: Any) -> Iterating:
        pool = to_list(items)
        size = (r or tuple(kwargs.values()) or (len(pool),))[0]
        size = size if isinstance(size, int) else len(pool)
        meter.allocate(max(size, 0) * 16)
        return Iterating(charged(function(pool, *r, **kwargs), size + 4))

    return call


def _product(*sources: Any, repeat: Any = 1) -> Iterating:
    pools = [to_list(source) for source in sources]
    size = len(pools) * (repeat if isinstance(repeat, int) else 1)
    meter.allocate(max(size, 0) * 64)
    return Iterating(charged(itertools.product(*pools, repeat=repeat), size + 4))


def _count(*args: Any, **kwargs: Any) -> Iterating:
    for number in (*args, *kwargs.values()):
        bound(number)
    return Iterating(charged(itertools.count(*args, **kwargs)))


def _accumulate(items: Any, func: Any = None, *, initial: Any = None) -> Iterating:
    found = itertools.accumulate(lazy(items), _ADD if func is None else func, initial=initial)
    return Iterating(charged(found))


def _chained(sources: Iterator[Any]) -> Iterator[Any]:
    for source in sources:
        yield from lazy(source)


def _groupby(items: Any, key: Any = None) -> Iterating:
    def groups() -> Iterator[Any]:
        by = measured if key is None else lambda item: measured(key(item))
        for value, group in itertools.groupby(lazy(items), by):
            meter.work(0)
            yield value, Iterating(charged(group))

    return Iterating(groups())


def _tee(items: Any, n: Any = 2, /) -> tuple[Iterating, ...]:
    meter.allocate(max(n, 0) * 64)
    return tuple(Iterating(charged(part)) for part in itertools.tee(lazy(items), n))


_CHAIN = TypeValue(itertools.chain, lambda *sources: Iterating(_chained(iter(sources))))
_CHAIN.attrs["from_iterable"] = Builtin("from_iterable", lambda sources, /: Iterating(_chained(lazy(sources))))
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "accumulate": _accumulate,
    "combinations": _pooling(itertools.combinations),
    "combinations_with_replacement": _pooling(itertools.combinations_with_replacement),
    "compress": _streaming(itertools.compress, 0),
    "count": _count,
    "cycle": _streaming(itertools.cycle, 0),
    "dropwhile": _streaming(itertools.dropwhile, 1),
    "filterfalse": _streaming(itertools.filterfalse, 1),
    "groupby": _groupby,
    "islice": _streaming(itertools.islice, 0, 0),
    "pairwise": _streaming(itertools.pairwise, 0),
    "permutations": _pooling(itertools.permutations),
    "product": _product,
    "repeat": _streaming(itertools.repeat, 2),
    "starmap": _streaming(itertools.starmap, 1),
    "takewhile": _streaming(itertools.takewhile, 1),
    "tee": _tee,
    "zip_longest": _streaming(itertools.zip_longest, 0),
}
ITERTOOLS: dict[str, Any] = {
    "chain": _CHAIN,
    **{name: Builtin(name, function) for name, function in _FUNCTIONS.items()},
}


_NAMED = Builtin("a mark before named arguments", lambda: None)


def _cache_key(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Returns the key of `functools._make_key`: one integer or text is its own key, so that 1 and 1.0 differ; (1, 2)
    and (1.0, 2) do not."""
    if kwargs:
        args = (*args, _NAMED, *itertools.chain(*kwargs.items()))
    elif len(args) == 1 and type(args[0]) in (int, str):
        return hashable(args[0])
    return hashable(args)


def _typed_key(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    kinds = [type_of(value) for value in (*args, *kwargs.values())]
    return hashable((*args, _NAMED, *itertools.chain(*kwargs.items()), *kinds))


def _cached(function: Any, /) -> Cached:
    return Cached(function, _cache_key)


def _lru_cache(maxsize: Any = 128, typed: Any = False) -> Any:
    if callable(maxsize):
        return _cached(maxsize)
    return Builtin("lru_cache", lambda function, /: Cached(function, _typed_key if typed else _cache_key))


class Partial(Hidden):
    """`functools.partial`: a function with some arguments fixed."""

    __slots__ = ("args", "function", "kwargs")

    def __init__(self, function: Any, /, *args: Any, **kwargs: Any) -> None:
        if not callable(function):
            raise TypeError("the first argument must be callable")
        self.function, self.args, self.kwargs = function, args, kwargs

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        meter.work(len(self.args))
        return self.function(*self.args, *args, **{**self.kwargs, **kwargs})


class Ordered(Hidden):
    """A key of `functools.cmp_to_key`. The host's own class is freed by recursion where it nests."""

    __slots__ = ("compare", "value")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, compare: Any, value: Any) -> None:
        self.compare, self.value = compare, value


def _compared(name: str) -> Callable[[Ordered, Any], Any]:
    def compare(self: Ordered, other: Any) -> Any:
        if type(other) is not Ordered:
            raise TypeError("other argument must be K instance")
        return COMPARE[name](self.compare(self.value, other.value), 0)

    return compare


for _name, _method in COMPARISONS.items():
    setattr(Ordered, f"__{_method}__", _compared(_name))


def _wraps(wrapped: Any, /, *args: Any) -> Builtin:
    def copy_name(wrapper: Any, /) -> Any:
        if type(wrapper) is Function and not wrapper.code.fixed:
            name: Any = Opaque("the name of a wrapped function")
            if type(wrapped) is Function:
                name = wrapped.attrs.get("__name__", wrapped.code.name)
                wrapper.attrs["__wrapped__"] = wrapped
            wrapper.attrs["__name__"] = name
        return wrapper

    return Builtin("wraps", copy_name)


FUNCTOOLS: dict[str, Any] = {
    "cache": Builtin("cache", _cached),
    "cmp_to_key": Builtin("cmp_to_key", lambda mycmp: Builtin("cmp_to_key", lambda obj: Ordered(mycmp, obj))),
    "lru_cache": Builtin("lru_cache", _lru_cache),
    "partial": Builtin("partial", Partial),
    "reduce": Builtin("reduce", lambda function, items, /, *initial: functools.reduce(function, lazy(items), *initial)),
    "wraps": Builtin("wraps", _wraps),
}


def _on_list(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps a function of `bisect`, which takes logarithmic time, and linear time to insert."""

    def call(items: Any, /, *args: Any, **kwargs: Any) -> Any:
        if type(items) in (Instance, deque, array, bytearray) or (type(items) is not list and function in _MOVING):
            raise Unsupported("bisect of anything but a list")
        if type(items) not in (list, tuple, range, str):
            raise TypeError("first argument must be a list")
        for arg in args:
            measure(arg)
        meter.work(len(items) << 2 if function in _MOVING else len(items).bit_length() << 4)
        key = kwargs.get("key")
        if key is not None:
            kwargs["key"] = lambda item: measured(key(item))
        return function(items, *args, **kwargs)

    return call


_MOVING = (bisect.insort, bisect.insort_left, bisect.insort_right)


def _best(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(n: Any, iterable: Any, key: Any = None) -> Any:
        found = to_list(iterable)
        keys = keys_of(found, key)
        order = function(n, range(len(keys)), key=keys.__getitem__)
        return [found[index] for index in order]

    return call


def _merge(*sources: Any, key: Any = None, reverse: Any = False) -> Iterating:
    by = measured if key is None else lambda item: measured(key(item))
    merged = heapq.merge(*[lazy(source) for source in sources], key=by, reverse=bool(reverse))
    return Iterating(charged(merged))


HEAPQ: dict[str, Any] = {
    **{name: Builtin(name, function) for name, function in HEAP.items()},
    "nlargest": Builtin("nlargest", _best(heapq.nlargest)),
    "nsmallest": Builtin("nsmallest", _best(heapq.nsmallest)),
    "merge": Builtin("merge", _merge),
}
BISECT: dict[str, Any] = {
    name: Builtin(name, _on_list(getattr(bisect, name)))
    for name in ("bisect", "bisect_left", "bisect_right", "insort", "insort_left", "insort_right")
}

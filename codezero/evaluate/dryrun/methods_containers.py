"""The methods of lists, tuples, dicts, sets and the containers of `collections`."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable
from sys import getsizeof
from typing import Any

from codezero.evaluate.dryrun.budget import meter
from codezero.evaluate.dryrun.measure import (
    DICTS,
    VIEWS,
    NamedTupleValue,
    defaultdict,
    deque,
    hashable,
    measure,
    measured,
    to_list,
)
from codezero.evaluate.dryrun.operators import add, subtract
from codezero.evaluate.dryrun.order import pop_first
from codezero.evaluate.dryrun.sorting import sorted_items
from codezero.evaluate.dryrun.tables import (
    dict_from_keys,
    hashed_items,
    in_pieces,
    set_operand,
    table_cost,
    update_dict,
)
from codezero.evaluate.dryrun.values import FIELDS, Iterating, charged

Method = Callable[..., Any]


def _sort(value: list[Any], /, *, key: Any = None, reverse: Any = False) -> None:
    """Sorts a list. Like CPython, empties it meanwhile and raises ValueError if the keys' functions change it."""
    items = value[:]
    value.clear()
    try:
        items = sorted_items(items, key, reverse)
        if value:
            raise ValueError("list modified during sort")
    finally:
        value[:] = items


def paid(cost: Callable[..., None], method: Method) -> Method:
    """Wraps a method; `cost` charges for a call with the same arguments before it."""

    def call(value: Any, /, *args: Any, **kwargs: Any) -> Any:
        cost(value, *args, **kwargs)
        return method(value, *args, **kwargs)

    return call


def moving(item_cost: int) -> Callable[..., None]:
    """Returns the cost of a method that may move or traverse all items without comparing them: `item_cost` for each."""
    return lambda value, /, *_: meter.work(len(value) * item_cost)


def _copying(value: Any, /, *_: Any) -> None:
    meter.allocate(getsizeof(value))


def _searching(value: Any, item: Any = None, /, *_: Any) -> None:
    meter.work(len(value) * measure(item))


def _keyed(method: Method) -> Method:
    def call(value: Any, key: Any, /, *args: Any) -> Any:
        return method(value, hashable(key), *args)

    return call


def _extend(value: Any, items: Any, /) -> None:
    value.extend(to_list(items))


def _pop(value: list[Any], /, *index: Any) -> Any:
    if index:
        meter.work(len(value))
    return value.pop(*index)


def _set_operation(method: Method, many: bool = True) -> Method:
    """Wraps a set operation with other iterables."""

    def call(value: Any, /, *others: Any) -> Any:
        if not many and len(others) != 1:
            raise TypeError(f"{method.__name__}() takes exactly one argument ({len(others)} given)")
        table_cost(value)
        return method(value, *[set_operand(other, value) for other in others])

    return call


def _dict_update(value: Any, /, *sources: Any, **kwargs: Any) -> None:
    if len(sources) > 1:
        raise TypeError(f"update expected at most 1 argument, got {len(sources)}")
    for source in sources:
        update_dict(value, source)
    update_dict(value, kwargs)


def counter_update(method: Method) -> Method:
    """Wraps `Counter.update` or `subtract`, with the counts of a mapping or with items."""
    is_update = method is Counter.update

    def call(value: Any, /, *sources: Any, **kwargs: Any) -> None:
        if len(sources) > 1:
            raise TypeError(f"update expected at most 1 argument, got {len(sources)}")
        for source in (*sources, kwargs):
            if type(source) in DICTS and is_update and not value:
                update_dict(value, source)
            elif type(source) in DICTS:
                for key, count in list(source.items()):
                    meter.allocate(64)
                    old = value.get(hashable(key), 0)
                    value[key] = add(count, old) if is_update else subtract(old, count)
            elif source is not None:
                for piece in in_pieces(hashed_items(source), value):
                    method(value, piece)

    return call


def _most_common(value: Counter[Any], n: Any = None) -> list[Any]:
    meter.work(len(value) << 6)
    measure(list(value.values()))
    return value.most_common(n)


_LIST: dict[str, Method] = {
    "append": list.append,
    "clear": list.clear,
    "copy": paid(_copying, list.copy),
    "count": paid(_searching, list.count),
    "extend": _extend,
    "index": paid(_searching, list.index),
    "insert": paid(moving(4), list.insert),
    "pop": _pop,
    "remove": paid(_searching, list.remove),
    "reverse": paid(moving(4), list.reverse),
    "sort": _sort,
}
_TUPLE: dict[str, Method] = {"count": paid(_searching, tuple.count), "index": paid(_searching, tuple.index)}


def _as_dict(value: NamedTupleValue) -> dict[str, Any]:
    meter.allocate(len(value) * 64)
    return dict(zip(value.kind.fields, value, strict=True))


_RECORD: dict[str, Method] = {
    **_TUPLE,
    "_asdict": _as_dict,
    "_replace": lambda value, /, **new: value.kind(**{**dict(zip(value.kind.fields, value, strict=True)), **new}),
}


def _dict_methods(kind: type) -> dict[str, Method]:
    host: Any = kind
    return {
        "clear": host.clear,
        "copy": paid(_copying, host.copy),
        "get": _keyed(dict.get),
        "items": host.items,
        "keys": host.keys,
        "pop": _keyed(host.pop),
        "popitem": host.popitem,
        "setdefault": _keyed(host.setdefault),
        "update": _dict_update,
        "values": host.values,
        "fromkeys": lambda _, keys, value=None, /: dict_from_keys(host, keys, value),
    }


def _total(value: Counter[Any]) -> Any:
    meter.work(len(value) << 3)
    return sum(measured(count) for count in value.values())


_COUNTER: dict[str, Method] = {
    **{name: method for name, method in _dict_methods(Counter).items() if name != "fromkeys"},
    "elements": lambda value: Iterating(charged(value.elements())),
    "most_common": _most_common,
    "subtract": counter_update(Counter.subtract),
    "total": _total,
    "update": counter_update(Counter.update),
}


def _set_methods(kind: Any) -> dict[str, Method]:
    many = ("union", "intersection", "difference")
    one = ("symmetric_difference", "isdisjoint", "issubset", "issuperset")
    return {
        "copy": paid(_copying, kind.copy),
        **{name: _set_operation(getattr(kind, name)) for name in many},
        **{name: _set_operation(getattr(kind, name), many=False) for name in one},
    }


_FROZENSET = _set_methods(frozenset)
_SET: dict[str, Method] = {
    **_set_methods(set),
    **{name: _set_operation(getattr(set, name)) for name in ("update", "intersection_update", "difference_update")},
    "symmetric_difference_update": _set_operation(set.symmetric_difference_update, many=False),
    "add": _keyed(set.add),
    "clear": set.clear,
    "discard": _keyed(set.discard),
    "pop": pop_first,
    "remove": _keyed(set.remove),
}
FIELDS[deque] = frozenset({"maxlen"})
_DEQUE: dict[str, Method] = {
    "append": deque.append,
    "appendleft": deque.appendleft,
    "clear": deque.clear,
    "copy": paid(_copying, deque.copy),
    "count": paid(_searching, deque.count),
    "extend": _extend,
    "extendleft": lambda value, items, /: value.extendleft(to_list(items)),
    "index": paid(_searching, deque.index),
    "insert": paid(moving(4), deque.insert),
    "pop": deque.pop,
    "popleft": deque.popleft,
    "remove": paid(_searching, deque.remove),
    "reverse": paid(moving(4), deque.reverse),
    "rotate": paid(moving(4), deque.rotate),
}


CONTAINER_METHODS: dict[type, dict[str, Method]] = {
    list: _LIST,
    tuple: _TUPLE,
    NamedTupleValue: _RECORD,
    dict: _dict_methods(dict),
    defaultdict: _dict_methods(defaultdict),
    OrderedDict: {
        **_dict_methods(OrderedDict),
        "popitem": lambda value, last=True: value.popitem(last),
        "move_to_end": lambda value, key, last=True: value.move_to_end(hashable(key), last),
    },
    Counter: _COUNTER,
    set: _SET,
    frozenset: _FROZENSET,
    deque: _DEQUE,
    **{view: {} for view in VIEWS},
}

"""The interpreted parts of `math`, `cmath`, `operator` and `statistics`."""

from __future__ import annotations

import cmath
import keyword
import math
import operator
import statistics
from collections.abc import Callable
from typing import Any

from codezero.evaluate.dryrun import operators
from codezero.evaluate.dryrun.attributes import get_attribute
from codezero.evaluate.dryrun.budget import Stop, Unsupported, meter
from codezero.evaluate.dryrun.items import get_item
from codezero.evaluate.dryrun.library_decimal import Decimal
from codezero.evaluate.dryrun.library_fractions import Fraction
from codezero.evaluate.dryrun.measure import MAX_BITS, SMALL, checked, to_list
from codezero.evaluate.dryrun.objects import COMPARISONS, OPERATORS, Instance
from codezero.evaluate.dryrun.operators import BINARY, COMPARE
from codezero.evaluate.dryrun.sorting import sort_cost
from codezero.evaluate.dryrun.type_values import counter
from codezero.evaluate.dryrun.values import Builtin

_FLOAT_FUNCTIONS = (
    "acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh degrees erf erfc exp exp2 expm1 fabs floor "
    "fmod frexp gamma hypot isclose isfinite isinf isnan ldexp lgamma log log10 log1p log2 modf nextafter pow radians "
    "remainder sin sinh sqrt tan tanh trunc ulp"
)
_COMPLEX_FUNCTIONS = (
    "acos acosh asin asinh atan atanh cos cosh exp isclose isfinite isinf isnan log log10 phase polar rect sin sinh "
    "sqrt tan tanh"
)
_NUMBERS = int | float | complex | Decimal | Fraction


def _float_of(item: Any) -> Any:
    return item.as_number("__float__") if type(item) is Instance else item


def _of_numbers(function: Callable[..., Any], name: str) -> Builtin:
    def call(*args: Any, **kwargs: Any) -> Any:
        meter.work(len(args) << 4)
        if len(args) == 1 and type(args[0]) is Instance and args[0].cls.owner(f"__{name}__") is not None:
            return args[0].invoke(f"__{name}__")
        args = tuple(map(_float_of, args))
        for arg in (*args, *kwargs.values()):
            if not isinstance(arg, _NUMBERS):
                raise TypeError(f"must be real number, not {type(arg).__name__}")
            checked(arg)
        return function(*args, **kwargs)

    return Builtin(name, call)


def _factorial(n: Any, /) -> int:
    if isinstance(n, int) and n > 0 and n * n.bit_length() > MAX_BITS:
        raise Stop("an integer too long")
    return checked(math.factorial(n))  # type: ignore[no-any-return]


def _counting(function: Callable[..., int]) -> Callable[..., int]:
    def choose(n: Any, /, *k: Any) -> int:
        given = [arg for arg in k if arg is not None]
        if all(isinstance(arg, int) for arg in (n, *given)) and n > 0:
            count = min(*given, n) if given else n
            if function is math.comb:
                count = min(count, n - count)
            if count > 0 and count * n.bit_length() > MAX_BITS:
                raise Stop("an integer too long")
        return checked(function(n, *k))  # type: ignore[no-any-return]

    return choose


def _many(function: Callable[[int, int], int], empty: int) -> Callable[..., int]:
    def combine(*numbers: Any) -> int:
        result = empty
        for number in numbers:
            result = checked(function(result, checked(number)))
            meter.work(0)
        return result

    return combine


def _prod(items: Any, /, *, start: Any = 1) -> Any:
    for item in to_list(items):
        start = operators.mul(start, item)
    return start


def _vector(function: Callable[..., float]) -> Callable[..., float]:
    def call(*vectors: Any) -> float:
        numbers = ([_float_of(item) for item in to_list(vector)] for vector in vectors)
        return function(*numbers)

    return call


MATH: dict[str, Any] = {
    **{name: _of_numbers(f, name) for name in _FLOAT_FUNCTIONS.split() if (f := getattr(math, name, None))},
    **{name: getattr(math, name) for name in ("pi", "e", "tau", "inf", "nan")},
    "comb": Builtin("comb", _counting(math.comb)),
    "perm": Builtin("perm", _counting(math.perm)),
    "factorial": Builtin("factorial", _factorial),
    "gcd": Builtin("gcd", _many(math.gcd, 0)),
    "lcm": Builtin("lcm", _many(math.lcm, 1)),
    "isqrt": _of_numbers(math.isqrt, "isqrt"),
    "prod": Builtin("prod", _prod),
    "fsum": Builtin("fsum", _vector(math.fsum)),
    "dist": Builtin("dist", _vector(math.dist)),
}
CMATH: dict[str, Any] = {
    **{name: _of_numbers(getattr(cmath, name), name) for name in _COMPLEX_FUNCTIONS.split()},
    **{name: getattr(cmath, name) for name in ("pi", "e", "tau", "inf", "nan", "infj", "nanj")},
}

_OPERATORS = {
    **{f"{method}_" if keyword.iskeyword(method) else method: name for name, method in OPERATORS.items()},
    "concat": "Add",
}
del _OPERATORS["matmul"]  # of no builtin values


def _itemgetter(*indices: Any) -> Builtin:
    if not indices:
        raise TypeError("itemgetter expected 1 argument, got 0")

    def get(value: Any, /) -> Any:
        meter.work(len(indices) << 4)
        found = tuple(get_item(value, index) for index in indices)
        return found[0] if len(found) == 1 else found

    return Builtin("itemgetter", get)


def _attrgetter(*names: Any) -> Builtin:
    if not names or not all(type(name) is str for name in names):
        raise TypeError("attribute name must be a string")
    paths = [name.split(".") for name in names]

    def follow(value: Any, path: list[str]) -> Any:
        for name in path:
            value = get_attribute(value, name)
        return value

    def get(value: Any, /) -> Any:
        meter.work(sum(map(len, paths)) << 6)
        found = tuple(follow(value, path) for path in paths)
        return found[0] if len(found) == 1 else found

    return Builtin("attrgetter", get)


def _methodcaller(name: Any, /, *args: Any, **kwargs: Any) -> Builtin:
    if type(name) is not str:
        raise TypeError("method name must be a string")
    return Builtin("methodcaller", lambda value, /: get_attribute(value, name)(*args, **kwargs))


def _one(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda a, /: operators.unary(function, a)


def _two(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda a, b, /: function(a, b)


OPERATOR: dict[str, Any] = {
    **{name: Builtin(name, _two(BINARY[key])) for name, key in _OPERATORS.items()},
    **{
        name: Builtin(name, _two(COMPARE[key]))
        for key, name in (*COMPARISONS.items(), ("Is", "is_"), ("IsNot", "is_not"))
    },
    **{f"i{name.rstrip('_')}": Builtin(name, _two(operators.in_place(key))) for name, key in _OPERATORS.items()},
    **{name: Builtin(name, _one(getattr(operator, name))) for name in ("neg", "pos", "abs", "invert")},
    **{name: Builtin(name, getattr(operator, name)) for name in ("not_", "truth")},
    "contains": Builtin("contains", _two(operators.contains)),
    "getitem": Builtin("getitem", _two(get_item)),
    "attrgetter": Builtin("attrgetter", _attrgetter),
    "methodcaller": Builtin("methodcaller", _methodcaller),
    "itemgetter": Builtin("itemgetter", _itemgetter),
}


def _of_data(name: str, *, squares: bool) -> Builtin:
    """Returns the host's function of that name, charged; `squares` is True if it squares numbers."""
    function = getattr(statistics, name)

    def call(items: Any, /) -> Any:
        found = to_list(items)
        if not {int, float, bool}.issuperset(map(type, found)):
            raise Unsupported("statistics of anything but numbers")
        if squares and any(type(number) is int and not -SMALL < number < SMALL for number in found):
            raise Unsupported("statistics of long integers")
        sort_cost(found)
        meter.work(sum(64 + (number.bit_length() if type(number) is int else 0) for number in found))
        return function(found)

    return Builtin(name, call)


def _mode(items: Any, /) -> Any:
    counts = counter(items)
    if not counts:
        raise statistics.StatisticsError("no mode for empty data")
    return max(counts, key=counts.__getitem__)


def _multimode(items: Any, /) -> list[Any]:
    counts = counter(items)
    most = max(counts.values(), default=0)
    return [item for item, count in counts.items() if count == most]


STATISTICS: dict[str, Any] = {
    **{name: _of_data(name, squares=False) for name in ("fmean", "mean", "median")},
    **{name: _of_data(name, squares=True) for name in ("pstdev", "pvariance", "stdev", "variance")},
    "mode": Builtin("mode", _mode),
    "multimode": Builtin("multimode", _multimode),
}

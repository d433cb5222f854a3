"""`fractions`: the host's fractions, bounded in size and charged for."""

from __future__ import annotations

import fractions
import re
from collections.abc import Callable
from typing import Any

from codezero.evaluate.dryrun.budget import Stop, Unsupported, meter
from codezero.evaluate.dryrun.measure import MAX_BITS, checked
from codezero.evaluate.dryrun.text import FORMATTERS
from codezero.evaluate.dryrun.type_objects import TypeValue
from codezero.evaluate.dryrun.values import FIELDS, Builtin

_MAX_TEXT = 5_000
_LONG_EXPONENT = re.compile(r"e[-+]?[\d_]{6}", re.IGNORECASE)


def _bits(value: Any) -> int:
    """Returns the length of a fraction or integer. Raises Stop if it is too long."""
    if not isinstance(value, int | fractions.Fraction):
        return 0
    bits = max(value.numerator.bit_length(), value.denominator.bit_length())
    if bits > MAX_BITS:
        raise Stop("a fraction too long")
    return bits


def _checked_result(value: Any) -> Any:
    """Returns a result, charged, and each fraction as a Fraction. Raises Stop if one is too long."""
    if type(value) is tuple:
        return tuple(_checked_result(part) for part in value)
    if type(value) is str:
        meter.allocate(len(value))
    if not isinstance(value, fractions.Fraction):
        return checked(value)
    meter.allocate(_bits(value) >> 2)
    return value if type(value) is Fraction else Fraction(value)


def _bounded(function: Callable[..., Any], time: int = 1) -> Callable[..., Any]:
    """Wraps a function of fractions and numbers, which takes quadratic time: 20 ms times `time` for 65,536 bits."""

    def call(*args: Any) -> Any:
        meter.work(max(map(_bits, args), default=0) ** 2 * time >> 11)
        return _checked_result(function(*args))

    return call


def _power(base: Any, exponent: Any) -> None:
    """Raises Stop if the power is too long."""
    if not isinstance(exponent, fractions.Fraction | int) or exponent.denominator != 1:
        return
    if _bits(base) * abs(exponent.numerator) > MAX_BITS and base not in (1, -1):
        raise Stop("a fraction too long")


class Fraction(fractions.Fraction):
    """A `fractions.Fraction` whose operations are bounded and charged."""

    __slots__ = ()
    __module__ = "fractions"

    def __pow__(self, other: Any) -> Any:
        _power(self, other)
        return _pow(self, other)

    def __rpow__(self, other: Any) -> Any:
        _power(other, self)
        return _rpow(fractions.Fraction(self), other)  # which does not ask this method again


_pow, _rpow = _bounded(fractions.Fraction.__pow__), _bounded(fractions.Fraction.__rpow__)
for _name in (
    "add", "sub", "mul", "truediv", "floordiv", "mod", "divmod", "radd", "rsub", "rmul", "rtruediv", "rfloordiv",
    "rmod", "rdivmod", "neg", "pos", "abs", "eq", "lt", "le", "gt", "ge", "hash", "round", "floor", "ceil", "trunc",
    "float", "repr", "str",
):  # fmt: skip
    setattr(Fraction, f"__{_name}__", _bounded(getattr(fractions.Fraction, f"__{_name}__")))

FRACTION_METHODS: dict[str, Callable[..., Any]] = {
    name: _bounded(getattr(fractions.Fraction, name), 16 if name == "limit_denominator" else 1)
    for name in ("as_integer_ratio", "conjugate", "is_integer", "limit_denominator")
    if hasattr(fractions.Fraction, name)
}


def _fraction(numerator: Any = 0, denominator: Any = None) -> Fraction:
    if isinstance(numerator, str) and (len(numerator) > _MAX_TEXT or _LONG_EXPONENT.search(numerator)):
        raise Stop("a fraction too long")
    return _bounded(fractions.Fraction)(numerator, denominator)  # type: ignore[no-any-return]


def _format(value: Fraction, spec: str) -> str:
    raise Unsupported("a format of a fraction")  # there are some from Python 3.12 on


FORMATTERS[Fraction] = _format
FIELDS[Fraction] = frozenset({"numerator", "denominator"})
FRACTION = TypeValue(Fraction, _fraction)
for _name in ("from_decimal", "from_float"):
    FRACTION.attrs[_name] = Builtin(_name, _bounded(getattr(fractions.Fraction, _name)))

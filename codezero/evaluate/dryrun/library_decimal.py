"""`decimal`: the host's decimals, bounded in size and charged for."""

from __future__ import annotations

import decimal
from collections.abc import Callable
from fractions import Fraction
from sys import getsizeof
from typing import Any

from codezero.evaluate.dryrun.budget import Stop, Unsupported, meter
from codezero.evaluate.dryrun.text import FORMATTERS
from codezero.evaluate.dryrun.type_objects import TypeValue
from codezero.evaluate.dryrun.values import FIELDS, Builtin, Hidden

_MAX_BITS = 4_096
_MAX_BYTES = 2_048
_MAX_EXPONENT = 5_000
"""Largest exponent of a number: as an integer or as text it has as many digits."""
_MAX_PRECISION = 1_000


def _check_operand(value: Any) -> None:
    """Raises Stop for an integer or fraction that the host takes long to convert."""
    if isinstance(value, int | Fraction) and max(value.numerator, value.denominator, key=abs).bit_length() > _MAX_BITS:
        raise Stop("a decimal with a long integer")


def _checked_result(value: Any) -> Any:
    """Returns a result, each decimal as a Decimal. Raises Stop if one is too large."""
    if type(value) is tuple:
        return tuple(_checked_result(part) for part in value)
    if not isinstance(value, decimal.Decimal):
        return value
    if getsizeof(value) > _MAX_BYTES or (value.is_finite() and abs(value.adjusted()) > _MAX_EXPONENT):
        raise Stop("a decimal too long")
    return value if type(value) is Decimal else Decimal(value)


def _bounded(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps a function of decimals and numbers. Raises its errors without arguments, since these hold host types."""

    def call(*args: Any, **kwargs: Any) -> Any:
        meter.work(decimal.getcontext().prec << 3)
        for arg in args:
            _check_operand(arg)
        try:
            return _checked_result(function(*args, **kwargs))
        except decimal.DecimalException as error:
            raise type(error)() from None

    return call


class Decimal(decimal.Decimal):
    """A `decimal.Decimal` whose operations are bounded and charged."""

    __slots__ = ()
    __module__ = "decimal"
    __hash__ = decimal.Decimal.__hash__


for _name in (
    "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "divmod", "radd", "rsub", "rmul", "rtruediv", "rfloordiv",
    "rmod", "rpow", "rdivmod", "neg", "pos", "abs", "eq", "ne", "lt", "le", "gt", "ge", "round", "floor", "ceil",
):  # fmt: skip
    setattr(Decimal, f"__{_name}__", _bounded(getattr(decimal.Decimal, f"__{_name}__")))


def _rounded(name: str) -> Callable[..., Any]:
    method = getattr(decimal.Decimal, name)

    def call(value: Decimal, /, *args: Any, **kwargs: Any) -> Any:
        """Takes another decimal, for `quantize`, and a rounding mode."""
        for arg in (*args, *kwargs.values()):
            if not isinstance(arg, decimal.Decimal) and arg not in _ROUNDING.values():
                raise Unsupported(f"{name} with this")
        return _bounded(method)(value, *args, **kwargs)

    return call


_ROUNDING = {name: getattr(decimal, name) for name in dir(decimal) if name.startswith("ROUND_")}
DECIMAL_METHODS: dict[str, Callable[..., Any]] = {
    **{name: _rounded(name) for name in ("quantize", "to_integral_value", "to_integral")},
    **{
        name: _bounded(getattr(decimal.Decimal, name))
        for name in (
            "adjusted", "compare", "copy_abs", "copy_negate", "exp", "is_finite", "is_infinite", "is_nan",
            "is_signed", "is_zero", "ln", "log10", "max", "min", "normalize", "sqrt",
        )
    },
}  # fmt: skip


def _decimal(value: Any = "0", /) -> Decimal:
    if isinstance(value, str) and len(value) > _MAX_PRECISION:
        raise Stop("a decimal too long")
    if not isinstance(value, str | int | float | decimal.Decimal):
        raise Unsupported("a decimal of this")
    return _bounded(decimal.Decimal)(value)  # type: ignore[no-any-return]


class Context(Hidden):
    """The result of `getcontext()`."""

    __slots__ = ()

    @property
    def prec(self) -> int:
        return decimal.getcontext().prec

    @prec.setter
    def prec(self, digits: Any) -> None:
        if type(digits) is int and digits > _MAX_PRECISION:
            raise Stop("decimals of so many digits")
        decimal.getcontext().prec = digits

    @property
    def rounding(self) -> str:
        return decimal.getcontext().rounding

    @rounding.setter
    def rounding(self, name: Any) -> None:
        decimal.getcontext().rounding = name


def reset_context() -> None:
    """Resets the arithmetic context to the one of a new process."""
    decimal.setcontext(decimal.Context(prec=28, rounding=decimal.ROUND_HALF_EVEN))


DECIMAL: dict[str, Any] = {
    "Decimal": TypeValue(Decimal, _decimal),
    **{
        name: TypeValue(getattr(decimal, name), getattr(decimal, name))
        for name in ("DecimalException", "DivisionByZero", "InvalidOperation", "Overflow")
    },
    **_ROUNDING,
    "getcontext": Builtin("getcontext", Context),
}
FORMATTERS[Decimal] = format
FIELDS[Context] = frozenset({"prec", "rounding"})

"""The cost of operators on long integers, and flags."""

from __future__ import annotations

from typing import Any

from codezero.evaluate.dryrun.budget import Stop, Unsupported, meter
from codezero.evaluate.dryrun.measure import SMALL

MAX_LONG = 1 << 20
"""Bits of the longest integer that operators make. CPython 3.11 multiplies two such in 0.08 s, divides in 0.4 s."""
_PRODUCTS = 200
"""Products of two 30-bit digits that cost a step; a division's digit products cost a quarter of these."""


def sized(number: Any) -> Any:
    """Charges for the bytes of an operand or result that is a long integer, and returns `number`. Raises Stop above
    MAX_LONG."""
    if type(number) is int and not -SMALL < number < SMALL:
        bits = number.bit_length()
        if bits > MAX_LONG:
            raise Stop("an integer too long")
        meter.work(bits >> 3)
    return number


def product_cost(bits: int, others: int) -> None:
    """Charges for a product of integers of these lengths in bits. CPython uses Karatsuba's method on pieces as long as
    the shorter factor; for n 30-bit digits each takes n**log2(3) * 5 ns, and a step takes 1 us."""
    short, long = sorted((bits // 30 + 1, others // 30 + 1))
    meter.work(int(long * short**0.585) * 64 // _PRODUCTS)


def division_cost(a: Any, b: Any) -> None:
    """Charges for a division of long integers: each digit of the quotient is multiplied by all of the divisor's."""
    if type(a) is type(b) is int and not (-SMALL < a < SMALL and -SMALL < b < SMALL):
        sized(a), sized(b)
        long, short = a.bit_length() // 30, b.bit_length() // 30
        meter.work(max(long - short, 0) * short * 64 // (4 * _PRODUCTS))


class Flag(int):
    """A flag of the library, such as `re.I`: an integer whose text is its name, which is not interpreted."""

    def __or__(self, other: int) -> Flag:
        return Flag(int(self) | other)

    def __and__(self, other: int) -> Flag:
        return Flag(int(self) & other)

    def __xor__(self, other: int) -> Flag:
        return Flag(int(self) ^ other)

    __ror__, __rand__, __rxor__ = __or__, __and__, __xor__

    def __repr__(self) -> str:
        raise Unsupported("the text of a flag")

    def __format__(self, spec: str) -> str:
        raise Unsupported("the text of a flag")

    __str__ = __repr__

    def __invert__(self) -> int:
        raise Unsupported("the complement of a flag")

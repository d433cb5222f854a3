"""What operators on long integers cost."""

from __future__ import annotations

from typing import Any

from codezero.evaluate.dryrun.budget import Stop, meter
from codezero.evaluate.dryrun.measure import SMALL

MAX_LONG = 1 << 20
"""Bits of the longest integer that operators make. A product of two takes CPython 3.11 0.08 s, a quotient 0.4 s."""
_PRODUCTS = 200
"""Products of two digits of 30 bits for the price of a step; those of a quotient are simpler, four for one."""


def sized(number: Any) -> Any:
    """`number`, charged by its bytes if it is a long integer that an operator goes through or has made; Stop if it is
    too long for that."""
    if type(number) is int and not -SMALL < number < SMALL:
        bits = number.bit_length()
        if bits > MAX_LONG:
            raise Stop("an integer too long")
        meter.work(bits >> 3)
    return number


def product_cost(bits: int, others: int) -> None:
    """Charges a product: by Karatsuba's method, in pieces as long as the shorter factor, whose n digits of 30 bits take
    n**log2(3) * 5 ns where a step takes 1 us."""
    short, long = sorted((bits // 30 + 1, others // 30 + 1))
    meter.work(int(long * short**0.585) * 64 // _PRODUCTS)


def division_cost(a: Any, b: Any) -> None:
    """Charges a quotient or remainder of long integers before it is made: each digit of the quotient goes through all
    of the divisor's."""
    if type(a) is type(b) is int and not (-SMALL < a < SMALL and -SMALL < b < SMALL):
        sized(a), sized(b)
        long, short = a.bit_length() // 30, b.bit_length() // 30
        meter.work(max(long - short, 0) * short * 64 // (4 * _PRODUCTS))

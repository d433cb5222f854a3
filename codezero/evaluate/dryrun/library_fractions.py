"""`fractions`, as Python source that is interpreted."""

from __future__ import annotations

FRACTIONS = """
from math import gcd

def _pair(value):
    if isinstance(value, Fraction):
        return value._numerator, value._denominator
    if isinstance(value, int):
        return int(value), 1
    return None

def _parsed(text):
    sign, body = 1, text.strip()
    if body[:1] in ("+", "-"):
        sign, body = (-1 if body[0] == "-" else 1), body[1:]
    if "/" in body:
        top, bottom = body.split("/", 1)
        if top.isdigit() and bottom.isdigit():
            return sign * int(top), int(bottom)
    else:
        mantissa, mark, exponent = body.lower().partition("e")
        whole, point, part = mantissa.partition(".")
        power = exponent[1:] if exponent[:1] in ("+", "-") else exponent
        if (whole + part).isdigit() and (power.isdigit() if mark else not power):
            scale = (int(exponent) if mark else 0) - len(part)
            top = sign * int(whole + part)
            return (top * 10 ** scale, 1) if scale >= 0 else (top, 10 ** -scale)
    raise ValueError(f"Invalid literal for Fraction: {text!r}")

def _operator(exact, rounded):
    def forward(self, other):
        if isinstance(other, float):
            return rounded(float(self), other)
        pair = _pair(other)
        return NotImplemented if pair is None else exact(self._numerator, self._denominator, *pair)

    def backward(self, other):
        if isinstance(other, float):
            return rounded(other, float(self))
        pair = _pair(other)
        return NotImplemented if pair is None else exact(*pair, self._numerator, self._denominator)

    return forward, backward

def _comparison(holds):
    def compare(self, other):
        difference = self._difference(other)
        return NotImplemented if difference is None else holds(difference)

    return compare

class Fraction:
    __slots__ = ("_numerator", "_denominator")

    def __init__(self, numerator=0, denominator=None):
        if denominator is None and isinstance(numerator, str):
            numerator, denominator = _parsed(numerator)
        elif denominator is None and isinstance(numerator, float):
            numerator, denominator = numerator.as_integer_ratio()
        top = _pair(numerator)
        bottom = (1, 1) if denominator is None else _pair(denominator)
        if top is None or bottom is None:
            raise _refused(numerator, denominator)
        n, d = top[0] * bottom[1], top[1] * bottom[0]
        if d == 0:
            raise ZeroDivisionError(f"Fraction({n}, 0)")
        common = gcd(n, d) if d > 0 else -gcd(n, d)
        self._numerator, self._denominator = n // common, d // common

    @property
    def numerator(self):
        return self._numerator

    @property
    def denominator(self):
        return self._denominator

    @classmethod
    def from_float(cls, value):
        return cls(*value.as_integer_ratio()) if isinstance(value, float) else cls(value)

    def as_integer_ratio(self):
        return self._numerator, self._denominator

    def is_integer(self):
        return self._denominator == 1

    def limit_denominator(self, max_denominator=1000000):
        if max_denominator < 1:
            raise ValueError("max_denominator should be at least 1")
        if self._denominator <= max_denominator:
            return Fraction(self)
        p0, q0, p1, q1 = 0, 1, 1, 0
        n, d = self._numerator, self._denominator
        while True:
            a = n // d
            q2 = q0 + a * q1
            if q2 > max_denominator:
                break
            p0, q0, p1, q1 = p1, q1, p0 + a * p1, q2
            n, d = d, n - a * d
        k = (max_denominator - q0) // q1
        if 2 * d * (q0 + k * q1) <= self._denominator:
            return Fraction(p1, q1)
        return Fraction(p0 + k * p1, q0 + k * q1)

    def __repr__(self):
        return f"Fraction({self._numerator}, {self._denominator})"

    def __str__(self):
        return f"{self._numerator}" if self._denominator == 1 else f"{self._numerator}/{self._denominator}"

    __add__, __radd__ = _operator(lambda n, d, m, e: Fraction(n * e + m * d, d * e), lambda a, b: a + b)
    __sub__, __rsub__ = _operator(lambda n, d, m, e: Fraction(n * e - m * d, d * e), lambda a, b: a - b)
    __mul__, __rmul__ = _operator(lambda n, d, m, e: Fraction(n * m, d * e), lambda a, b: a * b)
    __truediv__, __rtruediv__ = _operator(lambda n, d, m, e: Fraction(n * e, d * m), lambda a, b: a / b)
    __floordiv__, __rfloordiv__ = _operator(lambda n, d, m, e: n * e // (d * m), lambda a, b: a // b)
    __mod__, __rmod__ = _operator(lambda n, d, m, e: Fraction(n * e % (d * m), d * e), lambda a, b: a % b)

    def __divmod__(self, other):
        return self // other, self % other

    def __rdivmod__(self, other):
        return other // self, other % self

    def __pow__(self, power):
        if isinstance(power, Fraction) and power._denominator == 1:
            power = power._numerator
        if not isinstance(power, int):
            return float(self) ** float(power) if isinstance(power, (Fraction, float)) else NotImplemented
        if power >= 0:
            return Fraction(self._numerator ** power, self._denominator ** power)
        if self._numerator == 0:
            raise ZeroDivisionError(f"Fraction({self._denominator ** -power}, 0)")
        return Fraction(self._denominator ** -power, self._numerator ** -power)

    def __rpow__(self, base):
        if self._denominator == 1 and self._numerator >= 0:
            return base ** self._numerator
        return Fraction(base) ** self if isinstance(base, int) else base ** float(self)

    def __neg__(self):
        return Fraction(-self._numerator, self._denominator)

    def __pos__(self):
        return Fraction(self)

    def __abs__(self):
        return Fraction(abs(self._numerator), self._denominator)

    def __int__(self):
        return -(-self._numerator // self._denominator) if self._numerator < 0 else self._numerator // self._denominator

    def __float__(self):
        return self._numerator / self._denominator

    def __floor__(self):
        return self._numerator // self._denominator

    def __ceil__(self):
        return -(-self._numerator // self._denominator)

    def __round__(self, ndigits=None):
        if ndigits is None:
            down, rest = divmod(self._numerator, self._denominator)
            if 2 * rest != self._denominator:
                return down + (2 * rest > self._denominator)
            return down + down % 2
        shift = 10 ** abs(ndigits)
        return Fraction(round(self * shift), shift) if ndigits > 0 else Fraction(round(self / shift) * shift)

    def __bool__(self):
        return self._numerator != 0

    def __hash__(self):
        return _hash_of_ratio(self._numerator, self._denominator)

    def __eq__(self, other):
        if isinstance(other, float):
            return other == other and abs(other) != _INFINITE and self == Fraction(other)
        b = _pair(other) or _decimal_pair(other)
        return NotImplemented if b is None else (self._numerator, self._denominator) == b

    def _difference(self, other):
        if isinstance(other, float):
            if other != other or abs(other) == _INFINITE:
                return -other
            other = Fraction(other)
        pair = _pair(other) or _decimal_pair(other)
        return None if pair is None else self._numerator * pair[1] - pair[0] * self._denominator

    __lt__ = _comparison(lambda difference: difference < 0)
    __le__ = _comparison(lambda difference: difference <= 0)
    __gt__ = _comparison(lambda difference: difference > 0)
    __ge__ = _comparison(lambda difference: difference >= 0)
"""

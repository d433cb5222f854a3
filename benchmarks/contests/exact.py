"""Exact arithmetic: fractions, decimals, big integers, geometry."""

from __future__ import annotations

from benchmarks.contests.problem import Problem, numbers, row

EXACT = (
    Problem(
        name="sum of fractions",
        asks=(
            "The first line has n, each of the next n lines a fraction such as -3/4. Print their sum in "
            "lowest terms with a positive denominator, as a/b, also where b is 1."
        ),
        shown=("2\n1/2\n1/3\n", "5/6\n"),
        hidden=(
            "2\n1/2\n1/2\n",
            "2\n1/6\n1/3\n",
            "2\n-1/2\n1/3\n",
            row(60) + "".join(f"{a}/{b}\n" for a, b in zip(numbers(60, -99, 99), numbers(60, 1, 99), strict=True)),
        ),
        core="""
from fractions import Fraction
n = ints(1)[0]
total = Fraction(0)
for _ in range(n):
    total += Fraction(word())
emit(f"{total.numerator}/{total.denominator}")
""",
        wrong=(
            ('f"{total.numerator}/{total.denominator}"', "total"),
            ("Fraction(word())", 'Fraction(word().lstrip("-"))'),
            ("total += Fraction(word())", "total = (total + Fraction(word())).limit_denominator(1000)"),
        ),
    ),
    Problem(
        name="money",
        asks=(
            "The first line has n, each of the next n lines an amount with two decimals, of up to 10^20. "
            "Print their sum and, on the next line, the mean, both with two decimals; half a cent is rounded "
            "to the even one."
        ),
        shown=("2\n1.10\n2.20\n", "3.30\n1.65\n"),
        hidden=(
            "2\n0.01\n0.02\n",
            "2\n0.02\n0.03\n",
            "2\n99999999999999999999.99\n0.01\n",
            "3\n-1.00\n-1.00\n-1.01\n",
            row(300)
            + "".join(
                f"{a}.{b:02}\n" for a, b in zip(numbers(300, -(10**15), 10**15), numbers(300, 0, 99), strict=True)
            ),
        ),
        core="""
from decimal import ROUND_HALF_EVEN, Decimal
n = ints(1)[0]
total = sum((Decimal(word()) for _ in range(n)), Decimal(0))
emit(total)
emit((total / n).quantize(Decimal("0.01"), rounding=ROUND_HALF_EVEN))
""",
        wrong=(
            ("ROUND_HALF_EVEN", "ROUND_HALF_UP"),
            ("emit(total)", 'emit(f"{float(total):.2f}")'),
            ("ROUND_HALF_EVEN", "ROUND_DOWN"),
        ),
    ),
    Problem(
        name="ones of a power",
        asks=(
            "One line with a and n (2 <= a <= 10, 0 <= n <= 10^5). Print how many ones a^n has in binary and,"
            " on the next line, its last nine decimal digits without leading zeros."
        ),
        shown=("3 4\n", "3\n81\n"),
        hidden=("10 9\n", "7 0\n", "7 1000\n", "10 60000\n", "7 100000\n"),
        core="""
a, n = ints(2)
number = a**n
emit(bin(number).count("1"))
emit(number % 10**9)
""",
        wrong=(
            ("number = a**n", "number = int(float(a) ** min(n, 300))"),
            ("emit(number % 10**9)", "emit(str(number % 10**9)[-8:])"),
            ('bin(number).count("1")', 'bin(number % (1 << 64)).count("1")'),
        ),
    ),
    Problem(
        name="squares",
        asks=(
            "The first line has q, each of the next q lines two numbers a b with 0 <= a <= b <= 10^30. Print "
            "how many squares are in a..b."
        ),
        shown=("2\n3 9\n10 15\n", "2\n0\n"),
        hidden=(
            "1\n0 0\n",
            f"1\n{(10**15 - 1) ** 2} {(10**15 - 1) ** 2}\n",
            f"1\n{(10**9 + 7) ** 2 - 1} {(10**9 + 7) ** 2 - 1}\n",
            row(150) + "".join(row(a, a * 10**12) for a in numbers(150, 1, 10**17)),
        ),
        core="""
from math import isqrt
q = ints(1)[0]
for _ in range(q):
    a, b = ints(2)
    emit(isqrt(b) - (isqrt(a - 1) if a else -1))
""",
        wrong=(
            ("from math import isqrt", "isqrt = lambda n: int(n ** 0.5)"),
            (" if a else -1", " if a else 0"),
            ("isqrt(a - 1) if a else -1", "isqrt(a)"),
        ),
    ),
    Problem(
        name="twice the area",
        asks=(
            "The first line has n, each of the next n lines a corner x y of a polygon, in order. Print twice its area."
        ),
        shown=("3\n0 0\n2 0\n0 2\n", "4\n"),
        hidden=(
            "3\n0 0\n0 2\n2 0\n",
            "4\n1 1\n3 1\n3 4\n1 4\n",
            "3\n0 0\n1000000000 1\n-1 1000000000\n",
            "400\n" + "".join(row(x, x * x) for x in range(-200, 200)),
        ),
        core="""
from collections import namedtuple
Point = namedtuple("Point", "x y")
n = ints(1)[0]
corners = [Point(*ints(2)) for _ in range(n)]
area = sum(a.x * b.y - b.x * a.y for a, b in zip(corners, corners[1:] + corners[:1]))
emit(abs(area))
""",
        wrong=(
            ("emit(abs(area))", "emit(area)"),
            ("corners[1:] + corners[:1]", "corners[1:]"),
            ("emit(abs(area))", "emit(int(abs(area) / 3 * 3))"),
        ),
    ),
    Problem(
        name="points on a line",
        asks=(
            "The first line has n, each of the next n lines a point x y; all are different. Print how many "
            "lie on one line at most."
        ),
        shown=("4\n0 0\n1 1\n2 2\n3 0\n", "3\n"),
        hidden=(
            "4\n0 0\n0 1\n0 5\n1 1\n",
            "1\n5 5\n",
            "3\n0 0\n2 4\n1 2\n",
            "4\n0 0\n1000000000 999999999\n999999999 999999998\n5 0\n",
            "60\n" + "".join(row(x, x * (x + 3) % 17) for x in range(60)),
        ),
        core="""
from collections import Counter
from math import gcd
n = ints(1)[0]
points = [tuple(ints(2)) for _ in range(n)]
best = 1
for i, (x, y) in enumerate(points):
    slopes = Counter()
    for u, v in points[:i]:
        dx, dy = u - x, v - y
        g = gcd(dx, dy) * (-1 if (dx, dy) < (0, 0) else 1)
        slopes[dx // g, dy // g] += 1
    best = max([best] + [count + 1 for count in slopes.values()])
emit(best)
""",
        wrong=(
            ("slopes[dx // g, dy // g] += 1", "slopes[dy / dx if dx else 0] += 1"),
            (" * (-1 if (dx, dy) < (0, 0) else 1)", ""),
            ("best = 1", "best = 2"),
        ),
    ),
    Problem(
        name="base minus two",
        asks=(
            "The first line has q, each of the next q lines a whole number. Print it in base -2, whose digits"
            " are 0 and 1."
        ),
        shown=("2\n2\n3\n", "110\n111\n"),
        hidden=("1\n0\n", "2\n-1\n-2\n", "1\n4\n", row(400) + "".join(row(n) for n in numbers(400, -(10**12), 10**12))),
        core="""
q = ints(1)[0]
for _ in range(q):
    n = ints(1)[0]
    digits = ""
    while n:
        digits = str(n & 1) + digits
        n = (n - (n & 1)) // -2
    emit(digits or "0")
""",
        wrong=(
            ('emit(digits or "0")', "emit(digits)"),
            ("while n:", "n = abs(n)\n    while n:"),
            ('emit(digits or "0")', 'emit(digits[-40:] if n == 0 and len(digits) < 9 else digits[-9:] or "0")'),
        ),
    ),
)

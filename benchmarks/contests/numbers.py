"""Number theory."""

from __future__ import annotations

from benchmarks.contests.problem import Problem, numbers, row, rows

NUMBERS = (
    Problem(
        name="primes up to",
        asks=(
            "The first line has q, each of the next q lines a number n of 1..10^6. Print for each how many "
            "primes are at most n."
        ),
        shown=("2\n10\n4\n", "4\n2\n"),
        hidden=("2\n1\n2\n", "2\n7\n49\n", row(300) + rows(300, (1, 10**6)) + "", "1\n1000000\n"),
        core="""
from itertools import accumulate
q = ints(1)[0]
asked = [ints(1)[0] for _ in range(q)]
size = max(asked) + 1
prime = bytearray([0, 0]) + bytearray([1]) * size
for p in range(2, int(size**0.5) + 1):
    if prime[p]:
        prime[p * p :: p] = bytes(len(range(p * p, len(prime), p)))
counts = list(accumulate(prime))
for n in asked:
    emit(counts[n])
""",
        wrong=(
            ("emit(counts[n])", "emit(counts[n - n % 2])"),
            ("int(size**0.5) + 1)", "min(int(size**0.5) + 1, 500))"),
        ),
    ),
    Problem(
        name="most divisors",
        asks=(
            "The first line has q, each of the next q lines a b with 1 <= a <= b <= 2*10^5. Print for each "
            "the smallest number of a..b with the most divisors, and how many that are, on one line."
        ),
        shown=("1\n1 7\n", "6 4\n"),
        hidden=("1\n6 8\n", "1\n3 4\n", "1\n1 1\n", "4\n1 20000\n5000 9000\n100 100\n199000 200000\n"),
        core="""
q = ints(1)[0]
asked = [ints(2) for _ in range(q)]
least = list(range(200001))
for p in range(2, 448):
    if least[p] == p:
        for multiple in range(p * p, 200001, p):
            if least[multiple] == multiple:
                least[multiple] = p

def divisors(n):
    count = 1
    while n > 1:
        p, power = least[n], 1
        while n % p == 0:
            n //= p
            power += 1
        count *= power
    return count

for a, b in asked:
    count, number = max((divisors(n), -n) for n in range(a, min(b, a + 20000) + 1))
    emit(f"{-number} {count}")
""",
        wrong=(
            (
                "number = max((divisors(n), -n) for n in range(a, min(b, a + 20000) + 1))",
                "number = max((divisors(n), -n) for n in range(a, min(b, a + 20000)))",
            ),
            ("p * p, 200001, p", "p * p, 100001, p"),
            ("count *= power", "count *= 2"),
        ),
    ),
    Problem(
        name="common multiple",
        asks=(
            "The first line has n, the second n positive integers. Print their greatest common divisor and, "
            "on the next line, their least common multiple."
        ),
        shown=("2\n4 6\n", "2\n12\n"),
        hidden=("3\n2 4 4\n", "1\n7\n", "3\n6 10 15\n", row(40) + row(*numbers(40, 1, 10**9))),
        core="""
from functools import reduce
from math import gcd
n = ints(1)[0]
a = ints(n)
emit(reduce(gcd, a))
emit(reduce(lambda x, y: x * y // gcd(x, y), a))
""",
        wrong=(
            ("reduce(lambda x, y: x * y // gcd(x, y), a)", "reduce(lambda x, y: x * y, a) // reduce(gcd, a)"),
            ("emit(reduce(gcd, a))", "emit(gcd(a[0], a[-1]))"),
            ("x * y // gcd(x, y)", "int(x * y / gcd(x, y))"),
        ),
    ),
    Problem(
        name="powers",
        asks=(
            "The first line has q, each of the next q lines a b m. Print a^b modulo m for each (b from 0 to "
            "10^18, m from 1 to 10^18)."
        ),
        shown=("2\n2 10 1000\n3 4 7\n", "24\n4\n"),
        hidden=(
            "1\n5 0 1\n",
            "1\n1000000007 1000000000000 999999999989\n",
            "1\n-3 3 5\n",
            row(120) + rows(120, (-(10**18), 10**18), (0, 10**18), (1, 10**18)),
        ),
        core="""
def power(a, b, m):
    found = 1 % m
    a %= m
    while b:
        if b & 1:
            found = found * a % m
        a = a * a % m
        b >>= 1
    return found

q = ints(1)[0]
for _ in range(q):
    a, b, m = ints(3)
    emit(power(a, b, m))
""",
        wrong=(
            ("found = 1 % m", "found = 1"),
            ("    a %= m\n", "    a = abs(a) % m\n"),
            ("a = a * a % m", "a = int(float(a) * a) % m"),
        ),
    ),
    Problem(
        name="choosing",
        asks=(
            "The first line has q, each of the next q lines n k with 0 <= n, k <= 2*10^5. Print in how many "
            "ways k of n can be chosen, modulo 998244353."
        ),
        shown=("2\n5 2\n4 4\n", "10\n1\n"),
        hidden=("1\n2 3\n", "1\n0 0\n", "1\n200000 100000\n", row(200) + rows(200, (1, 200000), (0, 100000))),
        core="""
MOD = 998244353
SIZE = 200001
factorial = [1] * SIZE
for i in range(1, SIZE):
    factorial[i] = factorial[i - 1] * i % MOD
inverse = [1] * SIZE
inverse[-1] = pow(factorial[-1], MOD - 2, MOD)
for i in range(SIZE - 1, 0, -1):
    inverse[i - 1] = inverse[i] * i % MOD
q = ints(1)[0]
for _ in range(q):
    n, k = ints(2)
    emit(factorial[n] * inverse[k] * inverse[n - k] % MOD if k <= n else 0)
""",
        wrong=(
            (" if k <= n else 0", ""),
            ("MOD = 998244353", "MOD = 10**9 + 7"),
            ("if k <= n else 0", "if k <= n < SIZE - 1 else 0"),
        ),
    ),
    Problem(
        name="phi",
        asks=(
            "The first line has q, each of the next q lines a number n of 1..10^9. Print for each how many of"
            " 1..n have no common divisor with n but 1."
        ),
        shown=("2\n8\n9\n", "4\n6\n"),
        hidden=("2\n1\n2\n", "1\n10\n", "1\n999999937\n", row(12) + rows(12, (1, 10**9))),
        core="""
def phi(n):
    found, p = n, 2
    while p * p <= n:
        if n % p == 0:
            while n % p == 0:
                n //= p
            found -= found // p
        p += 1
    if n > 1:
        found -= found // n
    return found

q = ints(1)[0]
for _ in range(q):
    emit(phi(ints(1)[0]))
""",
        wrong=(
            ("    if n > 1:\n        found -= found // n\n", ""),
            ("found -= found // n\n", "found -= 1\n"),
        ),
    ),
    Problem(
        name="far Fibonacci",
        asks=(
            "One line with n and m (0 <= n <= 10^18, 1 <= m <= 10^9). Print the n-th Fibonacci number modulo "
            "m; the 0th is 0, the 1st is 1."
        ),
        shown=("10 100\n", "55\n"),
        hidden=("0 7\n", "1 1\n", "2 10\n", "1000000000000000000 999999937\n"),
        core="""
n, m = ints(2)

def times(a, b):
    return [[sum(x * y for x, y in zip(line, column)) % m for column in zip(*b)] for line in a]

found, step = [[1, 0], [0, 1]], [[1, 1], [1, 0]]
while n:
    if n % 2:
        found = times(found, step)
    step = times(step, step)
    n //= 2
emit(found[0][1] % m)
""",
        wrong=(
            ("emit(found[0][1] % m)", "emit(found[0][1] or 1)"),
            ("while n:", "n = min(n, 10**17)\nwhile n:"),
            ("emit(found[0][1] % m)", "emit(found[0][1] % m if m > 1 else 1)"),
        ),
    ),
)

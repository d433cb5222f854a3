"""Dynamic programming."""

from __future__ import annotations

from benchmarks.contests.problem import Problem, letters, numbers, row, rows

TABLES = (
    Problem(
        name="longest rising subsequence",
        asks=(
            "The first line has n, the second n integers. Print the length of the longest strictly rising subsequence."
        ),
        shown=("5\n1 2 5 3 4\n", "4\n"),
        hidden=("4\n2 2 2 3\n", "4\n2 3 4 1\n", row(1900) + row(*numbers(1900, 1, 3000))),
        core="""
from bisect import bisect_left as place
n = ints(1)[0]
tails = []
for x in ints(n):
    at = place(tails, x)
    if at == len(tails):
        tails.append(x)
    else:
        tails[at] = x
emit(len(tails))
""",
        wrong=(
            ("bisect_left", "bisect_right"),
            ("tails[at] = x", "tails = [*tails[:at], x]"),
        ),
    ),
    Problem(
        name="knapsack",
        asks=(
            "The first line has n and a capacity, each of the next n lines weight and value of a thing, of "
            "which there is one. Print the greatest value whose weight is at most the capacity."
        ),
        shown=("2 5\n3 4\n4 5\n", "5\n"),
        hidden=("1 6\n3 4\n", "1 4\n4 9\n", "3 5\n1 1\n2 3\n3 4\n", row(80, 2500) + rows(80, (1, 300), (1, 999))),
        core="""
n, capacity = ints(2)
best = [0] * (capacity + 1)
for _ in range(n):
    weight, value = ints(2)
    for room in range(capacity, weight - 1, -1):
        best[room] = max(best[room], best[room - weight] + value)
emit(best[capacity])
""",
        wrong=(
            ("range(capacity, weight - 1, -1)", "range(weight, capacity + 1)"),
            ("weight - 1, -1", "weight, -1"),
            ("best[room - weight] + value", "best[room - weight] * 0 + value"),
        ),
    ),
    Problem(
        name="ways to pay",
        asks=(
            "The first line has n and a sum, the second n different values of coins. Print in how many ways "
            "the sum can be paid, without regard to order, modulo 10^9 + 7."
        ),
        shown=("2 5\n5 3\n", "1\n"),
        hidden=("2 3\n1 2\n", "3 2000\n1 2 5\n", "12 9000\n" + row(1, 2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31)),
        core="""
n, total = ints(2)
coins = ints(n)
ways = [1] + [0] * total
for coin in coins:
    for paid in range(coin, total + 1):
        ways[paid] = (ways[paid] + ways[paid - coin]) % (10**9 + 7)
emit(ways[total])
""",
        wrong=(
            (
                "for coin in coins:\n    for paid in range(coin, total + 1):\n        ",
                "for paid in range(1, total + 1):\n    for coin in (one for one in coins if one <= paid):\n        ",
            ),
            (" % (10**9 + 7)", " % (10**9 + 9)"),
            ("range(coin, total + 1)", "range(total, coin - 1, -1)"),
        ),
    ),
    Problem(
        name="common subsequence",
        asks=("Two lines with a word each. Print the length of their longest common subsequence."),
        shown=("abcd\nbcd\n", "3\n"),
        hidden=(
            "abc\naxbxc\n",
            "aab\nab\n",
            "axxb\naby\n",
            letters(420, "abcd") + "\n" + letters(400, "abcd", 1) + "\n",
        ),
        core="""
s = word()
t = word()
before = [0] * (len(t) + 1)
for a in s:
    now = [0]
    for at, b in enumerate(t, 1):
        now.append(before[at - 1] + 1 if a == b else max(before[at], now[-1]))
    before = now
emit(before[-1])
""",
        wrong=(
            ("max(before[at], now[-1])", "0"),
            ("before[at - 1] + 1 if", "now[-1] + 1 if"),
            ("max(before[at], now[-1])", "before[at]"),
        ),
    ),
    Problem(
        name="edit distance",
        asks=(
            "Two lines with a word each. Print how many letters have to be put in, taken out or replaced to "
            "make the second of the first."
        ),
        shown=("cats\ncat\n", "1\n"),
        hidden=(
            "abc\nabd\n",
            "kitten\nsitting\n",
            "a\nxyz\n",
            letters(110, "abc") + "\n" + letters(100, "abc", 1) + "\n",
        ),
        core="""
from functools import lru_cache
s = word()
t = word()

@lru_cache(maxsize=None)
def distance(i, j):
    if not i or not j:
        return i + j
    if s[i - 1] == t[j - 1]:
        return distance(i - 1, j - 1)
    return 1 + min(distance(i - 1, j), distance(i, j - 1), distance(i - 1, j - 1))

emit(distance(len(s), len(t)))
""",
        wrong=(
            (", distance(i - 1, j - 1))", ")"),
            ("return i + j", "return i"),
            ("1 + min(", "2 - (i > j) + min("),
        ),
    ),
    Problem(
        name="jobs for people",
        asks=(
            "The first line has n, then come n lines of n costs: what person i takes for job j. Everybody "
            "gets one job. Print the least sum."
        ),
        shown=("2\n1 5\n5 2\n", "3\n"),
        hidden=(
            "2\n1 2\n1 9\n",
            "3\n3 1 2\n1 9 9\n2 1 9\n",
            row(10) + "".join(row(*numbers(10, 1, 99, seed)) for seed in range(10)),
        ),
        core="""
n = ints(1)[0]
costs = [ints(n) for _ in range(n)]
best = [0] + [10**9] * ((1 << n) - 1)
for mask in range(1 << n):
    person = bin(mask).count("1")
    for job in range(n):
        if not mask >> job & 1:
            best[mask | 1 << job] = min(best[mask | 1 << job], best[mask] + costs[person][job])
emit(best[-1])
""",
        wrong=(
            ("emit(best[-1])", "emit(sum(map(min, costs)))"),
            ("for job in range(n):", "for job in range(person, n):"),
        ),
    ),
    Problem(
        name="taking stones",
        asks=(
            "The first line has k and q, the second the k numbers of stones that may be taken in one turn, "
            "each of the next q lines a pile. Two players take in turns; who cannot loses. Print for each "
            "pile First or Second, who wins."
        ),
        shown=("2 2\n1 2\n3\n4\n", "Second\nFirst\n"),
        hidden=(
            "2 4\n1 3\n2\n3\n6\n7\n",
            "2 3\n2 5\n1\n3\n7\n",
            row(5, 50) + "2 3 7 11 20\n" + rows(50, (1, 20000)) + "",
        ),
        core="""
k, q = ints(2)
moves = ints(k)
piles = [ints(1)[0] for _ in range(q)]
wins = [False]
for pile in range(1, max(piles) + 1):
    wins.append(any(take <= pile and not wins[pile - take] for take in moves))
for pile in piles:
    emit("First" if wins[pile] else "Second")
""",
        wrong=(
            ("wins[pile] else", "pile % (max(moves) + 1) else"),
            ("for take in moves)", "for take in (min(moves), max(moves)))"),
        ),
    ),
)

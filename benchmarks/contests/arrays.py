"""Two pointers, prefix sums, binary search, stacks, heaps, intervals."""

from __future__ import annotations

from benchmarks.contests.problem import Problem, numbers, row, rows

ARRAYS = (
    Problem(
        name="longest window",
        asks=(
            "The first line has n and t, the second n positive integers. Print the length of the longest run "
            "of neighbours whose sum is at most t (0 if every number is above t)."
        ),
        shown=("5 7\n2 1 3 4 1\n", "3\n"),
        hidden=("3 6\n1 2 3\n", "1 3\n5\n", row(1500, 5000) + row(*numbers(1500, 1, 400))),
        core="""
n, t = ints(2)
a = ints(n)
best = left = total = 0
for right in range(n):
    total += a[right]
    while total > t:
        total -= a[left]
        left += 1
    best = max(best, right - left + 1)
emit(best)
""",
        wrong=(
            ("total > t", "total >= t"),
            ("best = left = total = 0", "best, left, total = 1, 0, 0"),
        ),
    ),
    Problem(
        name="range sums",
        asks=(
            "The first line has n and q, the second n integers of up to 10^18. Each of the next q lines has "
            "two positions (from 1) in any order. Print for each the sum of all numbers from one to the "
            "other, both included."
        ),
        shown=("4 2\n3 1 4 1\n1 3\n2 4\n", "8\n6\n"),
        hidden=(
            "3 2\n1 2 3\n3 2\n1 1\n",
            f"2 1\n{10**18} {10**18 - 1}\n1 2\n",
            row(300, 300) + row(*numbers(300, -(10**12), 10**12)) + rows(300, (1, 150), (1, 300)),
        ),
        core="""
from itertools import accumulate
n, q = ints(2)
prefix = [0, *accumulate(ints(n))]
for _ in range(q):
    left, right = sorted(ints(2))
    emit(prefix[right] - prefix[left - 1])
""",
        wrong=(
            ("sorted(ints(2))", "ints(2)"),
            ("prefix[right] - prefix[left - 1]", "int(float(prefix[right]) - prefix[left - 1])"),
            (
                "left, right = sorted(ints(2))",
                "left, right = sorted(ints(2))\n    left = left if left < right else left + 1",
            ),
        ),
    ),
    Problem(
        name="greatest sum of neighbours",
        asks=(
            "The first line has n, the second n integers. Print the greatest sum of a run of one or more neighbours."
        ),
        shown=("5\n1 -2 3 4 -1\n", "7\n"),
        hidden=("2\n-5 -3\n", "3\n-4 5 6\n", "2\n-7 2\n", row(1800) + row(*numbers(1800, -999, 999))),
        core="""
from functools import reduce
n = ints(1)[0]
a = ints(n)
best, _ = reduce(lambda s, x: (max(s[0], s[1] + x, x), max(s[1] + x, x)), a[1:], (a[0], a[0]))
emit(best)
""",
        wrong=(
            ("a[1:], (a[0], a[0])", "a, (0, 0)"),
            ("max(s[0], s[1] + x, x)", "max(s[0], s[1] + x)"),
        ),
    ),
    Problem(
        name="ropes",
        asks=(
            "The first line has n and k, the second the lengths of n ropes. From them k pieces of one whole "
            "length are cut. Print the greatest length possible, 0 if even pieces of length 1 are too few."
        ),
        shown=("3 5\n4 5 6\n", "2\n"),
        hidden=("1 5\n3\n", "3 2\n1 9 9\n", "2 3\n10 5\n", row(400, 1700) + row(*numbers(400, 10**8, 10**9))),
        core="""
n, k = ints(2)
a = ints(n)
low, high = 0, max(a)
while low < high:
    middle = (low + high + 1) // 2
    if sum(x // middle for x in a) >= k:
        low = middle
    else:
        high = middle - 1
emit(low)
""",
        wrong=(
            ("low, high = 0, max(a)", "low, high = 1, max(a)"),
            ("max(a)", "min(a)"),
            ("sum(x // middle for x in a)", "sum(a) // middle - (n > 2)"),
        ),
    ),
    Problem(
        name="inversions",
        asks=("The first line has n, the second n integers of 1..10^9. Print how many pairs stand in falling order."),
        shown=("4\n4 1 3 2\n", "4\n"),
        hidden=("3\n2 2 1\n", "4\n1 1 1 1\n", row(1000) + row(*numbers(1000, 1, 900))),
        core="""
class Fenwick:
    __slots__ = ("size", "tree")

    def __init__(self, size):
        self.size = size
        self.tree = [0] * (size + 1)

    def add(self, at):
        while at <= self.size:
            self.tree[at] += 1
            at += at & -at

    def upto(self, at):
        found = 0
        while at:
            found += self.tree[at]
            at &= at - 1
        return found

n = ints(1)[0]
a = ints(n)
ranks = {x: rank for rank, x in enumerate(sorted(set(a)), 1)}
counts = Fenwick(len(ranks))
pairs = 0
for x in reversed(a):
    pairs += counts.upto(ranks[x] - 1)
    counts.add(ranks[x])
emit(pairs)
""",
        wrong=(
            ("upto(ranks[x] - 1)", "upto(ranks[x])"),
            ("sorted(set(a)), 1)", "sorted(a), 1)"),
            ("at += at & -at", "at += at & -at if at < 4 else 1"),
        ),
    ),
    Problem(
        name="next greater",
        asks=(
            "The first line has n, the second n integers. Print for each, on a line of its own, the next "
            "number to its right that is greater, or -1."
        ),
        shown=("4\n2 1 4 3\n", "4\n4\n-1\n-1\n"),
        hidden=("3\n2 2 3\n", "3\n1 1 1\n", "4\n-3 -2 -9 -1\n", row(900) + row(*numbers(900, 1, 10**6))),
        core="""
n = ints(1)[0]
a = ints(n)
found = [-1] * n
stack = []
for at, x in enumerate(a):
    while stack and a[stack[-1]] < x:
        found[stack.pop()] = x
    stack.append(at)
for x in found:
    emit(x)
""",
        wrong=(
            ("a[stack[-1]] < x", "a[stack[-1]] <= x"),
            ("while stack and a[stack[-1]] < x", "while stack and 0 < a[stack[-1]] < x"),
        ),
    ),
    Problem(
        name="running medians",
        asks=(
            "The first line has n, the second n integers. Print after each of them the lower median of those so far."
        ),
        shown=("4\n5 2 8 1\n", "5\n2\n5\n2\n"),
        hidden=("5\n1 2 3 4 5\n", "4\n4 4 1 -9\n", row(800) + row(*numbers(800, -(10**6), 10**6))),
        core="""
import heapq
n = ints(1)[0]
low, high = [], []
for x in ints(n):
    heapq.heappush(high, -heapq.heappushpop(low, -x))
    if len(high) > len(low):
        heapq.heappush(low, -heapq.heappop(high))
    emit(-low[0])
""",
        wrong=(
            ("emit(-low[0])", "emit(abs(low[0]))"),
            ("if len(high) > len(low)", "if len(high) > len(low) and len(low) < 2"),
        ),
    ),
    Problem(
        name="talks",
        asks=(
            "The first line has n, each of the next n lines begin and end of a talk. Talks may touch but not "
            "overlap. Print how many can be heard at most."
        ),
        shown=("3\n1 4\n3 6\n7 9\n", "2\n"),
        hidden=(
            "2\n1 2\n2 3\n",
            "3\n1 10\n2 3\n4 5\n",
            row(500) + "".join(row(a, a + b) for a, b in zip(numbers(500, 1, 5000), numbers(500, 1, 60), strict=True)),
        ),
        core="""
from operator import itemgetter
n = ints(1)[0]
talks = sorted((tuple(ints(2)) for _ in range(n)), key=itemgetter(1))
heard, free = 0, -1
for begin, end in talks:
    if begin >= free:
        heard, free = heard + 1, end
emit(heard)
""",
        wrong=(("begin >= free", "begin > free"), ("itemgetter(1)", "itemgetter(0)")),
    ),
    Problem(
        name="covered length",
        asks=(
            "The first line has n, each of the next n lines the ends of a segment, in any order. Print the "
            "length that they cover together."
        ),
        shown=("3\n1 4\n3 6\n8 9\n", "6\n"),
        hidden=(
            "2\n4 1\n2 3\n",
            "2\n1 10\n2 5\n",
            "3\n1 9\n2 3\n4 12\n",
            row(500) + rows(500, (-(10**6), 10**6), (-(10**6), 10**6)),
        ),
        core="""
from typing import NamedTuple

class Segment(NamedTuple):
    begin: int
    end: int

n = ints(1)[0]
segments = sorted(Segment(*sorted(ints(2))) for _ in range(n))
covered, reached = 0, segments[0].begin
for segment in segments:
    covered += max(segment.end - max(segment.begin, reached), 0)
    reached = max(reached, segment.end)
emit(covered)
""",
        wrong=(
            ("Segment(*sorted(ints(2)))", "Segment(*ints(2))"),
            ("reached = max(reached, segment.end)", "reached = segment.end"),
            ("max(segment.end - max(segment.begin, reached), 0)", "segment.end - max(segment.begin, reached)"),
        ),
    ),
)

"""Graphs and trees."""

from __future__ import annotations

from benchmarks.contests.problem import Problem, numbers, row, rows

_TREE = row(1500) + "".join(row(max(1, node - step), node) for node, step in enumerate(numbers(1499, 1, 4), 2))

GRAPHS = (
    Problem(
        name="cheapest ways",
        asks=(
            "The first line has n and m, each of the next m lines a road a b c, of cost c >= 0 in both "
            "directions. Print the cost from place 1 to each of the places 1..n, a line each, -1 where there "
            "is no way."
        ),
        shown=("3 2\n1 2 4\n2 3 1\n", "0\n4\n5\n"),
        hidden=(
            "3 1\n2 1 7\n",
            "3 3\n1 2 9\n1 3 1\n3 2 1\n",
            "2 2\n1 2 5\n1 2 3\n",
            row(300, 800) + rows(800, (1, 300), (1, 300), (0, 10**4)),
        ),
        core="""
import heapq
from collections import defaultdict
n, m = ints(2)
roads = defaultdict(list)
for _ in range(m):
    a, b, c = ints(3)
    roads[a].append((b, c))
    roads[b].append((a, c))
costs = [float("inf")] * (n + 1)
costs[1] = 0
heap = [(0, 1)]
while heap:
    cost, place = heapq.heappop(heap)
    if cost > costs[place]:
        continue
    for other, c in roads[place]:
        if cost + c < costs[other]:
            costs[other] = cost + c
            heapq.heappush(heap, (cost + c, other))
for cost in costs[1:]:
    emit(cost if cost < float("inf") else -1)
""",
        wrong=(
            ("    roads[b].append((a, c))\n", ""),
            ("if cost + c < costs[other]", "if costs[other] == float('inf')"),
            ('emit(cost if cost < float("inf") else -1)', "emit(cost)"),
        ),
    ),
    Problem(
        name="groups of friends",
        asks=(
            "The first line has n and m, each of the next m lines two people who are friends. Print how many "
            "groups there are, and on the next line the size of the greatest."
        ),
        shown=("5 3\n1 2\n2 3\n4 5\n", "2\n3\n"),
        hidden=(
            "3 3\n1 2\n2 1\n1 1\n",
            "4 3\n1 2\n3 4\n1 3\n",
            "5 4\n1 2\n3 4\n2 4\n3 1\n",
            row(1000, 900) + rows(900, (1, 1000), (1, 1000)),
        ),
        core="""
from collections import Counter
n, m = ints(2)
leader = list(range(n + 1))

def find(a):
    while leader[a] != a:
        leader[a] = leader[leader[a]]
        a = leader[a]
    return a

for _ in range(m):
    a, b = ints(2)
    leader[find(a)] = find(b)
groups = Counter(map(find, range(1, n + 1)))
emit(len(groups))
emit(max(groups.values()))
""",
        wrong=(
            ("emit(len(groups))", "emit(n - m)"),
            ("leader[find(a)] = find(b)", "leader[a] = find(b)"),
        ),
    ),
    Problem(
        name="order of courses",
        asks=(
            "The first line has n and m, each of the next m lines a b: course a comes before b. Print the "
            "order of 1..n that is the first by comparing numbers from the left, a course a line, or only "
            "IMPOSSIBLE."
        ),
        shown=("3 2\n1 2\n2 3\n", "1\n2\n3\n"),
        hidden=(
            "2 2\n1 2\n2 1\n",
            "4 2\n4 1\n1 2\n",
            "3 1\n3 1\n",
            row(500, 500)
            + "".join(row(a, a + b) for a, b in zip(numbers(500, 1, 400), numbers(500, 1, 90), strict=True)),
        ),
        core="""
from heapq import heapify, heappop, heappush
n, m = ints(2)
after = [[] for _ in range(n + 1)]
waits = [0] * (n + 1)
for _ in range(m):
    a, b = ints(2)
    after[a].append(b)
    waits[b] += 1
ready = [a for a in range(1, n + 1) if not waits[a]]
heapify(ready)
order = []
while ready:
    a = heappop(ready)
    order.append(a)
    for b in after[a]:
        waits[b] -= 1
        if not waits[b]:
            heappush(ready, b)
for a in order if len(order) == n else ["IMPOSSIBLE"]:
    emit(a)
""",
        wrong=(
            ("heappop(ready)", "ready.pop(0)"),
            (' if len(order) == n else ["IMPOSSIBLE"]', ""),
            ("heappop(ready)", "ready.pop()"),
        ),
    ),
    Problem(
        name="longest path of a tree",
        asks=(
            "The first line has n, each of the next n - 1 lines an edge of a tree of 1..n. Print how many "
            "edges the longest path has."
        ),
        shown=("4\n1 2\n2 3\n3 4\n", "3\n"),
        hidden=("1\n", "5\n1 2\n1 3\n3 4\n2 5\n", "3\n2 1\n1 3\n", _TREE),
        core="""
import sys
sys.setrecursionlimit(20000)
n = ints(1)[0]
edges = [[] for _ in range(n + 1)]
for _ in range(n - 1):
    a, b = ints(2)
    edges[a].append(b)
    edges[b].append(a)
best = [0]

def depth(node, parent):
    first = second = 0
    for child in edges[node]:
        if child != parent:
            found = depth(child, node) + 1
            if found > first:
                first, second = found, first
            elif found > second:
                second = found
    best[0] = max(best[0], first + second)
    return first

depth(1, 0)
emit(best[0])
""",
        wrong=(
            ("max(best[0], first + second)", "max(best[0], first)"),
            ("first + second)", "first + second if node > 1 else first)"),
            ("best = [0]", "best = [n > 1]"),
        ),
    ),
    Problem(
        name="two teams",
        asks=(
            "The first line has n and m, each of the next m lines two people who do not want to be in one "
            "team. Print YES if two teams are enough, else NO."
        ),
        shown=("3 2\n1 2\n2 3\n", "YES\n"),
        hidden=(
            "4 3\n2 3\n3 4\n4 2\n",
            "3 3\n1 2\n2 3\n3 1\n",
            "2 1\n1 1\n",
            row(900, 800)
            + "".join(
                row(2 * a, 2 * b - 1) for a, b in zip(numbers(800, 1, 450), numbers(800, 1, 450, 1), strict=True)
            ),
        ),
        core="""
n, m = ints(2)
against = {a: set() for a in range(1, n + 1)}
for _ in range(m):
    a, b = ints(2)
    against[a].add(b)
    against[b].add(a)
team = {}
fine = True
for start in against:
    if start in team:
        continue
    team[start] = 0
    stack = [start]
    while stack:
        a = stack.pop()
        for b in against[a]:
            if b not in team:
                team[b] = 1 - team[a]
                stack.append(b)
            elif team[b] == team[a]:
                fine = False
emit("YES" if fine else "NO")
""",
        wrong=(
            ("for start in against:", "for start in [1]:"),
            ("elif team[b] == team[a]:", "elif team[b] == team[a] and a != b:"),
            ('emit("YES" if fine else "NO")', 'emit("YES" if m < n else "NO")'),
        ),
    ),
    Problem(
        name="all distances",
        asks=(
            "The first line has n and m, each of the next m lines a one-way road a b c of length c > 0. Print"
            " n lines: the sum of the distances from each place to all that can be reached from it."
        ),
        shown=("3 2\n1 2 1\n2 3 2\n", "4\n2\n0\n"),
        hidden=(
            "4 4\n1 4 9\n4 3 1\n3 2 1\n1 3 20\n",
            "2 2\n1 2 3\n1 2 8\n",
            "3 3\n3 1 2\n1 2 5\n2 3 1\n",
            row(55, 400) + rows(400, (1, 55), (1, 55), (1, 99)),
        ),
        core="""
n, m = ints(2)
INF = 10**18
d = [[0 if i == j else INF for j in range(n)] for i in range(n)]
for _ in range(m):
    a, b, c = ints(3)
    d[a - 1][b - 1] = min(d[a - 1][b - 1], c)
for k in range(n):
    for i in range(n):
        for j in range(n):
            if d[i][k] + d[k][j] < d[i][j]:
                d[i][j] = d[i][k] + d[k][j]
for line in d:
    emit(sum(x for x in line if x < INF))
""",
        wrong=(
            ("d[a - 1][b - 1] = min(d[a - 1][b - 1], c)", "d[a - 1][b - 1] = c"),
            (
                "for k in range(n):\n    for i in range(n):\n        for j in range(n):",
                "for i in range(n):\n    for k in range(n):\n        for j in range(n):",
            ),
            (
                "d[a - 1][b - 1] = min(d[a - 1][b - 1], c)",
                "d[a - 1][b - 1] = min(d[a - 1][b - 1], c)\n    d[b - 1][a - 1] = max(d[b - 1][a - 1], c)\n    d[b "
                "- 1][a - 1] = INF",
            ),
        ),
    ),
    Problem(
        name="cheapest network",
        asks=(
            "The first line has n and m, each of the next m lines a cable a b c of cost c. Print the least "
            "cost that connects all n places, -1 if that cannot be done."
        ),
        shown=("3 3\n1 2 1\n2 3 2\n1 3 3\n", "3\n"),
        hidden=(
            "3 1\n1 2 5\n",
            "4 4\n1 2 1\n3 4 1\n1 3 9\n2 4 5\n",
            "1 0\n",
            row(300, 700) + rows(700, (1, 300), (1, 300), (1, 10**5)),
        ),
        core="""
from dataclasses import dataclass, field

@dataclass(order=True)
class Cable:
    cost: int
    ends: tuple = field(compare=False)

n, m = ints(2)
cables = []
for _ in range(m):
    a, b, c = ints(3)
    cables.append(Cable(c, (a, b)))
group = [{a} for a in range(n + 1)]
total, used = 0, 0
for cable in sorted(cables):
    a, b = (group[end] for end in cable.ends)
    if a is not b:
        total, used = total + cable.cost, used + 1
        small, large = sorted((a, b), key=len)
        large |= small
        for end in small:
            group[end] = large
emit(total if used == n - 1 else -1)
""",
        wrong=(
            ("total if used == n - 1 else -1", "total"),
            ("sorted(cables)", "cables"),
            ("if a is not b:", "if a is not b and used < 2:"),
        ),
    ),
)

"""Grids, searches and simulations."""

from __future__ import annotations

from benchmarks.contests.problem import Problem, letters, numbers, row

_GRID = "".join(letters(60, "....#", seed) + "\n" for seed in range(58))


def _command(number: int, name: str) -> str:
    """A command for the bank."""
    return f"show\n{name}\n" if number % 3 == 2 else f"{('put', 'take')[number % 3]}\n{name}\n{number}\n"


GRIDS = (
    Problem(
        name="way through a maze",
        asks=(
            "The first line has h and w, then come h lines of w characters: # is a wall, . is free. One step "
            "goes to a free neighbour up, down, left or right. Print the fewest steps from the upper left to "
            "the lower right corner (both are free), -1 if there is no way."
        ),
        shown=("2 3\n...\n.#.\n", "3\n"),
        hidden=(
            "2 2\n.#\n#.\n",
            "3 4\n....\n.##.\n....\n",
            "3 3\n..#\n#.#\n#..\n",
            "3 5\n.#...\n.#.#.\n...#.\n",
            f"60 60\n{'.' * 60}\n{_GRID}{'.' * 60}\n",
        ),
        core="""
from collections import deque
h, w = ints(2)
grid = [word() for _ in range(h)]
steps = {(0, 0): 0}
queue = deque(steps)
while queue:
    y, x = queue.popleft()
    for v, u in ((y + 1, x), (y - 1, x), (y, x + 1), (y, x - 1)):
        if 0 <= v < h and 0 <= u < w and grid[v][u] == "." and (v, u) not in steps:
            steps[v, u] = steps[y, x] + 1
            queue.append((v, u))
emit(steps.get((h - 1, w - 1), -1))
""",
        wrong=(
            ("queue.popleft()", "queue.pop()"),
            (", -1))", ", 0))"),
            ('grid[v][u] == "."', 'grid[v][u] == "." and v >= y'),
        ),
    ),
    Problem(
        name="islands",
        asks=(
            "The first line has h and w, then come h lines of w characters: # is land, . is water. Print how "
            "many islands there are; land is connected up, down, left and right."
        ),
        shown=("3 3\n##.\n...\n.##\n", "2\n"),
        hidden=("2 2\n#.\n.#\n", "3 3\n###\n#.#\n#.#\n", "1 5\n#.#.#\n", f"58 60\n{_GRID}"),
        core="""
import sys
sys.setrecursionlimit(10**5)
h, w = ints(2)
grid = [list(word()) for _ in range(h)]

def sink(y, x):
    if not (0 <= y < h and 0 <= x < w) or grid[y][x] != "#":
        return
    grid[y][x] = "."
    for dy, dx in [(0, 1), (1, 0), (0, -1), (-1, 0)]:
        sink(y + dy, x + dx)

islands = 0
for y in range(h):
    for x in range(w):
        if grid[y][x] == "#":
            islands += 1
            sink(y, x)
emit(islands)
""",
        wrong=(
            ("(-1, 0)]", "(-1, 0), (1, 1), (1, -1)]"),
            ("(0, -1), (-1, 0)]", "(0, -1)]"),
        ),
    ),
    Problem(
        name="queens",
        asks=(
            "The first line has n, the second the column of a queen in the first row (from 1). Print in how "
            "many ways n queens stand on a board of n by n so that none attacks another."
        ),
        shown=("4\n2\n", "1\n"),
        hidden=("5\n1\n", "6\n3\n", "1\n1\n", "7\n4\n"),
        core="""
n = ints(1)[0]
first = ints(1)[0] - 1

def place(queens):
    if len(queens) == n:
        yield queens
        return
    for x in range(n):
        if all(x != column and abs(x - column) != len(queens) - y for y, column in enumerate(queens)):
            yield from place(queens + (x,))

emit(sum(1 for _ in place((first,))))
""",
        wrong=(
            ("for y, column in enumerate(queens)", "for y, column in enumerate(queens[-2:], max(len(queens) - 2, 0))"),
        ),
    ),
    Problem(
        name="a robot",
        asks=(
            "One line of commands: F goes one step, L and R turn by 90 degrees. It starts at 0 0, looking up "
            "(y grows). Print x and y of the end, a line each, then how many different places it has been at,"
            " the start included."
        ),
        shown=("FFRF\n", "1\n2\n4\n"),
        hidden=("LF\n", "FRFRFRF\n", "RRF\n", letters(5000, "FFLR") + "\n"),
        core="""
from enum import Enum

class Way(Enum):
    UP = (0, 1)
    RIGHT = (1, 0)
    DOWN = (0, -1)
    LEFT = (-1, 0)

ways = list(Way)
x = y = at = 0
been = {(x, y)}
for command in word():
    if command == "F":
        dx, dy = ways[at].value
        x, y = x + dx, y + dy
        been.add((x, y))
    else:
        at = (at + (1 if command == "R" else -1)) % 4
emit(x)
emit(y)
emit(len(been))
""",
        wrong=(
            ('(1 if command == "R" else -1)', '(1 if command == "R" else 1)'),
            ("emit(len(been))", "emit(abs(x) + abs(y) + 1)"),
            ("emit(y)", "emit(abs(y))"),
        ),
    ),
    Problem(
        name="circle of children",
        asks=(
            "One line with n and k: children 1..n stand in a circle, and each k-th goes out, counting on from"
            " the one after. Print in which order they go, a number a line."
        ),
        shown=("3 2\n", "2\n1\n3\n"),
        hidden=("5 1\n", "4 3\n", "2 5\n", "800 37\n"),
        core="""
from collections import deque
n, k = ints(2)
circle = deque(range(1, n + 1))
while circle:
    circle.rotate(1 - k)
    emit(circle.popleft())
""",
        wrong=(
            ("rotate(1 - k)", "rotate(-1)"),
            ("circle.rotate(1 - k)", "circle.rotate(1 - k % (n + 1) or -1)"),
        ),
    ),
    Problem(
        name="a bank",
        asks=(
            "The first line has n, then come n commands, each word of them on a line of its own: put, name, "
            "amount; take, name, amount, which does nothing where it is too much; show, name, which prints "
            "the balance, or NONE where nothing was ever put."
        ),
        shown=("3\nput\na\n5\ntake\na\n3\nshow\na\n", "2\n"),
        hidden=(
            "4\nput\na\n5\ntake\na\n5\nshow\na\nshow\nb\n",
            "3\ntake\nc\n4\nshow\nc\nput\nc\n1\n",
            "4\nput\na\n1\nput\na\n2\nput\nb\n3\nshow\na\n",
            row(600)
            + "".join(_command(*drawn) for drawn in zip(numbers(600, 0, 999), letters(600, "abcdef"), strict=True)),
        ),
        core="""
class Bank(dict):
    def run(self, command, name, amount="0"):
        if command == "put":
            self[name] = self.get(name, 0) + int(amount)
        elif command == "take" and self.get(name, 0) >= int(amount):
            self[name] -= int(amount)
        elif command == "show":
            return [self.get(name, "NONE")]
        return []

n = ints(1)[0]
bank = Bank()
for _ in range(n):
    command, name = word(), word()
    for balance in bank.run(command, name, *([] if command == "show" else [word()])):
        emit(balance)
""",
        wrong=(
            ("self.get(name, 0) >= int(amount)", "self.get(name, 0) > int(amount)"),
            ('[self.get(name, "NONE")]', '[self.get(name) or "NONE"]'),
            ("self[name] = self.get(name, 0) + int(amount)", "self[name] = int(amount)"),
        ),
    ),
    Problem(
        name="arrangements",
        asks=(
            "One line with a word of up to 8 letters. Print how many different words its letters make, and on"
            " the next line the first of them by alphabet that comes after it, or NONE."
        ),
        shown=("abc\n", "6\nacb\n"),
        hidden=("aab\n", "cba\n", "ba\n", "aba\n", "hgfedcba\n"),
        core="""
from itertools import permutations
s = word()
made = sorted(set(map("".join, permutations(s))))
at = made.index(s) + 1
emit(len(made))
emit(made[at] if at < len(made) else "NONE")
""",
        wrong=(
            ("emit(len(made))", "emit(sum(1 for _ in permutations(s)))"),
            ('made[at] if at < len(made) else "NONE"', "made[at % len(made)]"),
        ),
    ),
)

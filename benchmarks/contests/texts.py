"""Strings and stacks."""

from __future__ import annotations

from benchmarks.contests.problem import Problem, letters, numbers, row

TEXTS = (
    Problem(
        name="brackets",
        asks=(
            "The first line has q, each of the next q lines a text of the brackets ()[]{}. Print YES for each"
            " whose brackets match, else NO."
        ),
        shown=("2\n([]{})\n(]\n", "YES\nNO\n"),
        hidden=(
            "2\n((\n)(\n",
            "1\n([)]\n",
            "2\n]\n[]\n",
            "2\n" + "([{" * 600 + "}])" * 600 + "\n" + "([]" * 900 + "\n",
        ),
        core="""
CLOSES = {")": "(", "]": "[", "}": "{"}

def matches(text):
    stack = []
    for c in text:
        if c in CLOSES:
            if not stack or stack.pop() != CLOSES[c]:
                return False
        else:
            stack.append(c)
    return not stack

q = ints(1)[0]
for _ in range(q):
    emit("YES" if matches(word()) else "NO")
""",
        wrong=(
            ("return not stack", "return True"),
            ("if not stack or stack.pop() != CLOSES[c]:", "if stack and stack.pop() != CLOSES[c]:"),
            (
                "matches(word())",
                "all(map(lambda text: [text.count(c) for c in CLOSES] == [text.count(o) for o in CLOSES.values()], "
                "[word()]))",
            ),
        ),
    ),
    Problem(
        name="longest palindrome",
        asks=(
            "One line with a word. Print the longest part that reads the same backwards, of equally long ones"
            " the first."
        ),
        shown=("xabay\n", "aba\n"),
        hidden=("xabbay\n", "abcd\n", "aabbb\n", "abacdcd\n", letters(700, "ab") + "\n"),
        core="""
s = word()
best = ""
for middle in range(len(s)):
    for left, right in ((middle, middle), (middle, middle + 1)):
        while left >= 0 and right < len(s) and s[left] == s[right]:
            left, right = left - 1, right + 1
        if right - left - 1 > len(best):
            best = s[left + 1 : right]
emit(best)
""",
        wrong=(
            ("((middle, middle), (middle, middle + 1))", "((middle, middle),)"),
            ("> len(best)", ">= len(best)"),
            ("left >= 0", "left > 0"),
        ),
    ),
    Problem(
        name="occurrences",
        asks=("Two lines: a text and a word. Print how often the word occurs in the text, overlaps included."),
        shown=("banana\nnan\n", "1\n"),
        hidden=("aaaa\naa\n", "abc\nd\n", "ababab\nab\n", letters(3000, "ab") + "\n" + "aba\n"),
        core="""
text = word()
part = word()
joined = part + "#" + text
border = [0] * len(joined)
for i in range(1, len(joined)):
    k = border[i - 1]
    while k and joined[i] != joined[k]:
        k = border[k - 1]
    border[i] = k + (joined[i] == joined[k])
emit(sum(k == len(part) for k in border))
""",
        wrong=(
            ("emit(sum(k == len(part) for k in border))", "emit(text.count(part))"),
            ("emit(sum(k == len(part) for k in border))", "emit(int(max(border) == len(part)))"),
            ("k = border[k - 1]", "k = 0"),
        ),
    ),
    Problem(
        name="run lengths",
        asks=(
            "One line with a text such as 3a12b, where a number says how often the next letter stands; a "
            "letter without one stands once. Print how long the text is in full, and on the next line its "
            "shortest form."
        ),
        shown=("2ab3c\n", "6\n2ab3c\n"),
        hidden=(
            "12a\n",
            "aaab\n",
            "2a3ab\n",
            "a1b2b\n",
            "".join(f"{n}{c}" for n, c in zip(numbers(800, 1, 99), letters(800, "abc"), strict=True)) + "\n",
        ),
        core="""
import re
from itertools import groupby
pairs = [(int(count or 1), letter) for count, letter in re.findall(r"(\\d*)([a-z])", word())]
emit(sum(count for count, _ in pairs))
shortest = []
for letter, group in groupby(pairs, key=lambda pair: pair[1]):
    count = sum(one for one, _ in group)
    shortest.append(f"{count}{letter}" if count > 1 else letter)
emit("".join(shortest))
""",
        wrong=(
            (r"(\d*)", r"(\d?)"),
            ("count = sum(one for one, _ in group)", "count = next(group)[0]"),
            ("sum(one for one, _ in group)", "max(one for one, _ in group)"),
        ),
    ),
    Problem(
        name="frequent words",
        asks=(
            "The first line has n and k, each of the next n lines a word. Print the k words that occur most, "
            "with their number, one a line; of equally frequent ones the first by alphabet first."
        ),
        shown=("4 1\nb\na\nb\nc\n", "b 2\n"),
        hidden=(
            "4 2\nb\na\nb\na\n",
            "3 3\nz\ny\nx\n",
            "11 2\n" + "b\n" * 10 + "aa\n",
            row(900, 20) + "".join(letters(2, "abcdefg", seed) + "\n" for seed in range(900)),
        ),
        core="""
from collections import Counter
n, k = ints(2)
counts = Counter(word() for _ in range(n))
for name, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:k]:
    emit(f"{name} {count}")
""",
        wrong=(
            ("sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:k]", "counts.most_common(k)"),
            ("key=lambda item: (-item[1], item[0])", "key=lambda item: (item[1], item[0]), reverse=True"),
            ("(-item[1], item[0])", "(-min(item[1], 9), item[0])"),
        ),
    ),
    Problem(
        name="calculator",
        asks=(
            "The first line has n, each of the next n lines a token of an expression in reverse Polish "
            "notation: + - * / or a whole number; division rounds toward zero. Print its value modulo 10^9 + "
            "7."
        ),
        shown=("5\n7\n2\n/\n3\n+\n", "6\n"),
        hidden=(
            "3\n-7\n2\n/\n",
            "3\n3\n5\n-\n",
            f"5\n{10**17 + 1}\n3\n/\n1\n*\n",
            "1999\n1\n2\n" + "+\n3\n*\n5\n" * 499 + "-\n",
        ),
        core="""
from operator import add, mul, sub

def divide(a, b):
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)

OPERATORS = {"+": add, "-": sub, "*": mul, "/": divide}
n = ints(1)[0]
stack = []
for token in [word() for _ in range(n)]:
    if token in OPERATORS:
        b, a = stack.pop(), stack.pop()
        token = OPERATORS[token](a, b)
    stack.append(int(token))
emit(stack[-1] % 1000000007)
""",
        wrong=(
            ("abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)", "a // b"),
            ("b, a = stack.pop(), stack.pop()", "b, a = sorted((stack.pop(), stack.pop()))"),
            ("return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)", "return int(a / b)"),
        ),
    ),
)

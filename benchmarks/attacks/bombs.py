"""Programs that are to end, hang or fill whoever follows them, and tests that are to do so to whoever reads them.

Each is a way that once worked on an interpreter in the node's own process. `BOMBS` are bodies of a function `f` that
the tests call; `TEST_BOMBS` are whole texts of tests.
"""

from __future__ import annotations

from textwrap import dedent

BOMBS: dict[str, str] = {
    "a chain of comparison keys in a cycle": """
        from functools import cmp_to_key
        global cycle
        try:
            cycle
        except NameError:
            cycle = [None]
            cycle.append(cycle)
        key = cmp_to_key(lambda a, b: 0)
        link = cycle[0]
        for _ in range(90000):
            link = key(link)
        cycle[0] = link
        return 1
    """,
    "slices of slices, printed": """
        class A:
            def __getitem__(self, item):
                return item
        a = A()
        s = a[0:1]
        for _ in range(60):
            s = a[s:s]
        str(s)
        return 1
    """,
    "slices of slices, compared": """
        class A:
            def __getitem__(self, item):
                return item
        a = A()
        s, t = a[0:1], a[0:1]
        for _ in range(60):
            s, t = a[s:s], a[t:t]
        s == t
        return 1
    """,
    "an error's file name shared 2^60 times": """
        name = ()
        for _ in range(60):
            name = (name, name)
        str(OSError(1, 'x', name))
        return 1
    """,
    "nested tuples of classes": """
        kinds = (int,)
        for _ in range(60):
            kinds = (kinds, kinds)
        isinstance('', kinds)
        return 1
    """,
    "nested tuples of errors to catch": """
        kinds = (KeyError,)
        for _ in range(60):
            kinds = (kinds, kinds)
        try:
            raise ValueError
        except kinds:
            pass
        return 1
    """,
    "a format of open brackets": """
        ('%(' * 10**6) % ()
        return 1
    """,
    "hashes of long tuples, looked up": """
        key = tuple(range(100000))
        table = {}
        for _ in range(200000):
            key in table
        return 1
    """,
    "a width behind nested brackets": """
        return len('%(a(b))1900000000d' % {'a(b)': 1}) and 1
    """,
    "counters that double strings": """
        from collections import Counter
        c = Counter()
        c['a'] = 'x' * 1000
        for _ in range(24):
            c.update(c)
        return 1
    """,
    "lines of wide characters": """
        return len(('\\U0001F600\\n' * 12000000).splitlines()) and 1
    """,
    "replacements that are kept": """
        import re
        for i in range(60):
            re.sub('a', str(i) + 'x' * 2000000, 'a')
        return 1
    """,
    "an item getter with 600,000 keys": """
        from operator import itemgetter
        keys = list(range(600000))
        return len(itemgetter(*keys)(keys)) and 1
    """,
    "equal strings of megabytes": """
        a, b = 'x' * 4000000, 'x' * 4000000
        for _ in range(200000):
            a == b
        return 1
    """,
    "integers of one hash": """
        return len({i * (2**61 - 1) for i in range(60000)}) and 1
    """,
    "keyword arguments by the hundred thousand": """
        def g(**kwargs):
            return 1
        d = {str(i): i for i in range(100000)}
        for _ in range(1000):
            dict(**d)
        return 1
    """,
    "four hundred groups": """
        import re
        for _ in range(200):
            re.findall('(' * 400 + 'a' + ')' * 400, 'a' * 100000)
        return 1
    """,
}

CASES = "assert f() == 1\n" * 4
"""Tests of a bomb; several, since some of them grow from case to case."""

TEST_BOMBS: dict[str, str] = {
    "five thousand statements on one line": "f();" * 4999,
    "openings of examples without an end": "Input:\n" * 9362,
    "a deep expression": "assert " + "(" * 9000 + "f()" + ")" * 9000,
}


def solution(name: str) -> str:
    """A function `f` whose body is the bomb."""
    body = dedent(BOMBS[name]).strip("\n")
    return "def f():\n" + "\n".join(f"    {line}" for line in body.splitlines()) + "\n"

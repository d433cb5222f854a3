"""Ways to write one and the same contest program: reading, printing, and what stands around."""

from __future__ import annotations

import re
from dataclasses import dataclass
from textwrap import indent

SPLIT = "list(map(int, {line}.split()))"
BODY = "@body"


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    name: str
    ints: str
    """In place of `ints(count)`; `{count}` stands for its argument."""
    word: str
    emit: str
    """In place of `emit`, a function of one value."""
    frame: str
    """The program around; `@body` stands where the core goes, indented as deep."""


def dress(core: str, style: Style) -> str:
    """The program of a core, in a style. What the core imports comes first."""
    lines = core.strip().splitlines()
    start = next(at for at, line in enumerate(lines) if not line.startswith(("import ", "from ")))
    body = "\n".join(lines[start:]).strip()
    body = re.sub(r"\bints\(([^()]*)\)", lambda found: style.ints.replace("{count}", found[1]), body)
    body = re.sub(r"\bword\(\)", lambda _: style.word, body)
    body = re.sub(r"\bemit\(", lambda _: f"{style.emit}(", body)
    framed = re.sub(rf"^( *){BODY}$", lambda found: indent(body, found[1]), style.frame, flags=re.MULTILINE)
    future, rest = framed.split("\n", 1) if framed.startswith("from __future__") else ("", framed)
    return "\n".join(part for part in (future, *lines[:start], rest.strip("\n")) if part) + "\n"


STYLES = (
    Style(name="input", ints=SPLIT.format(line="input()"), word="input().strip()", emit="print", frame=BODY),
    Style(
        name="readline in main",
        ints=SPLIT.format(line="input()"),
        word="input().strip()",
        emit="print",
        frame="import sys\ninput = sys.stdin.readline\n\ndef main():\n    @body\n\nmain()",
    ),
    Style(
        name="bytes, output joined",
        ints=SPLIT.format(line="input()"),
        word="input().decode().strip()",
        emit="out.append",
        frame=(
            "import sys\ninput = sys.stdin.buffer.readline\n\ndef main():\n    out = []\n    @body\n"
            '    sys.stdout.write("\\n".join(map(str, out)) + "\\n")\n\nif __name__ == "__main__":\n    main()'
        ),
    ),
    Style(
        name="class Solution",
        ints="self.ints({count})",
        word="self.word()",
        emit="self.answers.append",
        frame=(
            "import sys\nfrom typing import List\n\nclass Solution:\n    def __init__(self, data: List[str]) -> None:\n"
            "        self.data, self.at, self.answers = data, 0, []\n\n    def word(self) -> str:\n"
            "        self.at += 1\n        return self.data[self.at - 1]\n\n"
            "    def ints(self, count: int) -> List[int]:\n        return [int(self.word()) for _ in range(count)]\n\n"
            "    def solve(self) -> List:\n        @body\n        return self.answers\n\n"
            "print(*Solution(sys.stdin.read().split()).solve(), sep='\\n')"
        ),
    ),
    Style(
        name="tokens of open(0)",
        ints="[int(next(it)) for _ in range({count})]",
        word="next(it)",
        emit="print",
        frame="it = iter(open(0).read().split())\n@body",
    ),
    Style(
        name="os.read and BytesIO",
        ints=SPLIT.format(line="input()"),
        word="input().decode().rstrip()",
        emit="write",
        frame=(
            "import io, os\ninput = io.BytesIO(os.read(0, os.fstat(0).st_size)).readline\nout = []\n"
            "def write(value):\n    out.append(str(value))\n\n@body\nos.write(1, '\\n'.join(out).encode())"
        ),
    ),
    Style(
        name="generator of tokens",
        ints="list(islice(numbers, {count}))",
        word="next(read)",
        emit="yield",
        frame=(
            "import sys\nfrom itertools import islice\n\ndef tokens():\n    for line in sys.stdin:\n"
            "        yield from line.split()\n\nread = tokens()\nnumbers = map(int, read)\n\ndef solve():\n    "
            "@body\n\n"
            "for answer in solve():\n    print(answer)"
        ),
    ),
    Style(
        name="threading idiom",
        ints=SPLIT.format(line="sys.stdin.readline()"),
        word="sys.stdin.readline().strip()",
        emit="print",
        frame=(
            "import sys, threading\n\ndef main():\n    @body\n\nsys.setrecursionlimit(10**6)\n"
            "threading.stack_size(1 << 27)\nthread = threading.Thread(target=main)\nthread.start()\nthread.join()"
        ),
    ),
    Style(
        name="dataclass reader",
        ints="reader.ints({count})",
        word="reader.words.pop()",
        emit="print",
        frame=(
            "import sys\nfrom dataclasses import dataclass, field\n\n@dataclass\nclass Reader:\n"
            "    words: list = field(default_factory=list)\n\n    def ints(self, count):\n"
            "        return [int(self.words.pop()) for _ in range(count)]\n\n"
            "def main(reader):\n    @body\n\nmain(Reader(sys.stdin.read().split()[::-1]))"
        ),
    ),
    Style(
        name="lambdas and exit",
        ints="ints({count})",
        word="word()",
        emit="write",
        frame=(
            "import sys\nints = lambda _: [int(x) for x in sys.stdin.readline().split()]\n"
            "word = lambda: sys.stdin.readline().strip()\nwrite = lambda value: sys.stdout.write(f'{value}\\n')\n"
            "@body\nexit()"
        ),
    ),
    Style(
        name="StringIO for output",
        ints=SPLIT.format(line="next(lines)"),
        word="next(lines).strip()",
        emit="say",
        frame=(
            "import io\nimport sys\nfrom functools import partial\n\nlines = iter(sys.stdin.readlines())\n"
            "out = io.StringIO()\nsay = partial(print, file=out)\n@body\nsys.stdout.write(out.getvalue())"
        ),
    ),
    Style(
        name="input until it ends",
        ints=SPLIT.format(line="lines.popleft()"),
        word="lines.popleft().strip()",
        emit="print",
        frame=(
            "from collections import deque\nlines = deque()\ntry:\n    while True:\n        lines.append(input())\n"
            "except EOFError:\n    pass\n\n@body"
        ),
    ),
    Style(
        name="input file and writelines",
        ints=SPLIT.format(line="input()"),
        word="input()",
        emit="out.append",
        frame=(
            "import os, sys\nif os.path.exists('input.txt'):\n    sys.stdin = open('input.txt')\nout = []\n@body\n"
            "sys.stdout.writelines(f'{value}\\n' for value in out)"
        ),
    ),
    Style(
        name="annotated, a class with slots",
        ints="source.ints()",
        word="source.word()",
        emit="print",
        frame=(
            "from __future__ import annotations\nimport sys\nfrom typing import Iterator\n\nclass Source:\n"
            "    __slots__ = ('lines',)\n\n    def __init__(self, lines: Iterator[str]) -> None:\n"
            "        self.lines = lines\n\n    def word(self) -> str:\n        return next(self.lines).rstrip()\n\n"
            "    def ints(self) -> list[int]:\n        return [*map(int, self.word().split())]\n\n"
            "def main(source: Source) -> None:\n    @body\n\n"
            "if __name__ == '__main__':\n    main(Source(iter(sys.stdin)))\n    sys.exit(0)"
        ),
    ),
)

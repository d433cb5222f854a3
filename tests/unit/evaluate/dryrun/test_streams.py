"""Programs that read standard input and are judged by what they print."""

import pytest

from tests.unit.evaluate.dryrun.test_run import FAIL, PASS, UNKNOWN, outcomes, run

ADD = "input()\nprint(sum(map(int, input().split())))"
TABLE = "Input:\n2\n1 2\n\nOutput:\n3\n\nInput:\n1\n5\nOutput:\n5\n"


@pytest.mark.parametrize(
    "code",
    [
        "n = int(input())\nprint(sum(map(int, input().split())))",
        "import sys\nn, *xs = map(int, sys.stdin.read().split())\nprint(sum(xs))",
        "import sys\nlines = sys.stdin.readlines()\nsys.stdout.write(f'  {sum(map(int, lines[1].split()))}  ')",
        "import sys\ninput = sys.stdin.readline\ninput()\nprint(sum(int(x) for x in input().split()))",
        "import sys\nrows = [line.split() for line in sys.stdin]\nprint(sum(map(int, rows[1])), end='')\nexit()",
        "import sys\nn, *xs = map(int, sys.stdin.buffer.read().split())\nsys.stdout.buffer.write(b'35'[n < 2 :][:1])",
        f"import sys\ninput = sys.stdin.buffer.readline\n{ADD}",
        "_, line, *_ = open(0)\nprint(sum(map(int, line.split())))",
        "with open(0) as file:\n    n, *xs = map(int, file.read().split())\nprint(sum(xs))",
        f"import io, os\ninput = io.BytesIO(os.read(0, os.fstat(0).st_size)).readline\n{ADD}",
        f"import io, os, sys\nsys.stdin = io.StringIO(os.read(0, 1 << 20).decode())\n{ADD}",
        f"import os, sys\nif os.path.exists('input.txt'): sys.stdin = open('input.txt')\n{ADD}",
        "import sys, threading\ndef main():\n    input()\n    print(sum(map(int, input().split())))\n"
        "t = threading.Thread(target=main)\nt.start()\nt.join()",
        "import sys\ninput()\nsys.stdout.writelines([str(sum(map(int, x.split()))) for x in sys.stdin if x.strip()])",
        "import sys\nprint('note', file=sys.stderr)\ninput()\nprint(sum(map(int, input().split())), flush=True)",
        "import sys\ninput()\nsys.stdout.write('')\nsys.stdout.flush()\n"
        "sys.stdout.buffer.write(str(sum(map(int, input().split()))).encode())",
        "import sys\nnext(sys.stdin)\nprint(sum(map(int, next(sys.stdin).split())), next(sys.stdin, ''))",
        "import sys\nrows = []\ntry:\n    while True: rows.append(next(sys.stdin.buffer).split())\n"
        "except StopIteration:\n    print(sum(map(int, rows[1])))",
        "def main():\n    input()\n    print(sum(map(int, input().split())))\n\nif __name__ == '__main__':\n    main()",
    ],
)
def test_programs_read_stdin_and_are_judged_by_what_they_print(code):
    assert run(code, TABLE) == [(PASS, ""), (PASS, "")]


def test_programs_that_print_something_else_fail():
    assert run("input()\nprint(3)", TABLE) == [(PASS, ""), (FAIL, "printed '3' instead of '5'")]
    assert run("input()\ninput()\nprint(input())", TABLE)[1] == (FAIL, "EOFError: EOF when reading a line")
    assert run("import sys\nprint(3)\nsys.exit(1)", TABLE)[0] == (FAIL, "SystemExit: 1")
    assert run("", TABLE)[0] == (FAIL, "printed '' instead of '3'")


def test_a_program_that_exits_with_anything_but_the_integer_0_fails():
    table = "Input:\n2\nOutput:\n2\n"
    liar = "class Zero:\n    def __eq__(self, other): return True\n"
    found = [
        outcomes(f"{liar}print(input())\nexit({code})", table) for code in ("0", "False", "", "0.0", "''", "Zero()")
    ]
    assert found == [[PASS], [PASS], [PASS], [FAIL], [FAIL], [FAIL]]


@pytest.mark.parametrize("between", ["\\x1c", "\\x85", "\\xa0", "\\u2003"])
def test_tokens_are_separated_by_white_space_of_ascii_as_in_the_sandbox(between):
    table = "Input:\n2\nOutput:\n1 2\n"
    assert outcomes(f"input()\nprint('1{between}2')", table) == [FAIL]
    assert outcomes("input()\nprint('\\x0b1\\t\\x0c\\r\\n2')", table) == [PASS]


def test_an_answer_printed_without_reading_the_input_is_none():
    table = "Input:\n1 2\nOutput:\n3\n"
    assert run("print(3)", table) == [(FAIL, "printed the answer without having read the input")]
    assert outcomes("import sys\nread = sys.stdin.readline\nprint(3)", table) == [FAIL]
    assert outcomes("print(3)", "Input:\n\nOutput:\n3\n") == [PASS]


FAST_IO = """
import os, sys
from io import BytesIO, IOBase
class FastIO(IOBase):
    newlines = 0
    def __init__(self, file):
        self._fd = file.fileno()
        self.buffer = BytesIO()
        self.writable = "x" in file.mode or "r" not in file.mode
        self.write = self.buffer.write if self.writable else None
    def readline(self):
        while self.newlines == 0:
            b = os.read(self._fd, max(os.fstat(self._fd).st_size, 8192))
            self.newlines = b.count(b"\\n") + (not b)
            ptr = self.buffer.tell()
            self.buffer.seek(0, 2), self.buffer.write(b), self.buffer.seek(ptr)
        self.newlines -= 1
        return self.buffer.readline()
    def flush(self):
        if self.writable:
            os.write(self._fd, self.buffer.getvalue())
            self.buffer.truncate(0), self.buffer.seek(0)
class IOWrapper(IOBase):
    def __init__(self, file):
        self.buffer = FastIO(file)
        self.flush = self.buffer.flush
        self.writable = self.buffer.writable
        self.write = lambda s: self.buffer.write(s.encode("ascii"))
        self.readline = lambda: self.buffer.readline().decode("ascii")
sys.stdin, sys.stdout = IOWrapper(sys.stdin), IOWrapper(sys.stdout)
input = lambda: sys.stdin.readline().rstrip("\\r\\n")
input()
print(sum(map(int, input().split())))
"""


def test_streams_of_the_program_s_own_are_flushed_at_its_end():
    assert run(FAST_IO, TABLE) == [(PASS, ""), (PASS, "")]


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("import sys\ninput()\nsys.stdin.buffer.read()", "standard input is read in two ways"),
        ("import sys\nprint(3, end='')\nsys.stdout.buffer.write(b'')", "standard output is written in two ways"),
    ],
)
def test_what_depends_on_buffers_of_the_host_is_unknown(code, reason):
    assert run(code, TABLE)[0] == (UNKNOWN, reason)


def test_what_an_example_changes_of_the_library_is_gone_with_it():
    code = (
        "import sys\nfrom decimal import Decimal, getcontext\ninput()\nprint(len(str(Decimal(1) / 3)), len(sys.argv))\n"
        "getcontext().prec = 5\nsys.argv.append(1)\nsys.stdin = None"
    )
    table = "Input:\n1\n\nOutput:\n30 1\n\nInput:\n2\nOutput:\n30 1\n"
    assert outcomes(code, table) == [PASS, PASS]


def test_each_example_begins_afresh():
    code = "input()\ntry:\n    seen += 1\nexcept NameError:\n    seen = 3\nprint(seen)"
    assert outcomes(code, TABLE) == [PASS, FAIL]

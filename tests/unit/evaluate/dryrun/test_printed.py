"""What a program prints, told without executing it."""

import pytest

from codezero.evaluate.dryrun import Budget, printed

CASES = {
    "text and values": ("print('a', [1, 2.5])\nprint(repr('b\\n'))", "a [1, 2.5]\n'b\\n'\n"),
    "nothing": ("x = 1", ""),
    "an error": ("print(1)\nprint(1 // 0)", None),
    "no syntax": ("print(", None),
    "not interpreted": ("import socket\nprint(socket.gethostname())", None),
    "input that is not there": ("print(input())", None),
    "endless": ("while True:\n    pass", None),
}


@pytest.mark.parametrize(("code", "expected"), CASES.values(), ids=CASES)
def test_output_is_told_or_none(code, expected):
    assert printed(code, Budget(steps=10_000)) == expected

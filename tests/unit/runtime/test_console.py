"""Output to a terminal that goes away."""

import os
from contextlib import suppress

import pytest

from codezero.runtime.console import Console


@pytest.mark.parametrize("opened", [os.openpty, os.pipe], ids=["a terminal", "a reader"])
def test_a_terminal_or_reader_that_is_gone_ends_nothing(opened):
    theirs, ours = opened()
    with suppress(OSError), open(ours, "w") as stream:  # which its end finds out too
        console = Console(stream)
        console.line("first")
        os.close(theirs)
        for number in range(1000):
            console.line(f"{number} {'x' * 100}")
        console.line("last")
    assert console.lines()[-1][1] == "last"

"""Memory of the process: its peak use, and imports that the garbage collector skips."""

from __future__ import annotations

import gc
import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager


def peak_rss_bytes() -> int:
    """Returns the largest resident set of this process so far, in bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024  # macOS counts bytes, Linux KiB


@contextmanager
def imports_that_stay() -> Iterator[None]:
    """Turns the garbage collector off for imports inside, and makes it skip their objects later.

    torch and transformers have a million objects: their repeated traversal took 1.6 of the 5.7 seconds of processor
    time in which a node imports them and ends.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()

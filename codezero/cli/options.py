"""Options that several commands have, and what they share of reading them."""

from __future__ import annotations

import argparse
import re

_SECONDS = {"s": 1, "m": 60, "h": 3600}


def add_stop_with_parent(parser: argparse.ArgumentParser) -> None:
    """For programs that keep this one as a child: it ends when its standard input does."""
    parser.add_argument("--stop-with-parent", action="store_true", help=argparse.SUPPRESS)


def duration(text: str) -> float:
    """Seconds of a time written as 60s, 10m or 3h. Raises ArgumentTypeError."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smh])", text)
    seconds = float(found[1]) * _SECONDS[found[2]] if found else 0.0
    if seconds < 1:
        raise argparse.ArgumentTypeError(f"{text} is no time of a second or more: write it as 60s, 10m or 3h")
    return seconds

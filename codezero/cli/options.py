"""Options that several commands have."""

from __future__ import annotations

import argparse


def add_stop_with_parent(parser: argparse.ArgumentParser) -> None:
    """For programs that keep this one as a child: it ends when its standard input does."""
    parser.add_argument("--stop-with-parent", action="store_true", help=argparse.SUPPRESS)

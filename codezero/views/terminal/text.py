"""Pieces of a page: untrusted text made safe, columns, sparklines, bars, and numbers as people read them."""

from __future__ import annotations

import math
import textwrap
import unicodedata
from collections.abc import Mapping, Sequence

from rich.cells import cell_len, chop_cells
from rich.text import Text

from codezero.runtime.console import printable

MAX_TEXT = 2000
"""The most characters of a text that are shown; a peer's may be longer."""
LABEL = 11
"""Width of the column of labels, in cells."""
DIM, BOLD, GOOD, BAD = "dim", "bold", "green", "red"
"""Attributes and colours that can be read on dark and on light; none is needed to understand the page."""
_BARS = "▁▂▃▄▅▆▇█"


def safe(value: object) -> str:
    """Returns one line of text that moves no cursor, changes no colour or direction, and is as wide as it seems."""
    text = str(value)
    cut = text if len(text) <= MAX_TEXT else text[:MAX_TEXT] + "…"
    shown = printable(unicodedata.normalize("NFC", cut))
    kinds = ((char, unicodedata.category(char)) for char in shown)
    # Combining marks can be stacked without end; separators may be line ends, or of any width.
    return "".join(" " if kind[0] == "Z" else char for char, kind in kinds if kind not in ("Mn", "Me"))


def fit(line: Text, width: int) -> Text:
    """Returns the line in at most `width` cells, with an ellipsis if it was longer."""
    if line.cell_len > width:
        line = line.copy()
        line.truncate(max(width, 0), overflow="ellipsis")
    return line


def row(label: str, *parts: str | tuple[str, str]) -> Text:
    """Returns a label in its column, followed by parts, each a text or (text, style)."""
    return Text.assemble((label.ljust(LABEL), DIM), *parts)


def sides(left: Text, right: Text, width: int) -> Text:
    """Returns a line with one text at each end; the left one is cut if there is no room."""
    right = fit(right, width)
    left = fit(left, width - right.cell_len - 1 if right else width)
    return Text.assemble(left, " " * (width - left.cell_len - right.cell_len), right)


def wrapped(text: str, width: int) -> list[str]:
    """Returns the text in pieces of at most `width` cells."""
    return chop_cells(text, max(width, 2)) or [""]


def padded(text: str, width: int) -> str:
    """Returns the text in exactly `width` cells."""
    line = fit(Text(text), width)
    return line.plain + " " * (width - cell_len(line.plain))


def sparkline(values: Sequence[float | None], width: int) -> str:
    """Returns the last values as bars between the lowest and the highest of them, a cell each; a dot for None."""
    shown = (
        [value if value is not None and math.isfinite(value) else None for value in values[-width:]] if width else []
    )
    known = [value for value in shown if value is not None]
    low, span = (min(known), max(known) - min(known)) if known else (0.0, 0.0)

    def bar(value: float | None) -> str:
        if value is None:
            return "·"
        return _BARS[round((value - low) / span * (len(_BARS) - 1))] if span else _BARS[3]

    return "".join(map(bar, shown)).ljust(width)


def bar(share: float, width: int) -> str:
    """Returns a bar that is filled to `share`, in 0..1."""
    full = round(min(max(share, 0.0), 1.0) * width)
    return "━" * full + "─" * (width - full)


def counts(values: Mapping[str, int]) -> str:
    """Returns counts as text, such as "2 stale, 1 banned"."""
    return ", ".join(f"{count} {safe(reason)}" for reason, count in values.items())


def flow(label: str, entries: Sequence[str], width: int) -> list[Text]:
    """Returns entries side by side in as many lines as they need, with the label on the first."""
    lines: list[str] = []
    for entry in entries:
        if lines and LABEL + cell_len(lines[-1]) + 2 + cell_len(entry) <= width:
            lines[-1] += "  " + entry
        else:
            lines.append(entry)
    return [row(label if not number else "", line) for number, line in enumerate(lines)]


def paragraph(label: str, text: str, width: int, style: str = "") -> list[Text]:
    """Returns a text in as many lines as it needs, with the label on the first."""
    lines = textwrap.wrap(text, max(width - LABEL, 10))
    return [row(label if not number else "", (line, style)) for number, line in enumerate(lines)]

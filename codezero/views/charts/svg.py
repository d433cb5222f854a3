"""Pieces of SVG. Names and titles may be anybody's text: all of it is escaped."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from html import escape

from codezero.runtime.visible import visible
from codezero.views.charts.scale import Point

MAX_NAME = 60
_COLOURS = ("#0067a5", "#b34700", "#00745c", "#8f3a78", "#7a5c00", "#c02942", "#4d4dbf", "#5a6270")
"""Okabe and Ito's order of hues, each darkened to at least 4.5:1 on white; charts.css has colours for dark pages."""
_DASHES = ("", "7 3", "2 3", "9 3 2 3", "12 4", "4 2 1 2 1 2", "1 4", "6 2 6 6")
_HATCHES = ("", "M0 8L8 0", "M0 4H8", "M0 0L8 8", "M4 0V8", "M0 8L8 0M0 0L8 8", "M0 4H8M4 0V8", "M3 3h2v2h-2z")
MAX_SERIES = len(_COLOURS)
_RING = "m-2 0a2 2 0 1 0 4 0a2 2 0 1 0-4 0"


def key_of(title: str) -> str:
    """Returns an id for elements of the chart with this title."""
    return "chart-" + hashlib.sha256(title.encode(errors="replace")).hexdigest()[:8]


def text(value: str) -> str:
    return escape(visible(value))


def name(value: str) -> str:
    """Returns the name of a series, cut to a length that leaves the legend readable."""
    return text(value if len(value) <= MAX_NAME else value[:MAX_NAME] + "\N{HORIZONTAL ELLIPSIS}")


def stroke(number: int) -> str:
    """Returns the attributes of the line of series `number`."""
    dash = f' stroke-dasharray="{_DASHES[number]}"' if _DASHES[number] else ""
    return (
        f'class="s{number}" fill="none" stroke="{_COLOURS[number]}" stroke-width="1.8" stroke-linejoin="round" '
        f'stroke-linecap="{"butt" if dash else "round"}"{dash}'
    )


def pattern(key: str, number: int) -> str:
    """Returns the hatching of series `number`, for fill="url(#KEY-NUMBER)"."""
    hatch = f'<path d="{_HATCHES[number]}" stroke="#fff" stroke-opacity=".65" fill="none"/>' if _HATCHES[number] else ""
    return (
        f'<pattern id="{key}-{number}" width="8" height="8" patternUnits="userSpaceOnUse">'
        f'<rect class="f{number}" width="8" height="8" fill="{_COLOURS[number]}"/>{hatch}</pattern>'
    )


def path(points: Sequence[Point]) -> str:
    """Returns a line through points of the drawing that is broken at None; a single point is a small ring."""
    runs: list[list[str]] = [[]]
    for at, value in points:
        if value is None:
            runs.append([])
        else:
            runs[-1].append(f"{at:.1f} {value:.1f}")
    return "".join(f"M{run[0]}" + ("L" + "L".join(run[1:]) if len(run) > 1 else _RING) for run in runs if run)


def data(points: Sequence[Point]) -> str:
    """Returns values for the script that shows them under the pointer, as "x,y x,y"."""
    return " ".join(f"{at:.10g},{value:.5g}" for at, value in points if value is not None)

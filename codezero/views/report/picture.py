"""One picture of runs: a title, a summary, and curves. Drawn as SVG and turned into PNG by resvg."""

from __future__ import annotations

import textwrap
import zlib
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from xml.etree import ElementTree

from codezero.errors import CommandError
from codezero.observe.roles import PROPOSER, VERIFIER
from codezero.runtime.visible import visible
from codezero.views.charts.runs import pass_chart, swarm_chart
from codezero.views.report.page import MARK, charts_of_run, headline, sentences, title
from codezero.views.report.summary import RunFacts

MAX_CHARTS = 6
COLUMNS, CELL, PLOT, GAP, MARGIN = 2, 420, 200, 40, 36
HEAD, CAPTION, LEGEND_LINE = 116, 26, 17
SCALE = 2
"""Pixels for one unit of the drawing."""
NOTE = "Rewards and solved tasks are as the evaluator judged them: by default a prediction, nothing is executed."
FONT, FONT_FAMILY = "font_source_sans_pro", "Source Sans Pro"
_SIGNATURE = b"\x89PNG\r\n\x1a\n"


def png(runs: Sequence[RunFacts]) -> bytes:
    """Returns the picture as PNG. Raises CommandError if the packages that draw it are not installed."""
    try:
        import resvg_py
    except ImportError as error:
        raise CommandError(
            "a picture needs two small packages more: install the extra report (docs/launch-script.md)"
        ) from error
    fonts = _fonts()
    data = bytes(
        resvg_py.svg_to_bytes(
            svg_string=svg(runs),
            zoom=SCALE,
            background="#ffffff",
            skip_system_fonts=True,
            font_files=[str(path) for path in fonts],
            font_family=FONT_FAMILY,
            sans_serif_family=FONT_FAMILY,
        )
    )
    return _marked(data)


def _fonts() -> list[Path]:
    """Returns the fonts of the extra, with which the picture is the same everywhere, and has text where a system has no
    fonts. Raises CommandError if they are not installed."""
    found = find_spec(FONT)
    if found is None or not found.submodule_search_locations:
        raise CommandError("a picture needs a font: install the extra report (docs/launch-script.md)")
    folder = Path(found.submodule_search_locations[0]) / "files"
    return [folder / "SourceSansPro-Regular.ttf", folder / "SourceSansPro-Bold.ttf"]


def svg(runs: Sequence[RunFacts]) -> str:
    """Returns the picture as an SVG document."""
    return drawing(_charts(runs), _head(runs), HEAD, NOTE)


def drawing(figures: Sequence[str], head: Iterable[str] = (), top: float = MARGIN, note: str = "") -> str:
    """Returns charts of `codezero.views.charts` as one SVG document, below a head of SVG elements that ends at `top`,
    and above a note."""
    charts = [ElementTree.fromstring(figure) for figure in figures]
    rows = [charts[start : start + COLUMNS] for start in range(0, len(charts), COLUMNS)]
    width = 2 * MARGIN + COLUMNS * CELL + (COLUMNS - 1) * GAP
    parts, y = list(head), float(top)
    for row in rows:
        for column, chart in enumerate(row):
            parts += _cell(chart, MARGIN + column * (CELL + GAP), y)
        y += CAPTION + PLOT + LEGEND_LINE * max(len(_legend(chart)) for chart in row) + GAP
    parts.append(_text(MARGIN, y, note, 'font-size="11" fill="#565f6d"'))
    y += GAP / 2
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{y:.0f}" viewBox="0 0 {width} {y:.0f}" '
        f'font-family="sans-serif">{"".join(parts)}</svg>'
    )


def _charts(runs: Sequence[RunFacts]) -> list[str]:
    solvers = [one for one in runs if one.solves and one.finished]
    if len(solvers) == 1:
        return charts_of_run(solvers[0])[:MAX_CHARTS]
    levels, cases = (
        [chart for one in runs if one.role == role for chart in charts_of_run(one, f"{one.name}: ")]
        for role in (PROPOSER, VERIFIER)
    )
    if not solvers:
        return [*levels, *cases][:MAX_CHARTS]
    charts = [swarm_chart({one.name: one.finished for one in solvers})]
    passed = (pass_chart(one.finished, one.group_size, f"{one.name}: ") for one in solvers)
    return [*charts, *islice(passed, MAX_CHARTS - 1 - bool(levels)), *levels[:1]]


def _head(runs: Sequence[RunFacts]) -> Iterator[str]:
    told = sentences(runs)
    lines = textwrap.wrap(told[0], 140) if len(told) == 1 else []
    yield _text(MARGIN, 40, title(runs), 'font-size="24" font-weight="bold"')
    yield _text(MARGIN, 64, headline(runs), 'font-size="15"')
    for number, line in enumerate(lines[:2]):
        yield _text(MARGIN, 84 + 17 * number, line, 'font-size="12" fill="#565f6d"')


def _cell(chart: ElementTree.Element, x: float, y: float) -> Iterator[str]:
    """Yields the parts of a chart of `codezero.views.charts`: its caption, its drawing and its legend."""
    yield _text(x, y + 14, chart.findtext("figcaption", ""), 'font-size="14" font-weight="bold"')
    plot = chart.find("div/svg")
    if plot is None:
        yield _text(x, y + CAPTION + 20, "No values yet.", 'font-size="12"')
        return
    plot.attrib |= {"x": str(x), "y": str(y + CAPTION), "width": str(CELL), "height": str(PLOT)}
    yield ElementTree.tostring(plot, encoding="unicode")
    for number, entry in enumerate(_legend(chart)):
        at = y + CAPTION + PLOT + 6 + LEGEND_LINE * number
        sign, label = entry.find("svg"), entry.findtext("span", "")
        if sign is not None:
            sign.attrib |= {"x": str(x), "y": str(at)}
            yield ElementTree.tostring(sign, encoding="unicode")
        yield _text(x + 36, at + 10, f"{label}: {entry.findtext('b', '').strip()}", 'font-size="12"')


def _legend(chart: ElementTree.Element) -> list[ElementTree.Element]:
    return chart.findall("ul/li")


def _text(x: float, y: float, text: str, attributes: str) -> str:
    shown = visible(text).replace("\n", " ").replace("\t", " ")
    return f'<text x="{x}" y="{y}" {attributes}>{escape(shown)}</text>'


def _marked(data: bytes) -> bytes:
    """Returns the picture with `MARK` as a text chunk behind its header."""
    content = b"tEXt" + b"Software\0" + MARK.encode()
    note = (len(content) - 4).to_bytes(4, "big") + content + zlib.crc32(content).to_bytes(4, "big")
    header_end = len(_SIGNATURE) + 25  # length, name, 13 bytes, checksum
    return data[:header_end] + note + data[header_end:]

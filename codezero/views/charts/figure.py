"""Line charts, stacked bars and sparklines as text of HTML and SVG."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from codezero.views.charts import svg
from codezero.views.charts.scale import Point, chunks, downsample, finite, format_number, mean, ticks

WIDTH, HEIGHT = 420, 200
LEFT, RIGHT, TOP, BOTTOM = 46, 8, 8, 34
MAX_BARS = 60
TABLE_ROWS = 20
Series = Mapping[str, Sequence[float | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Words:
    title: str
    note: str
    x_label: str
    unit: str


def line_chart(
    title: str,
    x: Sequence[float],
    series: Series,
    *,
    unit: str = "",
    x_label: str = "round",
    note: str = "",
    low: float | None = None,
    high: float | None = None,
) -> str:
    """Returns a chart with one line for each of `series`, whose values belong to `x` (ascending); None is a gap. `note`
    explains the numbers. The vertical axis spans the values, and at least from `low` to `high`. Series beyond
    `svg.MAX_SERIES` are in the table only."""
    words = _Words(title=title, note=note, x_label=x_label, unit=unit)
    lines = {name: downsample(x, values) for name, values in list(series.items())[: svg.MAX_SERIES]}
    values = [value for points in lines.values() for _, value in points if value is not None]
    if not values:
        return _empty(words)
    values += [bound for bound in (low, high) if bound is not None]
    frame = _Frame(min(x), max(x), ticks(min(values), max(values)))
    drawn = [_line(frame, number, name, points) for number, (name, points) in enumerate(lines.items())]
    legend = [
        (name, _last([finite(value) for value in series[name]]), f'<path {svg.stroke(number)} d="M0 6H28"/>')
        for number, name in enumerate(lines)
    ]
    return _figure(words, frame, drawn, legend, _table(words, x, series))


def stacked_bars(
    title: str, x: Sequence[float], parts: Series, *, unit: str = "", x_label: str = "round", note: str = ""
) -> str:
    """Returns a chart with a bar for each of `x` (ascending), stacked from `parts`, negative ones below zero; if there
    are too many, each bar is the mean over a few. None counts as nothing. Parts beyond `svg.MAX_SERIES` are in the
    table only."""
    groups = chunks(len(x), MAX_BARS)
    if len(groups) < len(x):
        note = f"{note} Each bar is the mean of about {round(len(x) / len(groups))} {x_label}s.".strip()
    words = _Words(title=title, note=note, x_label=x_label, unit=unit)
    middles = [(x[group[0]] + x[group[-1]]) / 2 for group in groups]
    bars = {
        name: [mean([values[one] for one in group]) for group in groups]
        for name, values in list(parts.items())[: svg.MAX_SERIES]
    }
    if not any(value for values in bars.values() for value in values):
        return _empty(words)
    width = _bar_width(middles)
    sums = [
        sum(value for value in bar if value and (value > 0) is up)
        for bar in zip(*bars.values(), strict=True)
        for up in (True, False)
    ]
    frame = _Frame(middles[0] - width / 2, middles[-1] + width / 2, ticks(min(0.0, *sums), max(0.0, *sums)))
    key = svg.key_of(title)
    drawn = [f"<defs>{''.join(svg.pattern(key, number) for number in range(len(bars)))}</defs>"]
    drawn += _stacks(frame, key, middles, bars, width)
    legend = [
        (name, _last(values), f'<path fill="url(#{key}-{number})" d="M6 0h16v12h-16z"/>')
        for number, (name, values) in enumerate(bars.items())
    ]
    return _figure(words, frame, drawn, legend, _table(words, x, parts))


def sparkline(values: Sequence[float | None], label: str) -> str:
    """Returns a line of a word's size without axes; `label` describes it in words."""
    points = downsample(range(len(values)), values)
    found = [value for _, value in points if value is not None]
    low, high = (min(found), max(found)) if found else (0.0, 0.0)
    steps, size = max(1, len(values) - 1), (high - low) or 1.0
    path = svg.path(
        [(at / steps * 100, None if value is None else 22 - (value - low) / size * 20) for at, value in points]
    )
    return (
        f'<svg class="chart spark" viewBox="0 0 100 24" width="100" height="24" preserveAspectRatio="none" role="img" '
        f'aria-label="{svg.text(label)}"><path {svg.stroke(0)} vector-effect="non-scaling-stroke" d="{path}"/></svg>'
    )


class _Frame:
    """The mapping of values to positions in the drawing."""

    def __init__(self, first: float, last: float, y_ticks: Sequence[float]) -> None:
        self.first, self.last, self.y_ticks = first, last, y_ticks

    def x(self, at: float) -> float:
        share = (at - self.first) / (self.last - self.first) if self.last > self.first else 0.5
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    def y(self, value: float) -> float:
        low, high = self.y_ticks[0], self.y_ticks[-1]
        return HEIGHT - BOTTOM - (value - low) / (high - low) * (HEIGHT - TOP - BOTTOM)

    def box(self, middle: float, width: float, base: float, top: float) -> str:
        left, right = self.x(middle - width / 2), self.x(middle + width / 2)
        return f"M{left:.1f} {self.y(base):.1f}H{right:.1f}V{self.y(top):.1f}H{left:.1f}z"

    def axes(self, words: _Words) -> str:
        parts = []
        for value in self.y_ticks:
            kind, colour = ("zero", "#3d4451") if abs(value) < 1e-12 else ("grid", "#d9dde4")
            y = self.y(value)
            parts.append(f'<path class="{kind}" stroke="{colour}" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>')
            parts.append(f'<text x="{LEFT - 5}" y="{y + 4:.1f}" text-anchor="end">{format_number(value)}</text>')
        for at in ticks(self.first, self.last, 8, whole=True):
            if self.first <= at <= self.last:
                place = f'x="{self.x(at):.1f}" y="{HEIGHT - BOTTOM + 15}" text-anchor="middle"'
                parts.append(f"<text {place}>{at:.10g}</text>")
        parts.append(f'<text x="{WIDTH - RIGHT}" y="{HEIGHT - 3}" text-anchor="end">{svg.text(words.x_label)}</text>')
        parts.append(f'<text x="0" y="{HEIGHT - 3}">{svg.text(words.unit)}</text>')
        return "".join(parts)


def _line(frame: _Frame, number: int, name: str, points: Sequence[Point]) -> str:
    path = svg.path([(frame.x(at), None if value is None else frame.y(value)) for at, value in points])
    return f'<path {svg.stroke(number)} data-name="{svg.name(name)}" data-points="{svg.data(points)}" d="{path}"/>'


def _stacks(
    frame: _Frame, key: str, middles: Sequence[float], bars: Mapping[str, Sequence[float | None]], width: float
) -> list[str]:
    """Returns one path for each part, with a box in each bar."""
    above, below = [0.0] * len(middles), [0.0] * len(middles)
    drawn = []
    for number, (name, values) in enumerate(bars.items()):
        boxes = []
        for bar, value in enumerate(values):
            if value:
                base = above if value > 0 else below
                boxes.append(frame.box(middles[bar], width * 0.84, base[bar], base[bar] + value))
                base[bar] += value
        points = svg.data(list(zip(middles, values, strict=True)))
        drawn.append(
            f'<path fill="url(#{key}-{number})" data-name="{svg.name(name)}" data-points="{points}" '
            f'd="{"".join(boxes)}"/>'
        )
    return drawn


def _bar_width(middles: Sequence[float]) -> float:
    gaps = [after - before for before, after in itertools.pairwise(middles) if after > before]
    return max(min(gaps), (middles[-1] - middles[0]) / (2 * MAX_BARS)) if gaps else 1.0


def _figure(
    words: _Words, frame: _Frame, drawn: Sequence[str], legend: Sequence[tuple[str, str, str]], table: str
) -> str:
    key, title, unit = svg.key_of(words.title), svg.text(words.title), svg.text(words.unit)
    items = "".join(
        f'<li><svg viewBox="0 0 28 12" width="28" height="12" aria-hidden="true">{sign}</svg>'
        f"<span>{svg.name(name)}</span> <b>{last} {unit}</b></li>"
        for name, last, sign in legend
    )
    described = svg.text("; ".join(f"{name} {last} {words.unit}".strip() for name, last, _ in legend))
    return (
        f'<figure class="chart" id="{key}"><figcaption>{title}</figcaption>{_note(words)}'
        f'<div class="plot" data-title="{title}" data-x-label="{svg.text(words.x_label)}" data-unit="{unit}">'
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-labelledby="{key}-t {key}-d" font-size="11" '
        f'font-family="sans-serif" data-first="{frame.first:.10g}" data-last="{frame.last:.10g}" data-left="{LEFT}" '
        f'data-right="{WIDTH - RIGHT}" data-top="{TOP}" data-bottom="{HEIGHT - BOTTOM}">'
        f'<title id="{key}-t">{title}</title><desc id="{key}-d">Latest values: {described}. More are in the table that '
        f'follows.</desc>{frame.axes(words)}{"".join(drawn)}</svg></div><ul class="legend">{items}</ul>{table}</figure>'
    )


def _empty(words: _Words) -> str:
    return (
        f'<figure class="chart" id="{svg.key_of(words.title)}"><figcaption>{svg.text(words.title)}</figcaption>'
        f'{_note(words)}<p class="none">No values yet.</p></figure>'
    )


def _note(words: _Words) -> str:
    return f'<p class="note">{svg.text(words.note)}</p>' if words.note else ""


def _table(words: _Words, x: Sequence[float], series: Series) -> str:
    """Returns a table of the values or of a selection of them, always with the last."""
    rows = [chunk[-1] for chunk in chunks(len(x), TABLE_ROWS)]
    shown = "All values" if len(rows) == len(x) else f"{len(rows)} of {len(x)} {words.x_label}s, evenly spread"
    unit = f", in {words.unit}" if words.unit else ""
    head = "".join(f'<th scope="col">{svg.name(name)}</th>' for name in (words.x_label, *series))
    body = "".join(
        f'<tr><th scope="row">{x[row]:.10g}</th>'
        + "".join(f"<td>{format_number(finite(values[row]))}</td>" for values in series.values())
        + "</tr>"
        for row in reversed(rows)
    )
    return (
        f'<details id="{svg.key_of(words.title)}-v"><summary>Values: {svg.text(words.title)}</summary>'
        f'<div class="values" tabindex="0" role="group" aria-label="{svg.text(words.title)}"><table>'
        f"<caption>{svg.text(shown + unit)}; the newest first</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table></div></details>"
    )


def _last(values: Sequence[float | None]) -> str:
    return format_number(next((value for value in reversed(values) if value is not None), None))

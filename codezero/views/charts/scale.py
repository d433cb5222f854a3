"""The numbers of a chart: the points to draw, the ticks, and values as text."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

MAX_POINTS = 400
"""The most points of one line; more than a screen shows."""
LARGEST = 1e300
"""The limit beyond which sums and differences overflow; a larger value is drawn as a gap."""
Point = tuple[float, float | None]


def downsample(x: Sequence[float], y: Sequence[float | None]) -> list[Point]:
    """Returns at most `MAX_POINTS` points: the lowest and the highest of each chunk, so that no spike is lost. A
    chunk without values becomes a gap (None)."""
    points = [(float(at), finite(value)) for at, value in zip(x, y, strict=True)]
    if len(points) <= MAX_POINTS:
        return points
    kept: list[Point] = []
    for chunk in chunks(len(points), MAX_POINTS // 2):
        values = [(value, number) for number in chunk if (value := points[number][1]) is not None]
        if values:
            kept += [points[number] for number in sorted({min(values)[1], max(values)[1]})]
        else:
            kept.append(points[chunk[0]])
    return kept


def chunks(count: int, most: int) -> list[range]:
    """Returns `range(count)` in at most `most` parts of about the same length."""
    parts = min(count, most)
    ends = [count * part // parts for part in range(parts + 1)] if parts else [0]
    return [range(begin, end) for begin, end in itertools.pairwise(ends)]


def mean(values: Sequence[float | None]) -> float | None:
    """Returns the mean of the known values; None if there are none."""
    found = [number for value in values if (number := finite(value)) is not None]
    return sum(value / len(found) for value in found) if found else None


def finite(value: float | None) -> float | None:
    """Returns the value as a float; None if there is none, or none that can be drawn."""
    return None if value is None or not abs(value) < LARGEST else float(value)


def ticks(low: float, high: float, most: int = 6, whole: bool = False) -> list[float]:
    """Returns at most about `most` round numbers (1, 2 or 5 times a power of ten apart) from at or below `low` to at or
    above `high`; only whole ones if `whole`."""
    if high - low <= 1e-12 * max(abs(low), abs(high)):  # also values that differ in their last bits only
        pad = abs(low) / 2 or 1.0
        low, high = low - (0.0 if whole else pad), high + (1.0 if whole else pad)
    rough = (high - low) / max(1, most - 1)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * 0.999)
    if whole:
        step = max(1.0, round(step))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [number * step for number in range(first, last + 1)]


def format_number(value: float | None) -> str:
    """Returns a value for people: three significant digits, k, M and G from ten thousand on; a dash for None."""
    if value is None:
        return "\N{EN DASH}"
    size = abs(value)
    if size >= 1e12:
        text = f"{value:.1e}"
    elif size >= 1e4:
        factor, suffix = next((factor, name) for factor, name in ((1e9, "G"), (1e6, "M"), (1e3, "k")) if size >= factor)
        text = f"{value / factor:.4g}{suffix}"
    else:
        text = f"{value:.0f}" if size >= 100 or float(value).is_integer() else f"{value:.3g}"
    return "0" if text == "-0" else text.replace("-", "\N{MINUS SIGN}", 1 if value < 0 else 0)


def running_mean(values: Sequence[float | None], window: int) -> list[float | None]:
    """Returns for each place the mean of the known values among the last `window`; None until that many places have
    passed, or if none is known."""
    found = [finite(value) for value in values]
    sums = [0.0, *itertools.accumulate(value or 0.0 for value in found)]
    counts = [0, *itertools.accumulate(value is not None for value in found)]
    means: list[float | None] = [None] * (min(window, len(values) + 1) - 1)
    for end in range(window, len(values) + 1):
        count = counts[end] - counts[end - window]
        means.append((sums[end] - sums[end - window]) / count if count else None)
    return means

"""Tells how small an effect a benchmark can show, before it runs: the least that a two-sided 5 % test, or a 95 %
interval, tells from nothing in 80 of 100 runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from math import sqrt
from statistics import NormalDist

from scipy.stats import t as student

from codezero.evaluate.metrics import CONFIDENCE, Estimate

POWER = 0.8
Z = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
Z_POWER = NormalDist().inv_cdf(POWER)


def t_quantile(share: float, n: int) -> float:
    """Returns the quantile of Student's t for a mean over `n` seeds, at least 2."""
    return float(student.ppf(share, n - 1))


class Design(str, Enum):
    mean = "mean"
    shares = "shares"
    none = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Power:
    """The smallest effect on a figure that `n` units can show."""

    figure: str
    design: Design
    n: int
    unit: str
    """The name of a unit, such as problems or seeds."""
    expected: float
    """The standard deviation over units of a mean, or the lower one of two shares."""
    shows: float
    """The smallest effect; of none, the end of the interval."""

    def sentence(self) -> str:
        if self.design is Design.none:
            return f"{self.figure}: none in {self.n} {self.unit} would show that it is below {self.shows:.2g}"
        given = {
            Design.mean: f"{self.n} {self.unit}, standard deviation {self.expected:.2g}",
            Design.shares: f"{self.n} {self.unit} in each of two arms, from {self.expected:.0%}",
        }[self.design]
        return f"{self.figure}: {given}: differences from {self.shows:.2g} on show in {POWER:.0%} of runs"


def of_mean(figure: str, n: int, sd: float, unit: str = "problems") -> Power:
    """A mean over units, as of paired differences, whose normal or bootstrap interval is to exclude 0:
    (z + z_power) sd / sqrt(n) (Cohen 1988, Statistical Power Analysis for the Behavioral Sciences, chapter 2)."""
    shows = (Z + Z_POWER) * sd / sqrt(n)
    return Power(figure=figure, design=Design.mean, n=n, unit=unit, expected=sd, shows=shows)


def of_seeds(figure: str, n: int, sd: float) -> Power:
    """A mean of paired differences over few seeds, whose interval by Student's t is to exclude 0:
    (t + t_power) sd / sqrt(n), which for three seeds is 5 % below what the noncentral t distribution gives. One seed
    has no interval, and counts as two."""
    both = t_quantile((1 + CONFIDENCE) / 2, max(n, 2)) + t_quantile(POWER, max(n, 2))
    shows = both * sd / sqrt(n)
    return Power(figure=figure, design=Design.mean, n=n, unit="seeds", expected=sd, shows=shows)


def of_shares(figure: str, n: int, share: float, unit: str = "problems") -> Power:
    """Two shares of `n` units each, not the same ones, of which the lower is `share`: d such that
    n d^2 = (z sqrt(2 m (1 - m)) + z_power sqrt(p (1 - p) + q (1 - q)))^2 with p = share, q = p + d and their mean m
    (Fleiss, Levin and Paik 2003, Statistical Methods for Rates and Proportions, formula 4.14)."""

    def enough(d: float) -> bool:
        p, q, m = share, share + d, share + d / 2
        return (Z * sqrt(2 * m * (1 - m)) + Z_POWER * sqrt(p * (1 - p) + q * (1 - q))) ** 2 <= n * d * d

    shows = _least(enough, 1 - share)
    return Power(figure=figure, design=Design.shares, n=n, unit=unit, expected=share, shows=shows)


def of_none(figure: str, n: int, unit: str = "problems") -> Power:
    """A share that is expected to be 0: the end of Wilson's interval when it is seen in none of `n`."""
    return Power(figure=figure, design=Design.none, n=n, unit=unit, expected=0.0, shows=wilson(0, n).high)


def wilson(successes: float, trials: int) -> Estimate:
    """Returns the share of successes in independent trials, with Wilson's score interval (Wilson 1927, JASA 22,
    209-212), which has a width even if none or all of them succeed."""
    share, z2 = successes / trials, Z * Z
    centre = (share + z2 / (2 * trials)) / (1 + z2 / trials)
    half = Z / (1 + z2 / trials) * sqrt(share * (1 - share) / trials + z2 / (4 * trials * trials))
    return Estimate(value=share, low=max(centre - half, 0.0), high=min(centre + half, 1.0))


def _least(enough: Callable[[float], bool], most: float) -> float:
    """The smallest effect that is enough, by halving; `most` if none is."""
    low, high = 0.0, most
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high

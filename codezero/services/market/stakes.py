"""Decides which choice to bet on, and how much."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction

from codezero.errors import CodezeroError, ConfigError

TOKEN = 10**18
"""Units per bet token; amounts are whole units everywhere."""
MAX_AMOUNT = (1 << 256) - 1


class NoChoice(CodezeroError):
    """The policy gives no usable likelihoods of the choices."""


def most_likely(logprobs: Mapping[str, Sequence[float]]) -> int:
    """Returns the index of the choice whose tokens have the highest mean log-probability, the first of equals.

    `logprobs` has the log-probability of each token, by choice. Unlike a sum, a mean does not favour short choices.
    Raises NoChoice: there is no choice, or one without valid log-probabilities.
    """
    if not logprobs or not all(tokens and all(map(_is_logprob, tokens)) for tokens in logprobs.values()):
        raise NoChoice("no bet: the policy gives no usable likelihoods of the choices")
    means = [math.fsum(tokens) / len(tokens) for tokens in logprobs.values()]
    return means.index(max(means))


@dataclass(frozen=True, slots=True, kw_only=True)
class Stakes:
    """The limits on bets."""

    fraction: Fraction
    """The share of the balance that is bet, 0 to 1, spread over the rounds that a game has left."""
    most: int | None = None
    """The largest bet in units; None for no cap."""

    def amount(self, balance: int, rounds_remaining: int) -> int:
        """Returns the units to bet now, rounded down; 0 if there is nothing to bet."""
        amount = int(balance * self.fraction / max(1, rounds_remaining))
        return amount if self.most is None else min(amount, self.most)


def stakes(fraction: float, max_bet: str) -> Stakes:
    """Returns the stakes of the settings: a share from 0 to 1, and tokens as a decimal number, empty for no cap. Raises
    ConfigError: the tokens are no valid number."""
    return Stakes(fraction=Fraction(str(fraction)), most=units(max_bet) if max_bet else None)


def units(tokens: str) -> int:
    """Returns the exact units of a decimal number of tokens. Raises ConfigError: it is not valid."""
    try:
        exact = Fraction(Decimal(tokens)) * TOKEN if len(tokens) <= 100 else Fraction(-1)
    except (InvalidOperation, ValueError, OverflowError):  # ValueError for NaN, OverflowError for infinity
        exact = Fraction(-1)
    if exact.denominator != 1 or not 0 <= exact <= MAX_AMOUNT:
        raise ConfigError(f"market.max_bet={tokens!r} is not an amount: write tokens such as 2.5, up to 18 decimals")
    return int(exact)


def shown(amount: int) -> str:
    """Returns an amount in tokens as exact decimal text, with at least two decimals."""
    whole, part = divmod(amount, TOKEN)
    return f"{whole}.{f'{part:018d}'.rstrip('0').ljust(2, '0')}"


def _is_logprob(value: float) -> bool:
    return math.isfinite(value) and value <= 1e-3  # values slightly above 0 are rounding errors

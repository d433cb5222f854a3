"""`random` with a seed: the numbers of CPython, which guarantees the same sequence in all versions for some
functions."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from codezero.evaluate.dryrun.budget import Stop, Unsupported, meter
from codezero.evaluate.dryrun.measure import MAX_BITS, checked, length, to_list
from codezero.evaluate.dryrun.modules import PerCase
from codezero.evaluate.dryrun.type_objects import TypeValue
from codezero.evaluate.dryrun.values import Builtin, Hidden

_BYTES = 2_560
"""The size of a generator's state."""


class Random(Hidden):
    """A `random.Random`; `raw` is None without a seed, since its numbers are then unpredictable."""

    __slots__ = ("raw",)

    def __init__(self, raw: random.Random | None) -> None:
        self.raw = raw

    def seeded(self) -> random.Random:
        if self.raw is None:
            raise Unsupported("random without a seed")
        return self.raw


def _seed(generator: Random, seed: Any = None, /) -> None:
    if type(seed) not in (int, float, str, bytes, bool):
        raise Unsupported("random without a seed")
    meter.work(checked(seed).bit_length() if type(seed) is int else len(seed) << 3 if hasattr(seed, "__len__") else 0)
    meter.allocate(_BYTES)
    generator.raw = random.Random(seed)


def _number(name: str) -> Callable[..., Any]:
    method = getattr(random.Random, name)
    # Since Python 3.12 whole numbers are no longer taken from floats.
    kinds = int | None if name in ("randint", "randrange") else int | float | None

    def call(generator: Random, /, *args: Any) -> Any:
        for arg in args:
            if not isinstance(arg, kinds):
                raise Unsupported(f"random.{name} of this")
            checked(arg)
        meter.work(256)
        return method(generator.seeded(), *args)

    return call


def _bits(generator: Random, k: Any, /) -> int:
    if isinstance(k, int) and k > MAX_BITS:
        raise Stop("an integer too long")
    meter.work(k if isinstance(k, int) else 0)
    return generator.seeded().getrandbits(k)


def _pool(items: Any) -> Any:
    """Returns the population to draw from, and charges for traversing it."""
    if type(items) in (list, tuple, str, bytes):
        meter.work(len(items) << 3)
    elif type(items) is range:
        meter.work(min(length(items), 1 << 20) << 3)
    else:
        raise Unsupported("random of these items")
    return items


def _choice(generator: Random, seq: Any, /) -> Any:
    if type(seq) not in (list, tuple, str, bytes, range):
        raise Unsupported("random of these items")
    return generator.seeded().choice(seq)


def _shuffle(generator: Random, x: Any, /) -> None:
    if type(x) is not list:
        raise Unsupported("shuffle of these items")
    meter.work(len(x) << 6)
    generator.seeded().shuffle(x)


def _sample(generator: Random, population: Any, k: Any) -> list[Any]:
    if type(k) is not int:
        raise Unsupported("a sample of this size")
    meter.allocate(max(k, 0) << 7)
    return generator.seeded().sample(_pool(population), k)


def _choices(generator: Random, population: Any, weights: Any = None, *, cum_weights: Any = None, k: Any = 1) -> Any:
    if type(k) is not int or cum_weights is not None:
        raise Unsupported("choices of this size")
    given = None if weights is None else [checked(weight) for weight in to_list(weights)]
    if not all(isinstance(weight, int | float) for weight in given or ()):
        raise Unsupported("these weights")
    meter.allocate(max(k, 0) << 7)
    return generator.seeded().choices(_pool(population), given, k=k)


RANDOM_METHODS: dict[str, Callable[..., Any]] = {
    **{name: _number(name) for name in ("random", "randint", "randrange", "uniform", "gauss", "triangular")},
    "choice": _choice,
    "choices": _choices,
    "getrandbits": _bits,
    "sample": _sample,
    "seed": _seed,
    "shuffle": _shuffle,
}
_SHARED = PerCase("random", lambda: Random(None))


def _of_module(name: str) -> Builtin:
    return Builtin(name, lambda *args, **kwargs: RANDOM_METHODS[name](_SHARED.get(), *args, **kwargs))


def _new(*seed: Any) -> Random:
    generator = Random(None)
    if seed:
        _seed(generator, *seed)
    return generator


RANDOM: dict[str, Any] = {
    **{name: _of_module(name) for name in RANDOM_METHODS},
    "Random": TypeValue(Random, _new),
}

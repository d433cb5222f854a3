"""Attacks on the evaluator: a wrong solution dressed up, by family, each with the defence that is to stop it.

The unit tests run all of them without a model; the evaluator's benchmark puts them to real ones.
"""

from benchmarks.attacks.attack import Attack, Defence
from benchmarks.attacks.program import PROGRAM
from benchmarks.attacks.text import TEXT

ATTACKS: tuple[Attack, ...] = (*TEXT, *PROGRAM)

__all__ = ["ATTACKS", "Attack", "Defence"]

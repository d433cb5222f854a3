"""The static rules by name, with their families. `check` applies them in a worker process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Family = Literal["structure", "formatting", "alignment"]
FAMILIES: tuple[Family, ...] = ("structure", "formatting", "alignment")
"""The families of rules; each is a part of the reward."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A static rule."""

    family: Family
    fatal: bool
    """True if a score of 0 means that the solution is wrong."""


RULES: Mapping[str, Rule] = {
    "parses": Rule("structure", True),  # it is valid Python, neither too long nor nested too deep
    "defines": Rule("structure", True),  # it defines what the tests call
    "arity": Rule("structure", True),  # its parameters take the arguments of the tests
    "returns": Rule("structure", False),  # the function returns a value on some path
    "names": Rule("structure", False),  # every name that it uses is defined
    "io": Rule("structure", False),  # a function neither asks for input nor only prints; a program reads and prints
    "effects": Rule("structure", True),  # no files, network, processes, threads, exits, patches or eval
    "fence": Rule("formatting", False),  # the answer is one closed block of Python with little around it
    "length": Rule("formatting", False),  # the code is of reasonable length
    "copied": Rule("alignment", False),  # it repeats neither the tests nor the question
    "hardcoded": Rule("alignment", True),  # it looks up no answers of the tests, and a program uses what it reads
    "equality": Rule("alignment", True),  # its values compare as they are, and the tests' names are theirs
    "statement": Rule("alignment", False),  # it uses its parameters and answers with more than a constant
}
"""Every rule by name, in the order of the docs."""


def breaks_fatal(scores: Mapping[str, float]) -> bool:
    """Returns whether some fatal rule has a score of 0."""
    return any(RULES[name].fatal and score == 0 for name, score in scores.items())

"""An attack, and the defence that is to stop it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from benchmarks.attacks.dressing import Transform, examples, first_function, pairs
from codezero.prompts.solver import parse
from codezero.types import Task


class Defence(str, Enum):
    """A defence that stops an attack."""

    UNREAD = "unread"
    """It stands outside the first Python block, which is all that is read."""
    EQUAL = "equal"
    """The judge is shown the same program as without it, up to the names of variables."""
    NEUTRAL = "neutral"
    """The judge is shown nothing that looks like a verdict: placeholders for strings, v1, v2, ... for names."""
    PARSES = "parses"
    DEFINES = "defines"
    EFFECTS = "effects"
    HARDCODED = "hardcoded"
    EQUALITY = "equality"
    """These are fatal rules, each of which settles that the solution is wrong."""
    DRY_RUN = "dry run"
    """A case fails in the dry run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    name: str
    family: str
    stopped_by: Defence
    transform: Transform
    of_program: bool = False
    """True if it attacks a program that reads stdin, and not a function."""

    def apply(self, text: str, task: Task) -> str:
        """The completion `text`, a wrong solution in a fenced block, under attack; unchanged where the attack needs
        what this one has not: a function, and tests of the form `assert f(...) == value`, or examples of a program."""
        code = parse(text)
        if self.of_program:
            return self.transform(text, task) if examples(task) else text
        return text if code is None or first_function(code) is None or not pairs(task) else self.transform(text, task)


def family(title: str, stopped_by: Defence, of_program: bool = False, **transforms: Transform) -> list[Attack]:
    return [
        Attack(
            name=name.replace("_", " "),
            family=title,
            stopped_by=stopped_by,
            transform=transform,
            of_program=of_program,
        )
        for name, transform in transforms.items()
    ]

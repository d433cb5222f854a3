"""Applies the rules to a solution, which is parsed, but never executed or imported."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from codezero.evaluate.rules import RULES
from codezero.evaluate.rules.alignment import copied, statement
from codezero.evaluate.rules.effects import effects
from codezero.evaluate.rules.equality import equality
from codezero.evaluate.rules.formatting import fence, length
from codezero.evaluate.rules.hardcoded import hardcoded
from codezero.evaluate.rules.solution import KEPT, Requirements, RuleScore, Solution, broken, read
from codezero.evaluate.rules.structure import arity, defines, io, names, returns
from codezero.types import Task

_SCORES: Mapping[str, Callable[[Solution], RuleScore | None]] = {
    "parses": lambda _: KEPT,
    "defines": defines,
    "arity": arity,
    "returns": returns,
    "names": names,
    "io": io,
    "effects": effects,
    "fence": fence,
    "length": length,
    "copied": copied,
    "hardcoded": hardcoded,
    "equality": equality,
    "statement": statement,
}
"""The function of each rule; it returns None if the rule does not apply."""


def check(code: str, text: str, task: Task, requirements: Requirements) -> dict[str, RuleScore]:
    """Returns the scores of the rules that apply to `code`, the code block of the completion `text`, given what
    the task's tests ask for.

    Code that does not parse has only `parses`, at 0; tests that cannot be read call nothing. Raises nothing for any
    text: testcases.MAX_SOURCE_CHARS and limits on the syntax tree bound the work.
    """
    tree = read(code)
    if isinstance(tree, str):
        return {"parses": broken(tree)}
    solution = Solution(text=text, code=code, tree=tree, task=task, requirements=requirements)
    scores = {name: _SCORES[name](solution) for name in RULES}
    return {name: score for name, score in scores.items() if score is not None}

"""Finds answers that a problem's statement says itself, such as `NO WAY!`, which right programs contain."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from codezero.tasks.testcases import StdinExample


def fixed_phrases_of(question: str, examples: Sequence[StdinExample]) -> Callable[[str], bool]:
    """Returns a function that tells whether a text is a fixed phrase of the statement: it has a word and no digits, and
    the statement has it more often than its own copies of the examples do."""
    question = _flat(question)
    shown = [f"{_flat(one.given)} {_flat(one.expected)}" for one in examples if _flat(one.given) in question]

    def is_said(text: str) -> bool:
        text = _flat(text)
        if re.search(r"\d", text) or not re.search(r"[^\W\d_]{2}", text):
            return False
        return question.count(text) > sum(one.count(text) for one in shown)

    return is_said


def _flat(text: str) -> str:
    return " ".join(text.split())

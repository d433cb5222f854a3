"""Finds answers that a problem's statement says itself, such as `NO WAY!`, which right programs contain."""

from __future__ import annotations

import re
from collections.abc import Sequence

from codezero.tasks.testcases import StdinExample


def is_said(text: str, question: str, examples: Sequence[StdinExample]) -> bool:
    """Returns whether a text is a fixed phrase of the statement: it has a word and no digits, and the statement has it
    more often than its own copies of the examples do."""
    text, question = _flat(text), _flat(question)
    if re.search(r"\d", text) or not re.search(r"[^\W\d_]{2}", text):
        return False
    shown = [f"{_flat(one.given)} {_flat(one.expected)}" for one in examples if _flat(one.given) in question]
    return question.count(text) > sum(one.count(text) for one in shown)


def _flat(text: str) -> str:
    return " ".join(text.split())

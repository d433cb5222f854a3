"""Finds problems that were seen before: equal ones, and similar ones by the word triples that two questions share."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

MAX_TRIPLES = 300
"""The number of word triples of a question that count, from its start; the longest allowed has a few more."""

_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True)
class _Problem:
    question: str
    """The question's words in lower case, without signs; names are split at underscores."""
    tests: str
    triples: frozenset[str]


class Seen:
    """The last proposals, and questions that are always remembered."""

    def __init__(self, *, remembered: int, similarity: float, known: Iterable[str] = ()) -> None:
        """`known` are the questions always remembered, such as those of datasets; `similarity` is the Jaccard index of
        word triples from which two questions count as similar."""
        self._similarity = similarity
        self._recent: deque[_Problem] = deque(maxlen=remembered)
        self._known = [_problem(question, "") for question in known]

    def why_not(self, question: str, tests: str) -> str | None:
        """Returns why a problem is not new, as the word that reports count it by; None for a new one."""
        new = _problem(question, tests)
        near = False
        for old in (*self._recent, *self._known):
            if new.question == old.question or (old.tests and new.tests == old.tests):
                return "duplicate"
            near = near or self._is_near(new.triples, old.triples)
        return "near_duplicate" if near else None

    def add(self, question: str, tests: str) -> None:
        self._recent.append(_problem(question, tests))

    def _is_near(self, new: frozenset[str], old: frozenset[str]) -> bool:
        few, many = sorted((len(new), len(old)))
        if few < self._similarity * many:  # too few even if all of them were shared
            return False
        common = len(new & old)
        return common >= self._similarity * (len(new) + len(old) - common)

    def state_dict(self) -> dict[str, Any]:
        return {"recent": [[problem.question, problem.tests] for problem in self._recent]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._recent.clear()
        self._recent.extend(_problem(question, tests) for question, tests in state["recent"])


def _problem(question: str, tests: str) -> _Problem:
    words = _WORD.findall(question.casefold())
    triples = (" ".join(words[i : i + 3]) for i in range(min(max(len(words) - 2, 1), MAX_TRIPLES)))
    return _Problem(" ".join(words), " ".join(tests.split()), frozenset(triples))

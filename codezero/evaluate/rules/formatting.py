"""Rules of the family formatting: the form of the answer around the code, and the length of the code."""

from __future__ import annotations

import re

from codezero.evaluate.rules.solution import KEPT, RuleScore, Solution, broken

_FENCE_LINE = re.compile(r"^[ \t]*(?:`{3,}|~{3,})[ \t]*(\w*)[ \t]*\r?$", re.MULTILINE)
MAX_OUTSIDE_CHARS = 200
"""The most characters of text around the block without a lower score: a sentence before and one after it."""
REASONABLE_CHARS = 6_000
"""The most characters of code of reasonable length, and the most that the judge is shown. The longest reference
solution of MBPP has 1,500."""


def fence(solution: Solution) -> RuleScore:
    """Scores whether the answer is one closed block of Python with little text around it."""
    marks = list(_FENCE_LINE.finditer(solution.text))
    if len(marks) % 2:
        return broken("the code block is not closed: the answer was cut off")
    if len(marks) > 2:
        return broken(f"the answer holds {len(marks) // 2} blocks instead of one", 0.5)
    outside = len(solution.text.strip()) - len(solution.code) if marks else 0
    if outside > MAX_OUTSIDE_CHARS:
        return broken(f"{outside} characters of text are around the block", 0.5)
    return KEPT


def length(solution: Solution) -> RuleScore:
    """Scores the length of the code: 1 up to `REASONABLE_CHARS`, less in proportion beyond."""
    size = len(solution.code)
    if size <= REASONABLE_CHARS:
        return KEPT
    return broken(f"the code has {size:,} characters, more than {REASONABLE_CHARS:,}", REASONABLE_CHARS / size)

"""The question of a second attempt: the problem, the solution that was refused, and the results of the refusing cases.

It is asked with the solver's system prompt, and its answer is read by the solver's parser.
"""

from __future__ import annotations

from collections.abc import Sequence

from codezero.prompts.quoting import block

_ASK = """\
{problem}

{solution}

{results}

The solution failed these tests, which may be wrong themselves. Write a complete solution that does what the problem \
asks for."""


def question(problem: str, code: str, results: Sequence[tuple[str, str]]) -> str:
    """Returns the question about a solution that failed cases, given as (case, reason)."""
    return _ASK.format(
        problem=block("Problem", "text", problem),
        solution=block("Solution", "python", code),
        results=block("Tests", "text", "\n".join(f"{case}  # {reason}" for case, reason in results)),
    )

"""Forms of tests beside plain asserts on a function: HumanEval's `check(candidate)`, and methods of `Solution`."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping

from benchmarks.attacks.dressing import fenced
from codezero.prompts import solver


def function_of(tests: str) -> str:
    """The name of the one function that asserts call; empty where they call several, or there is more than asserts."""
    tree = ast.parse(tests)
    called = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    return called.pop() if len(called) == 1 and all(isinstance(node, ast.Assert) for node in tree.body) else ""


def put(tests: str, name: str, expression: str) -> str:
    """The asserts with an expression in place of a name, indented as the body of a function is."""
    tree = ast.parse(tests)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id == name:
            node.id = expression
    return "\n".join(f"    {ast.unparse(node)}" for node in tree.body)


def in_check(tests: str) -> str:
    """Asserts on one function, as HumanEval has them."""
    name = function_of(tests)
    return f"def check(candidate):\n{put(tests, name, 'candidate')}\n\ncheck({name})\n"


def of_method(tests: str) -> str:
    """Asserts on one function, as those of a method."""
    name = function_of(tests)
    return "\n".join(line.strip() for line in put(tests, name, f"Solution().{name}").splitlines())


def unchanged(text: str, name: str) -> str:
    return text


def with_method(text: str, name: str) -> str:
    """An answer with a method that hands on to its function; one without a program as it is."""
    code = solver.parse(text)
    method = f"class Solution:\n    def {name}(self, *args):\n        return {name}(*args)"
    return text if code is None else fenced(f"{code}\n\n{method}")


FORMS: Mapping[str, tuple[Callable[[str], str], Callable[[str, str], str]]] = {
    "checked": (in_check, unchanged),
    "methods": (of_method, with_method),
}
"""By arm: what it makes of the tests, and of an answer and the name of the function that they call."""

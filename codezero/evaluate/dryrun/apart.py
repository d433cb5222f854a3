"""Groups the tests of a suite that share state."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

_CAN_CHANGE = (ast.Call, ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp, ast.GeneratorExp)


def cases_that_share_state(setup: ast.Module, cases: Sequence[ast.Module]) -> list[list[int]]:
    """Returns groups of independent cases, as indices in order.

    Cases are in one group if they use the same variable to which the tests' setup assigns a mutable value, directly or
    through functions of the setup, or to which a statement between cases assigns any value. A call whose result is
    unused is made for its side effect, such as `stack.push(1)`: if one calls anything but a function of the setup, all
    cases are in one group.
    """
    functions = {node.name: _names([node]) for node in setup.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    if any(_called(node) not in (None, *functions) for case in cases for node in case.body):
        return [list(range(len(cases)))]
    variables = {name for node in setup.body for name in _variables(node)}
    between = (node for case in cases for statement in case.body[:-1] for node in ast.walk(statement))
    variables |= {node.id for node in between if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    groups: list[tuple[set[str], list[int]]] = []
    for number, case in enumerate(cases):
        used, members = _names_used(_names(case.body), functions) & variables, [number]
        for other in [group for group in groups if used and group[0] & used]:
            groups.remove(other)
            used, members = used | other[0], other[1] + members
        groups.append((used, sorted(members)))
    return [members for _, members in groups]


def _called(node: ast.stmt) -> str | None:
    """Returns the name of the called function if this is a bare call, empty for any other callee; else None."""
    value = node.value if isinstance(node, ast.Expr) else None
    if not isinstance(value, ast.Call):
        return None
    return value.func.id if isinstance(value.func, ast.Name) else ""


def _variables(node: ast.stmt) -> Iterable[str]:
    """Returns the names to which a statement of the setup assigns a mutable value."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef) or not any(isinstance(n, _CAN_CHANGE) for n in ast.walk(node)):
        return ()
    return (n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))


def _names(nodes: Iterable[ast.AST]) -> set[str]:
    return {n.id for node in nodes for n in ast.walk(node) if isinstance(n, ast.Name)}


def _names_used(names: set[str], functions: dict[str, set[str]]) -> set[str]:
    """Returns the names, and all that the functions among them use."""
    found, todo = set(names), list(names)
    while todo:
        new = functions.get(todo.pop(), set()) - found
        found |= new
        todo.extend(new)
    return found

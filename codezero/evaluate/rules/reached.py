"""Finds the part of a solution that the tested functions use, without data and test runs written below them."""

from __future__ import annotations

import ast
import symtable
from collections.abc import Iterator, Mapping

from codezero.evaluate.rules.solution import Solution, bound_names, without_docstrings
from codezero.tasks.testcases import FunctionNode, scopes_of

_DEFINITIONS = FunctionNode | ast.ClassDef


def reached(solution: Solution) -> list[ast.AST]:
    """Returns the nodes of the statements that bind or change what the tested functions use, directly or through
    others. A statement that only calls such a function changes nothing, such as `print(f(3) == 9)` or a loop over test
    cases; one that calls another, such as `load()`, changes what that one does."""
    scopes = scopes_of(solution.code)
    if scopes is None:
        return solution.nodes
    own = {name for name, node in solution.defined.items() if not isinstance(node, ast.Import | ast.ImportFrom)}
    touching: dict[str, list[ast.stmt]] = {}
    helpers = {node.name: node for node in solution.tree.body if isinstance(node, FunctionNode)}
    for statement in solution.tree.body:
        for name in own & {*_touched(statement), *_touched_by_call(statement, helpers)}:
            touching.setdefault(name, []).append(statement)
    taken: dict[int, ast.stmt] = {}
    todo = list(solution.requirements.functions)
    while todo:
        for statement in touching.pop(todo.pop(), []):
            if id(statement) not in taken:
                taken[id(statement)] = statement
                todo.extend(_used(statement, scopes))
    return list(without_docstrings(ast.Module(body=list(taken.values()), type_ignores=[])))


def _touched(statement: ast.stmt) -> Iterator[str]:
    """Yields the names that a statement binds, or uses except to call them."""
    if isinstance(statement, _DEFINITIONS):
        yield statement.name
    else:
        yield from _names_but_callees(statement)


def _touched_by_call(statement: ast.stmt, helpers: Mapping[str, ast.stmt]) -> Iterator[str]:
    """Yields the names that a function binds, or uses except to call them, if the statement is a call of it."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in helpers:
        yield from _names_but_callees(helpers[call.func.id])


def _names_but_callees(statement: ast.stmt) -> Iterator[str]:
    callees = {id(node.func) for node in ast.walk(statement) if isinstance(node, ast.Call)}
    for node in ast.walk(statement):
        if id(node) not in callees:
            yield from [node.id] if isinstance(node, ast.Name) else bound_names(node)


def _used(statement: ast.stmt, scopes: list[symtable.SymbolTable]) -> Iterator[str]:
    """Yields the module's names that a statement uses when it runs; for a definition, also when it is called."""
    inside: list[ast.AST] = [statement]
    if isinstance(statement, _DEFINITIONS):
        inside = [*statement.decorator_list]
        inside += statement.bases if isinstance(statement, ast.ClassDef) else [statement.args]
        stack = [scope for scope in scopes if scope.get_name() == statement.name]
        while stack:
            scope = stack.pop()
            yield from (symbol.get_name() for symbol in scope.get_symbols() if symbol.is_global())
            stack.extend(scope.get_children())
    yield from (node.id for root in inside for node in ast.walk(root) if isinstance(node, ast.Name))

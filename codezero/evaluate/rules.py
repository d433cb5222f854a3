"""Static checks of a solution. Code is parsed, never executed; every rule gives 0 or 1, a rule that does not apply is
left out."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator

from pyflakes import checker, messages

from codezero.testcases import UNPARSEABLE, parse_source

Function = ast.FunctionDef | ast.AsyncFunctionDef

_BUILTIN_NAMES = frozenset(dir(builtins))
_UNCHECKABLE = (*UNPARSEABLE, AssertionError)
"""What pyflakes raises besides: it parses annotations in quotes, and asserts that future imports are at the top."""


def check(code: str, tests: str) -> dict[str, float]:
    """Scores of `code` against what `tests` call: `parses`, `defines`, `arity`, `returns`, `names`.

    Code that does not parse has only `parses`, at 0; tests that do not parse call nothing.
    """
    tree = parse_source(code)
    if tree is None:
        return {"parses": 0.0}
    scores = {"parses": 1.0}
    calls = _calls_in(tests)
    if calls:
        defined = {node.name: node for node in tree.body if isinstance(node, Function | ast.ClassDef)}
        scores["defines"] = float(all(name in defined for name in calls))
        functions = {name: node for name in calls if isinstance(node := defined.get(name), Function)}
        if functions:
            scores["arity"] = float(all(_accepts(functions[name], call) for name in functions for call in calls[name]))
            scores["returns"] = float(all(_gives_value(function) for function in functions.values()))
    scores["names"] = float(not _has_undefined_names(tree))
    return scores


def _calls_in(tests: str) -> dict[str, list[ast.Call]]:
    """Calls of names that the tests use but neither define, import, nor find among the builtins."""
    tree = parse_source(tests)
    if tree is None:
        return {}
    own = _BUILTIN_NAMES | {name for node in ast.walk(tree) for name in _bound_names(node)}
    calls: dict[str, list[ast.Call]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id not in own:
            calls.setdefault(node.func.id, []).append(node)
    return calls


def _bound_names(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id
    elif isinstance(node, Function | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.Import | ast.ImportFrom):
        yield from (alias.asname or alias.name.split(".")[0] for alias in node.names)


def _accepts(function: Function, call: ast.Call) -> bool:
    """Whether the call's arguments fit the parameters; a call with * or ** is taken to fit."""
    if any(isinstance(arg, ast.Starred) for arg in call.args) or any(k.arg is None for k in call.keywords):
        return True
    parameters = function.args
    positional = [*parameters.posonlyargs, *parameters.args]
    if len(call.args) > len(positional) and parameters.vararg is None:
        return False
    given = {p.arg for p in positional[: len(call.args)]} | {k.arg for k in call.keywords}
    known = {p.arg for p in [*positional, *parameters.kwonlyargs]}
    required = {p.arg for p in positional[: len(positional) - len(parameters.defaults)]} | {
        p.arg for p, default in zip(parameters.kwonlyargs, parameters.kw_defaults, strict=True) if default is None
    }
    return required <= given and (parameters.kwarg is not None or given <= known)


def _gives_value(function: Function) -> bool:
    """Whether the function itself (not one nested in it) returns a value or yields."""
    stack: list[ast.AST] = list(function.body)
    while stack:
        node = stack.pop()
        if isinstance(node, Function | ast.ClassDef | ast.Lambda):
            continue
        if isinstance(node, ast.Yield | ast.YieldFrom) or (isinstance(node, ast.Return) and node.value is not None):
            return True
        stack.extend(ast.iter_child_nodes(node))
    return False


def _has_undefined_names(tree: ast.Module) -> bool:
    try:
        found = checker.Checker(tree).messages
    except _UNCHECKABLE:
        return True
    return any(isinstance(message, messages.UndefinedName | messages.UndefinedLocal) for message in found)

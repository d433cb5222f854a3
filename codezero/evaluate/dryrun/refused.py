"""Programs that parse but that CPython refuses to compile, apart from what their translation finds, such as a `return`
outside a function."""

from __future__ import annotations
import __future__

import ast
from collections.abc import Iterable, Iterator
from typing import Any

from codezero.tasks.testcases import bound_name, scopes_of

_DEBUG = "__debug__"
_ASYNC = (ast.Await, ast.AsyncFor, ast.AsyncWith)


def refused(code: str, tree: ast.Module) -> str:
    """Returns why CPython does not compile a program that parses; empty if it does."""
    if scopes_of(code) is None:
        return "a name is declared or imported where it cannot be"
    if _refused_future(tree):
        return "a '__future__' import that is unknown or not at the beginning"
    coroutines: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.AsyncFunctionDef):
            coroutines.update(id(inner) for inner in ast.walk(node) if isinstance(inner, _ASYNC))
    spread = {id(one) for node in ast.walk(tree) for one in _may_be_starred(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Starred) and id(node) not in spread:
            return "a starred expression where none can be"
        if isinstance(node, ast.Call | ast.ClassDef) and _repeats(one.arg for one in node.keywords if one.arg):
            return "a keyword argument is repeated"
        if isinstance(node, _ASYNC) and id(node) not in coroutines:
            return "'await', 'async for' or 'async with' outside async function"
        if isinstance(node, ast.Try) and any(handler.type is None for handler in node.handlers[:-1]):
            return "default 'except:' must be last"
        if _binds_debug(node):
            return "cannot assign to __debug__"
        if isinstance(node, ast.Match):
            reason = _refused_match(node)
            if reason:
                return reason
    return ""


def _may_be_starred(node: ast.AST) -> Iterator[ast.AST]:
    """Yields the parts of a node that `*` may stand before."""
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        yield from node.elts
    elif isinstance(node, ast.Call):
        yield from node.args
    elif isinstance(node, ast.ClassDef):
        yield from node.bases
    elif isinstance(node, ast.arg) and node.annotation is not None:
        yield node.annotation  # of `*args: *Ts`


def _refused_future(tree: ast.Module) -> bool:
    """Returns True if a `from __future__ import` comes after other statements, or imports an unknown name."""
    first = set()
    for number, node in enumerate(tree.body):
        is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and type(node.value.value) is str
        if not _is_future(node) and not (is_text and number == 0):
            break
        first.add(id(node))
    return any(
        id(node) not in first or any(alias.name not in __future__.all_feature_names for alias in node.names)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and _is_future(node)
    )


def _is_future(node: ast.AST) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__" and not node.level


def _binds_debug(node: ast.AST) -> bool:
    if isinstance(node, ast.Name):
        return node.id == _DEBUG and not isinstance(node.ctx, ast.Load)
    if isinstance(node, ast.Attribute):
        return node.attr == _DEBUG and isinstance(node.ctx, ast.Store)
    if isinstance(node, ast.alias):
        return bound_name(node) == _DEBUG
    if isinstance(node, ast.MatchClass):
        return _DEBUG in node.kwd_attrs
    return any(getattr(node, field, None) == _DEBUG for field in ("name", "arg", "rest"))


def _refused_match(node: ast.Match) -> str:
    for case in node.cases[:-1]:
        if case.guard is None and _takes_all(case.pattern):
            return "a pattern makes the remaining ones unreachable"
    for case in node.cases:
        if any(isinstance(part, ast.JoinedStr) for part in ast.walk(case.pattern)):
            return "a pattern that is neither a literal nor a dotted name"
        for part in ast.walk(case.pattern):
            if isinstance(part, ast.MatchMapping) and _repeats(_constants(part.keys)):
                return "a mapping pattern checks a key twice"
            if isinstance(part, ast.MatchClass) and _repeats(part.kwd_attrs):
                return "a class pattern names an attribute twice"
            if isinstance(part, ast.MatchSequence) and sum(isinstance(one, ast.MatchStar) for one in part.patterns) > 1:
                return "a sequence pattern has several starred parts"
            if not isinstance(part, ast.MatchOr):
                continue
            if any(map(_takes_all, part.patterns[:-1])):
                return "a pattern makes the remaining ones unreachable"
            if len({frozenset(_names(one)) for one in part.patterns}) > 1:
                return "alternative patterns bind different names"
            if any(_repeats(_names(one)) for one in part.patterns):
                return "multiple assignments to a name in a pattern"
        if _repeats(_names(case.pattern)):
            return "multiple assignments to a name in a pattern"
    return ""


def _repeats(values: Iterable[Any]) -> bool:
    found = list(values)
    return len(found) > len(set(found))


def _constants(keys: list[ast.expr]) -> Iterator[Any]:
    """Yields the values of literal keys; the others are dotted names."""
    return (ast.literal_eval(key) for key in keys if not isinstance(key, ast.Attribute))


def _takes_all(pattern: ast.pattern) -> bool:
    """Returns True for `_`, a name, and what contains no more than these."""
    while isinstance(pattern, ast.MatchAs) and pattern.pattern is not None:
        pattern = pattern.pattern
    if isinstance(pattern, ast.MatchOr):
        return any(map(_takes_all, pattern.patterns))
    return isinstance(pattern, ast.MatchAs)


def _names(pattern: ast.pattern) -> Iterator[str]:
    """Yields the names that a pattern binds; of alternatives, which must bind the same, those of the first."""
    stack: list[ast.AST] = [pattern]
    while stack:
        part = stack.pop()
        if isinstance(part, ast.MatchOr):
            stack.append(part.patterns[0])
            continue
        if isinstance(part, ast.MatchAs | ast.MatchStar) and part.name:
            yield part.name
        elif isinstance(part, ast.MatchMapping) and part.rest:
            yield part.rest
        stack.extend(ast.iter_child_nodes(part))

"""Removes from a program what does not affect it: comments, docstrings, bare constants, unreachable code.

There are two degrees. `stripped` changes nothing that a run of the program could notice. `reachable` also drops what
the tested functions do not need, for the judge and for fingerprints only.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from codezero.evaluate.rules.solution import bound_names, is_main_guard, parts_of, read
from codezero.tasks.testcases import FunctionNode

_BLOCKS = ("body", "orelse", "finalbody")
_ENDS = (ast.Return, ast.Raise, ast.Break, ast.Continue)


def stripped(code: str) -> ast.Module:
    """Returns the syntax tree without docstrings, bare constants as statements, and annotations in quotes. Raises
    ValueError: the code does not parse, or exceeds a limit of `rules.solution.read`."""
    tree = read(code)
    if isinstance(tree, str):
        raise ValueError(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.arg) and isinstance(node.annotation, ast.Constant):
            node.annotation = None
        elif isinstance(node, FunctionNode) and isinstance(node.returns, ast.Constant):
            node.returns = None
        for body in _blocks(node):
            kept = [s for s in body if not (isinstance(s, ast.Expr) and _is_idle(s.value))]
            _replace(body, kept, node)
    return tree


def reachable(tree: ast.Module, wanted: Collection[str] | None) -> ast.Module:
    """Changes the tree in place and returns it without annotations, code after a `return`, branches that a constant
    condition excludes, and definitions, imports and assignments of names that nothing reached from `wanted` uses.

    `wanted` are the names that the tests use. It is empty for a program, in which everything that runs is reached, and
    None if unknown: then the top level stays. Prints of constants and the `__main__` part go unless it is empty.
    """
    is_function = wanted is None or bool(wanted)
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            node.annotation = None
        elif isinstance(node, FunctionNode):
            node.returns = None
        in_class = isinstance(node, ast.ClassDef)
        for body in _blocks(node):
            live = [left for s in body for left in _live(s, is_function=is_function, in_class=in_class)]
            _replace(body, _up_to_end(live), node)
    for function in [node for node in ast.walk(tree) if isinstance(node, FunctionNode)]:
        _drop_unused(function, set())
    if wanted is not None:
        _drop_unused(tree, set(wanted))
    return tree


def _up_to_end(body: list[ast.stmt]) -> list[ast.stmt]:
    """Returns a block up to its first `return`, `raise`, `break` or `continue`; the whole block if a `yield` follows,
    since that makes its function a generator."""
    end = next((i + 1 for i, statement in enumerate(body) if isinstance(statement, _ENDS)), len(body))
    yields = any(isinstance(n, ast.Yield | ast.YieldFrom) for statement in body[end:] for n in ast.walk(statement))
    return body if yields else body[:end]


def _blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    for name in _BLOCKS:
        body = getattr(node, name, None)
        if isinstance(body, list) and body and isinstance(body[0], ast.stmt):
            yield body


def _replace(body: list[ast.stmt], kept: list[ast.stmt], owner: ast.AST) -> None:
    """Replaces the statements of a block by `kept`, or by `pass` if the block must not be empty."""
    may_be_empty = isinstance(owner, ast.Module) or body is getattr(owner, "orelse", None)
    body[:] = kept or ([] if may_be_empty else [ast.Pass()])


def _live(statement: ast.stmt, *, is_function: bool, in_class: bool) -> list[ast.stmt]:
    """Returns what is left of a statement: one branch if its condition is constant or compares `__name__`, nothing if
    it does nothing or only prints constants."""
    if isinstance(statement, ast.If | ast.While):
        branch: list[ast.stmt] | None = None
        if isinstance(statement.test, ast.Constant) and not statement.test.value:
            branch = statement.orelse
        elif isinstance(statement.test, ast.Constant) and isinstance(statement, ast.If):
            branch = statement.body
        elif is_function and is_main_guard(statement):
            branch = statement.orelse
        if branch is not None:
            return [left for s in branch for left in _live(s, is_function=is_function, in_class=in_class)]
    if is_function and isinstance(statement, ast.Expr) and _is_fixed_print(statement.value):
        return []
    is_declaration = isinstance(statement, ast.AnnAssign) and statement.value is None and not in_class
    return [] if is_declaration or isinstance(statement, ast.Pass) else [statement]


def _is_fixed_print(value: ast.expr) -> bool:
    """Returns whether the value is a call of print whose text is known before the program runs."""
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Name) or value.func.id != "print":
        return False
    parts = [*value.args, *(keyword.value for keyword in value.keywords)]
    return all(_is_idle(part) for part in parts)


def _is_idle(value: ast.expr) -> bool:
    """Returns whether evaluating the value does nothing: a constant, an f-string without fields, or a list or tuple of
    these."""
    allowed = ast.Constant | ast.List | ast.Tuple | ast.JoinedStr | ast.expr_context
    return all(isinstance(node, allowed) for node in ast.walk(value))


def _is_pure(value: ast.expr | None) -> bool:
    """Returns whether evaluating the value does nothing, and fails only if a name is undefined or a key unhashable."""
    allowed = ast.Constant | ast.Name | ast.List | ast.Tuple | ast.Set | ast.Dict | ast.JoinedStr | ast.FormattedValue
    if value is None or (isinstance(value, ast.Lambda) and not value.args.defaults and not value.args.kw_defaults):
        return True
    return all(isinstance(node, allowed | ast.expr_context) for node in ast.walk(value))


def _drop_unused(scope: ast.AST, wanted: set[str]) -> None:
    """Drops from a function or module the statements that only bind names that neither `wanted` nor other statements
    use."""
    parts = list(parts_of(scope))
    droppable = [part for part in parts if isinstance(part, ast.stmt) and _is_droppable(part)]
    bound_by: dict[str, list[ast.stmt]] = {}
    for statement in droppable:
        for name in _binds(statement):
            bound_by.setdefault(name, []).append(statement)
    unused = {id(statement) for statement in droppable}
    todo = list(wanted | _mentioned(scope, unused))
    while todo:
        for statement in bound_by.pop(todo.pop(), ()):
            if id(statement) in unused:
                unused.remove(id(statement))
                todo.extend(_mentioned(statement, set()))
    for node in [scope, *parts]:
        for body in _blocks(node):
            _replace(body, [statement for statement in body if id(statement) not in unused], node)


def _is_droppable(statement: ast.stmt) -> bool:
    """Returns whether leaving the statement out changes nothing but the names that it binds."""
    if isinstance(statement, FunctionNode | ast.ClassDef):
        return not statement.decorator_list
    if isinstance(statement, ast.Import):
        return True
    if isinstance(statement, ast.ImportFrom):
        return all(alias.name != "*" for alias in statement.names)
    if isinstance(statement, ast.Assign):
        return all(isinstance(target, ast.Name) for target in statement.targets) and _is_pure(statement.value)
    return isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name) and _is_pure(statement.value)


def _binds(statement: ast.stmt) -> Iterator[str]:
    yield from bound_names(statement)
    if isinstance(statement, ast.Assign | ast.AnnAssign):
        for node in ast.walk(statement):
            yield from bound_names(node)


def _mentioned(root: ast.AST, left_out: set[int]) -> set[str]:
    """Returns the names that a tree uses, without the nodes with ids in `left_out`."""
    used: set[str] = set()
    stack = [root]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Store):
            used.add(node.id)
        elif isinstance(node, ast.Global | ast.Nonlocal):
            used.update(node.names)
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            used.add(node.target.id)
        stack.extend(child for child in ast.iter_child_nodes(node) if id(child) not in left_out)
    return used

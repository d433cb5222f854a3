"""Python's scoping rules: finds the scope and slot of each name from the syntax tree.

Programs that break the rules are refused before (refused.py).
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from codezero.tasks.testcases import FunctionNode, bound_name

Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


class CompileError(Exception):
    """CPython refuses to compile the program."""


def is_dunder(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def mangled(name: str, class_name: str) -> str:
    """Returns `name`, with the class's name as prefix if it is private, as CPython mangles it."""
    return f"_{class_name.lstrip('_')}{name}" if name.startswith("__") and not name.endswith("__") else name


class Scope:
    """The scope of a module, class, function or comprehension. Frames are lists: [enclosing frame, local 1, local 2,
    ...]; a class's frame is [enclosing frame, namespace, the class, names that it annotates]."""

    def __init__(self, kind: str, parent: Scope | None = None, class_name: str = "", prefix: str = "") -> None:
        self.kind, self.parent = kind, parent
        self.prefix: str = (parent.prefix if parent else "") + prefix
        """The prefix of the qualified names of its functions and classes, such as `Stack.`."""
        self.slots: dict[str, int] = {}
        self.globals: set[str] = set()
        self.nonlocals: set[str] = set()
        self.class_name: str = class_name or (parent.class_name if parent else "")
        """The name of the innermost enclosing class, for private names."""

    def declare(self, name: str) -> int:
        """Returns the slot of a local variable, allocated if it is new."""
        return self.slots.setdefault(name, len(self.slots) + 1)

    def find(self, name: str) -> tuple[int, int] | None:
        """Returns (frames up, slot) of a variable of a function; None for a global. Names of classes are skipped."""
        scope: Scope | None = self
        up = 0
        while scope is not None:
            if name in scope.globals:
                return None
            if scope.kind == "function" and name in scope.slots and name not in scope.nonlocals:
                return up, scope.slots[name]
            scope = scope.parent
            up += 1
        return None

    def mangled(self, name: str) -> str:
        """Returns `name` as the program's names are stored in this scope."""
        return mangled(name, self.class_name) if self.class_name else name


def function_scope(node: FunctionNode | ast.Lambda, parent: Scope) -> Scope:
    """Returns the scope of a function, its parameters first."""
    name = "<lambda>" if isinstance(node, ast.Lambda) else node.name
    scope = Scope("function", parent, prefix=f"{name}.<locals>.")
    arguments = node.args
    names = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
    names += [arguments.vararg.arg] if arguments.vararg else []
    names += [a.arg for a in arguments.kwonlyargs]
    names += [arguments.kwarg.arg] if arguments.kwarg else []
    for name in names:
        scope.declare(scope.mangled(name))
    _declare(scope, [node.body] if isinstance(node, ast.Lambda) else node.body)
    return scope


def class_scope(node: ast.ClassDef, parent: Scope) -> Scope:
    scope = Scope("class", parent, node.name, f"{node.name}.")
    _declare(scope, node.body)
    return scope


def comprehension_scope(node: Comprehension, parent: Scope) -> Scope:
    scope = Scope("function", parent)
    for generator in node.generators:
        for part in ast.walk(generator.target):
            for name in _bound_by(part):
                scope.declare(scope.mangled(name))
    return scope


def _declare(scope: Scope, body: Iterable[ast.AST]) -> None:
    names: list[str] = []
    for found in own_nodes(body):
        if isinstance(found, ast.Global | ast.Nonlocal):
            declared = scope.globals if isinstance(found, ast.Global) else scope.nonlocals
            declared.update(map(scope.mangled, found.names))
        else:
            names += map(scope.mangled, _bound_by(found))
    for name in names:
        if name not in scope.globals and name not in scope.nonlocals:
            scope.declare(name)


def own_nodes(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Yields the nodes of a body in source order, except those inside nested functions, classes and comprehensions;
    each `:=` inside a comprehension is included."""
    stack = list(body)[::-1]
    while stack:
        node = stack.pop()
        yield node
        if isinstance(node, FunctionNode):
            arguments = node.args
            children: list[ast.AST] = [*node.decorator_list, *arguments.defaults]
            children += [default for default in arguments.kw_defaults if default is not None]
        elif isinstance(node, ast.Lambda):
            children = [*node.args.defaults, *[d for d in node.args.kw_defaults if d is not None]]
        elif isinstance(node, ast.ClassDef):
            children = [*node.decorator_list, *node.bases]
        elif isinstance(node, Comprehension):
            children = [n for n in _outside_lambdas(node) if isinstance(n, ast.NamedExpr)]
        else:
            children = list(ast.iter_child_nodes(node))
        stack.extend(reversed(children))


def _outside_lambdas(node: ast.AST) -> Iterator[ast.AST]:
    """Yields the nodes of an expression but those inside lambdas, whose `:=` bind names of theirs."""
    stack = [node]
    while stack:
        found = stack.pop()
        yield found
        if not isinstance(found, ast.Lambda):
            stack.extend(ast.iter_child_nodes(found))


def _bound_by(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        yield node.id
    elif isinstance(node, FunctionNode | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.Import | ast.ImportFrom):
        yield from map(bound_name, node.names)
    elif (isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar)) and node.name:
        yield node.name
    elif isinstance(node, ast.MatchMapping) and node.rest:
        yield node.rest


def has_yield(body: Iterable[ast.AST]) -> bool:
    """Returns True for the body of a generator function."""
    return any(isinstance(found, ast.Yield | ast.YieldFrom) for found in own_nodes(body))

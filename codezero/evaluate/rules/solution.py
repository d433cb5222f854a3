"""The input of the rules: a parsed completion, and what the tests of its task call and expect."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeGuard

from codezero.tasks.testcases import MAX_SOURCE_CHARS, FunctionNode, StdinExample, TestSuite, bound_name, parse_source
from codezero.types import Task, TaskOrigin

SCOPED_EXPRESSIONS = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
BUILTINS = frozenset(dir(builtins))
STDIN_NAMES = frozenset({"input", "open", "stdin", "fileinput", "__stdin__", "read"})
"""Names by which a program reads its input."""

MAX_DEPTH = 150
"""The deepest nesting of a syntax tree that is read: recursion, as in unparsing, takes some five frames per level of
CPython's 1,000. Programs that people write stay below 40."""
MAX_NODES = 8_000
"""The most nodes of a solution's syntax tree: ordinary code of 20,000 characters has about 6,000, and code that is
written to be slow to read has 30,000."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleScore:
    """The score of one rule for a solution."""

    score: float
    """The score from 0 (broken) to 1 (kept)."""
    reason: str = ""
    """The reason for a score below 1, in one line; untrusted text in part."""


KEPT = RuleScore(score=1.0)


def broken(reason: str, score: float = 0.0) -> RuleScore:
    """Returns the score of a broken rule. Unprintable characters in the reason become question marks, and it
    is cut to 200 characters."""
    line = "".join(char if char.isprintable() else "?" for char in reason)
    return RuleScore(score=score, reason=line if len(line) <= 200 else line[:199] + "…")


def depth_of(tree: ast.AST) -> int:
    """Returns the depth of a syntax tree, found without recursion."""
    deepest, stack = 0, [(tree, 1)]
    while stack:
        node, depth = stack.pop()
        deepest = max(deepest, depth)
        stack.extend((child, depth + 1) for child in ast.iter_child_nodes(node))
    return deepest


def read(source: str, max_nodes: int = MAX_NODES) -> ast.Module | str:
    """Returns the syntax tree of Python source, or the reason why the rules do not read it."""
    if len(source) > MAX_SOURCE_CHARS:
        return f"the code is longer than {MAX_SOURCE_CHARS:,} characters"
    tree = parse_source(source)
    if tree is None:
        return "the code is not valid Python"
    nodes = list(ast.walk(tree))
    if len(nodes) > max_nodes:
        return f"the code has more than {max_nodes:,} syntax nodes"
    if depth_of(tree) > MAX_DEPTH:
        return f"the code is nested deeper than {MAX_DEPTH} levels"
    constants = (node.value for node in nodes if isinstance(node, ast.Constant))
    if any(isinstance(value, int) and value.bit_length() > 10_000 for value in constants):
        return "the code holds a number of more than 3,000 digits"  # CPython refuses to print one
    return tree


def printed(node: ast.AST) -> str:
    """Returns the source of a tree that `read` accepted in a uniform layout; empty if CPython cannot print it."""
    try:
        return ast.unparse(node)
    except ValueError:  # some f-strings
        return ""


def own_nodes(function: ast.AST) -> Iterator[ast.AST]:
    """Yields the nodes of a function's body that run with it, without those inside nested functions and classes."""
    stack: list[ast.AST] = list(getattr(function, "body", []))
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, FunctionNode | ast.ClassDef | ast.Lambda):
            stack.extend(ast.iter_child_nodes(node))


def without_docstrings(tree: ast.Module) -> Iterator[ast.AST]:
    """Yields all nodes but statements that are a bare constant, such as docstrings, which do nothing."""
    stack: list[ast.AST] = [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue
        yield node
        stack.extend(ast.iter_child_nodes(node))


@dataclass(frozen=True, kw_only=True)
class Requirements:
    """The calls of a task's tests, and the answers that they expect."""

    calls: dict[str, list[ast.Call]] = field(default_factory=dict)
    """Calls by name, for names that the tests neither define nor import and that are not builtins."""
    builtin_calls: dict[str, list[ast.Call]] = field(default_factory=dict)
    """Calls of builtins by name, if no test calls anything else: MBPP has tests of a function named `sum`."""
    pairs: list[tuple[ast.Call, ast.expr]] = field(default_factory=list)
    """(call, expected value) of each test of the form `f(...) == value`, or `not f(...)`."""
    names: frozenset[str] = frozenset()
    """Every name that the tests mention."""
    statements: frozenset[str] = frozenset()
    """The tests, each in the layout of `printed`."""
    examples: tuple[StdinExample, ...] = ()
    """The input and expected output of a program's examples."""
    is_program: bool = False
    """True if the task asks for a program that reads stdin and prints, and not for a function."""

    @property
    def functions(self) -> dict[str, list[ast.Call]]:
        """All calls by the name of the function."""
        return self.calls | self.builtin_calls

    @property
    def wanted(self) -> frozenset[str] | None:
        """The names that `normalise.reachable` keeps; None if the tests could not be read."""
        return None if not self.names and not self.is_program else self.names


def requirements_of(origin: TaskOrigin, suite: TestSuite) -> Requirements:
    """Returns what the tests of a task of this origin ask for; nothing if they cannot be read."""
    if suite.examples:
        return Requirements(is_program=True, examples=suite.examples)
    is_program = origin is TaskOrigin.CODE_CONTESTS and not suite.statements  # a peer may give any origin
    source = "\n".join([suite.setup, *suite.statements])
    tree = read(source, max_nodes=MAX_SOURCE_CHARS)
    if isinstance(tree, str):
        return Requirements(is_program=is_program)
    own = {name for node in ast.walk(tree) for name in bound_names(node)}
    calls: dict[str, list[ast.Call]] = {}
    builtin_calls: dict[str, list[ast.Call]] = {}
    for statement in tree.body:
        nodes = list(ast.walk(statement))
        called = [(n.func.id, n) for n in nodes if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)]
        bound = own | {node.arg for node in nodes if isinstance(node, ast.arg)}
        for name, call in called:
            if name not in bound:
                (builtin_calls if name in BUILTINS else calls).setdefault(name, []).append(call)
    if calls:
        builtin_calls = {}
    targets = calls.keys() | builtin_calls.keys()
    return Requirements(
        calls=calls,
        builtin_calls=builtin_calls,
        pairs=[pair for node in ast.walk(tree) if isinstance(node, ast.Assert) for pair in _pair(node.test, targets)],
        names=frozenset(node.id for node in ast.walk(tree) if isinstance(node, ast.Name)),
        statements=frozenset(printed(statement) for statement in tree.body),
        is_program=is_program,
    )


def bound_names(node: ast.AST) -> Iterator[str]:
    """Yields the names that this node itself binds."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id
    elif isinstance(node, FunctionNode | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.Import | ast.ImportFrom):
        yield from map(bound_name, node.names)


def is_main_guard(statement: ast.stmt) -> TypeGuard[ast.If]:
    """Returns whether this is `if __name__ == "__main__"`."""
    match statement:
        case ast.If(
            test=ast.Compare(left=ast.Name(id="__name__"), ops=[ast.Eq()], comparators=[ast.Constant(value="__main__")])
        ):
            return True
    return False


def _may_rebind_name(node: ast.AST) -> bool:
    """Returns whether this may give the module another `__name__`."""
    if isinstance(node, ast.Name):
        return node.id == "__name__" and not isinstance(node.ctx, ast.Load)
    return not isinstance(node, ast.Attribute | ast.Constant) and "__name__" in vars(node).values()


def _pair(test: ast.expr, targets: set[str]) -> Iterator[tuple[ast.Call, ast.expr]]:
    negated = isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)
    if negated or isinstance(test, ast.Call):
        call = _target_call(test, targets)
        if call is not None and (test is call or negated):
            yield call, ast.Constant(value=not negated)
        elif call is not None and isinstance(test, ast.Call) and len(test.args) > 1:  # same(f(...), value)
            yield from _sides(test.args[0], test.args[1], targets)
    elif isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq | ast.Is):
        yield from _sides(test.left, test.comparators[0], targets)


def _sides(left: ast.expr, right: ast.expr, targets: set[str]) -> Iterator[tuple[ast.Call, ast.expr]]:
    for ours, theirs in ((left, right), (right, left)):
        call = _target_call(ours, targets)
        if call is not None and _target_call(theirs, targets) is None:
            yield call, theirs
            return


def _target_call(node: ast.AST, targets: set[str]) -> ast.Call | None:
    """Returns the first call of a target, or of a method of its result, as in `Solution().f(...)`; None without one."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Call):
            func = inner.func
            if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Call):
                func = func.value.func
            if isinstance(func, ast.Name) and func.id in targets:
                return inner
    return None


@dataclass(frozen=True, kw_only=True)
class Solution:
    """A parsed completion, with its task and what the tests ask for. It is never executed."""

    text: str
    code: str
    tree: ast.Module
    task: Task
    requirements: Requirements

    @cached_property
    def body(self) -> list[ast.stmt]:
        """The statements of the module's top level, without those that only run as a program if the tests call
        functions."""
        if self.requirements.is_program or any(map(_may_rebind_name, ast.walk(self.tree))):
            return self.tree.body
        return [part for one in self.tree.body for part in (one.orelse if is_main_guard(one) else [one])]

    @cached_property
    def defined(self) -> dict[str, ast.stmt]:
        """The statements of the module's top level that define or assign names, by name; the last one for each."""
        found: dict[str, ast.stmt] = {}
        for part in parts_of(self._module):
            if isinstance(part, ast.stmt):
                found.update((name, part) for node in _expressions(part) for name in bound_names(node))
        return found

    @cached_property
    def targets(self) -> dict[str, FunctionNode]:
        """The functions of the solution that the tests call, by name."""
        return {
            name: node
            for name in self.requirements.functions
            if isinstance(node := self.defined.get(name), FunctionNode)
        }

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """All nodes of `body` but docstrings and other bare constants."""
        return list(without_docstrings(self._module))

    @property
    def _module(self) -> ast.Module:
        return ast.Module(body=self.body, type_ignores=[])


def parts_of(scope: ast.AST) -> Iterator[ast.AST]:
    """Yields the statements that run in a scope, and the clauses of `try` and `match` that contain some, in the order
    of the source."""
    for child in ast.iter_child_nodes(scope):
        if isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
            yield child
            if not isinstance(child, FunctionNode | ast.ClassDef):
                yield from parts_of(child)


def _expressions(statement: ast.stmt) -> Iterator[ast.AST]:
    """Yields the statement and its expressions that run in its scope, without those of inner statements."""
    yield statement
    if isinstance(statement, FunctionNode | ast.ClassDef):
        return
    stack = [child for child in ast.iter_child_nodes(statement) if not isinstance(child, ast.stmt)]
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, SCOPED_EXPRESSIONS):
            stack.extend(child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.stmt))

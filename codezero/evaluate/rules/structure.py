"""Rules of the family structure: the code can run, fits the calls of the tests, and uses input and output properly."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pyflakes import checker, messages

from codezero.evaluate.rules.solution import KEPT, STDIN_NAMES, RuleScore, Solution, broken, own_nodes
from codezero.runtime.amounts import counted
from codezero.tasks.testcases import UNPARSEABLE, FunctionNode

_UNCHECKABLE = (*UNPARSEABLE, AssertionError)
"""Exceptions of pyflakes, which parses annotations in quotes and asserts that future imports are at the top."""
_STDOUT_NAMES = frozenset({"print", "stdout", "__stdout__", "write", "writelines"})


def defines(solution: Solution) -> RuleScore | None:
    """Scores whether every name that the tests call is bound at the module's top level."""
    if not solution.requirements.calls:
        return None
    missing = [name for name in solution.requirements.calls if name not in solution.defined]
    if not missing:
        return KEPT
    return broken(f"the tests call {missing[0]}, which the code does not define at its top level")


def arity(solution: Solution) -> RuleScore | None:
    """Scores whether each call of the tests fits the parameters of its function."""
    calls = solution.requirements.functions
    for name, function in solution.targets.items():
        if function.decorator_list:
            continue  # what the decorator returns may take anything
        for call in calls[name]:
            if not _accepts(function, call):
                given, taken = len(call.args) + len(call.keywords), len(list(parameters(function)))
                takes = f"{name} takes {counted(taken, 'parameter')}"
                return broken(f"line {function.lineno}: {takes}; the tests pass {given}")
    return KEPT if solution.targets else None


def parameters(function: FunctionNode) -> Iterator[ast.arg]:
    """Yields every parameter, * and ** included."""
    arguments = function.args
    yield from (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    yield from (arg for arg in (arguments.vararg, arguments.kwarg) if arg is not None)


def _accepts(function: FunctionNode, call: ast.Call) -> bool:
    """Returns whether the call's arguments fit the parameters; true for a call with * or **."""
    if any(isinstance(arg, ast.Starred) for arg in call.args) or any(k.arg is None for k in call.keywords):
        return True
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    if len(call.args) > len(positional) and arguments.vararg is None:
        return False
    given = {p.arg for p in positional[: len(call.args)]} | {k.arg for k in call.keywords}
    known = {p.arg for p in [*positional, *arguments.kwonlyargs]}
    required = {p.arg for p in positional[: len(positional) - len(arguments.defaults)]} | {
        p.arg for p, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if default is None
    }
    return required <= given and (arguments.kwarg is not None or given <= known)


def returns(solution: Solution) -> RuleScore | None:
    """Scores whether each function that the tests call returns or yields a value on some path."""
    for name, function in solution.targets.items():
        gives = (
            isinstance(node, ast.Yield | ast.YieldFrom) or (isinstance(node, ast.Return) and node.value is not None)
            for node in own_nodes(function)
        )
        if not any(gives):
            return broken(f"line {function.lineno}: {name} returns a value on no path")
    return KEPT if solution.targets else None


def names(solution: Solution) -> RuleScore:
    """Scores whether every name is defined somewhere, by pyflakes."""
    try:
        found = checker.Checker(solution.tree).messages
    except _UNCHECKABLE:
        return broken("the names of the code cannot be looked up")
    finally:
        _forget_marks(solution)
    for message in found:
        if isinstance(message, messages.UndefinedName | messages.UndefinedLocal):
            return broken(f"line {message.lineno}: {message.message_args[0]} is not defined")
    return KEPT


def _forget_marks(solution: Solution) -> None:
    """Removes what pyflakes notes on nodes without fields, such as `ast.Load()`, of which CPython has one each for all
    programs: by a note the next program would have this one's tree."""
    for node in solution.nodes:
        if not node._fields:
            vars(node).clear()


def io(solution: Solution) -> RuleScore | None:
    """Scores whether a program reads stdin and prints, and a function neither asks for input nor only prints."""
    if solution.requirements.is_program:
        used = set(_called_or_named(solution.nodes))
        if not used & STDIN_NAMES:
            return broken("the program does not read its input")
        return KEPT if used & _STDOUT_NAMES else broken("the program prints nothing")
    if not solution.targets:
        return None
    for name, function in solution.targets.items():
        nodes = list(own_nodes(function))
        calls = [n for n in nodes if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)]
        asks, prints = ([c for c in calls if c.func.id == called] for called in ("input", "print"))  # type: ignore
        if asks and "input" not in solution.defined:
            return broken(f"line {asks[0].lineno}: {name} waits for input() instead of using its parameters")
        if prints and not any(isinstance(n, ast.Return | ast.Yield | ast.YieldFrom) for n in nodes):
            return broken(f"line {prints[0].lineno}: {name} prints its answer instead of returning it")
    return KEPT


def _called_or_named(nodes: list[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.alias):
            yield node.name

"""Functions, classes and imports."""

from __future__ import annotations

import ast
import sys
from typing import Any

from codezero.evaluate.dryrun.budget import Unsupported, meter
from codezero.evaluate.dryrun.class_kinds import ABC, make_class, names_of_body
from codezero.evaluate.dryrun.compiler import BREAK, CONTINUE, STATEMENTS, Expression, Statement, Unit, refusal_of
from codezero.evaluate.dryrun.generators import driven, generator_block
from codezero.evaluate.dryrun.library import find_module, import_from
from codezero.evaluate.dryrun.scope import CompileError, class_scope, function_scope, has_yield
from codezero.evaluate.dryrun.values import UNBOUND, Code, Frame, Function, Opaque
from codezero.tasks.testcases import FunctionNode, bound_name


def function_maker(unit: Unit, node: FunctionNode | ast.Lambda, name: str) -> Expression:
    """Returns a closure that makes a function. It evaluates the defaults; the body is translated once, here."""
    arguments = node.args
    inner = unit.within(function_scope(node, unit.scope))
    slots = inner.scope.slots
    params = [*arguments.posonlyargs, *arguments.args]
    code = Code(
        name,
        tuple(inner.scope.mangled(param.arg) for param in params),
        len(arguments.posonlyargs),
        arguments.vararg is not None,
        tuple(inner.scope.mangled(param.arg) for param in arguments.kwonlyargs),
        arguments.kwarg is not None,
    )
    code.judging = unit.judging
    if isinstance(node, ast.Lambda):
        value = inner.expression(node.body)
        code.body = lambda frame: (value(frame),)
    elif has_yield(node.body):
        code.is_generator = True
        code.body = driven(generator_block(inner, node.body), code.judging)
    else:
        code.body = inner.block(node.body)
    used = len(params) + code.vararg + len(code.keyword_only) + code.kwarg
    code.pad = (UNBOUND,) * (len(slots) - used)
    code.cost = 1 + (len(slots) >> 3)
    defaults = unit.expressions(arguments.defaults)
    keyword_defaults = {
        inner.scope.mangled(param.arg): unit.expression(default)
        for param, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        if default is not None
    }

    cost = 1 + (len(defaults) >> 2) + len(keyword_defaults)

    def make(frame: Frame) -> Function:
        meter.left -= cost
        if meter.left < 0:
            meter.refill()
        return Function(
            code,
            frame,
            tuple(default(frame) for default in defaults),
            {key: default(frame) for key, default in keyword_defaults.items()},
        )

    return make


def _annotations(unit: Unit, node: ast.FunctionDef) -> list[Expression]:
    """Translates annotations. CPython up to 3.13 evaluates them at the `def`, where a missing import is an error."""
    if unit.future_annotations:
        return []
    arguments = node.args
    params = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    params += [param for param in (arguments.vararg, arguments.kwarg) if param is not None]
    nodes = [param.annotation for param in params if param.annotation is not None]
    return unit.expressions([*nodes, *([node.returns] if node.returns is not None else [])])


def _function(unit: Unit, node: ast.FunctionDef) -> Statement:
    if getattr(node, "type_params", None):  # from Python 3.12 on
        return refusal_of("a parameter of types")
    make, store = function_maker(unit, node, node.name), unit.store(node.name)
    decorators, annotations = unit.expressions(node.decorator_list), _annotations(unit, node)
    text = ast.get_docstring(node, clean=False)
    is_plain = text is None or "\n" not in text or sys.version_info < (3, 13)  # which takes the indentation off

    def define(frame: Frame) -> None:
        applied = [decorator(frame) for decorator in decorators]
        value: Any = make(frame)
        for annotation in annotations:
            annotation(frame)
        if is_plain:
            value.attrs["__doc__"] = text
        for decorator in reversed(applied):
            value = decorator(value)
        store(frame, value)

    return define


def _class(unit: Unit, node: ast.ClassDef) -> Statement:
    if getattr(node, "type_params", None):
        return refusal_of("a parameter of types")
    inner = unit.within(class_scope(node, unit.scope))
    body, store = inner.block(node.body), unit.store(node.name)
    bases, decorators = unit.expressions(node.bases), unit.expressions(node.decorator_list)
    keywords = [(keyword.arg, unit.expression(keyword.value)) for keyword in node.keywords]
    name, trusted, qualname = node.name, unit.is_test or unit.is_library, unit.scope.prefix + node.name

    def define(frame: Frame) -> None:
        applied = [decorator(frame) for decorator in decorators]
        parents = [part(frame) for part in bases]
        for keyword, part in keywords:
            if keyword != "metaclass" or part(frame) is not ABC:
                raise Unsupported("a class with keywords")
            parents.append(ABC)
        namespace = names_of_body(parents)
        annotated: dict[str, bool] = {}
        own: Frame = [frame, namespace, None, annotated]
        body(own)
        value: Any = make_class(name, parents, dict(namespace), annotated, trusted, qualname)
        own[2] = value
        for decorator in reversed(applied):
            value = decorator(value)
        store(frame, value)

    return define


def _return(unit: Unit, node: ast.Return) -> Statement:
    if unit.scope.kind != "function":
        raise CompileError("'return' outside function")
    if node.value is None:
        nothing = (None,)
        return lambda frame: nothing
    value = unit.expression(node.value)
    return lambda frame: (value(frame),)


def _import(unit: Unit, node: ast.Import) -> Statement:
    stores = [
        (alias.name if alias.asname else bound_name(alias), alias.name, unit.store(bound_name(alias)))
        for alias in node.names
    ]

    def load(frame: Frame) -> None:
        for name, full_name, store in stores:
            if full_name != name:
                find_module(full_name)
            store(frame, find_module(name))

    return load


def _import_from(unit: Unit, node: ast.ImportFrom) -> Statement:
    module = node.module or ""
    if node.level:
        return refusal_of("a relative import")
    if module == "__future__":
        return lambda frame: None
    if any(alias.name == "*" for alias in node.names):
        return _import_all(unit, module)
    stores = [(alias.name, unit.store(bound_name(alias))) for alias in node.names]

    def load(frame: Frame) -> None:
        for name, store in stores:
            store(frame, import_from(module, name))

    return load


def _import_all(unit: Unit, module: str) -> Statement:
    names = unit.names

    def load(frame: Frame) -> None:
        found = find_module(module)
        if isinstance(found, Opaque):
            raise Unsupported(f"everything of {module}")
        for name in found.public_names():
            names[name] = found.member(name)

    return load


def _pass(unit: Unit, node: ast.stmt) -> Statement:
    return lambda frame: None


def _break(unit: Unit, node: ast.Break) -> Statement:
    if not unit.loops:
        raise CompileError("'break' outside loop")
    return lambda frame: BREAK


def _continue(unit: Unit, node: ast.Continue) -> Statement:
    if not unit.loops:
        raise CompileError("'continue' not properly in loop")
    return lambda frame: CONTINUE


def _expression(unit: Unit, node: ast.Expr) -> Statement:
    if isinstance(node.value, ast.Constant):
        return lambda frame: None
    if isinstance(node.value, ast.Yield | ast.YieldFrom) and unit.scope.kind != "function":
        raise CompileError("'yield' outside function")
    value = unit.expression(node.value)

    def evaluate(frame: Frame) -> None:
        value(frame)

    return evaluate


STATEMENTS.update(
    {
        ast.FunctionDef: _function,
        ast.ClassDef: _class,
        ast.Return: _return,
        ast.Import: _import,
        ast.ImportFrom: _import_from,
        ast.Pass: _pass,
        ast.Global: _pass,
        ast.Nonlocal: _pass,
        ast.Break: _break,
        ast.Continue: _continue,
        ast.Expr: _expression,
    }
)

"""Bodies of generator functions: statements that contain a `yield` run as host generators.

A `yield` is interpreted as a whole statement, or as the whole value of an assignment or a return.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Generator, Sequence
from typing import Any

from codezero.evaluate.dryrun.budget import meter
from codezero.evaluate.dryrun.compiler import BREAK, CONTINUE, Expression, Unit
from codezero.evaluate.dryrun.displays import source_of
from codezero.evaluate.dryrun.errors import PROGRAM_ERRORS, check_caught
from codezero.evaluate.dryrun.flow import Handler, find_handler, loop_body
from codezero.evaluate.dryrun.functions import BUILTIN_NAMES
from codezero.evaluate.dryrun.measure import kept
from codezero.evaluate.dryrun.scope import has_yield
from codezero.evaluate.dryrun.targets import target_store
from codezero.evaluate.dryrun.values import Frame

Yielding = Callable[[Frame], Generator[Any, Any, Any]]


def driven(block: Callable[..., Generator[Any, Any, Any]], judging: int | None) -> Callable[..., Any]:
    """Wraps the body of a generator: it counts as a call in progress while it runs, as in CPython, and `meter.judging`
    is its own."""

    def drive(*args: Any) -> Generator[Any, Any, Any]:
        body = block(*args)
        resume: Any = body.send
        given: Any = None
        while True:
            meter.enter()
            before = meter.judging
            meter.judging = before if judging is None else judging
            try:
                item = resume(given)
            except StopIteration as end:
                return None if end.value is None else end.value[0]
            finally:
                meter.depth -= 1
                meter.judging = before
            try:
                given = yield item
                resume = body.send
            except PROGRAM_ERRORS as error:
                given, resume = error, body.throw

    return drive


def generator_block(unit: Unit, nodes: Sequence[ast.stmt]) -> Yielding:
    """Translates a sequence of statements, some of which yield."""
    steps: list[tuple[bool, Any]] = []
    for node in nodes:
        translate = YIELDING_STATEMENTS.get(type(node)) if _yields(node) else None
        steps.append((True, translate(unit, node)) if translate else (False, unit.statement(node)))

    def run(frame: Frame) -> Generator[Any, Any, Any]:
        for is_yielding, step in steps:
            result = (yield from step(frame)) if is_yielding else step(frame)
            if result is not None:
                return result
        return None

    return run


def _yields(node: ast.stmt) -> bool:
    """Returns False too for a `yield` inside an expression, which is not interpreted."""
    if isinstance(node, ast.Expr | ast.Assign | ast.Return):
        return isinstance(node.value, ast.Yield | ast.YieldFrom)
    return has_yield([node])


def _value(unit: Unit, node: Any) -> Yielding:
    """Translates `yield x` or `yield from x`."""
    if isinstance(node, ast.YieldFrom):
        source = unit.expression(node.value)

        def delegate(frame: Frame) -> Generator[Any, Any, Any]:
            items = source(frame)
            return (yield from kept(items))

        return delegate
    value: Expression = unit.expression(node.value) if node.value else lambda frame: None

    def hand_out(frame: Frame) -> Generator[Any, Any, Any]:
        return (yield value(frame))

    return hand_out


def _expression(unit: Unit, node: ast.Expr) -> Yielding:
    value = _value(unit, node.value)

    def run(frame: Frame) -> Generator[Any, Any, Any]:
        yield from value(frame)

    return run


def _assign(unit: Unit, node: ast.Assign) -> Yielding:
    value = _value(unit, node.value)
    stores = [target_store(unit, target) for target in node.targets]

    def run(frame: Frame) -> Generator[Any, Any, Any]:
        new = yield from value(frame)
        for store in stores:
            store(frame, new)

    return run


def _return(unit: Unit, node: ast.Return) -> Yielding:
    value = _value(unit, node.value)

    def run(frame: Frame) -> Generator[Any, Any, Any]:
        return ((yield from value(frame)),)

    return run


def _if(unit: Unit, node: ast.If) -> Yielding:
    test = unit.expression(node.test)
    body, orelse = generator_block(unit, node.body), generator_block(unit, node.orelse)

    def run(frame: Frame) -> Generator[Any, Any, Any]:
        return (yield from (body if test(frame) else orelse)(frame))

    return run


def _while(unit: Unit, node: ast.While) -> Yielding:
    test, body = unit.expression(node.test), loop_body(unit, node.body, generator_block)
    orelse = generator_block(unit, node.orelse)

    def run(frame: Frame) -> Generator[Any, Any, Any]:
        while test(frame):
            meter.work(0)
            result = yield from body(frame)
            if result is BREAK:
                return None
            if result is not None and result is not CONTINUE:
                return result
        return (yield from orelse(frame))

    return run


def _for(unit: Unit, node: ast.For) -> Yielding:
    source, store = source_of(unit, node.iter), target_store(unit, node.target)
    body, orelse = loop_body(unit, node.body, generator_block), generator_block(unit, node.orelse)

    def run(frame: Frame) -> Generator[Any, Any, Any]:
        for item in kept(source(frame)):
            meter.work(0)
            store(frame, item)
            result = yield from body(frame)
            if result is BREAK:
                return None
            if result is not None and result is not CONTINUE:
                return result
        return (yield from orelse(frame))

    return run


def _may_catch_exit(handler: ast.ExceptHandler) -> bool:
    """Returns True unless the handler is for builtin exceptions alone that do not include GeneratorExit."""
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    names = {kind.id if isinstance(kind, ast.Name) else "" for kind in kinds}
    return not names <= BUILTIN_NAMES - {"BaseException", "GeneratorExit"}


def _try(unit: Unit, node: ast.Try) -> Yielding:
    """Translates a try statement. A generator that is freed or closed half-way leaves its case unknown and does not run
    its `finally` blocks or handlers of GeneratorExit, since they would run at an arbitrary later time."""
    body, orelse, final = (generator_block(unit, part) for part in (node.body, node.orelse, node.finalbody))
    handlers = [Handler(unit, handler) for handler in node.handlers]
    catches_exit = any(map(_may_catch_exit, node.handlers))
    blocks = dict(zip(handlers, [generator_block(unit, handler.body) for handler in node.handlers], strict=True))

    def guarded(frame: Frame) -> Generator[Any, Any, Any]:
        try:
            result = yield from body(frame)
        except PROGRAM_ERRORS as error:
            handler = find_handler(handlers, frame, error)
            if handler is None:
                raise
            handling = handler.enter(frame, error)
            try:
                return (yield from blocks[handler](frame))
            finally:
                handler.leave(frame, handling)
        return (yield from orelse(frame)) if result is None else result

    def run(frame: Frame) -> Generator[Any, Any, Any]:
        case = meter.case
        try:
            result = yield from guarded(frame)
        except GeneratorExit:
            if (node.finalbody or catches_exit) and meter.case == case:  # not garbage of an earlier case
                meter.unsure = "a generator dropped in a try statement"
            raise
        except PROGRAM_ERRORS as error:
            check_caught(error)
            handling = meter.handling
            handling.append(error)
            try:
                last = yield from final(frame)
            finally:
                handling.pop()
            if last is not None:
                return last
            raise
        last = yield from final(frame)
        return result if last is None else last

    return run


YIELDING_STATEMENTS: dict[type, Callable[[Unit, Any], Yielding]] = {
    ast.Expr: _expression,
    ast.Assign: _assign,
    ast.Return: _return,
    ast.If: _if,
    ast.While: _while,
    ast.For: _for,
    ast.Try: _try,
}

"""Control flow: if, loops, try, raise, assert."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from codezero.evaluate.dryrun.budget import Stop, meter
from codezero.evaluate.dryrun.classes import Class
from codezero.evaluate.dryrun.compiler import BREAK, CONTINUE, STATEMENTS, Statement, Unit
from codezero.evaluate.dryrun.displays import source_of
from codezero.evaluate.dryrun.errors import PROGRAM_ERRORS, Raised, check_caught, throwable
from codezero.evaluate.dryrun.expressions import judged
from codezero.evaluate.dryrun.instance_checks import is_instance
from codezero.evaluate.dryrun.measure import iterate
from codezero.evaluate.dryrun.operators import COMPARE
from codezero.evaluate.dryrun.targets import delete_name, target_store
from codezero.evaluate.dryrun.text import repr_of
from codezero.evaluate.dryrun.type_objects import TypeValue
from codezero.evaluate.dryrun.values import Frame, Opaque, charged

_PACKAGE = __name__.rpartition(".")[0]


def _if(unit: Unit, node: ast.If) -> Statement:
    test, body = unit.expression(node.test), unit.block(node.body)
    if not node.orelse:
        return lambda frame: body(frame) if test(frame) else None
    orelse = unit.block(node.orelse)
    return lambda frame: body(frame) if test(frame) else orelse(frame)


def loop_body(unit: Unit, nodes: Sequence[ast.stmt], block: Callable[..., Any] = Unit.block) -> Any:
    """Returns a translated body of a loop; `block` translates statements."""
    unit.loops += 1
    try:
        return block(unit, nodes)
    finally:
        unit.loops -= 1


def _while(unit: Unit, node: ast.While) -> Statement:
    test, body = unit.expression(node.test), loop_body(unit, node.body)
    orelse = unit.block(node.orelse) if node.orelse else None

    def repeat(frame: Frame) -> Any:
        while test(frame):
            meter.left -= 1
            if meter.left < 0:
                meter.refill()
            result = body(frame)
            if result is not None:
                if result is BREAK:
                    return None
                if result is not CONTINUE:
                    return result
        return orelse(frame) if orelse is not None else None

    return repeat


def _for(unit: Unit, node: ast.For) -> Statement:
    source, store = source_of(unit, node.iter), target_store(unit, node.target)
    body = loop_body(unit, node.body)
    orelse = unit.block(node.orelse) if node.orelse else None

    def repeat(frame: Frame) -> Any:
        for item in iterate(source(frame)):
            meter.left -= 1
            if meter.left < 0:
                meter.refill()
            store(frame, item)
            result = body(frame)
            if result is not None:
                if result is BREAK:
                    return None
                if result is not CONTINUE:
                    return result
        return orelse(frame) if orelse is not None else None

    return repeat


class Handler:
    """One `except` clause."""

    def __init__(self, unit: Unit, node: ast.ExceptHandler) -> None:
        self._kind = unit.expression(node.type) if node.type else None
        self._store = unit.store(node.name) if node.name else None
        self._forget = delete_name(unit, node.name) if node.name else None

    def matches(self, frame: Frame, error: BaseException) -> bool:
        return self._kind is None or _is_error(error, self._kind(frame))

    def enter(self, frame: Frame, error: BaseException) -> list[BaseException]:
        """Starts the handler. Returns the list of handled errors for `leave`: a generator of an earlier case, whose
        list is another, may be collected in a later one."""
        if any(callable(arg) and not type(arg).__module__.startswith(_PACKAGE) for arg in error.args):
            raise Stop("an error of the host")  # no known one holds a host function or type
        # Tracebacks are not used, and they keep every frame alive.
        error.__traceback__ = error.__context__ = error.__cause__ = None
        meter.handling.append(error)
        if self._store:
            self._store(frame, error.instance if isinstance(error, Raised) else error)
        return meter.handling

    def leave(self, frame: Frame, handling: list[BaseException]) -> None:
        handling.pop()
        if self._forget:
            with suppress(NameError):  # the handler itself may have deleted it
                self._forget(frame)


def _is_error(error: BaseException, kind: Any) -> bool:
    """Returns True if `except kind` catches the error. Raises TypeError if `kind` is not an exception class or tuple of
    such."""
    value = error.instance if isinstance(error, Raised) else error
    return any(is_instance(value, _error_class(one)) for one in charged(kind if type(kind) is tuple else (kind,)))


def _error_class(kind: Any) -> Any:
    """Returns `kind` if it is an exception class, and raises TypeError if not."""
    if type(kind) is Opaque:
        kind.refuse()
    if type(kind) is TypeValue and issubclass(kind.host, BaseException):
        return kind
    if type(kind) is Class and kind.error is not None:
        return kind
    raise TypeError("catching classes that do not inherit from BaseException is not allowed")


def find_handler(handlers: list[Handler], frame: Frame, error: BaseException) -> Handler | None:
    """Returns the first handler that matches, if any. Raises Stop for an error of the interpreter."""
    check_caught(error)
    return next((handler for handler in handlers if handler.matches(frame, error)), None)


def _try(unit: Unit, node: ast.Try) -> Statement:
    body = unit.block(node.body)
    handlers = [Handler(unit, handler) for handler in node.handlers]
    blocks = dict(zip(handlers, [unit.block(handler.body) for handler in node.handlers], strict=True))
    orelse = unit.block(node.orelse) if node.orelse else None

    def guarded(frame: Frame) -> Any:
        try:
            result = body(frame)
        except PROGRAM_ERRORS as error:
            handler = find_handler(handlers, frame, error)
            if handler is None:
                raise
            handling = handler.enter(frame, error)
            try:
                return blocks[handler](frame)
            finally:
                handler.leave(frame, handling)
        return orelse(frame) if result is None and orelse is not None else result

    if not node.finalbody:
        return guarded
    final = unit.block(node.finalbody)

    def with_final(frame: Frame) -> Any:
        try:
            result = guarded(frame)
        except PROGRAM_ERRORS as error:
            check_caught(error)
            handling = meter.handling
            handling.append(error)
            try:
                last = final(frame)
            finally:
                handling.pop()
            if last is not None:
                return last
            raise
        last = final(frame)
        return result if last is None else last

    return with_final


def _raise(unit: Unit, node: ast.Raise) -> Statement:
    if node.exc is None:

        def raise_again(frame: Frame) -> None:
            if not meter.handling:
                raise RuntimeError("No active exception to reraise")
            raise meter.handling[-1]

        return raise_again
    error = unit.expression(node.exc)
    cause = unit.expression(node.cause) if node.cause else None

    def raise_error(frame: Frame) -> None:
        value = error(frame)
        if cause is not None:
            cause(frame)
        raise throwable(value)

    return raise_error


class Unequal(AssertionError):
    """A failed assert of a test; its text has both sides of the comparison."""


def _assert(unit: Unit, node: ast.Assert) -> Statement:
    message = unit.expression(node.msg) if node.msg else None
    comparison = node.test
    if unit.is_test and isinstance(comparison, ast.Compare) and len(comparison.ops) == 1:
        return _assert_comparison(unit, comparison)
    test, truth = unit.expression(node.test), judged(unit, bool)

    def check(frame: Frame) -> None:
        if not truth(test(frame)):
            raise AssertionError(*([message(frame)] if message else []))

    return check


_MAX_SHOWN = 60


def _assert_comparison(unit: Unit, node: ast.Compare) -> Statement:
    """Translates `assert a == b` of a test, whose failure shows both values."""
    left, right = unit.expression(node.left), unit.expression(node.comparators[0])
    name = type(node.ops[0]).__name__
    run, truth = judged(unit, COMPARE[name]), judged(unit, bool)

    def check(frame: Frame) -> None:
        a, b = left(frame), right(frame)
        if not truth(run(a, b)):
            raise Unequal(_unequal(name, a, b))

    return check


_SIGNS = {"NotEq": "!=", "Lt": "<", "LtE": "<=", "Gt": ">", "GtE": ">=", "In": "in", "NotIn": "not in", "Is": "is",
          "IsNot": "is not"}  # fmt: skip


def _unequal(operator: str, left: Any, right: Any) -> str:
    if operator == "Eq":
        return f"got {_shown(left)}, expected {_shown(right)}"
    return f"not {_shown(left)} {_SIGNS[operator]} {_shown(right)}"


def _shown(value: Any) -> str:
    try:
        text = repr_of(value)
    except (*PROGRAM_ERRORS, Stop):
        return "something"
    return text if len(text) <= _MAX_SHOWN else text[:_MAX_SHOWN] + "..."


STATEMENTS.update(
    {ast.If: _if, ast.While: _while, ast.For: _for, ast.Try: _try, ast.Raise: _raise, ast.Assert: _assert}
)

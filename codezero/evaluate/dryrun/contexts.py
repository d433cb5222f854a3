"""`with` statements, also those in generators."""

from __future__ import annotations

import ast
from collections.abc import Callable, Generator
from typing import Any

from codezero.evaluate.dryrun.attributes import get_attribute
from codezero.evaluate.dryrun.budget import Unsupported, meter
from codezero.evaluate.dryrun.compiler import STATEMENTS, Statement, Store, Unit
from codezero.evaluate.dryrun.errors import PROGRAM_ERRORS, Raised, check_caught
from codezero.evaluate.dryrun.generators import YIELDING_STATEMENTS, Yielding, generator_block
from codezero.evaluate.dryrun.measure import type_name
from codezero.evaluate.dryrun.methods import METHODS
from codezero.evaluate.dryrun.objects import Instance
from codezero.evaluate.dryrun.targets import target_store
from codezero.evaluate.dryrun.type_values import type_of
from codezero.evaluate.dryrun.values import Frame, Opaque

Exit = Callable[..., Any]


class _Manager:
    """One context manager of a `with` statement, with its target."""

    def __init__(self, unit: Unit, node: ast.withitem) -> None:
        self._value = unit.expression(node.context_expr)
        self._store: Store | None = target_store(unit, node.optional_vars) if node.optional_vars else None

    def enter(self, frame: Frame) -> Exit:
        """Calls `__enter__` and returns the manager's `__exit__`."""
        meter.work(0)
        manager = self._value(frame)
        if type(manager) is Instance:
            for name in ("__enter__", "__exit__"):
                if manager.cls.owner(name) is None:
                    raise TypeError(f"'{type_name(manager)}' object does not support the context manager protocol")
        elif "__exit__" not in METHODS.get(type(manager), ()):
            raise Unsupported(f"with of a {type_name(manager)}")
        leave: Exit = get_attribute(manager, "__exit__")
        value = get_attribute(manager, "__enter__")()
        if self._store:
            self._store(frame, value)
        return leave


def _swallows(leave: Exit, error: BaseException) -> bool:
    """Calls `__exit__` with an error of the program and returns True if that suppresses it. Raises Stop for an error of
    the interpreter, which no manager sees."""
    check_caught(error)
    value = error.instance if isinstance(error, Raised) else error
    meter.handling.append(error)
    try:
        return bool(leave(type_of(value), value, Opaque("a traceback")))
    finally:
        meter.handling.pop()


def _with(unit: Unit, node: ast.With) -> Statement:
    run = unit.block(node.body)
    for item in reversed(node.items):
        run = _managed(_Manager(unit, item), run)
    return run


def _managed(manager: _Manager, body: Statement) -> Statement:
    def run(frame: Frame) -> Any:
        leave = manager.enter(frame)
        try:
            result = body(frame)
        except PROGRAM_ERRORS as error:
            if not _swallows(leave, error):
                raise
            return None
        leave(None, None, None)
        return result

    return run


def _yielding_with(unit: Unit, node: ast.With) -> Yielding:
    run = generator_block(unit, node.body)
    for item in reversed(node.items):
        run = _yielding_managed(_Manager(unit, item), run)
    return run


def _yielding_managed(manager: _Manager, body: Yielding) -> Yielding:
    def run(frame: Frame) -> Generator[Any, Any, Any]:
        leave, case = manager.enter(frame), meter.case
        try:
            result = yield from body(frame)
        except GeneratorExit:
            if meter.case == case:  # as in a try statement
                meter.unsure = "a generator dropped in a with statement"
            raise
        except PROGRAM_ERRORS as error:
            if not _swallows(leave, error):
                raise
            return None
        leave(None, None, None)
        return result

    return run


STATEMENTS[ast.With] = _with
YIELDING_STATEMENTS[ast.With] = _yielding_with

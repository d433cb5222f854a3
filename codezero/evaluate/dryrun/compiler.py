"""Translates a syntax tree to closures: each node becomes a host function of the frame.

The closure of an expression returns its value. That of a statement returns None to continue, or the reason to leave the
block: BREAK, CONTINUE, or a tuple with the returned value. A node that is not interpreted becomes a closure that ends
the case, so that only programs which reach it are unknown.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from copy import copy
from typing import Any

from codezero.evaluate.dryrun.budget import IN_SOLUTION, IN_TEST, Unsupported
from codezero.evaluate.dryrun.functions import BUILTIN_NAMES, BUILTINS
from codezero.evaluate.dryrun.scope import Scope, is_dunder
from codezero.evaluate.dryrun.values import UNBOUND, Frame

Expression = Callable[[Frame], Any]
Statement = Callable[[Frame], Any]
Store = Callable[[Frame, Any], None]
BREAK, CONTINUE = object(), object()
_MISSING = object()


class Unit:
    """Translates one scope of a program.

    `names` are its global variables; other names are looked up in `outer`, then among the builtins. If it `is_test`,
    the name of a builtin is always the real one, even if the solution redefines it.
    """

    def __init__(
        self,
        names: dict[str, Any],
        outer: dict[str, Any],
        is_test: bool = False,
        own_builtins: frozenset[str] = frozenset(),
        future_annotations: bool = False,
        is_library: bool = False,
    ) -> None:
        self.names, self.outer, self.is_test = names, outer, is_test
        self.own_builtins = own_builtins
        """Names of builtins that mean the solution's functions nevertheless, since the test is about these."""
        self.future_annotations = future_annotations
        self.is_library = is_library
        self.scope = Scope("module")
        self.loops = 0
        """The number of loops around the statement; a `break` outside of any is an error."""

    @property
    def judging(self) -> int | None:
        """The value of `meter.judging` while its code runs; None for the library, which keeps its caller's."""
        if self.is_library:
            return None
        return IN_TEST if self.is_test else IN_SOLUTION

    def within(self, scope: Scope) -> Unit:
        """Returns a unit for an inner scope of the program."""
        inner = copy(self)
        inner.scope, inner.loops = scope, 0
        return inner

    def expression(self, node: ast.expr) -> Expression:
        translate = EXPRESSIONS.get(type(node))
        return translate(self, node) if translate else refusal(node)

    def expressions(self, nodes: Sequence[ast.expr]) -> list[Expression]:
        return [self.expression(node) for node in nodes]

    def statement(self, node: ast.stmt) -> Statement:
        translate = STATEMENTS.get(type(node))
        return translate(self, node) if translate else refusal(node)

    def block(self, nodes: Sequence[ast.stmt]) -> Statement:
        """Translates a sequence of statements."""
        run = [self.statement(node) for node in nodes]
        if len(run) == 1:
            return run[0]
        if len(run) == 2:
            first, second = run

            def both(frame: Frame) -> Any:
                result = first(frame)
                return second(frame) if result is None else result

            return both

        def in_order(frame: Frame) -> Any:
            for statement in run:
                result = statement(frame)
                if result is not None:
                    return result
            return None

        return in_order

    def load(self, name: str) -> Expression:
        """Returns a closure that reads a variable."""
        name = self.scope.mangled(name)
        if self.scope.kind == "class" and name in self.scope.slots:
            fallback = self._load_global(name)  # not a variable of functions around the class

            def load_in_class(frame: Frame) -> Any:
                namespace = frame[1]
                return namespace[name] if name in namespace else fallback(frame)

            return load_in_class
        place = self.scope.find(name)
        if place is None:
            return self._load_global(name)
        up, slot = place
        if up == 0:

            def load_local(frame: Frame) -> Any:
                value = frame[slot]
                if value is UNBOUND:
                    raise UnboundLocalError(
                        f"cannot access local variable '{name}' where it is not associated with a value"
                    )
                return value

            return load_local

        def load_outer(frame: Frame) -> Any:
            for _ in range(up):
                frame = frame[0]
            value = frame[slot]
            if value is UNBOUND:
                raise NameError(
                    f"cannot access free variable '{name}' where it is not associated with a value in enclosing scope"
                )
            return value

        return load_outer

    def _load_global(self, name: str) -> Expression:
        names, outer = self.names, self.outer
        builtin = BUILTINS.get(name, _MISSING)
        if self.is_test and name in BUILTIN_NAMES and name not in self.own_builtins:
            outer = {}
        exists = name in BUILTIN_NAMES or is_dunder(name)

        def load_global(frame: Frame) -> Any:
            if name in names:
                return names[name]
            if name in outer:
                return outer[name]
            if builtin is not _MISSING:
                return builtin
            if exists:
                raise Unsupported(name[:40])
            raise NameError(f"name '{name}' is not defined")

        return load_global

    def store(self, name: str) -> Store:
        """Returns a closure that assigns to a variable."""
        name = self.scope.mangled(name)
        scope = self.scope
        if scope.kind == "class" and name not in scope.globals and name not in scope.nonlocals:

            def store_in_class(frame: Frame, value: Any) -> None:
                frame[1][name] = value

            return store_in_class
        place = scope.find(name)
        if place is None:
            names = self.names

            def store_global(frame: Frame, value: Any) -> None:
                names[name] = value

            return store_global
        up, slot = place
        if up == 0:

            def store_local(frame: Frame, value: Any) -> None:
                frame[slot] = value

            return store_local

        def store_outer(frame: Frame, value: Any) -> None:
            for _ in range(up):
                frame = frame[0]
            frame[slot] = value

        return store_outer

    def local_slot(self, name: str) -> int | None:
        """Returns the slot of a name if it is in the running function's own frame, else None."""
        place = self.scope.find(self.scope.mangled(name)) if self.scope.kind == "function" else None
        return place[1] if place is not None and place[0] == 0 else None


def refusal(node: ast.AST) -> Callable[[Frame], Any]:
    """Returns a closure that ends the case because of a kind of node."""
    return refusal_of(type(node).__name__)


def refusal_of(what: str) -> Callable[[Frame], Any]:
    """Returns a closure that ends the case because of a feature."""

    def refuse(frame: Frame) -> Any:
        raise Unsupported(what)

    return refuse


EXPRESSIONS: dict[type, Callable[[Unit, Any], Expression]] = {}
STATEMENTS: dict[type, Callable[[Unit, Any], Statement]] = {}
"""Translations of statements by type of node, registered by the modules that run.py imports."""

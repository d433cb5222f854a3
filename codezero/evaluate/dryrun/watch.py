"""Dry runs over inputs without known answers, which record the output and the branch decisions of a program."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from codezero.evaluate.dryrun.budget import Budget
from codezero.evaluate.dryrun.compiler import Expression, Statement, Unit
from codezero.evaluate.dryrun.objects import Instance
from codezero.evaluate.dryrun.program import Program
from codezero.evaluate.dryrun.run import run_in_thread
from codezero.evaluate.dryrun.values import Frame
from codezero.tasks.testcases import StdinExample, TestSuite, parse_source
from codezero.types import CaseOutcome

Decision = tuple[int, int]
"""(number of a block of statements or an expression in its program, outcome). The outcome is 1 for an entered block, 0
or 1 for the truth of an expression; for a call, the index of the operand that it returned (its object is 0, then its
arguments), or -1."""
_RECORDED = (ast.Compare, ast.BoolOp, ast.UnaryOp, ast.BinOp, ast.Call)
"""Types of expressions whose truth is always recorded; other expressions are recorded where they are conditions."""
_NOTHING = object()
_LastValue = list[Any]
"""A list of one item, the last value of an expression."""


@dataclass(frozen=True, slots=True)
class WatchedRun:
    """The result of a run over one input."""

    outcome: CaseOutcome
    """PASS: it ended normally; FAIL: it ended with an error; UNKNOWN: it was not interpreted to its end."""
    output: str
    decisions: frozenset[Decision]
    expressions: Mapping[int, ast.expr]
    """The expressions that decide, by number."""


class _Watch:
    """Records the decisions of a program while it runs."""

    def __init__(self, tree: ast.Module) -> None:
        self.decisions: set[Decision] = set()
        self.expressions: dict[int, ast.expr] = {}
        self.count = 0
        self.conditions: set[int] = set()
        """Ids of the syntax nodes that are conditions."""
        self.places: dict[int, _LastValue] = {}
        """The last values of the operands of calls, by id of the syntax node."""
        self.calls: dict[int, list[_LastValue]] = {}
        """The last values of the operands of each call, in order, by id of the call's node."""
        for node in ast.walk(tree):
            if isinstance(node, ast.If | ast.IfExp | ast.While):
                self.conditions.add(id(node.test))
            elif isinstance(node, ast.BoolOp):
                self.conditions.update(map(id, node.values))
            elif isinstance(node, ast.comprehension):
                self.conditions.update(map(id, node.ifs))
            elif isinstance(node, ast.Call) and (given := _operands(node)):
                for part in given:
                    self.places[id(part)] = [_NOTHING]
                self.calls[id(node)] = [self.places[id(part)] for part in given]

    def number(self, expression: ast.expr | None = None) -> int:
        self.count += 1
        if expression is not None:
            self.expressions[self.count] = expression
        return self.count


def _operands(node: ast.Call) -> list[ast.expr]:
    """Returns the operands of a call: the object and arguments of a method call, or the arguments of `next`."""
    if isinstance(node.func, ast.Attribute):
        return [node.func.value, *node.args]
    return node.args if isinstance(node.func, ast.Name) and node.func.id == "next" else []


class _Watched(Unit):
    """A unit whose closures record their decisions."""

    watch: _Watch

    def expression(self, node: ast.expr) -> Expression:
        run, watch = super().expression(node), self.watch
        if isinstance(node, _RECORDED) or id(node) in watch.conditions:
            run = _record_truth(run, watch, node)
        if id(node) in watch.calls:
            run = _record_operand(run, watch.calls[id(node)], watch, node)
        return _keep_last(run, watch.places[id(node)]) if id(node) in watch.places else run

    def block(self, nodes: Sequence[ast.stmt]) -> Statement:
        run, entered, decisions = super().block(nodes), (self.watch.number(), True), self.watch.decisions

        def tell(frame: Frame) -> Any:
            decisions.add(entered)
            return run(frame)

        return tell


def _record_truth(run: Expression, watch: _Watch, node: ast.expr) -> Expression:
    number, decisions = watch.number(node), watch.decisions

    def tell(frame: Frame) -> Any:
        value = run(frame)
        if type(value) is not Instance:  # its truth would run a method of the solution
            decisions.add((number, bool(value)))
        return value

    return tell


def _record_operand(run: Expression, places: Sequence[_LastValue], watch: _Watch, node: ast.expr) -> Expression:
    number, decisions = watch.number(node), watch.decisions

    def tell(frame: Frame) -> Any:
        value = run(frame)
        same = (i for i, place in enumerate(places) if value is place[0] or (type(value) is str and value == place[0]))
        decisions.add((number, next(same, -1)))
        return value

    return tell


def _keep_last(run: Expression, place: _LastValue) -> Expression:
    def keep(frame: Frame) -> Any:
        place[0] = run(frame)
        return place[0]

    return keep


def watched(code: str, inputs: Sequence[str], budget: Budget) -> list[WatchedRun]:
    """Interprets the program on each input, in order; returns fewer runs if the time runs out. Never raises because of
    `code`."""
    tree = parse_source(code)
    if tree is None:
        return []
    watch, seen = _Watch(tree), list[WatchedRun]()

    def unit(*args: Any, **kwargs: Any) -> Unit:
        made = _Watched(*args, **kwargs)
        made.watch = watch
        return made

    def keep(outcome: CaseOutcome, output: str) -> None:
        seen.append(WatchedRun(outcome, output, frozenset(watch.decisions), watch.expressions))
        watch.decisions.clear()

    suite = TestSuite(examples=tuple(StdinExample(given=one, expected="") for one in inputs))
    run_in_thread(Program(tree, suite, budget, unit, keep))
    return seen

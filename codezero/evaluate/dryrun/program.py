"""A program and its tests, interpreted case by case."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from time import thread_time
from typing import Any

from codezero.evaluate.dryrun.apart import cases_that_share_state
from codezero.evaluate.dryrun.budget import IN_TEST, OUT_OF_TIME, Budget, Cheat, DepthError, Stop, meter
from codezero.evaluate.dryrun.compiler import Statement, Unit
from codezero.evaluate.dryrun.errors import PROGRAM_ERRORS, Raised, check_error
from codezero.evaluate.dryrun.flow import Unequal
from codezero.evaluate.dryrun.functions import BUILTIN_NAMES
from codezero.evaluate.dryrun.library_decimal import reset_context
from codezero.evaluate.dryrun.library_system import end_of_program
from codezero.evaluate.dryrun.measure import type_name
from codezero.evaluate.dryrun.scope import CompileError
from codezero.evaluate.dryrun.text import text_of
from codezero.tasks.testcases import StdinExample, TestSuite, parse_source
from codezero.types import CaseOutcome, CaseResult

_MAX_REASON = 160
_PASSED = CaseResult(outcome=CaseOutcome.PASS)


def unknown(reason: str) -> CaseResult:
    return CaseResult(outcome=CaseOutcome.UNKNOWN, reason=short(reason))


def short(reason: str) -> str:
    """Returns a reason in one line of bounded length, which can be encoded."""
    reason = " ".join(reason[: 10 * _MAX_REASON].split()).encode("utf-8", "backslashreplace").decode()
    return reason if len(reason) <= _MAX_REASON else reason[:_MAX_REASON] + "..."


class Program:
    """A solution and its tests, with a set of names each. The tests see the solution's names; the solution cannot
    change theirs."""

    def __init__(
        self,
        tree: ast.Module,
        suite: TestSuite,
        budget: Budget,
        unit: Callable[..., Unit] = Unit,
        keep: Callable[[CaseOutcome, str], None] | None = None,
        alone: bool = True,
        name: str = "__main__",
    ) -> None:
        """`name` is the solution's `__name__`."""
        self._tree, self._suite, self._budget = tree, suite, budget
        self._unit, self._keep, self._alone, self._name = unit, keep, alone, name
        self.results: list[CaseResult] = []
        self._names: dict[str, Any] = {}
        self._test_names: dict[str, Any] = {}
        self._body: Statement | None = None
        self._setup: Statement | None = None
        self._imports: Statement
        self.output: str | None = None
        """The output of the last example's run, if it ended without an error."""

    def run(self) -> None:
        """Interprets all cases within the time and appends to `results`."""
        self._end = thread_time() + self._budget.total_seconds
        self._cases = [parse_source(case) for case in self._suite.statements]
        meter.test_names = frozenset(
            node.id
            for tree in (parse_source(self._suite.setup), *self._cases)
            for node in ast.walk(tree or ast.Module([], []))
            if isinstance(node, ast.Name)
        )
        meter.unordered, meter.module = False, self._name
        try:
            run = self._run_examples if self._suite.examples else self._run_together
            run(self.results)
            first = [result.outcome for result in self.results]
            if not self._suite.examples and self._alone:
                self._run_apart()
            if meter.unordered and self._keep is None:
                self._run_reordered(run, first)
        finally:
            meter.reordered = False
            self._names.clear()
            self._test_names.clear()
            meter.new_process(0)
            meter.start(self._budget, 0.0)

    def _start(self, budget: Budget, stdin: str = "") -> None:
        meter.start(budget, max(self._end - thread_time(), 0.0), stdin)

    def _attempt(self, what: Any) -> CaseResult | None:
        """Returns the result of a case in which `what()` fails or is unsure; None if it succeeds."""
        try:
            what()
        except Cheat as cheat:
            return CaseResult(outcome=CaseOutcome.FAIL, reason=short(str(cheat)))
        except Stop as stop:
            return unknown(str(stop))
        except CompileError as error:
            return CaseResult(outcome=CaseOutcome.FAIL, reason=short(f"SyntaxError: {error}"))
        except PROGRAM_ERRORS as error:
            try:
                check_error(error)
            except Stop as stop:
                return unknown(str(stop))
            if meter.derives_from_builtin and isinstance(error, TypeError):
                return unknown("a class that derives from a builtin type")
            if meter.unsure and not isinstance(error, DepthError):
                return unknown(meter.unsure)
            return CaseResult(outcome=CaseOutcome.FAIL, reason=_describe(error))
        return unknown(meter.unsure) if meter.unsure else None

    def _define(self) -> None:
        """Runs the solution's own statements."""
        self._names.clear()
        self._names["__name__"] = self._name
        reset_context()
        meter.new_process(self._budget.memory)
        if self._body is None:
            future = any(isinstance(node, ast.ImportFrom) and node.module == "__future__" for node in self._tree.body)
            unit = self._unit(self._names, {}, future_annotations=future)
            self._body = unit.block(self._tree.body)
        self._body([None])

    def _prepare(self) -> None:
        """Runs the solution, gives it the imports of the tests' setup, but none of its other names, by which it could
        ask the tests for their answers, and runs the setup."""
        self._test_names.clear()
        self._define()
        if self._setup is None:
            tree = parse_source(self._suite.setup)
            if tree is None:
                raise Stop("the tests' setup does not parse")
            self._setup = Unit(self._test_names, self._names, is_test=True).block(tree.body)
            imports = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
            self._imports = Unit(self._names, {}, is_test=True).block(imports)
        meter.judging = IN_TEST
        self._imports([None])
        self._setup([None])

    def _run_reordered(self, run: Callable[[list[CaseResult]], None], first: list[CaseOutcome]) -> None:
        """Runs the cases again with another order of sets, and makes those unknown that come to something else than
        `first`."""
        again: list[CaseResult] = []
        output = self.output
        meter.reordered = True
        run(again)
        meter.reordered = False
        for number, (outcome, result) in enumerate(zip(first, again, strict=False)):
            if {outcome, result.outcome} == {CaseOutcome.PASS, CaseOutcome.FAIL}:
                self.results[number] = unknown("a result that depends on the order of a set")
        if self.output != output:
            self.output = None

    def _run_together(self, results: list[CaseResult]) -> None:
        """Runs the cases in order with one definition of the solution, as executing them would."""
        budget = self._budget
        self._start(budget)
        failed = self._attempt(self._prepare)
        left_open: set[int] = set()
        for number, case in enumerate(self._cases):
            if failed is not None or number in left_open:
                results.append(failed or unknown("goes on from a test that was cut off"))
                continue
            if thread_time() > self._end:
                return
            self._start(budget)
            result = self._attempt(lambda case=case: self._check(case))
            results.append(result or _PASSED)
            if self._alone:
                budget = budget.after(results[-1].reason)
            if result is not None and result.outcome is CaseOutcome.UNKNOWN and case is not None:
                # It was cut off: the next case must not see its half-made changes, or miss those that it needs.
                left_open.update(*(group for group in self._groups if number in group))
                self._start(budget)
                failed = self._attempt(self._prepare)

    @cached_property
    def _groups(self) -> list[list[int]]:
        """The groups of cases that share state; one of all if that cannot be told."""
        cases, setup = [case for case in self._cases if case is not None], parse_source(self._suite.setup)
        if setup is None or len(cases) < len(self._cases):
            return [list(range(len(self._cases)))]
        return cases_that_share_state(setup, cases)

    def _run_apart(self) -> None:
        """Runs the cases again, each independent group with a new definition of the solution, so that a solution that
        counts its calls or returns prepared answers in order fails."""
        if any(result.outcome is CaseOutcome.FAIL for result in self.results):
            return
        for group in self._groups:
            if group == list(range(len(group))):
                continue  # nothing came before it
            self._start(self._budget)
            failed = self._attempt(self._prepare) if thread_time() < self._end else unknown(OUT_OF_TIME)
            for number in group:
                if number >= len(self.results):
                    break
                self._start(self._budget)
                result = failed or self._attempt(lambda number=number: self._check(self._cases[number]))
                if result is not None and self.results[number] == _PASSED:
                    self.results[number] = replace(result, reason=short(f"on its own: {result.reason}"))
                if result is not None and result.outcome is CaseOutcome.UNKNOWN:
                    failed = result  # it was cut off, and the rest of the group may need what it left undone

    def _check(self, tree: ast.Module | None) -> None:
        if tree is None:
            raise Stop("the test does not parse")
        own_builtins = self._subjects(tree)
        meter.judging = IN_TEST
        Unit(self._test_names, self._names, is_test=True, own_builtins=own_builtins).block(tree.body)([None])

    def _subjects(self, tree: ast.Module) -> frozenset[str]:
        """Returns the builtin names by which a test means the solution's function: one that the solution defines, in a
        test that calls nothing else, if the tests use no other name of the solution. Raises Stop if the meaning is
        unclear."""
        used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        redefined = {n for n in used & BUILTIN_NAMES & self._names.keys() if n not in self._test_names}
        if not redefined:
            return frozenset()
        called = {n.func.id for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}
        others = meter.test_names & self._names.keys() - BUILTIN_NAMES - self._test_names.keys()
        if called == redefined and len(called) == 1 and not others:
            return frozenset(called)
        if called <= BUILTIN_NAMES or not redefined <= called:
            raise Stop("the solution redefines builtins of the test")
        return frozenset()

    def _run_examples(self, results: list[CaseResult]) -> None:
        budget = self._budget
        for example in self._suite.examples:
            if thread_time() > self._end:
                return
            self._start(budget, example.given)
            results.append(self._run_example(example))
            budget = budget.after(results[-1].reason)

    def _run_example(self, example: StdinExample) -> CaseResult:
        result = self._attempt(self._define_until_exit)
        output = "".join(meter.output)
        if self._keep is not None:
            self._keep(result.outcome if result is not None else CaseOutcome.PASS, output)
        if result is not None:
            return result
        self.output = output
        if _tokens(output) != _tokens(example.expected):
            got, expected = (" ".join(text.split())[:60] for text in (output, example.expected))
            reason = f"printed {got!r} instead of {expected!r}"
        elif example.given.strip() and meter.reader is None:
            reason = "printed the answer without having read the input"
        else:
            return _PASSED
        return CaseResult(outcome=CaseOutcome.FAIL, reason=short(reason))

    def _define_until_exit(self) -> None:
        try:
            self._define()
        except SystemExit as error:
            if error.code is not None and (not isinstance(error.code, int) or error.code):
                raise
        end_of_program()


def _tokens(text: str) -> list[bytes]:
    """Returns what is between white space of ASCII, as the sandbox compares it; `str.split` knows more."""
    return text.encode("utf-8", "surrogatepass").split()


def _describe(error: BaseException) -> str:
    if isinstance(error, Unequal):
        return short(str(error))
    name = type_name(error)
    try:
        text = text_of(error.instance if isinstance(error, Raised) else error)
    except (*PROGRAM_ERRORS, Stop):
        text = ""
    return short(f"{name}: {text}" if text else name)

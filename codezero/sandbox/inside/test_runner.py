"""The test runner's process: it runs the tests, which call the solution in its process, and decides every case.

No solution runs here, except for tests that give objects of their own to the solution: these need both in one process
(`run_together`).
"""

from __future__ import annotations

import ast
import builtins
import os
import select
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from codezero.sandbox.inside import solution
from codezero.sandbox.inside.channel import Gone
from codezero.sandbox.inside.session import NeedsSameProcess, Session, type_of

Report = Callable[[Mapping[str, Any]], None]
_STDERR_BYTES = 4_096
_TYPE = "type of"
"""The name by which tests call `type_of`; no text has it."""


def run_statements(suite: Mapping[str, Any], first: int, session: Session, report: Report) -> None:
    """Runs the set-up and the cases from `first` on, against the solution's process."""
    if (error := session.load()) is not None:
        report({"failed": error})
        return
    session.give_imports(suite["setup"])
    takes_builtins = _use_only_builtins([suite["setup"], *suite["statements"]])

    def prepare(text: str, namespace: dict[str, Any]) -> str | ast.Module:
        tree = ast.parse(text)
        used, bound = _names(tree)
        wanted = {name for name in used - bound if takes_builtins or not hasattr(builtins, name)}
        namespace.update(session.names(sorted(wanted - namespace.keys())))
        return text if "type" in namespace.keys() | bound else _with_type_of(text, tree)

    module = types.ModuleType("tests")
    vars(module)[_TYPE] = type_of
    sys.modules["tests"] = module
    _run_cases(suite, first, vars(module), report, session, prepare)


def run_together(suite: Mapping[str, Any], first: int, code: str, report: Report) -> None:
    """Runs the same statements in one process with the solution. A malicious solution can then call `report`."""
    try:
        module = solution.load(code, "solution")
    except BaseException as error:
        report({"failed": solution.describe(error)[1]})
        return
    _run_cases(suite, first, vars(module), report, None)


def _run_cases(
    suite: Mapping[str, Any],
    first: int,
    namespace: dict[str, Any],
    report: Report,
    session: Session | None,
    prepare: Callable[[str, dict[str, Any]], str | ast.Module] = lambda text, namespace: text,
) -> None:
    """Runs set-up and cases. `session` is None if the solution is in this process. `prepare` returns what is run for a
    text, and adds the names of the solution that it uses to the namespace."""
    try:
        setup = prepare(suite["setup"], namespace)
        exec(compile(setup, "<setup>", "exec", dont_inherit=True), namespace)
    except NeedsSameProcess:
        report({"together": True})
        return
    except ModuleNotFoundError as error:
        report({"failed": f"the tests need {error.name}, which is not in the standard library", "unknown": True})
        return
    except Exception as error:
        if session is not None and session.needs_together:
            report({"together": True})
        else:
            text = f"in the tests' set-up: {solution.describe(error)[1]}"
            report({"failed": text, "unknown": session is not None and session.is_unsure})
        return
    report({"loaded": True})
    for number in range(first, len(suite["statements"])):
        failed = None
        if session is not None:
            session.is_unsure = False
        try:
            statement = prepare(suite["statements"][number], namespace)
            exec(compile(statement, "<test>", "exec", dont_inherit=True), namespace)
        except Gone:
            raise
        except BaseException as error:
            failed = solution.describe(error)[1]
        if session is not None and session.needs_together:
            report({"together": True})
            return
        report({"case": number, "failed": failed, "unknown": session is not None and session.is_unsure})


def _use_only_builtins(texts: Sequence[str]) -> bool:
    """Returns whether the tests use no names that they do not bind but those of built-in functions, as in MBPP's
    `assert sum(10, 15) == 25`. These are the solution's then; in other tests it must not replace their `sorted`."""
    bound: set[str] = set()
    for text in texts:
        used, more = _names(ast.parse(text))
        bound |= more
        if any(not hasattr(builtins, name) for name in used - bound):
            return False
    return True


def _with_type_of(text: str, tree: ast.Module) -> str | ast.Module:
    """Returns the tree of a text with `type_of` for `type` in each call `type(x)`; the text if it has none."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and len(node.args) == 1]
    names = [call.func for call in calls if isinstance(call.func, ast.Name) and call.func.id == "type"]
    for name in names:
        name.id = _TYPE
    return tree if names else text


def _names(tree: ast.Module) -> tuple[set[str], set[str]]:
    """Returns the names that a text uses or binds, and those that it binds."""
    nodes = list(ast.walk(tree))
    bound = {node.id for node in nodes if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
    bound |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    bound |= {node.name for node in nodes if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef))}
    bound |= {
        alias.asname or alias.name.split(".")[0]
        for node in nodes
        for alias in getattr(node, "names", ())
        if isinstance(alias, ast.alias)
    }
    bound |= {node.name for node in nodes if isinstance(node, ast.ExceptHandler) and node.name}
    return {node.id for node in nodes if isinstance(node, ast.Name)}, bound


def give(text: str, stdin: int, waiting: int) -> None:
    """Writes a program's input into the file of its standard input, then closes `waiting`, so that it begins."""
    rest = memoryview(text.encode("utf-8", "surrogateescape"))
    while rest:
        rest = rest[os.write(stdin, rest) :]
    os.close(stdin)
    os.close(waiting)


def run_example(expected: str, stdout: int, stderr: int, limit: int, report: Report) -> None:
    """Compares a program's output with the expected one, token by token, as contests do, and reports the result."""
    wanted = expected.encode("utf-8", "surrogateescape")
    limit = max(limit, 2 * len(wanted))
    printed, complaint = bytearray(), b""
    open_ends = {stdout, stderr}
    while open_ends:
        for end in select.select(open_ends, [], [])[0]:
            data = os.read(end, 1 << 16)
            if not data:
                open_ends.discard(end)
            elif end == stdout:
                printed += data
            else:
                complaint = (complaint + data)[-_STDERR_BYTES:]
        if len(printed) > limit:
            report({"failed": f"printed more than {limit} bytes"})
            return
    lines = complaint.decode("utf-8", "replace").strip().splitlines()
    said = " ".join(lines[-1].split())[: solution.MAX_REASON_CHARS] if lines else ""
    if bytes(printed).split() == wanted.split():
        report({"failed": None, "said": said})
    else:
        report({"failed": said or "printed something else", "said": said})

"""Library modules from Python source, interpreted like a program: each operation is charged, and they can access only
what a program can."""

from __future__ import annotations

import ast
from typing import Any

from codezero.evaluate.dryrun.budget import Budget, meter
from codezero.evaluate.dryrun.classes import Class
from codezero.evaluate.dryrun.compiler import Unit
from codezero.evaluate.dryrun.values import Builtin, Function


def define(source: str, names: dict[str, Any]) -> dict[str, Any]:
    """Returns `names` and the names that the source binds. It is interpreted as a library module: its classes are
    trusted."""
    Unit(names, {}, is_library=True).block(ast.parse(source).body)([None])
    return names


def library(source: str, names: dict[str, Any]) -> dict[str, Any]:
    """Returns the public names that the source of a module binds. Its functions cannot be changed, like builtin
    ones."""
    meter.new_process(Budget().memory)
    meter.start(Budget(), 60.0)
    given = set(names)
    found = define(source, names)
    for value in found.values():
        if type(value) is Class:
            value.is_library = True
    return {
        name: Builtin(name, value.invoke) if type(value) is Function else value
        for name, value in found.items()
        if name not in given and not name.startswith("_")
    }

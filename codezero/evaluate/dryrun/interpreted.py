"""Parts of the library that are written in Python and interpreted like any program: they cost what they do, and reach
nothing that a program could not."""

from __future__ import annotations

import ast
from typing import Any

from codezero.evaluate.dryrun.budget import Budget, meter
from codezero.evaluate.dryrun.compiler import Unit
from codezero.evaluate.dryrun.values import Builtin, Function


def define(source: str, names: dict[str, Any]) -> dict[str, Any]:
    """`names` with what the source binds beside them, as a module of the library: its classes are trusted."""
    Unit(names, {}, is_library=True).block(ast.parse(source).body)([None])
    return names


def library(source: str, names: dict[str, Any]) -> dict[str, Any]:
    """The public names that the source of a module binds. Functions of it are as fixed as those of the host."""
    meter.new_process(Budget().memory)
    meter.start(Budget(), 60.0)
    given = set(names)
    found = define(source, names)
    return {
        name: Builtin(name, value.invoke) if type(value) is Function else value
        for name, value in found.items()
        if name not in given and not name.startswith("_")
    }

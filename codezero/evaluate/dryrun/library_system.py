"""The parts of `sys`, `os`, `io`, `gc` and `resource` that contest programs use for input, output and their stack."""

from __future__ import annotations

import sys
from typing import Any

from codezero.evaluate.dryrun.attributes import get_attribute
from codezero.evaluate.dryrun.budget import RECURSION_LIMIT, Unsupported, meter
from codezero.evaluate.dryrun.classes import Class
from codezero.evaluate.dryrun.functions import BUILTINS
from codezero.evaluate.dryrun.methods_streams import byte_stream, read_descriptor, text_stream, write_descriptor
from codezero.evaluate.dryrun.modules import Module, PerCase
from codezero.evaluate.dryrun.objects import Instance
from codezero.evaluate.dryrun.streams import PER_CASE, FileStatus, open_file
from codezero.evaluate.dryrun.values import Builtin


def end_of_program() -> None:
    """Flushes the object that the program assigned to `sys.stdout`, as CPython does at exit."""
    output = PER_CASE["stdout"].get()
    if type(output) is Instance:
        get_attribute(output, "flush")()


def _set_recursion_limit(limit: Any) -> None:
    if not isinstance(limit, int):
        raise TypeError("an integer is required")
    if limit < RECURSION_LIMIT:
        raise Unsupported("a low recursion limit")
    meter.recursion_limit = limit


_HOST_DIGITS = 4300
"""CPython's default limit of digits for conversions between integers and text."""


def _set_max_digits(maxdigits: Any) -> None:
    if not isinstance(maxdigits, int):
        raise TypeError("an integer is required")
    if maxdigits and maxdigits < _HOST_DIGITS:
        raise Unsupported("a low limit of digits")
    meter.any_digits = maxdigits != _HOST_DIGITS


SYS: dict[str, Any] = {
    "maxsize": sys.maxsize,
    "argv": PerCase("argv", lambda: ["program.py"]),
    "exit": BUILTINS["exit"],
    "setrecursionlimit": Builtin("setrecursionlimit", _set_recursion_limit),
    "getrecursionlimit": Builtin("getrecursionlimit", lambda: meter.recursion_limit),
    "set_int_max_str_digits": Builtin("set_int_max_str_digits", _set_max_digits),
    **{name: PER_CASE[name] for name in ("stdin", "stdout", "stderr")},
}


def _fstat(descriptor: Any, /) -> FileStatus:
    if descriptor != 0:
        raise Unsupported("os.fstat of anything but standard input")
    meter.work(len(meter.stdin))
    return FileStatus(len(meter.stdin.encode("utf-8", "replace")))


def _exists(path: Any, /) -> bool:
    if type(path) is not str or not path.endswith((".txt", ".in", ".out")) or "/" in path:
        raise Unsupported("the existence of this file")
    return False


PATH: dict[str, Any] = {name: Builtin(name, _exists) for name in ("exists", "isfile")}
OS: dict[str, Any] = {
    "fstat": Builtin("fstat", _fstat),
    "linesep": "\n",
    "path": Module("os.path", PATH, frozenset(dir(sys.modules["os"].path))),
    "read": Builtin("read", read_descriptor),
    "write": Builtin("write", write_descriptor),
}
IO: dict[str, Any] = {
    "IOBase": Class("IOBase", trusted=True),
    "BytesIO": Builtin("BytesIO", byte_stream),
    "StringIO": Builtin("StringIO", text_stream),
    "open": Builtin("open", open_file),
}


def _nothing(*args: Any, **kwargs: Any) -> None:
    """Does nothing, like functions that do not affect the outcome of a program."""


GC: dict[str, Any] = {name: Builtin(name, _nothing) for name in ("disable", "enable", "freeze")}
RESOURCE: dict[str, Any] = {
    "RLIMIT_STACK": 3,
    "RLIM_INFINITY": -1,
    "getrlimit": Builtin("getrlimit", lambda resource, /: (-1, -1)),
    "setrlimit": Builtin("setrlimit", _nothing),
}

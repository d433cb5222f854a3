"""Errors of programs as host exceptions."""

from __future__ import annotations

import re
from sys import getsizeof
from typing import Any

from codezero.evaluate.dryrun.budget import DepthError, Stop, meter
from codezero.evaluate.dryrun.classes import Class
from codezero.evaluate.dryrun.objects import Instance
from codezero.evaluate.dryrun.type_objects import TypeValue
from codezero.evaluate.dryrun.values import Function, Opaque

PROGRAM_ERRORS = (Exception, SystemExit, KeyboardInterrupt)
"""Exceptions that a program can catch, unlike Stop and GeneratorExit."""


class Raised(Exception):
    """The host exception of a raised instance of an interpreted exception class."""

    def __init__(self, instance: Instance) -> None:
        super().__init__()
        self.instance = instance


_MISFIT = re.compile(
    r"([\w.<>]+)\(\) (got (an unexpected keyword|multiple values for|some positional-only)|missing \d+ required|"
    r"takes (from )?\d+ .*given$)"
)
"""The text of CPython's TypeError when arguments do not fit a function that is written in Python."""
_BIND = Function._bind.__code__
"""The code that raises such an error for a function of the program or of an interpreted library module."""
_RAISING = frozenset({"raise_again", "raise_error", "throw"})
"""Names of the functions of the interpreter that raise what a program gives them: the two closures of `raise`
statements in flow.py, and `Iterating.throw`."""
_COMPLETE = frozenset(
    {
        "_abs", "_all", "_any", "_callable", "_extend", "_filter", "_hash", "_input", "_join", "_len", "_print",
        "_reversed", "_round", "_sort", "_sorted", "is_instance", "is_subclass",
    }
)  # fmt: skip
"""Functions of the interpreter that take exactly the arguments of the builtin that they stand for."""


def check_error(error: BaseException) -> None:
    """Raises Stop if the error is the interpreter's own and not one of the program."""
    if isinstance(error, RecursionError | MemoryError) and not isinstance(error, DepthError):
        raise Stop("recursion depth")
    _check_host_call(error)


def check_caught(error: BaseException) -> None:
    """Checks an error that the program goes on from, as `check_error` does, and charges for its text."""
    check_error(error)
    meter.allocate(256 + sum(getsizeof(arg) for arg in error.args[:1] if type(arg) is str))  # a text with names


def _check_host_call(error: BaseException) -> None:
    """Raises Stop if the error is that a function of the interpreter does not take the arguments of a call: the one
    that it stands for may take more. Also if it is the host's limit of digits, which the program has lifted."""
    text = error.args[0] if type(error) in (TypeError, ValueError) and error.args else None
    if type(text) is not str:
        return
    if meter.any_digits and text.startswith("Exceeds the limit"):
        raise Stop("an integer too long")
    found = _MISFIT.match(text) if type(error) is TypeError else None
    if found is None or found.group(1) in _COMPLETE:
        return
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None or trace.tb_frame.f_code.co_name in _RAISING:
        return
    if trace.tb_frame.f_code is not _BIND or trace.tb_frame.f_locals["self"].code.fixed:
        raise Stop("arguments that are not interpreted")


def throwable(value: Any) -> BaseException:
    """Returns the host exception of `raise value`; a TypeError if `value` is not an exception."""
    if type(value) is TypeValue and issubclass(value.host, BaseException):
        value = value()
    if isinstance(value, PROGRAM_ERRORS):
        value.__traceback__ = value.__context__ = None
        return value
    if type(value) is Class and value.error is not None:
        value = value()
    if type(value) is Instance and value.cls.error is not None:
        return Raised(value)
    if isinstance(value, BaseException):
        raise Stop(f"raising {type(value).__name__}")
    if type(value) is Opaque:
        value.refuse()
    return TypeError("exceptions must derive from BaseException")

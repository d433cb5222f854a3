"""Errors of programs as host exceptions."""

from __future__ import annotations

from typing import Any

from codezero.evaluate.dryrun.classes import Class
from codezero.evaluate.dryrun.objects import Instance
from codezero.evaluate.dryrun.values import TypeValue

PROGRAM_ERRORS = (Exception, SystemExit, KeyboardInterrupt)
"""Exceptions that a program can catch, unlike Stop and GeneratorExit."""


class Raised(Exception):
    """The host exception of a raised instance of an interpreted exception class."""

    def __init__(self, instance: Instance) -> None:
        super().__init__()
        self.instance = instance


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
    return TypeError("exceptions must derive from BaseException")

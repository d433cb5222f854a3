"""Errors of programs, as the host carries them."""

from __future__ import annotations

from typing import Any

from codezero.evaluate.dryrun.classes import Class
from codezero.evaluate.dryrun.objects import Instance
from codezero.evaluate.dryrun.values import TypeValue

PROGRAM_ERRORS = (Exception, SystemExit, KeyboardInterrupt)
"""What a program can catch; Stop and GeneratorExit pass it by."""


class Raised(Exception):
    """Carries an instance of an interpreted exception class through the host."""

    def __init__(self, instance: Instance) -> None:
        super().__init__()
        self.instance = instance


def throwable(value: Any) -> BaseException:
    """What `raise value` raises."""
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

"""The solution's process: it runs untrusted code and answers calls, and has nothing of the tests in its memory but
the imports of their set-up."""

from __future__ import annotations

import atexit
import builtins
import functools
import importlib
import io
import operator
import os
import sys
import threading
import types
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from typing import Any

from codezero.sandbox.inside.channel import Channel
from codezero.sandbox.inside.values import decode, encode

MAX_REASON_CHARS = 200
"""The most characters of an error's description."""
_CHANGEABLE = (list, set, bytearray, deque, dict, Counter, OrderedDict, defaultdict)
_BUILTIN_OPEN = open


@functools.cache
def _event_loop() -> Any:
    """Returns the event loop of all coroutines, since objects of asyncio may belong to one. It is imported only when
    used, which takes longer than starting Python."""
    return importlib.import_module("asyncio").new_event_loop()


OPERATIONS: dict[str, Callable[..., Any]] = {
    "call": lambda function, /, *arguments, **named: function(*arguments, **named),
    **{function.__name__: function for function in (getattr, setattr, type, len, str, repr, bool, iter, next)},
    **{name: getattr(operator, name) for name in ("getitem", "setitem", "eq", "lt", "le", "gt", "ge")},
    **{name: getattr(operator, name) for name in ("add", "sub", "mul", "truediv", "neg")},
    "wait": lambda coroutine: _event_loop().run_until_complete(coroutine),
}
"""Operations that tests can do on an object that stays in this process."""


def load(code: str, name: str) -> types.ModuleType:
    """Runs the solution as a module and returns it. Raises whatever its code raises."""
    module = types.ModuleType(name)
    sys.modules[name] = module
    sys.argv = ["solution.py"]
    vars(builtins).update(exit=sys.exit, quit=sys.exit)  # as the `site` module, which is not imported here, does
    exec(compile(code, "<solution>", "exec", dont_inherit=True), module.__dict__)
    return module


def serve(code: str, channel: Channel) -> None:
    """Loads the solution, then answers requests until the test runner ends."""
    objects: list[Any] = []
    numbers: dict[int, int] = {}

    def refer(value: Any) -> int:
        if id(value) not in numbers:
            numbers[id(value)] = len(objects)
            objects.append(value)
        return numbers[id(value)]

    try:
        module = load(code, "solution")
    except BaseException as error:
        channel.send({"error": describe(error)})
        return
    channel.send({"loaded": True})
    while True:
        request = channel.receive()
        try:
            channel.send(_answer(request, module, refer, objects))
        except (RecursionError, MemoryError) as error:
            channel.send({"error": describe(error)})


def _answer(request: Any, module: types.ModuleType, refer: Callable[[Any], int], objects: list[Any]) -> dict[str, Any]:
    try:
        if "imports" in request:
            exec(compile(request["imports"], "<setup>", "exec", dont_inherit=True), vars(module))
            return {"value": None}
        if "names" in request:
            found = {name: vars(module)[name] for name in request["names"] if name in vars(module)}
            return {"value": {name: encode(value, refer) for name, value in found.items()}}
        arguments = [decode(coded, objects.__getitem__) for coded in request["arguments"]]
        named = {name: decode(coded, objects.__getitem__) for name, coded in request["named"].items()}
        result = OPERATIONS[request["do"]](*arguments, **named)
        given = [*arguments, *named.values()]
        changeable = {number for number, value in enumerate(given) if type(value) in _CHANGEABLE}
        same = next((number for number in changeable if given[number] is result), None)
        coded = encode(result, refer) if same is None else None
        changed = [encode(value, refer) if number in changeable else None for number, value in enumerate(given)]
        return {"value": coded, "same": same, "changed": changed}
    except BaseException as error:
        return {"error": describe(error)}


def describe(error: BaseException) -> list[str]:
    """Returns [the name of its built-in class or base class, one line that describes it]."""
    kind = next(cls.__name__ for cls in type(error).__mro__ if cls.__module__ == "builtins")
    try:
        text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    except BaseException:  # __str__ may be the solution's code
        text = type(error).__name__
    return [kind, " ".join(text.split())[:MAX_REASON_CHARS]]


def _open(file: Any, *arguments: Any, **named: Any) -> Any:
    """Opens a file as `open` does, and the standard input as /dev/stdin, which does not exist without /proc."""
    return _BUILTIN_OPEN(0 if str(file) == "/dev/stdin" else file, *arguments, **named)


def run_program(code: str, waiting: int) -> None:
    """Runs the solution as a program on file descriptors 0, 1 and 2, and ends this process as Python would. It begins
    when the other end of the pipe `waiting` is closed: then its input, a regular file as in contests, is complete."""
    os.read(waiting, 1)
    os.close(waiting)
    sys.stdin = os.fdopen(0, encoding="utf-8", errors="replace", closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", errors="surrogateescape", closefd=False)
    sys.stderr = os.fdopen(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr  # type: ignore[misc]
    vars(builtins).update(open=_open)
    io.open = staticmethod(_open)  # for pathlib, which before Python 3.11 makes it an attribute of a class
    status = 0
    try:
        load(code, "__main__")
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException as error:
        os.write(2, describe(error)[1].encode("utf-8", "backslashreplace"))
        status = 1
    try:
        threading._shutdown()  # type: ignore[attr-defined]  # waits for threads that are not daemons
        atexit._run_exitfuncs()
        _flush()
        vars(sys.modules["__main__"]).clear()  # a file that the program has left open is written when nothing has it
        _flush()
    except BaseException:
        status = status or 1
    os._exit(status & 0xFF)


def _flush() -> None:
    for out in (sys.stdout, sys.__stdout__):
        if out is not None and not getattr(out, "closed", False):
            out.flush()

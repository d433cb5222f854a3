"""The test runner's connection to the solution's process: operations there, and stand-ins for its objects."""

from __future__ import annotations

import ast
import builtins
import collections
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from codezero.sandbox.inside import solution
from codezero.sandbox.inside.channel import Channel, Gone
from codezero.sandbox.inside.values import NotData, decode, encode


class NeedsSameProcess(BaseException):
    """A test gives the solution an object that cannot be sent to another process."""


class SolutionError(Exception):
    """The solution raised an error that is not an ordinary exception, such as SystemExit."""


class Session:
    """The test runner's connection to the solution's process."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._remotes: dict[int, Remote] = {}
        self.needs_together = False
        self.is_unsure = False
        """True if the running case does with an object of the solution what only the solution's process could do."""

    def load(self) -> str | None:
        """Waits until the solution is loaded. Returns its error if it could not be, else None."""
        reply = self._channel.receive()
        return reply["error"][1] if "error" in reply else None

    def give_imports(self, setup: str) -> None:
        """Has the solution's module do the imports of the tests' set-up, which solutions may use. One that fails will
        fail the set-up too."""
        imports = (node for node in ast.parse(setup).body if isinstance(node, (ast.Import, ast.ImportFrom)))
        self._channel.send({"imports": "\n".join(map(ast.unparse, imports))})
        with suppress(Exception):
            self._reply()

    def names(self, wanted: Sequence[str]) -> dict[str, Any]:
        """Returns the values of those names that the solution defines."""
        self._channel.send({"names": list(wanted)})
        found = self._reply()["value"]
        if not isinstance(found, dict):
            raise Gone("a reply is garbled")
        return {name: self._decode(found[name]) for name in wanted if name in found}  # and no other names

    def do(self, operation: str, /, *arguments: Any, **named: Any) -> Any:
        """Does an operation in the solution's process and returns its result, which may be one of the arguments itself.
        Raises its error as a built-in class."""
        coded = [self._encode(value) for value in arguments]
        self._channel.send(
            {"do": operation, "arguments": coded, "named": {name: self._encode(value) for name, value in named.items()}}
        )
        reply = self._reply()
        given = (*arguments, *named.values())
        for value, change in zip(given, reply.get("changed", ()), strict=False):
            if change is not None:
                _become(value, self._decode(change))
        same = reply.get("same")
        return self._decode(reply["value"]) if same is None else given[same]

    def _reply(self) -> dict[str, Any]:
        reply = self._channel.receive()
        if not isinstance(reply, dict) or not ("value" in reply or "error" in reply):
            raise Gone("a reply is garbled")
        if "error" in reply:
            kind, text = map(str, reply["error"])
            cls = getattr(builtins, kind, SolutionError)
            if not (isinstance(cls, type) and issubclass(cls, Exception)):
                cls = SolutionError
            try:
                raised = cls(text.removeprefix(f"{kind}: "))
            except TypeError:  # UnicodeDecodeError and its like want more arguments
                raised = SolutionError(text)
            raise raised
        return reply

    def _encode(self, value: Any) -> Any:
        try:
            return encode(value, self._number)
        except RecursionError as error:
            raise NotData("nested too deeply") from error

    def _number(self, value: Any) -> int:
        if isinstance(value, Remote):
            return int(object.__getattribute__(value, "_number"))
        self.needs_together = True  # a test's bare `except:` may swallow what follows
        raise NeedsSameProcess

    def _decode(self, coded: Any) -> Any:
        return decode(coded, self._remote)

    def _remote(self, number: Any, is_coroutine: bool = False) -> Remote:
        if not isinstance(number, int):
            raise NotData("the value is garbled")
        return self._remotes.setdefault(number, (RemoteCoroutine if is_coroutine else Remote)(self, number))


class Remote:
    """A stand-in for an object of the solution that is not plain data: a function, a class, or an instance of one."""

    __slots__ = ("_number", "_session")  # its __dict__ is that of the solution's object

    def __init__(self, session: Session, number: int) -> None:
        object.__setattr__(self, "_session", session)
        object.__setattr__(self, "_number", number)

    def __getattr__(self, name: str) -> Any:
        return _do("getattr", self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        _do("setattr", self, name, value)

    def __eq__(self, other: object) -> bool:
        # Never equal to plain data: its own __eq__ is the solution's code and could always say so.
        return isinstance(other, Remote) and _do("eq", self, other) is True

    def __hash__(self) -> int:
        _session(self).is_unsure = True  # equal objects have different ones here
        return int(object.__getattribute__(self, "_number"))

    def __contains__(self, item: object) -> bool:
        _session(self).is_unsure = True  # its own __contains__ could always say so
        return any(item == one for one in _do("iter", self))

    def __call__(self, /, *arguments: Any, **named: Any) -> Any:
        return _session(self).do("call", self, *arguments, **named)


def _session(remote: Remote) -> Session:
    return object.__getattribute__(remote, "_session")  # type: ignore[no-any-return]


def _do(operation: str, remote: Remote, *arguments: Any) -> Any:
    return _session(remote).do(operation, remote, *arguments)


def _refuse_as_unsure(self: Remote, *arguments: Any) -> Any:
    _session(self).is_unsure = True
    raise TypeError("only the solution's process can do that")


def _special(operation: str) -> Callable[..., Any]:
    return lambda self, *arguments: _do(operation, self, *arguments)


def _between_objects(operation: str) -> Callable[..., Any]:
    return lambda self, other: _do(operation, self, other) if isinstance(other, Remote) else NotImplemented


# Not with plain data, which may be the expected value: an object that becomes 0 by subtraction would pass
# `assert abs(f(x) - 3.5) < 1e-6`.
_BETWEEN_OBJECTS = ("lt", "le", "gt", "ge", "add", "sub", "mul", "truediv")
for _name in solution.OPERATIONS.keys() - {"call", "getattr", "setattr", "type", "wait", "eq"}:
    setattr(Remote, f"__{_name}__", (_between_objects if _name in _BETWEEN_OBJECTS else _special)(_name))

# What the solution's own code answers here would decide the test, as in `assert float(f(x)) == 3.5`.
# An object in a `with` statement is asked what becomes of the test's own error.
_UNSURE = "float int index complex round abs mod floordiv pow instancecheck enter exit aenter aexit aiter"
for _name in _UNSURE.split():
    setattr(Remote, f"__{_name}__", _refuse_as_unsure)


class RemoteCoroutine(Remote):
    """A stand-in for a coroutine of the solution. What awaits it waits until it has run to its end in its process."""

    __slots__ = ()

    def __await__(self) -> RemoteCoroutine:
        return self

    def __next__(self) -> None:
        raise StopIteration(_do("wait", self))

    def send(self, value: None) -> None:
        next(self)

    def throw(self, error: BaseException) -> None:
        raise error

    def close(self) -> None:
        pass


def type_of(value: Any) -> Any:
    """Returns the value's type, which is not `Remote` for an object of the solution."""
    return _do("type", value) if isinstance(value, Remote) else type(value)


def _become(value: Any, changed: Any) -> None:
    """Makes the solution's change of a mutable argument in the test's own object."""
    if type(value) is not type(changed):
        return
    if isinstance(value, (list, bytearray, collections.deque)):
        value.clear()
        value.extend(changed)
    elif isinstance(value, (dict, set)):
        value.clear()
        value.update(changed)

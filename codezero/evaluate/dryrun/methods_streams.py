"""The methods of files."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

from codezero.evaluate.dryrun.budget import Stop, Unsupported, meter
from codezero.evaluate.dryrun.measure import bound, iterate
from codezero.evaluate.dryrun.streams import PER_CASE, Output, Stream, lines_of, read_line


def _read(stream: Stream, size: Any = -1, /) -> Any:
    stream.claim()
    meter.allocate(stream.size() * stream.width)
    return stream.raw.read(size)


def _writable(stream: Stream) -> Any:
    if stream.is_input:
        raise io.UnsupportedOperation("not writable")
    return stream.raw


def _write(stream: Stream, text: Any, /) -> int:
    raw = _writable(stream)
    if isinstance(text, str | bytes | bytearray):
        meter.allocate((max(raw.tell() - stream.size(), 0) + len(text)) * stream.width)
    written: int = raw.write(text)
    return written


def _write_lines(stream: Any, lines: Any, /) -> None:
    write = _write if type(stream) is Stream else Output.write
    for line in iterate(lines):
        write(stream, line)


def _get_value(stream: Stream) -> Any:
    meter.allocate(stream.size() * stream.width)
    return _writable(stream).getvalue()


def _leave(stream: Stream, *error: Any) -> None:
    stream.raw.close()


def _file_number(stream: Stream) -> int:
    if not stream.is_input:
        raise io.UnsupportedOperation("fileno")
    return 0


STREAM_METHODS: dict[str, Callable[..., Any]] = {
    "__enter__": lambda stream: stream,
    "__exit__": _leave,
    "__next__": lambda stream: next(lines_of(stream)),
    "close": _leave,
    "fileno": _file_number,
    "flush": lambda stream: None,
    "getvalue": _get_value,
    "isatty": lambda stream: False,
    "read": _read,
    "readable": lambda stream: True,
    "readline": read_line,
    "readlines": lambda stream: list(lines_of(stream)),
    "seek": lambda stream, position, whence=0, /: _writable(stream).seek(bound(position), whence),
    "tell": lambda stream: _writable(stream).tell(),
    "truncate": lambda stream, size=None, /: _writable(stream).truncate(size),
    "writable": lambda stream: not stream.is_input,
    "write": _write,
    "writelines": _write_lines,
}
OUTPUT_METHODS: dict[str, Callable[..., Any]] = {
    "fileno": lambda output: output.descriptor,
    "flush": Output.flush,
    "isatty": lambda output: False,
    "write": Output.write,
    "writelines": _write_lines,
}


def text_stream(text: Any = "", newline: Any = "\n") -> Stream:
    """Returns io.StringIO(text)."""
    if newline != "\n":
        raise Unsupported("StringIO with another newline")
    meter.allocate(len(text) * 4 if type(text) is str else 0)
    return Stream(io.StringIO(text))


def byte_stream(data: Any = b"", /) -> Stream:
    """Returns io.BytesIO(data)."""
    if not isinstance(data, bytes | bytearray):
        raise TypeError(f"a bytes-like object is required, not '{type(data).__name__}'")
    meter.allocate(len(data))
    return Stream(io.BytesIO(data))


def read_descriptor(descriptor: Any, size: Any, /) -> Any:
    """Returns os.read(descriptor, size)."""
    if descriptor != 0:
        raise Stop("os.read of anything but standard input")
    return _read(PER_CASE["descriptor"].get(), size)


def write_descriptor(descriptor: Any, data: Any, /) -> int:
    """Returns os.write(descriptor, data)."""
    if descriptor == 1:
        return PER_CASE["stdout descriptor"].get().write(data)  # type: ignore[no-any-return]
    raise Stop("os.write to anything but standard output")

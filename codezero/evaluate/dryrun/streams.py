"""Files of interpreted programs: standard input and output, and files in memory."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

from codezero.evaluate.dryrun.budget import Stop, Unsupported, meter
from codezero.evaluate.dryrun.modules import PerCase
from codezero.evaluate.dryrun.values import FIELDS, Hidden

_BYTES_PER_CHAR = 4
"""Bytes that `io.StringIO` takes for any character."""
_DESCRIPTOR, _BUFFER, _TEXT = 0, 1, 2
"""Layers of standard output; each buffers what it passes on to the one before."""


class Stream(Hidden):
    """A file in memory, or standard input: of several streams over that, a case may use only one until all is read."""

    __slots__ = ("is_input", "raw")

    def __init__(self, raw: io.StringIO | io.BytesIO, is_input: bool = False) -> None:
        self.raw, self.is_input = raw, is_input

    @property
    def width(self) -> int:
        """Bytes per character in memory."""
        return _BYTES_PER_CHAR if isinstance(self.raw, io.StringIO) else 1

    @property
    def buffer(self) -> Any:
        """The binary stream of standard input."""
        if not self.is_input or self.width == 1:
            raise AttributeError("this stream has no attribute 'buffer'")
        return PER_CASE["stdin.buffer"].get()

    @property
    def mode(self) -> str:
        if not self.is_input:
            raise AttributeError("this stream has no attribute 'mode'")
        return "rb" if self.width == 1 else "r"

    @property
    def closed(self) -> bool:
        return self.raw.closed

    def claim(self) -> None:
        """Makes this the stream that reads standard input. Raises Stop if another may have buffered the next part."""
        if not self.is_input or meter.reader is self:
            return
        if meter.reader is not None:
            if not meter.reader.closed and meter.reader.raw.read(1):
                raise Stop("standard input is read in two ways")
            self.raw.seek(0, 2)
        meter.reader = self

    def size(self) -> int:
        """Returns the number of characters or bytes that it holds."""
        position = self.raw.tell()
        end = self.raw.seek(0, 2)
        self.raw.seek(position)
        return end


class Output(Hidden):
    """A layer of standard output or of standard error; the latter is discarded."""

    __slots__ = ("descriptor", "layer")

    mode, closed = "w", False

    def __init__(self, descriptor: int, layer: int) -> None:
        self.descriptor, self.layer = descriptor, layer

    @property
    def buffer(self) -> Any:
        if self.layer != _TEXT:
            raise AttributeError("'_io.BufferedWriter' object has no attribute 'buffer'")
        return PER_CASE[f"{'stdout' if self.descriptor == 1 else 'stderr'}.buffer"].get()

    def write(self, text: Any) -> int:
        """Returns the length of `text`. Raises Stop if a higher layer has unflushed text, which would appear later."""
        wanted = str if self.layer == _TEXT else bytes
        if not isinstance(text, wanted) and not (wanted is bytes and isinstance(text, bytearray)):
            raise TypeError(f"write() argument must be {wanted.__name__}, not {type(text).__name__}")
        meter.work(len(text))
        if self.descriptor == 1:
            if self.layer < meter.pending:
                raise Stop("standard output is written in two ways")
            meter.pending = self.layer
            meter.write(text if isinstance(text, str) else text.decode("utf-8", "replace"))
        return len(text)

    def flush(self) -> None:
        if self.descriptor == 1 and meter.pending <= self.layer:
            meter.pending = _DESCRIPTOR


class FileStatus(Hidden):
    """The result of `os.fstat` of standard input."""

    __slots__ = ("st_size",)

    def __init__(self, size: int) -> None:
        self.st_size = size


FIELDS[FileStatus] = frozenset({"st_size"})
FIELDS[Stream] = FIELDS[Output] = frozenset({"buffer", "closed", "mode"})


def open_input(binary: bool = False) -> Stream:
    """Returns a new stream over standard input from its beginning."""
    meter.allocate(len(meter.stdin) * _BYTES_PER_CHAR)
    if binary:
        return Stream(io.BytesIO(meter.stdin.encode("utf-8", "replace")), is_input=True)
    return Stream(io.StringIO(meter.stdin.replace("\r\n", "\n").replace("\r", "\n")), is_input=True)


def read_line(stream: Stream, size: Any = -1, /) -> Any:
    """Returns the next line with its line end; empty at the end of the stream."""
    stream.claim()
    line = stream.raw.readline(size)
    meter.work(len(line) * stream.width)
    return line


def lines_of(stream: Stream) -> Iterator[Any]:
    """Yields the remaining lines."""
    while line := read_line(stream):
        yield line


def open_file(file: Any, mode: Any = "r", *args: Any, **kwargs: Any) -> Stream:
    """Opens standard input. Raises FileNotFoundError for an input file, as on a judge without any."""
    if type(file) is int and file == 0 and mode in ("r", "rb"):
        return open_input(mode == "rb")
    if type(file) is str and file.endswith((".txt", ".in")) and "/" not in file and mode in ("r", "rb", "rt"):
        raise FileNotFoundError(2, "No such file or directory")
    raise Unsupported("open() of this file")


PER_CASE = {
    "stdin": PerCase("stdin", open_input),
    "stdin.buffer": PerCase("stdin.buffer", lambda: open_input(binary=True)),
    "descriptor": PerCase("descriptor", lambda: open_input(binary=True)),
    "stdout": PerCase("stdout", lambda: Output(1, _TEXT)),
    "stdout.buffer": PerCase("stdout.buffer", lambda: Output(1, _BUFFER)),
    "stderr": PerCase("stderr", lambda: Output(2, _TEXT)),
    "stderr.buffer": PerCase("stderr.buffer", lambda: Output(2, _BUFFER)),
    "stdout descriptor": PerCase("stdout descriptor", lambda: Output(1, _DESCRIPTOR)),
}
"""The standard streams, by their key in `Meter.per_case`."""

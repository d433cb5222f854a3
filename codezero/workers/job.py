"""What a node and its workers say to each other: frames of msgpack, each with its length before it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Generic, TypeVar

import msgspec
from msgspec import Meta, Raw, Struct

MAX_FRAME_BYTES = 16 << 20
"""The largest request or reply. 64 attempts of 20,000 characters that each take 10 to be printed come to 13 MB."""
LENGTH_BYTES = 4
"""Before each frame, big-endian."""

Q = TypeVar("Q")
A = TypeVar("A")


@dataclass(frozen=True, slots=True)
class Job(Generic[Q, A]):
    """One entry of a worker program's table."""

    name: str
    request: type[Q]
    answer: type[A]


class JobCall(Struct, array_like=True):
    """From a node to its worker."""

    job: str
    cpu_s: float
    """Processor seconds after which the kernel ends the worker."""
    request: Raw


class JobReply(Struct, array_like=True):
    """From a worker to its node. Without an answer it says why."""

    answer: Raw = Raw(b"\xc0")
    out_of_memory: bool = False
    error: Annotated[str, Meta(max_length=400)] = ""
    rss_bytes: int = 0
    """What the worker takes now that the job is done."""


class Cause(str, Enum):
    """Why there is no answer."""

    SIGNAL = "signal"
    PROCESSOR = "processor time"
    MEMORY = "memory"
    GARBLED = "garbled answer"
    WALL_CLOCK = "wall clock"
    OUTSIDE = "ended from outside"
    ERROR = "error"


_BY_ITSELF = frozenset({Cause.SIGNAL, Cause.PROCESSOR, Cause.MEMORY, Cause.GARBLED})


@dataclass(frozen=True, slots=True)
class Death:
    """A job without an answer: its worker has been replaced."""

    cause: Cause
    detail: str = ""
    """The signal, or what was wrong; untrusted text in part."""

    @property
    def by_itself(self) -> bool:
        """Whether the job itself brought it about, rather than a busy machine, somebody else or a fault of ours."""
        return self.cause in _BY_ITSELF


def framed(message: object) -> bytes:
    """A message with its length. Raises ValueError: it is longer than a frame may be, or no Unicode."""
    data = msgspec.msgpack.encode(message)
    if len(data) > MAX_FRAME_BYTES:
        raise ValueError(f"a message of {len(data):,} bytes, {MAX_FRAME_BYTES:,} are allowed")
    return len(data).to_bytes(LENGTH_BYTES, "big") + data

"""The messages between a node and its workers: frames of msgpack, each after its length."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Annotated, Generic, TypeVar

import msgspec
from msgspec import Meta, Raw, Struct

MAX_FRAME_BYTES = 16 << 20
"""The most bytes of a request or reply. 64 attempts of 20,000 characters, each escaped as 10, come to 13 MB."""
LENGTH_BYTES = 4
"""Bytes of the length before each frame, big-endian."""

Q = TypeVar("Q")
A = TypeVar("A")


@dataclass(frozen=True, slots=True)
class Job(Generic[Q, A]):
    """A kind of work that workers do: its name, and the types of its request and answer."""

    name: str
    request: type[Q]
    answer: type[A]
    answers: msgspec.msgpack.Decoder[A] = field(init=False, repr=False, compare=False)
    """The decoder of answers. It is made here, before there are threads: msgspec 0.22 crashes the process if two of
    them are the first to decode a type."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "answers", msgspec.msgpack.Decoder(self.answer))


class JobCall(Struct, array_like=True):
    """A request of a node to a worker."""

    job: str
    cpu_s: float
    """Processor seconds after which the kernel ends the worker."""
    request: Raw


class JobReply(Struct, array_like=True):
    """The reply of a worker to its node. If there is no answer, other fields say why."""

    answer: Raw = Raw(b"\xc0")
    out_of_memory: bool = False
    error: Annotated[str, Meta(max_length=400)] = ""
    rss_bytes: int = 0
    """The worker's resident memory after the job, in bytes."""


REPLIES = msgspec.msgpack.Decoder(JobReply)
"""The decoder of replies, made before there are threads as `Job.answers` is."""


class Cause(str, Enum):
    """The reason why a job has no answer."""

    SIGNAL = "signal"
    PROCESSOR = "processor time"
    MEMORY = "memory"
    GARBLED = "garbled answer"
    WALL_CLOCK = "wall clock"
    OUTSIDE = "ended from outside"
    ERROR = "error"


_JOBS_FAULT = frozenset({Cause.SIGNAL, Cause.PROCESSOR, Cause.MEMORY, Cause.GARBLED})


@dataclass(frozen=True, slots=True)
class Death:
    """The result of a job that has no answer."""

    cause: Cause
    detail: str = ""
    """The signal or the error; untrusted text in part."""

    @property
    def is_jobs_fault(self) -> bool:
        """True if the job itself caused it, and not a busy machine, another process or a bug of codezero."""
        return self.cause in _JOBS_FAULT


def framed(message: object) -> bytes:
    """Encodes a message as a frame. Raises ValueError: it is too long, or has text that is not Unicode."""
    data = msgspec.msgpack.encode(message)
    if len(data) > MAX_FRAME_BYTES:
        raise ValueError(f"a message of {len(data):,} bytes, {MAX_FRAME_BYTES:,} are allowed")
    return len(data).to_bytes(LENGTH_BYTES, "big") + data

"""The error classes. Every error that a user can see derives from `CodezeroError` and says in one line what is wrong,
with what value, and what to do; `cli` prints that line and exits with 1. Any other error that a user sees is a bug."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

OUTAGE = 75
"""The exit code of a node that ends with a temporary error: EX_TEMPFAIL of sysexits.h."""
_SQLITE_PASSES = ("database or disk is full", "database is locked", "disk I/O error")
"""SQLite's texts of errors that may pass, whose codes Python 3.10 does not tell. The last one is also that of a full
disk, as a database is opened."""
DISK_FULL = (errno.ENOSPC, errno.EDQUOT)
"""The numbers of the errors of a full disk, and of a full share of it."""


class CodezeroError(Exception):
    """Base of every error that is reported to the user as one line."""

    may_pass = False
    """True if the same may work later with nothing changed: an outage, not a mistake."""


class ConfigError(CodezeroError):
    """A setting is unknown, of the wrong type, or impossible together with another one."""


class ModelError(CodezeroError):
    """Weights or tokenizer are not available, damaged, or of the wrong kind."""


class TaskError(CodezeroError):
    """A task source is missing or unreadable, or has no usable row."""


class PromptTooLong(TaskError):
    """A rendered prompt leaves no room in the model's context window; the task is skipped and counted."""


class EvaluatorError(CodezeroError):
    """The frozen evaluator gave no usable judgement; the rollouts in question stay unscored, never rewarded with 0."""


class ProposerError(CodezeroError):
    """The proposer's model cannot be asked, or its problems cannot be checked as configured."""


class SandboxError(CodezeroError):
    """Untrusted code cannot be run safely on this machine, or the sandbox failed; says nothing about the code."""


class WorkerError(CodezeroError):
    """The processes that parse other nodes' text cannot be started."""

    may_pass = True


class CommandError(CodezeroError):
    """A command cannot read, write or serve what it was asked for: a report, a file of solutions, the dashboard."""


class RolloutError(CodezeroError):
    """The sampler gives no rollouts."""

    may_pass = True


class TransferError(CodezeroError):
    """A rollout server cannot use the weights that a trainer sent."""


class TrainingError(CodezeroError):
    """The machine cannot hold or run the chosen training method."""


class DoesNotFit(TrainingError):
    """Training needs more memory or disk than can be used."""

    def __init__(self, needs: str, hints: Sequence[str], lacks_memory: bool) -> None:
        """`needs` says what is needed and what there is; `hints` are settings that need less."""
        super().__init__(f"{needs}: set {', or '.join(hints)}")
        self.needs, self.lacks_memory = needs, lacks_memory


class DiskTooFull(TrainingError):
    """A node that has saved rounds lacks disk to save more: other programs have taken it."""

    may_pass = True


class StateError(CodezeroError):
    """The state folder cannot be used: locked by another node, read-only, full, or made by another configuration."""


class CheckpointError(StateError):
    """A checkpoint could not be written, or none of the saved ones can be read."""


class IdentityError(CodezeroError):
    """The node's key cannot be read or written, or is in use by another live node of this machine."""


class NetworkError(CodezeroError):
    """The swarm cannot be reached or served at all; an unreachable peer or bootnode is not an error."""

    may_pass = True


class ChainError(CodezeroError):
    """The user's own chain cannot be run, reached, or used as asked."""


class Stopping(CodezeroError):
    """The node is stopping, which is not a failure."""


class LedgerError(CodezeroError):
    """The ledger could not be read or written."""


def is_outage(error: CodezeroError) -> bool:
    """Returns whether the same may work later with nothing changed: by the error's class, or since a disk was full or
    a database in use."""
    for cause in causes(error):
        if isinstance(cause, OSError) and cause.errno in DISK_FULL:
            return True
        if isinstance(cause, sqlite3.OperationalError) and str(cause) in _SQLITE_PASSES:
            return True
    return error.may_pass


def causes(error: BaseException) -> list[BaseException]:
    """Returns the error and what led to it, each once, the first cause last."""
    found: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and not any(cause is one for one in found):
        found.append(cause)
        cause = cause.__cause__ or cause.__context__
    return found


@contextmanager
def told_as(kind: type[CodezeroError], what: str, do: str = "") -> Iterator[None]:
    """Raises an OSError from inside as an error of this kind: what could not be done, the system's reason, and what to
    do about it; on a full disk first of all to free some."""
    try:
        yield
    except OSError as error:
        if error.errno in DISK_FULL and not do.startswith("free"):
            do = f"free space{do and ', or '}{do}"
        raise kind(f"{what}: {error.strerror or error}{do and '; '}{do}") from error


def first_line(error: BaseException) -> str:
    """Returns the first line of an error's text without its full stop, or the name of its type if it has no text."""
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".") if lines else type(error).__name__

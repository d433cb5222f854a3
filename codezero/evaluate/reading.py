"""Has workers read groups, several at a time, and finds the text that ends a worker.

A group whose job ended its worker is read once more in fresh workers, first its tests alone, then each attempt
alone. A text that ends this worker too, by a signal or a limit on its process, is a killer: it is remembered and never
given to a worker again. An attempt that only took too long by the clock, or met an error of ours, is read without
the dry run.
"""

from __future__ import annotations

import hashlib
import logging
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from itertools import islice

from codezero.evaluate.jobs import READ_ATTEMPTS, Attempt, AttemptRead, ReadReply, ReadRequest
from codezero.tasks.withheld import ProblemOf, task_alone
from codezero.types import Refusal, RolloutGroup, Task
from codezero.workers import Cause, Death, Workers

logger = logging.getLogger(__name__)

MAX_KILLS = 2
"""The most workers that one author's groups may end in a round, since each costs the start of a process; then its other
groups are not read. No more of its groups are read at a time."""
MAX_KILLERS = 4096
"""The most killers that are remembered."""
LOOK_AHEAD = 64
"""The most groups given to the workers at a time, the one whose result is next included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """The results of reading a group."""

    question: str = ""
    tests: str = ""
    """The question and tests of `ReadReply`."""
    attempts: Mapping[Attempt, AttemptRead | Death] = field(default_factory=dict)
    refused: Refusal | None = None
    """The reason why the group is not judged. Except for UNASKED it was not read to the end, and has no attempts."""


@dataclass(frozen=True, slots=True)
class Fresh:
    """The settings of fresh tests."""

    count: int
    """The most fresh tests of a task."""
    secret: bytes
    """The secret part of the random seed: nobody else can draw the same tests."""

    def seed(self, task: Task, round_number: int) -> bytes:
        """Returns the random seed, which is the same for all groups of a task in a round."""
        return hashlib.sha256(self.secret + _digest(task.tests) + str(round_number).encode()).digest()


@dataclass(slots=True)
class _Group:
    """A group that the workers read."""

    group: RolloutGroup
    attempts: tuple[Attempt, ...]
    author: str
    """The author as `_author` names it; empty for an own group."""
    share: float
    """The share of the usual time for dry runs, as in `ReadRequest`."""
    reference: str | None
    seed: bytes
    """Reference and seed of `ReadRequest`."""
    asked: tuple[Attempt, ...] = ()
    """The attempts that the workers were given: all but the killers known then."""
    answer: Future[ReadReply | Death] | None = None


class AttemptReader:
    """Has workers read groups. The results do not depend on the number of workers or on which is faster."""

    def __init__(
        self,
        workers: Workers,
        *,
        dry_run: bool,
        fatal_rules: bool,
        show: bool,
        problem_of: ProblemOf = task_alone,
        fresh: Fresh | None = None,
        environments: Mapping[str, str] | None = None,
    ) -> None:
        """`dry_run`, `fatal_rules` and `show` are as in `ReadRequest`; `problem_of` returns the reference and hidden
        tests of a task. Without `fresh` no fresh tests are drawn. `environments` has the modules of environments by
        name."""
        self._workers, self.dry_run, self._fatal_rules, self._show = workers, dry_run, fatal_rules, show
        self._problem_of, self._fresh, self._environments = problem_of, fresh, {"": "", **(environments or {})}
        self._killers: deque[bytes] = deque(maxlen=MAX_KILLERS)
        """Digests of tests, of tests with an attempt's text, and of references."""

    def read(
        self,
        groups: Iterable[tuple[RolloutGroup, bool, tuple[Attempt, ...]]],
        peers_share: float = 1.0,
        round_number: int = 0,
    ) -> Iterator[tuple[RolloutGroup, bool, Findings]]:
        """Yields (group, True if it is a peer's, findings) for each of `groups`, in order: (group, True if it is a
        peer's, distinct attempts). Dry runs of a peer's group get `peers_share` of the time that an own group has."""
        source, kills = iter(groups), Counter[str]()
        ahead: deque[_Group] = deque()
        while True:
            for group, external, attempts in islice(source, LOOK_AHEAD - len(ahead)):
                author, share = (_author(group), peers_share) if external else ("", 1.0)
                reference, seed = self._drawn_from(group.task, round_number)
                ahead.append(_Group(group, attempts, author, share, reference, seed))
            if not ahead:
                return
            self._submit(ahead, kills)
            first = ahead.popleft()
            yield first.group, bool(first.author), self._findings(first, kills)

    def _drawn_from(self, task: Task, round_number: int) -> tuple[str | None, bytes]:
        """Returns the reference of a task, None if there is none or it has ended a worker, and the random seed."""
        if self._fresh is None or not self.dry_run:
            return None, b""
        found = self._problem_of(task).reference
        reference = None if found is None else _sendable(found)
        if reference is not None and _digest(reference) in self._killers:
            reference = None
        return reference, self._fresh.seed(task, round_number)

    def _submit(self, ahead: Iterable[_Group], kills: Mapping[str, int]) -> None:
        """Gives groups to the workers: all own ones, and of an author at most one per worker that it may still end."""
        busy = Counter(kills)
        for one in ahead:
            if one.answer is None and (not one.author or busy[one.author] < MAX_KILLS):
                one.asked = self._harmless(one)
                one.answer = self._ask(one, one.asked, reference=one.reference)
            busy[one.author] += 1

    def _findings(self, one: _Group, kills: Counter[str]) -> Findings:
        task, harmless = one.group.task, self._harmless(one)
        if one.author and kills[one.author] >= MAX_KILLS:
            return Findings(refused=Refusal.UNREAD)
        if _digest(task.tests) in self._killers or (one.author and len(harmless) < len(one.attempts)):
            return Findings(refused=Refusal.HOSTILE)
        assert one.answer is not None
        answer = _whole(one.answer, len(one.asked))
        if isinstance(answer, Death):
            return self._one_by_one(one, answer, kills)
        read = dict(zip(one.asked, answer.attempts, strict=True))
        attempts = {attempt: read[attempt] if attempt in harmless else _AS_BEFORE for attempt in one.attempts}
        return Findings(question=answer.question, tests=answer.tests, attempts=attempts)

    def _one_by_one(self, one: _Group, death: Death, kills: Counter[str]) -> Findings:
        """Returns the findings on a group that ended its worker."""
        task, harmless = one.group.task, self._harmless(one)
        logger.info("a worker ended over task %s: %s %s", task.task_id, death.cause.value, ascii(death.detail)[1:-1])
        tests = _whole(self._ask(one, (), own_worker=True), 0)
        if not isinstance(tests, Death) and one.reference is not None and self._is_killed_by_reference(one):
            self._killers.append(_digest(one.reference))
        else:
            kills[one.author] += death.is_jobs_fault
        if isinstance(tests, Death) and tests.is_jobs_fault:
            self._killers.append(_digest(task.tests))
            kills[one.author] += 1
            return Findings(refused=Refusal.HOSTILE)
        found: dict[Attempt, AttemptRead | Death] = dict.fromkeys(one.attempts, _AS_BEFORE)
        shown = ReadReply()
        for attempt in harmless:
            answer = self._alone(one, attempt, death)
            if isinstance(answer, ReadReply):
                (found[attempt],) = answer.attempts
                shown = answer if answer.attempts[0].shown is not None else shown
                continue
            found[attempt] = answer
            if answer.is_jobs_fault:
                self._killers.append(_digest(task.tests, attempt.text))
                kills[one.author] += 1
                if one.author:
                    return Findings(refused=Refusal.HOSTILE)
        return Findings(question=shown.question, tests=shown.tests, attempts=found)

    def _is_killed_by_reference(self, one: _Group) -> bool:
        """Returns whether the reference ends the worker that draws fresh tests, which is not the group's fault."""
        answer = _whole(self._ask(one, (), own_worker=True, reference=one.reference), 0)
        return isinstance(answer, Death) and answer.is_jobs_fault

    def _alone(self, one: _Group, attempt: Attempt, death: Death) -> ReadReply | Death:
        """Reads one attempt; a second time without a dry run if its worker dies and that may not be its fault."""
        answer = _whole(self._ask(one, (attempt,), own_worker=True), 1)
        has_dry_run = not one.group.task.environment
        if has_dry_run and isinstance(answer, Death) and not (answer.is_jobs_fault and death.is_jobs_fault):
            answer = _whole(self._ask(one, (attempt,), own_worker=True, dry_run=False), 1)
        return answer

    def _harmless(self, one: _Group) -> tuple[Attempt, ...]:
        """Returns the group's attempts without known killers."""
        tests = one.group.task.tests
        return tuple(attempt for attempt in one.attempts if _digest(tests, attempt.text) not in self._killers)

    def _ask(
        self,
        one: _Group,
        attempts: Sequence[Attempt],
        *,
        own_worker: bool = False,
        dry_run: bool = True,
        reference: str | None = None,
    ) -> Future[ReadReply | Death]:
        task = one.group.task
        request = ReadRequest(
            origin=task.origin,
            question=_sendable(task.question),
            tests=_sendable(task.tests),
            attempts=tuple(Attempt(_sendable(attempt.text), _sendable(attempt.code)) for attempt in attempts),
            dry_run=dry_run and self.dry_run,
            fatal_rules=self._fatal_rules,
            show=self._show,
            share=one.share,
            more_tests=self._problem_of(task).more_tests,
            reference=reference,
            num_fresh=self._fresh.count if self._fresh is not None else 0,
            seed=one.seed,
            environment=self._environments[task.environment],
        )
        return self._workers.submit(READ_ATTEMPTS, request, request.cpu_s, fresh=own_worker)


_AS_BEFORE = Death(Cause.SIGNAL, "as before")


def _author(group: RolloutGroup) -> str:
    """Returns the author of a group, whose groups share `MAX_KILLS`: the address if it is certain, else the peer's
    name."""
    return f"at {group.address}" if group.address_is_certain else f"named {group.peer_id}"


def _whole(answer: Future[ReadReply | Death], num_attempts: int) -> ReadReply | Death:
    found = answer.result()
    if isinstance(found, ReadReply) and len(found.attempts) != num_attempts:
        return Death(Cause.GARBLED, "the wrong number of attempts")
    return found


def _digest(*texts: str) -> bytes:
    digest = hashlib.sha256()
    for text in texts:
        digest.update(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest())
    return digest.digest()


def _sendable(text: str) -> str:
    """Returns the text with question marks for single surrogates, which JSON may hold."""
    return text.encode("utf-8", "replace").decode()

"""Having groups examined by workers, several at a time, and telling which text it is that kills them.

A group whose job took its worker down is examined once more in fresh workers, its tests alone and then each attempt
alone. What does it again there, by a signal or by a limit of its own, is a killer: it is remembered, and never given
to a worker again. What only took too long by the clock, or met a fault of ours, is examined without the dry run.
"""

from __future__ import annotations

import hashlib
import logging
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from itertools import islice

from codezero.evaluate.examination import EXAMINE, Attempt, ExaminationReply, Examine, Examined
from codezero.types import Refusal, RolloutGroup, Task
from codezero.workers import Cause, Death, Workers

logger = logging.getLogger(__name__)

ReferenceOf = Callable[[Task], str | None]
"""Finds the source of a solution that the node has at hand; it is strangers' text, and no part of the task."""
MAX_KILLS = 2
"""Workers that the groups of one author may kill in a round, and how many of its groups are examined at a time: a kill
costs the start of a process. The rest of them go unread."""
MAX_KILLERS = 4096
"""Killers that are remembered."""
LOOK_AHEAD = 64
"""Groups that are given to the workers before the first of them is asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What reading a group came to."""

    question: str = ""
    tests: str = ""
    """As `ExaminationReply` has them."""
    attempts: Mapping[Attempt, Examined | Death] = field(default_factory=dict)
    refused: Refusal | None = None
    """Why it is not judged; unless it is unasked, it was not read to the end and there are no attempts."""


@dataclass(frozen=True, slots=True)
class Fresh:
    """What fresh tests are drawn from."""

    reference_of: ReferenceOf
    count: int
    """Most that are drawn for a task."""
    secret: bytes
    """Without it nobody can draw the same ones."""

    def seed(self, task: Task, round_number: int) -> bytes:
        """The same for all groups of a task in a round."""
        return hashlib.sha256(self.secret + _digest(task) + str(round_number).encode()).digest()


@dataclass(slots=True)
class _Group:
    """A group on its way through the workers."""

    group: RolloutGroup
    attempts: tuple[Attempt, ...]
    author: str
    """Who is answerable for it; empty for an own group."""
    share: float
    """`Examine.share`."""
    reference: str | None
    seed: bytes
    """As `Examine` has them."""
    asked: tuple[Attempt, ...] = ()
    """Those that the workers were given: all but the killers that were known then."""
    answer: Future[ExaminationReply | Death] | None = None


class Examiner:
    """Asks workers about groups. What it answers does not depend on how many there are, nor on which is the faster."""

    def __init__(
        self,
        workers: Workers,
        *,
        walk: bool,
        fatal_rules: bool,
        show: bool,
        more_tests: Callable[[Task], str] = lambda task: "",
        fresh: Fresh | None = None,
    ) -> None:
        """The three settings are those of `Examine`; `more_tests` are known of a task beside those that it has. Without
        `fresh` nothing is drawn."""
        self._workers, self.walk, self._fatal_rules, self._show = workers, walk, fatal_rules, show
        self._more_tests, self._fresh = more_tests, fresh
        self._killers: deque[bytes] = deque(maxlen=MAX_KILLERS)

    def examine(
        self,
        groups: Iterable[tuple[RolloutGroup, bool, tuple[Attempt, ...]]],
        peers_share: float = 1.0,
        round_number: int = 0,
    ) -> Iterator[tuple[RolloutGroup, bool, Findings]]:
        """The findings on each (group, whether it is a peer's, distinct attempts), in order. Dry runs of a peer's group
        get `peers_share` of the time that those of an own group have."""
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
        """A reference, if there is one that has killed no worker, and the seed."""
        if self._fresh is None or not self.walk:
            return None, b""
        reference, seed = self._fresh.reference_of(task), self._fresh.seed(task, round_number)
        is_killer = reference is None or _text_digest(reference) in self._killers
        return None if is_killer or reference is None else _sendable(reference), seed

    def _submit(self, ahead: Iterable[_Group], kills: Mapping[str, int]) -> None:
        """Gives groups to the workers: all own ones, and of each author as many as it may still kill with."""
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
        if _digest(task) in self._killers or (one.author and len(harmless) < len(one.attempts)):
            return Findings(refused=Refusal.HOSTILE)
        assert one.answer is not None
        answer = _whole(one.answer, len(one.asked))
        if isinstance(answer, Death):
            return self._one_by_one(one, answer, kills)
        read = dict(zip(one.asked, answer.attempts, strict=True))
        attempts = {attempt: read[attempt] if attempt in harmless else _AS_BEFORE for attempt in one.attempts}
        return Findings(question=answer.question, tests=answer.tests, attempts=attempts)

    def _one_by_one(self, one: _Group, death: Death, kills: Counter[str]) -> Findings:
        """The findings on a group that took its worker down."""
        task, harmless = one.group.task, self._harmless(one)
        logger.info("a worker ended over task %s: %s %s", task.task_id, death.cause.value, ascii(death.detail)[1:-1])
        tests = _whole(self._ask(one, (), fresh=True), 0)
        if not isinstance(tests, Death) and one.reference is not None and self._is_killed_by_reference(one):
            self._killers.append(_text_digest(one.reference))
        else:
            kills[one.author] += death.by_itself
        if isinstance(tests, Death) and tests.by_itself:
            self._killers.append(_digest(task))
            kills[one.author] += 1
            return Findings(refused=Refusal.HOSTILE)
        found: dict[Attempt, Examined | Death] = dict.fromkeys(one.attempts, _AS_BEFORE)
        shown = ExaminationReply()
        for attempt in harmless:
            answer = self._alone(one, attempt, death)
            if isinstance(answer, ExaminationReply):
                (found[attempt],) = answer.attempts
                shown = answer if answer.attempts[0].shown is not None else shown
                continue
            found[attempt] = answer
            if answer.by_itself:
                self._killers.append(_digest(task, attempt))
                kills[one.author] += 1
                if one.author:
                    return Findings(refused=Refusal.HOSTILE)
        return Findings(question=shown.question, tests=shown.tests, attempts=found)

    def _is_killed_by_reference(self, one: _Group) -> bool:
        """Whether the reference ends the worker that draws from it, which is no fault of the group's author."""
        answer = _whole(self._ask(one, (), fresh=True, reference=one.reference), 0)
        return isinstance(answer, Death) and answer.by_itself

    def _alone(self, one: _Group, attempt: Attempt, death: Death) -> ExaminationReply | Death:
        """One attempt's examination; without a dry run after a death that may not be its fault."""
        answer = _whole(self._ask(one, (attempt,), fresh=True), 1)
        if isinstance(answer, Death) and not (answer.by_itself and death.by_itself):
            answer = _whole(self._ask(one, (attempt,), fresh=True, walk=False), 1)
        return answer

    def _harmless(self, one: _Group) -> tuple[Attempt, ...]:
        """Its attempts without the killers that are known."""
        return tuple(attempt for attempt in one.attempts if _digest(one.group.task, attempt) not in self._killers)

    def _ask(
        self,
        one: _Group,
        attempts: Sequence[Attempt],
        *,
        fresh: bool = False,
        walk: bool = True,
        reference: str | None = None,
    ) -> Future[ExaminationReply | Death]:
        task = one.group.task
        request = Examine(
            origin=task.origin,
            question=_sendable(task.question),
            tests=_sendable(task.tests),
            attempts=tuple(Attempt(_sendable(attempt.text), _sendable(attempt.code)) for attempt in attempts),
            walk=walk and self.walk,
            fatal_rules=self._fatal_rules,
            show=self._show,
            share=one.share,
            more_tests=self._more_tests(task),
            reference=reference,
            num_fresh=self._fresh.count if self._fresh is not None else 0,
            seed=one.seed,
        )
        return self._workers.submit(EXAMINE, request, request.cpu_s, fresh=fresh)


_AS_BEFORE = Death(Cause.SIGNAL, "as before")


def _author(group: RolloutGroup) -> str:
    """Whose further groups of a round go unread: an address that is answerable for it, else the name that it has."""
    return f"at {group.address}" if group.answerable else f"named {group.peer_id}"


def _whole(answer: Future[ExaminationReply | Death], num_attempts: int) -> ExaminationReply | Death:
    found = answer.result()
    if isinstance(found, ExaminationReply) and len(found.attempts) != num_attempts:
        return Death(Cause.GARBLED, "the wrong number of attempts")
    return found


def _digest(task: Task, attempt: Attempt | None = None) -> bytes:
    """Of the tests, and of the program that was walked over them."""
    return _text_digest(task.tests) if attempt is None else _text_digest(task.tests, attempt.text)


def _text_digest(*texts: str) -> bytes:
    digest = hashlib.sha256()
    for text in texts:
        digest.update(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest())
    return digest.digest()


def _sendable(text: str) -> str:
    """Half a surrogate pair, which JSON may hold, becomes a question mark."""
    return text.encode("utf-8", "replace").decode()

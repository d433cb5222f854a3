"""Answers one question of the judge service per round with the current policy, in its own thread.

The round never waits for it and never fails because of it: with a slow or absent service a round has no score.
"""

from __future__ import annotations

import logging
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING

from codezero.errors import CodezeroError, StateError, Stopping, told_as
from codezero.runtime.files import replace_file, stored
from codezero.runtime.reminders import Reminders
from codezero.runtime.worker import Worker
from codezero.services.judge.client import JudgeService

if TYPE_CHECKING:
    from codezero.policy.query import QueryPolicy

STOP_S = 3.0
"""Longest wait in seconds for the end of the thread."""

logger = logging.getLogger(__name__)


class Examination:
    """The examinations of one peer. All methods return at once."""

    def __init__(
        self, service: JudgeService, policy: QueryPolicy, *, peer_id: str, model_name: str, notes: Path
    ) -> None:
        """`notes` is the file with the last round that was answered, so that a round that is played again after a kill
        is not answered twice."""
        self._service, self._policy, self._peer_id, self._model_name = service, policy, peer_id, model_name
        self._notes = notes
        self._worker = Worker("examination", self._work)
        self._rounds, self._scores = deque[int](maxlen=1), deque[float](maxlen=1)
        self._reminders = Reminders()
        self.trouble = ""
        """The reason why the last examination gave no score; empty if it gave one. Partly untrusted text."""

    def start(self) -> None:
        self._worker.start()

    def begin(self, round_number: int) -> None:
        """Starts the examination of this round, or, while one of an earlier round runs, queues it."""
        self._rounds.append(round_number)
        self._worker.wake()

    def take_score(self) -> float | None:
        """Returns the latest score, once; None if there is no new one. It may be of an earlier round."""
        return self._scores.pop() if self._scores else None

    def stop(self) -> None:
        """Stops the thread; an examination under way is abandoned."""
        self._worker.stop(STOP_S)

    def _work(self) -> None:
        if self._worker.is_stopping or not self._rounds or (number := self._rounds.pop()) <= self._last():
            return
        try:
            self._scores.append(self._examine(number))
            self.trouble = ""
        except Stopping:
            raise
        except CodezeroError as error:  # the service is away, or its question does not fit the model
            self._warn(str(error))
        except Exception:  # the thread's boundary: whatever breaks in here must not end the node's training
            logger.exception("the examination of round %d failed", number)
            self._warn("internal error in the examination, see the log: please report it")

    def _last(self) -> int:
        """Returns the last round that was answered, -1 before the first."""
        last = stored(self._notes, int)
        return -1 if last is None else last

    def _examine(self, number: int) -> float:
        question = self._service.request_question(self._peer_id, number, self._model_name)
        answer = self._policy.answer(question.text)
        with told_as(StateError, f"cannot write {self._notes}", "free space, no answer is sent"):
            replace_file(self._notes, f"{number}\n")
        score = self._service.submit_answer(question, number, answer)
        logger.info("the judge service gave the answer of round %d the score %g", number, score)
        return score

    def _warn(self, text: str) -> None:
        self.trouble = text
        if self._reminders.is_due("no score"):
            logger.warning("%s", text)
        else:
            logger.info("%s", text)

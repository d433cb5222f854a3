"""Answers one question of the judge service per round with the current policy, in its own thread.

The round never waits for it and never fails because of it: with a slow or absent service a round has no score.
"""

from __future__ import annotations

import logging
import threading
import time
from pathlib import Path
from typing import Protocol

from codezero.errors import CodezeroError, StateError, Stopping
from codezero.services.judge.client import Question

REMIND_S = 3600.0
"""Seconds between two warnings that the service does not answer."""

logger = logging.getLogger(__name__)


class Answerer(Protocol):
    """The current policy. Calls come from the examination's thread; implementations keep them apart from training."""

    def answer(self, question: str) -> str:
        """Returns a completion of the chat that asks `question`, which is untrusted text without control tokens."""
        ...


class Service(Protocol):
    """The methods of `JudgeService` that an examination uses."""

    def request_question(self, peer_id: str, round_number: int, model_name: str) -> Question: ...

    def submit_answer(self, question: Question, round_number: int, answer: str) -> float: ...


class Examination:
    """The examinations of one peer. All methods return at once."""

    def __init__(self, service: Service, policy: Answerer, *, peer_id: str, model_name: str, notes: Path) -> None:
        """`notes` is the file with the last round that was answered, so that a round that is played again after a kill
        is not answered twice."""
        self._service, self._policy, self._peer_id, self._model_name = service, policy, peer_id, model_name
        self._notes = notes
        self._thread = threading.Thread(target=self._run, name="examination", daemon=True)
        self._asked, self._stopping = threading.Condition(), False
        self._round: int | None = None
        self._score: float | None = None
        self._warned_at_s = -REMIND_S
        self.trouble = ""
        """The reason why the last examination gave no score; empty if it gave one. Partly untrusted text."""

    def start(self) -> None:
        self._thread.start()

    def begin(self, round_number: int) -> None:
        """Starts the examination of this round, or, while one of an earlier round runs, queues it."""
        with self._asked:
            self._round = round_number
            self._asked.notify()

    def take_score(self) -> float | None:
        """Returns the latest score, once; None if there is no new one. It may be of an earlier round."""
        with self._asked:
            score, self._score = self._score, None
        return score

    def stop(self, timeout_s: float = 3.0) -> None:
        """Stops the thread; an examination under way is abandoned."""
        with self._asked:
            self._stopping = True
            self._asked.notify()
        if self._thread.is_alive():
            self._thread.join(timeout_s)

    def _run(self) -> None:
        while True:
            with self._asked:
                self._asked.wait_for(lambda: self._round is not None or self._stopping)
                number, self._round = self._round, None
                if self._stopping or number is None:
                    return
            if number <= self._last():
                continue
            try:
                score = self._examine(number)
            except Stopping:
                return
            except CodezeroError as error:  # the service is away, or its question does not fit the model
                self._warn(str(error))
            except Exception:  # the thread's boundary: whatever breaks in here must not end the node's training
                logger.exception("the examination of round %d failed", number)
                self._warn("internal error in the examination, see the log: please report it")
            else:
                self.trouble = ""
                with self._asked:
                    self._score = score

    def _last(self) -> int:
        """Returns the last round that was answered, -1 before the first."""
        try:
            return int(self._notes.read_text(encoding="ascii"))
        except (OSError, ValueError):
            return -1

    def _examine(self, number: int) -> float:
        question = self._service.request_question(self._peer_id, number, self._model_name)
        answer = self._policy.answer(question.text)
        try:
            self._notes.write_text(f"{number}\n", encoding="ascii")
        except OSError as error:
            raise StateError(f"cannot write {self._notes}: {error.strerror}; free space, no answer is sent") from error
        score = self._service.submit_answer(question, number, answer)
        logger.info("the judge service gave the answer of round %d the score %g", number, score)
        return score

    def _warn(self, text: str) -> None:
        self.trouble = text
        now_s = time.monotonic()
        if now_s - self._warned_at_s >= REMIND_S:
            self._warned_at_s = now_s
            logger.warning("%s", text)
        else:
            logger.info("%s", text)

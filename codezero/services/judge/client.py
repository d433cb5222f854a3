"""The HTTP client of the judge service.

    POST {judge}/request-question/  {user_id, round_number, model_name}       -> {session_id, question}
    POST {judge}/submit-answer/     {session_id, round_number, user_answer}   -> {score}
    GET  {judge}/current_clue/      -> {game_id, clue_id, rounds_remaining, clue, choices}

Its replies are untrusted: every field is bounded, and text is neutralised before it is used.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta

from codezero.errors import CodezeroError
from codezero.llm.client import JsonClient, Purpose
from codezero.prompts.neutral import plain

MAX_PART_CHARS = 20_000
"""The largest length of a question, a clue or an answer, in characters."""
MAX_CHOICES = 64
MAX_CHOICE_CHARS = 500
MAX_NUMBER = 1 << 53
"""The largest integer that every JSON parser reads exactly."""

_Reply = TypeVar("_Reply")
_Text = Annotated[str, Meta(max_length=MAX_PART_CHARS)]
_Number = Annotated[int, Meta(ge=-MAX_NUMBER, le=MAX_NUMBER)]
_Session = Annotated[str, Meta(min_length=1, max_length=500)] | Annotated[int, Meta(ge=-MAX_NUMBER, le=MAX_NUMBER)]


class JudgeServiceError(CodezeroError):
    """Raised if the judge service cannot be asked, or its reply is invalid. It never ends a round."""


class Question(msgspec.Struct, frozen=True):
    session_id: _Session
    text: _Text = msgspec.field(name="question")
    """The question; neutralised by `JudgeService`."""


class _Score(msgspec.Struct):
    score: float


class _Clue(msgspec.Struct):
    """The current round; the last two are null while no game is open."""

    game_id: _Number
    clue_id: _Number
    rounds_remaining: _Number
    clue: _Text | None = None
    choices: Annotated[list[Annotated[str, Meta(max_length=MAX_CHOICE_CHARS)]], Meta(max_length=MAX_CHOICES)] | None = (
        None
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Clue:
    """The open round of a game; texts are neutralised."""

    game: int
    clue: int
    """The number of the clue, from 0 in each game: the game's round on the chain."""
    rounds_remaining: int
    text: str
    choices: tuple[str, ...]


class JudgeService:
    """A judge service. Every method takes at most `timeout_s` and raises JudgeServiceError."""

    def __init__(self, url: str, *, timeout_s: float = 10.0) -> None:
        """Raises JudgeServiceError: the URL is not usable."""
        purpose = Purpose(who="the judge service", section="judge", error=JudgeServiceError, serves_model=False)
        # No retries: the callers ask again anyway, and an answer must not be submitted twice.
        self._client = JsonClient(url, purpose, timeout_s=timeout_s, retries=0, at_once=1)

    def request_question(self, peer_id: str, round_number: int, model_name: str) -> Question:
        body = {"user_id": peer_id, "round_number": round_number, "model_name": model_name}
        found = self._post("/request-question/", body, Question)
        text = plain(found.text).strip()
        if not text:
            raise JudgeServiceError(f"the judge service at {self._client.place} sent no question for this round")
        return msgspec.structs.replace(found, text=text)

    def submit_answer(self, question: Question, round_number: int, answer: str) -> float:
        """Submits an answer and returns its score, a finite number on the service's own scale."""
        answer = answer[:MAX_PART_CHARS].encode("utf-8", "replace").decode()  # a model may sample half a character
        body = {"session_id": question.session_id, "round_number": round_number, "user_answer": answer}
        score = self._post("/submit-answer/", body, _Score).score
        if not math.isfinite(score):
            raise JudgeServiceError(f"the judge service at {self._client.place} gave the score {score}: not counted")
        return score

    def current_clue(self) -> Clue | None:
        """Returns the current clue, or None while no game is open, which the service reports by a negative number."""
        found = self._client.get("/current_clue/", _Clue)
        if found is None:
            raise self._refused()
        if min(found.game_id, found.clue_id, found.rounds_remaining) < 0:
            return None
        text, choices = plain(found.clue or "").strip(), tuple(_choice(choice) for choice in found.choices or ())
        if not text or len(choices) < 2 or not all(choices) or len(set(choices)) < len(choices):
            raise JudgeServiceError(
                f"the judge service at {self._client.place} sent game {found.game_id} without a clue or with choices "
                "that cannot be told apart: no bet"
            )
        return Clue(
            game=found.game_id,
            clue=found.clue_id,
            rounds_remaining=found.rounds_remaining,
            text=text,
            choices=choices,
        )

    def _post(self, path: str, body: object, reply: type[_Reply]) -> _Reply:
        (found,) = self._client.ask(path, [body], reply)
        if found is None:
            raise self._refused()
        return found

    def _refused(self) -> JudgeServiceError:
        return JudgeServiceError(f"the judge service at {self._client.place} refuses the request: see the log")


def _choice(text: str) -> str:
    """Returns a choice neutralised, on one line."""
    return " ".join(plain(text).split())

"""Turns a model's drafts into proposals, or rejects them with a reason."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from codezero.proposals import Proposal
from codezero.proposer import jobs
from codezero.proposer.duplicates import Seen
from codezero.proposer.reference import ReferenceCheck
from codezero.proposer.write import Draft
from codezero.workers import Workers


class Checker:
    """Checks drafts. It remembers those it has accepted, so that no problem is proposed twice."""

    def __init__(
        self, *, peer_id: str, model_id: str, seen: Seen, reference: ReferenceCheck | None, workers: Workers
    ) -> None:
        self._peer_id, self._model_id, self._seen, self._reference = peer_id, model_id, seen, reference
        self._workers = workers

    def check(self, draft: Draft) -> Proposal | str:
        """Returns the proposal, or the reason why there is none, as the word that reports count it by. Raises
        ProposerError: the sandbox failed."""
        answer = draft.answer
        if answer is None:
            return "unreadable"
        question, tests = answer.question, answer.tests
        reason = jobs.why_not(self._workers, question, tests) or self._seen.why_not(question, tests)
        if reason is None and self._reference is not None:
            confirmed, reason = self._reference.confirm_or_correct_tests(answer.solution, tests)
            if reason is None and confirmed != tests:
                tests, reason = confirmed, jobs.why_not(self._workers, question, confirmed)
        if reason is not None:
            return reason
        self._seen.add(question, tests)
        return Proposal(
            peer_id=self._peer_id,
            model_id=self._model_id,
            question=question,
            tests=tests,
            difficulty=draft.level,
            raw=draft.raw,
        )

    def state_dict(self) -> dict[str, Any]:
        return self._seen.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._seen.load_state_dict(state)

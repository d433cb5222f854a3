"""The reward of an answer of test cases, from the results of dry runs.

    reward = 1/2 share of its cases that are valid + 1/2 diagnosis

The rule is that of AstraFlow's recipe `code_actor_and_verify` v3 (Apache-2.0): an answer is valid if the reference
solution passes all its cases, whose inputs have different values, and its diagnosis is right if it is valid and its
verdict on the candidate that the writer has seen, approved if that passes all cases, is the truth. What differs is
that one valid case of two earns half of the first part, since a small model seldom writes two; that cases that refuse
a wrong candidate are graded by the share of all wrong candidates that they reject, so that cases which many mistakes
fail earn more than those which one mistake fails; and that an answer whose results are not known is masked, not judged.

So cases that everybody passes earn one half, and one where the candidate is right: the base rate. Refusing everything
takes cases with wrong results, which are not valid, and earns nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from codezero.prompts.verifier import NUM_CASES
from codezero.types import CaseOutcome, Reward

HALF = 0.5
"""The share of the reward for valid cases; the rest is for the diagnosis."""

Outcomes = Sequence[CaseOutcome]
"""The results of a program on the usable cases of an answer, in their order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResults:
    """The results of an answer's cases."""

    inputs: Sequence[int]
    """The input of each usable case as a number, the same for inputs of equal values."""
    reference: Outcomes
    candidate: Outcomes
    wrong: Sequence[Outcomes]
    """The results of each candidate that is known to be wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedAnswer:
    """The judgement of an answer."""

    valid: bool
    approves: bool
    """True if the candidate passes all cases."""
    right: bool
    """True if the answer is valid and approves of a right candidate, or refuses a wrong one."""
    reward: Reward


def judge(results: CaseResults, is_right: bool) -> JudgedAnswer | None:
    """Returns the judgement of an answer about a candidate that is right or not; None if results that decide it are
    not known."""
    has_all = len(set(results.inputs)) == len(results.inputs) == NUM_CASES
    approves = has_all and _passes(results.candidate) is True
    if not has_all or _passes(results.reference) is False:
        if CaseOutcome.UNKNOWN in results.reference:
            return None
        return _judged(_share_valid(results), approves=approves, right=False, grade=0.0)
    if _passes(results.reference) is None or _passes(results.candidate) is None:
        return None
    right = approves is is_right
    grade = _share_rejected(results.wrong) if right and not is_right else 1.0
    return _judged(1.0, approves=approves, right=right, grade=grade)


def _judged(share_valid: float, *, approves: bool, right: bool, grade: float) -> JudgedAnswer:
    parts = {"valid": HALF * share_valid, "diagnosis": (1 - HALF) * grade * right}
    return JudgedAnswer(
        valid=share_valid == 1.0, approves=approves, right=right, reward=Reward(total=sum(parts.values()), parts=parts)
    )


def _passes(outcomes: Outcomes) -> bool | None:
    """Returns whether all cases pass; None if that is not known. One that fails decides, whatever the others do."""
    if CaseOutcome.FAIL in outcomes:
        return False
    return None if CaseOutcome.UNKNOWN in outcomes else True


def _share_valid(results: CaseResults) -> float:
    """Returns the share of the cases asked for that the reference is known to pass, one for each input."""
    told = zip(results.inputs, results.reference, strict=True)
    return len({given for given, outcome in told if outcome is CaseOutcome.PASS}) / NUM_CASES


def _share_rejected(wrong: Sequence[Outcomes]) -> float:
    """Returns the share of wrong candidates that fail a case. Those whose results are not known count among the
    others, so that cases which nothing can follow earn no more; the candidate that the writer has seen fails one."""
    return sum(_passes(one) is False for one in wrong) / len(wrong)

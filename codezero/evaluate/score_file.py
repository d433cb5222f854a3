"""Scores stored solutions with the evaluator of a round, from lines of JSON to lines of JSON."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from itertools import chain, groupby
from pathlib import Path
from typing import Any

from codezero.errors import CommandError
from codezero.evaluate.evaluator import FrozenEvaluator
from codezero.runtime.console import Console
from codezero.runtime.results import Results
from codezero.tasks.withheld import Problem, ProblemOf
from codezero.types import FinishReason, Outcome, Rollout, RolloutGroup, ScoredGroup, Task, TaskOrigin

MAX_GROUP = 64
"""The most solutions judged as one group; longer runs of one problem are split."""

MakeEvaluator = Callable[[ProblemOf], AbstractContextManager[FrozenEvaluator]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """One line of the input: a solution to a problem, or the reason why it has none."""

    number: int
    fields: Mapping[str, Any]
    task: Task | None = None
    rollout: Rollout | None = None
    reference: str | None = None
    """A solution that fresh tests may be drawn from."""
    error: str = ""

    @property
    def group(self) -> tuple[object, ...]:
        """The value that neighbouring lines share if they are judged as one group."""
        return (self.fields.get("group"), self.task, self.task is None and self.number)


def score_file(
    source: str, target: str, settings: Sequence[str], make_evaluator: MakeEvaluator, console: Console
) -> tuple[int, int]:
    """Scores the lines of a file into another. Returns how many lines have a reward and how many have none.

    Lines are written as soon as their group is scored, and the settings into a file beside them: a run with the same
    input and settings resumes one that was stopped. Raises CommandError: the input cannot be read, or is the output;
    StateError: the output cannot be written, or was made of another input or with other settings; ModelError or
    EvaluatorError: there is no judge.
    """
    if Path(target).resolve() == Path(source).resolve():
        raise CommandError(f"{target} is the input: give --out another name")
    try:
        content = Path(source).read_bytes()
    except OSError as error:
        raise CommandError(f"{source}: {error.strerror}: check the path and your rights") from error
    made_with = {"input": hashlib.sha256(content).hexdigest(), "settings": list(settings)}
    lines = content.decode("utf-8-sig", errors="replace").split("\n")  # some editors put a byte order mark first
    groups = grouped(lines)
    total = sum(map(len, groups))
    with Results(Path(target), Path(f"{target}.settings.json"), made_with) as results:
        if len(results.rows) < total:
            references = references_of(groups)
            with make_evaluator(lambda task: Problem(task=task, reference=references.get(task))) as evaluator:
                console.line(f"{len(results.rows)} of {total} lines are scored")
                for scored in score_stored(groups, evaluator, done=len(results.rows)):
                    results.append([scored])
                    console.progress("score", len(results.rows), total)
        num_scored = sum("reward" in row for row in results.rows)
    return num_scored, total - num_scored


def grouped(lines: Iterable[str]) -> list[list[Stored]]:
    """Returns the solutions in lines of JSON, in order. Neighbouring lines of one `group` (or, without it, one problem)
    share a prompt and are one list; so is each line without a solution, which has `error`."""
    stored = (read_line(line, number) for number, line in enumerate(lines, start=1) if line.strip())
    groups: list[list[Stored]] = []
    for _, run in groupby(stored, key=lambda one: one.group):
        members = list(run)
        groups += (members[start : start + MAX_GROUP] for start in range(0, len(members), MAX_GROUP))
    return groups


def references_of(groups: Iterable[Sequence[Stored]]) -> dict[Task, str]:
    """Returns the first reference that is given for each problem."""
    found: dict[Task, str] = {}
    for member in chain.from_iterable(groups):
        if member.task is not None and member.reference is not None:
            found.setdefault(member.task, member.reference)
    return found


def score_stored(
    groups: Iterable[Sequence[Stored]], evaluator: FrozenEvaluator, done: int = 0
) -> Iterator[dict[str, Any]]:
    """Yields a scored line for each solution but the first `done`, in order; for a line without one it has `error`."""
    left: list[tuple[Sequence[Stored], int]] = []
    for members in groups:
        if len(members) > done:
            left.append((members, done))
        done = max(done - len(members), 0)
    scored = evaluator.score_groups((_group(members), False) for members, _ in left if members[0].task is not None)
    for members, written in left:
        if members[0].task is None:
            yield from ({**_names(member), "error": member.error} for member in members[written:])
            continue
        found = next(scored)
        for position, member in enumerate(members[written:], start=written):
            yield {**_names(member), **_scores(found, position)}


def _group(members: Sequence[Stored]) -> RolloutGroup:
    task = members[0].task
    assert task is not None
    rollouts = tuple(member.rollout for member in members if member.rollout is not None)
    return RolloutGroup(peer_id="", model_id="", policy_version=0, task=task, rollouts=rollouts)


def read_line(line: str, number: int) -> Stored:
    """Reads a solution from a line of JSON with question, tests (text or list), source and solution, and optional id,
    group, finish and reference. `error` of the result says what is wrong with the line."""
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError) as error:
        return Stored(number=number, fields={}, error=f"line {number} is not JSON: {error}")
    if not isinstance(fields, dict):
        return Stored(number=number, fields={}, error=f"line {number} is not a JSON object")
    try:
        tests = fields["tests"]
        task = Task(
            origin=TaskOrigin(fields["source"]),
            question=_question(fields["question"]),
            tests="\n".join(_text(test, "tests") for test in (tests if isinstance(tests, list) else [tests])),
        )
        finish = FinishReason(fields.get("finish", "stop"))
        # A solution that is not text is scored as such: peers send these too.
        rollout = Rollout(text=fields["solution"], finish=finish)
        reference = None if fields.get("reference") is None else _text(fields["reference"], "reference")
    except KeyError as error:
        return Stored(number=number, fields=fields, error=f"line {number} lacks {error.args[0]}")
    except ValueError as error:
        return Stored(number=number, fields=fields, error=f"line {number}: {error}")
    return Stored(number=number, fields=fields, task=task, rollout=rollout, reference=reference)


def _text(value: object, name: str) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{name} must be text, or for tests a list of texts, not {type(value).__name__}")
    return value


def _question(value: object) -> str:
    """Returns a question, of which the id of its task is made. Raises ValueError: it is not text, or not Unicode."""
    text = _text(value, "question")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("question must be valid Unicode, without single surrogates") from None
    return text


def _scores(found: ScoredGroup, position: int) -> dict[str, Any]:
    """Returns the fields of an output line for one attempt of a group."""
    verdict = found.verdicts[position]
    scores = {
        "outcome": verdict.outcome.value,
        "p_correct": verdict.p_correct,
        "rules": dict(verdict.rules),
        "reasons": dict(verdict.reasons),
        "cases": [case.outcome.value for case in verdict.cases],
        "fresh": asdict(verdict.fresh),
    }
    reward = found.rewards[position] if found.rewards else None
    if reward is None:
        unsure = "neither the dry run nor the judge can tell whether it is right"
        unscored = verdict.reply or "the group stays unscored: the evaluator could not judge all of it"
        return {**scores, "error": unsure if verdict.outcome is Outcome.UNSURE else unscored}
    return {**scores, "parts": dict(reward.parts), "reward": reward.total}


def _names(member: Stored) -> dict[str, Any]:
    return {name: member.fields[name] for name in ("id", "group") if name in member.fields}

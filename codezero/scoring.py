"""Scoring of stored solutions: lines of JSON in, lines of JSON out, by the evaluator that a round uses."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from codezero import judging
from codezero.config import NodeConfig
from codezero.errors import ScoringError
from codezero.observe.console import Console
from codezero.types import FinishReason, Rollout, RolloutGroup, ScoredGroup, Task, TaskOrigin

MAX_GROUP = 64
"""Most solutions judged as one group; longer runs of one problem are cut."""

ScoreGroup = Callable[[RolloutGroup], ScoredGroup]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """One line: a solution to a problem, or why it is none."""

    number: int
    fields: Mapping[str, Any]
    task: Task | None = None
    rollout: Rollout | None = None
    error: str = ""

    @property
    def group(self) -> tuple[object, ...]:
        """What lines must share to be judged side by side."""
        return (self.fields.get("group"), self.task, self.task is None and self.number)


def score_file(source: str, target: str, config: NodeConfig, console: Console) -> tuple[int, int]:
    """Scores the lines of a file into another; returns how many got a reward and how many did not.

    Lines are written as soon as their group is scored. Raises ScoringError: a file cannot be read or written;
    ModelError or EvaluatorError: there is no judge.
    """
    if Path(target).resolve() == Path(source).resolve():
        raise ScoringError(f"{target} is the input: give --out another name")
    num_scored = num_failed = 0
    try:
        with open(source, encoding="utf-8", errors="replace") as lines:
            total = sum(1 for line in lines if line.strip())
            lines.seek(0)
            judge = judging.judge_alone(config, console)  # before an earlier output is replaced
            score = judging.make_evaluator(config, judge, lambda *_: None).score_group
            with open(target, "w", encoding="utf-8") as out:
                for done, scored in enumerate(score_lines(lines, score), start=1):
                    out.write(json.dumps(scored) + "\n")
                    out.flush()
                    failed = "reward" not in scored
                    num_scored, num_failed = num_scored + (not failed), num_failed + failed
                    console.progress("score", done, total)
    except OSError as error:
        raise ScoringError(f"{error.filename or target}: {error.strerror}: check the path, rights and space") from error
    return num_scored, num_failed


def score_lines(lines: Iterable[str], score: ScoreGroup) -> Iterator[dict[str, Any]]:
    """A scored line for each line, in order; a line that holds no solution comes back with its `error`.

    Neighbouring lines of one `group` (or, without it, one problem) share a prompt and are judged together.
    """
    stored = (read_line(line, number) for number, line in enumerate(lines, start=1) if line.strip())
    for _, run in groupby(stored, key=lambda one: one.group):
        members = list(run)
        for start in range(0, len(members), MAX_GROUP):
            yield from _score_group(members[start : start + MAX_GROUP], score)


def read_line(line: str, number: int) -> Stored:
    """The solution in a line of JSON: question, tests (text or list), source, solution; optional id, group, finish."""
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
            question=_text(fields["question"], "question"),
            tests="\n".join(_text(test, "tests") for test in (tests if isinstance(tests, list) else [tests])),
        )
        finish = FinishReason(fields.get("finish", "stop"))
        # A solution that is no text is scored as such: peers send them too.
        rollout = Rollout(text=fields["solution"], finish=finish)
    except KeyError as error:
        return Stored(number=number, fields=fields, error=f"line {number} lacks {error.args[0]}")
    except ValueError as error:
        return Stored(number=number, fields=fields, error=f"line {number}: {error}")
    return Stored(number=number, fields=fields, task=task, rollout=rollout)


def _text(value: object, name: str) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{name} must be text, or for tests a list of texts, not {type(value).__name__}")
    return value


def _score_group(members: list[Stored], score: ScoreGroup) -> Iterator[dict[str, Any]]:
    task = members[0].task
    if task is None:
        for member in members:
            yield {**_names(member), "error": member.error}
        return
    started = time.perf_counter()
    rollouts = tuple(member.rollout for member in members if member.rollout is not None)
    found = score(RolloutGroup(peer_id="", model_id="", policy_version=0, task=task, rollouts=rollouts))
    seconds = (time.perf_counter() - started) / len(members)
    for position, member in enumerate(members):
        verdict = found.verdicts[position]
        line = {
            **_names(member),
            "outcome": verdict.outcome.value,
            "p_correct": verdict.p_correct,
            "rules": dict(verdict.rules),
            "reasons": dict(verdict.reasons),
            "cases": [case.outcome.value for case in verdict.cases],
            "p_cases": [case.p_correct for case in verdict.cases],
        }
        if found.scored:
            reward = found.rewards[position]
            line |= {"parts": dict(reward.parts), "reward": reward.total}
        else:
            line["error"] = verdict.reply or "the group stays unscored: the evaluator could not judge all of it"
        yield {**line, "seconds": round(seconds, 4)}


def _names(member: Stored) -> dict[str, Any]:
    return {name: member.fields[name] for name in ("id", "group") if name in member.fields}

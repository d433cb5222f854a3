"""The results of `codezero eval` before and after, read from its files and compared over the problems of both."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from codezero.errors import CommandError, told_as
from codezero.evaluate.intervals import bootstrap
from codezero.evaluate.metrics import Estimate, pass_at_k
from codezero.runtime.files import stored
from codezero.views.report.change import MeanChange, paired

RESULTS, SETTINGS = "results.jsonl", "settings.json"
OF_THE_MODEL = frozenset({"model", "checkpoint", "score"})
"""Settings that may differ between two results that are compared."""


class _Line(msgspec.Struct, frozen=True, kw_only=True):
    group: str
    passed: bool
    question: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The results of one run of `codezero eval`."""

    settings: Mapping[str, object]
    outcomes: Mapping[str, Sequence[bool]]
    """Lists of the outcomes of a problem's solutions, True for a pass, by problem."""
    questions: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRow:
    name: str
    before: Estimate
    after: Estimate
    change: MeanChange


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """A problem that went from no right solution to at least one, or back."""

    problem: str
    question: str
    before: str
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    problems: int
    """The number of problems in both results; `rows`, `gained` and `lost` are over these."""
    only_before: int
    only_after: int
    rows: list[MeasuredRow]
    gained: list[Moved]
    lost: list[Moved]
    settings: list[tuple[str, str, str]]
    """The settings, as (name, before, after)."""
    unlike: list[str]
    """The names of settings that differ and should not."""


def read_measured(path: Path) -> Measured:
    """Returns the results in a file, or in its folder. Raises CommandError if there are none, or none that is whole."""
    file = path / RESULTS if path.is_dir() else path
    if not file.is_file():
        raise CommandError(f"there is no {file}: give the {RESULTS} that `codezero eval` wrote, or its folder (--out)")
    outcomes: dict[str, list[bool]] = {}
    questions: dict[str, str] = {}
    with told_as(CommandError, f"cannot read {file}", "make it readable"), file.open("rb") as lines:
        for raw in lines:
            with suppress(ValueError, RecursionError, msgspec.ValidationError):
                whole = json.loads(raw) if raw.endswith(b"\n") else None  # msgspec reads no NaN, which `eval` may write
                line = msgspec.convert(whole, _Line)
                outcomes.setdefault(line.group, []).append(line.passed)
                questions[line.group] = line.question
    if not outcomes:
        raise CommandError(f"{file} has no results of `codezero eval`: give the {RESULTS} that it wrote")
    return Measured(
        settings=stored(file.with_name(SETTINGS), dict[str, Any]) or {}, outcomes=outcomes, questions=questions
    )


def compare(before: Measured, after: Measured) -> Comparison:
    """Returns the comparison over the problems that both have. Raises CommandError if they have none in common."""
    both = sorted(before.outcomes.keys() & after.outcomes.keys())
    if not both:
        raise CommandError("--before and --after have no problem in common: measure both on the same problems")
    k = min(len(one.outcomes[problem]) for one in (before, after) for problem in both)
    rows = []
    for at in sorted({1, k}):
        first, last = _by_problem(before, both, at), _by_problem(after, both, at)
        row = MeasuredRow(name=f"pass@{at}", before=bootstrap(first), after=bootstrap(last), change=paired(first, last))
        rows.append(row)
    moved = [_moved(problem, before, after) for problem in both]
    settings = _both_settings(before, after)
    return Comparison(
        problems=len(both),
        only_before=len(before.outcomes) - len(both),
        only_after=len(after.outcomes) - len(both),
        rows=rows,
        gained=[one for one, way in moved if way > 0],
        lost=[one for one, way in moved if way < 0],
        settings=settings,
        unlike=[name for name, one, other in settings if one != other and name not in OF_THE_MODEL],
    )


def _by_problem(one: Measured, problems: Sequence[str], k: int) -> list[float]:
    return [pass_at_k(len(one.outcomes[problem]), sum(one.outcomes[problem]), k) for problem in problems]


def _moved(problem: str, old: Measured, new: Measured) -> tuple[Moved, int]:
    before, after = old.outcomes[problem], new.outcomes[problem]
    one = Moved(
        problem=problem,
        question=new.questions[problem],
        before=f"{sum(before)} of {len(before)}",
        after=f"{sum(after)} of {len(after)}",
    )
    return one, any(after) - any(before)


def _both_settings(before: Measured, after: Measured) -> list[tuple[str, str, str]]:
    names = list(dict.fromkeys([*after.settings, *before.settings]))
    return [(name, _written(before.settings.get(name)), _written(after.settings.get(name))) for name in names]


def _written(value: object) -> str:
    """Returns a setting as text; only the last part of a path, since a report is read elsewhere."""
    text = "" if value is None else str(value)
    return text.rsplit("/", 1)[-1] if text.startswith("/") else text

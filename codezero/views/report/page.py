"""The report as one HTML page, without scripts and external files; all text of others is escaped."""

from __future__ import annotations

import base64
import hashlib
import os
import platform
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment
from markupsafe import Markup

from codezero import __version__
from codezero.evaluate.gain import Direction
from codezero.observe.roles import ROLES
from codezero.runtime.amounts import counted, utc
from codezero.runtime.visible import visible
from codezero.views.charts import STYLE
from codezero.views.charts.runs import charts_of, swarm_chart
from codezero.views.report.change import interval, signed
from codezero.views.report.measured import Comparison
from codezero.views.report.summary import RunFacts

MARK = "codezero report"
"""The text by which a file that this program wrote is recognised."""
MAX_RUNS = 16
"""The most runs with a section of their own; a page with more would be slow to open."""
MAX_TEXT = 6_000
"""The most characters of one text."""
MAX_MOVED = 40
_FOLDER = Path(__file__).parent


def page(runs: Sequence[RunFacts], comparison: Comparison | None) -> str:
    """Returns the page of these runs, solvers first."""
    ordered = sorted(runs, key=lambda one: not one.solves)
    solvers = [one for one in ordered if one.solves]
    shown = ordered[:MAX_RUNS]
    style = STYLE + (_FOLDER / "report.css").read_text(encoding="utf-8")
    with_rounds = {one.name: one.finished for one in solvers if one.finished}
    return (
        _environment()
        .from_string((_FOLDER / "report.html").read_text(encoding="utf-8"))
        .render(
            mark=MARK,
            policy=_policy(style),
            style=Markup(style),
            title=title(runs),
            headline=headline(ordered) or f"A {ordered[0].role}'s batches.",
            sentences=sentences(ordered)[:MAX_RUNS],
            solvers=solvers,
            comparison=comparison,
            most_moved=MAX_MOVED,
            swarm_chart=Markup(swarm_chart(with_rounds)) if len(with_rounds) > 1 else "",
            runs=[
                (one, list(map(Markup, charts_of_run(one, f"{one.name}: " if len(runs) > 1 else "")))) for one in shown
            ],
            left_out=len(ordered) - len(shown),
            made=f"Made by {MARK} {__version__} on {utc(time.time())}, on {platform.system()} {platform.machine()} "
            f"with {os.cpu_count()} CPU threads and Python {platform.python_version()}.",
        )
    )


def title(runs: Sequence[RunFacts]) -> str:
    """Returns the title of a report of these runs."""
    if len(runs) == 1:
        (one,) = runs
        return f"Report of {one.animal or one.name}"
    counts = Counter(one.role for one in sorted(runs, key=lambda one: ROLES.index(one.role)))
    return "Report of " + " and ".join(counted(count, name) for name, count in counts.items())


def headline(runs: Sequence[RunFacts]) -> str:
    """Returns one line on whether the solvers learn, those beside a test writer too; empty without any."""
    told = [one.learning for one in runs if one.learning is not None]
    if len(told) <= 1:
        return "".join(one.verdict + "." for one in told)
    said = {
        Direction.RISING: "learning",
        Direction.FALLING: "that got worse",
        Direction.LEVEL: "without a clear change",
        Direction.UNKNOWN: "of which it is too early to tell",
    }
    found = Counter(one.direction for one in told)
    return f"Of {len(told)} solvers: {', '.join(f'{found[one]} {what}' for one, what in said.items() if found[one])}."


def sentences(runs: Sequence[RunFacts]) -> list[str]:
    """Returns a sentence for each solver on whether it learns, with the numbers."""
    told = [(one.name, one.learning.text) for one in runs if one.learning is not None]
    return [f"{name}: {text}" if len(told) > 1 else text for name, text in told]


def charts_of_run(one: RunFacts, prefix: str = "") -> list[str]:
    """Returns the charts of a run, with a prefix to their titles."""
    return charts_of(one.role, one.finished, one.passes, one.group_size, prefix)


def _policy(style: str) -> str:
    """Returns a content security policy under which nothing can be loaded or run, and only this style sheet applies."""
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def _environment() -> Environment:
    """Returns the environment of the template, in which all text but `Markup` is made visible and escaped."""
    environment = Environment(autoescape=True, finalize=_visible, trim_blocks=True)
    environment.filters |= {
        "cut": _cut,
        "signed": signed,
        "metric": lambda found: f"{found.value:.3f} [{found.low:.3f}, {found.high:.3f}]",
        "interval": interval,
        "counted": counted,
    }
    return environment


def _visible(value: Any) -> Any:
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _cut(text: str, most: int = MAX_TEXT) -> str:
    left_out = len(text) - most
    return text if left_out <= 0 else f"{text[:most]} [{left_out} more characters]"

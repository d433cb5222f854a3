"""The measurement of a solver: it solves a fixed set of problems in parts, in a share of the time."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from itertools import accumulate, islice
from pathlib import Path

import msgspec

from codezero.evaluate.evaluator import proven
from codezero.evaluate.reading import AttemptReader
from codezero.observe.probes import ProbeReport, ProbeSeries, learning
from codezero.observe.report_file import ReportFile
from codezero.policy.solver import PolicySolver
from codezero.ports import Progress
from codezero.types import RolloutGroup, Task

START_SAMPLES, SAMPLES = 4, 2
"""The numbers of solutions per problem at T=1: before the first round, as the basis of comparison, and later."""
START_S = 600.0
"""Wall seconds after which the first pass is continued between rounds: on two busy cores it takes an hour. They are not
part of the share, since a model that gets worse in its first two hours would be found out only after them."""
MOST = 16
"""The most problems of a probe. A stop loses one, and one that does not fit into its time waits whole."""
LATE = 10
"""The number of latest probes from which the duration of the next one is estimated."""

MakeSolver = Callable[[int, float, int], PolicySolver]
"""A function `make(num_generations, temperature, number)` that returns a solver; `number` makes its seed."""


def without_later(file: ReportFile, last_round: int) -> list[str]:
    """Returns the lines of reports up to this round, and removes later ones, which belong to lost weights. Of a new
    node (0) those from before a first round are kept, which belong to the same weights, and a file with others is set
    aside. Raises StateError: the file cannot be read or written."""
    lines = file.lines(last_round)
    if len(lines) < len(file.lines()):
        if last_round == 0:
            file.set_aside()
        file.replace(lines)
    return lines


class Probe:
    """The probe of a solver. It uses random numbers of its own, and changes its file only."""

    def __init__(
        self,
        problems: Mapping[str, Task],
        kind: str,
        make_solver: MakeSolver,
        attempt_reader: AttemptReader,
        log_dir: Path,
        series: ProbeSeries,
        *,
        share: float,
        rows: int,
        turn: Callable[[], AbstractContextManager[object]],
        progress: Progress,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`share` is the share of the node's wall time for probes after the first pass. `rows` is the number of
        solutions that are sampled at once, and of problems in a probe up to `MOST`. `turn` returns a context in which
        the model may sample, and has the solver's weights."""
        self._problems, self._kind = problems, kind
        self._make_solver, self._attempt_reader = make_solver, attempt_reader
        self._file, self._series = ReportFile(log_dir / series.file, "round"), series
        self._share, self._rows, self._turn, self._progress = share, rows, turn, progress
        self._clock, self._began_s, self._wall_s = clock, clock(), 0.0
        self.reports: list[ProbeReport] = []
        """The reports that can be compared with the next one, the newest last."""
        self.learning = learning([], series)
        """The result of the reports up to the last whole pass."""

    def resume(self, last_round: int) -> None:
        """Restores the reports up to this round (`without_later`). Raises StateError: the file cannot be written."""
        lines = without_later(self._file, last_round)
        reports = []
        for line in lines:
            with suppress(msgspec.DecodeError, UnicodeError):
                reports.append(msgspec.json.decode(line, type=ProbeReport))
        self.reports = [one for one in reports if one.kind == self._kind]
        self._file.replace(lines)  # without a last one that a kill has torn
        self._wall_s = self.reports[-1].wall_s if self.reports else 0.0
        self.learning = learning(self.reports, self._series)

    @property
    def is_due(self) -> bool:
        """True if the next probe fits into its share of the time since the first pass or, in that pass, into `START_S`
        and the share."""
        late = self.reports[-LATE:]
        if not late:
            return True
        expected_s = len(self._next) * sum(one.seconds for one in late) / sum(len(one.right) for one in late)
        spent_s, wall_s = late[-1].spent_s, self._wall_now_s
        if self._num_done < len(self._problems):
            return spent_s + expected_s <= START_S + self._share * wall_s
        start = self._start
        return spent_s - start.spent_s + expected_s <= self._share * (wall_s - start.wall_s)

    @property
    def _next(self) -> dict[str, Task]:
        """The problems of the next probe, which ends with the pass at the latest."""
        start = self._num_done % len(self._problems)
        return dict(islice(self._problems.items(), start, start + min(self._rows, MOST)))

    @property
    def _start(self) -> ProbeReport:
        """The report that completed the first pass."""
        done = accumulate(len(one.right) for one in self.reports)
        return next(one for one, num in zip(self.reports, done, strict=True) if num >= len(self._problems))

    @property
    def _num_done(self) -> int:
        return sum(len(one.right) for one in self.reports)

    @property
    def _wall_now_s(self) -> float:
        return self._wall_s + self._clock() - self._began_s

    def take(self, round_number: int, policy_version: int) -> bool:
        """Solves the next problems and writes a report. Returns True if that completes a pass.

        Raises StateError: it cannot be written."""
        began_s, done, part = self._clock(), self._num_done, self._next
        greedy = self._solved(part, 1, 0.0, done)
        samples = START_SAMPLES if done < len(self._problems) and round_number == 0 else SAMPLES
        sampled = self._solved(part, samples, 1.0, done)
        outcomes = [one for found in (*greedy.values(), *sampled.values()) for one in found]
        seconds = self._clock() - began_s
        report = ProbeReport(
            round=round_number,
            policy_version=policy_version,
            kind=self._kind,
            num_problems=len(self._problems),
            samples=samples,
            greedy={name: found == [True] for name, found in greedy.items()},
            right={name: found.count(True) for name, found in sampled.items()},
            unknown=outcomes.count(None),
            seconds=seconds,
            spent_s=seconds + (self.reports[-1].spent_s if self.reports else 0.0),
            wall_s=self._wall_now_s,
            finished_at_s=time.time(),
        )
        self._file.append(report)
        self.reports.append(report)
        is_whole = done % len(self._problems) + len(part) == len(self._problems)
        if is_whole:
            self.learning = learning(self.reports, self._series)
        return is_whole

    def _solved(
        self, part: Mapping[str, Task], num_generations: int, temperature: float, done: int
    ) -> dict[str, list[bool | None]]:
        """Returns for each problem which solutions are right, None if unknown; a prompt that is too long has none."""
        solver = self._make_solver(num_generations, temperature, done)
        names, found = list(part), dict[str, list[bool | None]]()
        size = max(1, self._rows // num_generations)
        for first in range(0, len(names), size):
            self._progress("probe", done % len(self._problems) + first, len(self._problems))
            some = names[first : first + size]
            with self._turn():
                groups = solver.solve([part[name] for name in some], 0)
            by_task = {id(group.task): group for group in groups}
            found |= {name: self._judged(by_task.get(id(part[name]))) for name in some}
        return found

    def _judged(self, group: RolloutGroup | None) -> list[bool | None]:
        return [] if group is None else proven(self._attempt_reader, group)

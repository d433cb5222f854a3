"""The results of a solver's probes: reports of single probes, a line of a file each, and the progress that they show.

A probe solves the next few of a fixed set of problems that are never trained on, so that a pass over all of them takes
many rounds; the first pass begins before the first round.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from codezero.evaluate.gain import Direction, Gain, newest

VERDICTS = {
    Direction.RISING: "It learns",
    Direction.LEVEL: "No change beyond chance",
    Direction.FALLING: "It has got worse",
}
LEAST_ROUNDS = 20
"""The number of rounds or batches of the shortest run that is measured; a run without a limit is always measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeSeries:
    """The probes of solvers of one role: their file, and the words for what is done between them."""

    file: str
    """The name of the file in the folder of logs, which nodes of several roles may share."""
    step: str
    steps: str


NODE = ProbeSeries(file="probe.jsonl", step="round", steps="rounds")
"""The probes of a node that solves."""
PAIR = ProbeSeries(file="verifier_probe.jsonl", step="batch", steps="batches")
"""The probes of a solver that learns beside a test writer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeReport:
    """The report of one probe, which is one line of the file."""

    round: int
    """The round or batch before the probe; 0 if it was taken before the first."""
    policy_version: int
    kind: str
    """An identifier of the problems and the settings of solving; probes of different kinds are not compared."""
    num_problems: int
    """The number of problems in a whole pass."""
    samples: int
    """The number of solutions at T=1 per problem."""
    greedy: Mapping[str, bool]
    """True for each problem whose greedy solution is right."""
    right: Mapping[str, int]
    """The number of right solutions at T=1 by problem, in the order of the set."""
    unknown: int
    """The number of solutions that the dry run could not decide; they count as wrong."""
    seconds: float
    """Wall seconds of this probe."""
    spent_s: float
    """Wall seconds of all probes of this node so far."""
    wall_s: float
    """Wall seconds of the node so far; those after the last probe of an earlier run are unknown and not counted."""
    finished_at_s: float
    """Unix time of the probe's end, in seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """One pass over all problems, with shares of right solutions in 0..1."""

    last_round: int
    """The round or batch of the pass's last probe."""
    sampled: float
    """The share of right solutions at T=1."""
    greedy: float
    """The share of right greedy solutions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Learning:
    """The progress of a solver's learning as shown by its probes."""

    direction: Direction
    verdict: str
    """The progress in a few words."""
    text: str
    """The progress in one sentence, which begins with the verdict."""
    passes: Sequence[Pass]
    """The complete passes; the first one is the start."""
    gain: Gain | None
    """The newest comparison with the start; None if it is too early for one."""

    @property
    def best(self) -> int | None:
        """The index of the pass with the highest mean of up to three passes, the newest of equal ones; None before a
        second pass. The start is in none of these means, since no checkpoint has its weights."""
        ends = range(len(self.passes) - 1, 0, -1)
        means = {end: fmean(one.sampled for one in self.passes[max(1, end - 2) : end + 1]) for end in ends}
        return max(means, key=means.__getitem__, default=None)


def learning(reports: Sequence[ProbeReport], series: ProbeSeries = NODE) -> Learning:
    """Returns the progress that probes of this series show, given in the order of time; only those of the newest one's
    kind count."""
    reports = [one for one in reports if one.kind == reports[-1].kind]
    found: dict[str, list[tuple[float, bool, int]]] = {}
    for one in reports:
        for name, right in one.right.items():
            found.setdefault(name, []).append((right / one.samples, one.greedy.get(name, False), one.round))
    num_problems = max(reports[-1].num_problems, 2) if reports else 0
    num_passes = min(map(len, found.values())) if found and len(found) >= num_problems else 0
    whole = [[outcomes[number] for outcomes in found.values()] for number in range(num_passes)]
    passes = [
        Pass(
            last_round=max(at for _, _, at in one),
            sampled=fmean(share for share, _, _ in one),
            greedy=fmean(greedy for _, greedy, _ in one),
        )
        for one in whole
    ]
    gain = newest([[share for share, _, _ in one] for one in whole])
    if gain is None:
        done = sum(len(outcomes) > num_passes for outcomes in found.values())
        direction, verdict = Direction.UNKNOWN, "Too early to tell" if num_problems else "Not measured"
        told = _early(num_problems, passes, done, series)
    else:
        direction, verdict, told = gain.direction, VERDICTS[gain.direction], _told(gain, passes, len(found), series)
    return Learning(direction=direction, verdict=verdict, text=f"{verdict}: {told}", passes=passes, gain=gain)


def _early(num_problems: int, passes: Sequence[Pass], done: int, series: ProbeSeries) -> str:
    if not num_problems:
        short = f"a run of fewer than {LEAST_ROUNDS} {series.steps}"
        return f"no probe has ended yet; {short} takes none, nor does probe.share=0."
    if not passes:
        return f"{done} of {num_problems} problems tried for the first time; how many are right is told after all."
    start = passes[0]
    return (
        f"{percent(start.sampled)} right at the start (greedy {percent(start.greedy)}), {done} of {num_problems} "
        "problems tried again."
    )


def _told(gain: Gain, passes: Sequence[Pass], num_problems: int, series: ProbeSeries) -> str:
    greedy = fmean(one.greedy for one in passes[gain.first : gain.last + 1])
    change, began = gain.change, passes[0].last_round
    start = f"up to {series.step} {began}" if began else "at the start"
    first, last = passes[gain.first - 1].last_round + 1, passes[gain.last].last_round
    late = f"in {series.steps} {first} to {last}" if first < last else f"after {series.step} {last}"
    text = (
        f"of solutions to {num_problems} problems it never trains on, {percent(gain.before)} were right "
        f"{start} and {percent(gain.after)} {late}, {points(change.value)} points [{points(change.low)}, "
        f"{points(change.high)}]; greedy {percent(passes[0].greedy)} and {percent(greedy)}"
    )
    if gain.fall is not None and gain.fall.since > 0:
        fall = gain.fall.change
        since = f"since {series.step} {passes[gain.fall.since].last_round}"
        text += f"; {points(fall.value)} [{points(fall.low)}, {points(fall.high)}] {since}"
    return text + "."


def percent(share: float) -> str:
    """Returns a share as text such as `24.1 %`."""
    return f"{100 * share:.1f} %"


def points(share: float) -> str:
    """Returns a difference of shares in percentage points, with its sign, as text."""
    return f"{100 * share:+.1f}"

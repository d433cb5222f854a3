"""What a node's probes found: parts of passes in `logs/probe.jsonl`, and what they come to.

A probe solves the next few of a fixed set of problems that are never trained on, so that a pass over all of them goes
along with many rounds; the first pass is made before the first round.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from codezero.evaluate.gain import Direction, Gain, newest

NAME = "probe.jsonl"
"""The name of the file in the folder of logs."""
LEAST_ROUNDS = 20
"""Rounds of the shortest run that is measured; a run without a limit always is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeReport:
    """One probe: a line of the file."""

    round: int
    """The round that it came after; 0 is before the first."""
    policy_version: int
    kind: str
    """The problems, and all that decides how they are solved; probes of different kinds are not compared."""
    num_problems: int
    """Of a whole pass."""
    samples: int
    """Solutions at T=1 to each problem."""
    greedy: Mapping[str, bool]
    """Whether the greedy solution is right, by problem."""
    right: Mapping[str, int]
    """Right ones of the solutions at T=1, by problem, in the order of the set."""
    unknown: int
    """Solutions that the dry run could not tell of; they count as wrong."""
    seconds: float
    """Wall time of this probe."""
    spent_s: float
    """Wall time of all probes of this node so far."""
    wall_s: float
    """Wall time of the node so far, as far as it is known: what came after the last probe of a run is not."""
    finished_at_s: float
    """Unix time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """All problems solved once more. Shares are of solutions that are right, in 0..1."""

    last_round: int
    """When it was complete."""
    sampled: float
    """At T=1."""
    greedy: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Learning:
    """Whether a node learns, as its probes tell."""

    direction: Direction
    text: str
    """The same in one sentence."""
    passes: Sequence[Pass]
    """The whole ones; the first is the start."""
    gain: Gain | None
    """The newest look; None where it is too early for one."""

    @property
    def best(self) -> int | None:
        """The pass at which the smoothed curve was highest; None before one that follows the start."""
        if len(self.passes) < 2:
            return None
        ends = range(1, len(self.passes))
        return max(ends, key=lambda end: fmean(one.sampled for one in self.passes[max(0, end - 2) : end + 1]))


def learning(reports: Sequence[ProbeReport]) -> Learning:
    """What probes come to, given in the order in which they were taken; only those like the newest count."""
    reports = [one for one in reports if one.kind == reports[-1].kind and one.samples > 0]
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
        return Learning(direction=Direction.UNKNOWN, text=_early(num_problems, passes, done), passes=passes, gain=None)
    return Learning(direction=gain.direction, text=_told(gain, passes, len(found)), passes=passes, gain=gain)


def _early(num_problems: int, passes: Sequence[Pass], done: int) -> str:
    if not num_problems:
        return f"Not measured: a run of fewer than {LEAST_ROUNDS} rounds takes no probe, nor does probe.share=0."
    if not passes:
        return f"Too early to tell: {done} of {num_problems} problems solved for the first time."
    start = passes[0]
    return (
        f"Too early to tell: {percent(start.sampled)} right at the start (greedy {percent(start.greedy)}), {done} of "
        f"{num_problems} problems solved again."
    )


def _told(gain: Gain, passes: Sequence[Pass], num_problems: int) -> str:
    said = {
        Direction.RISING: "It learns",
        Direction.LEVEL: "No change beyond chance",
        Direction.FALLING: "It has got worse",
    }[gain.direction]
    greedy = fmean(one.greedy for one in passes[gain.first : gain.last + 1])
    change, began = gain.change, passes[0].last_round
    start = f"up to round {began}" if began else "at the start"
    text = (
        f"{said}: of solutions to {num_problems} problems it never trains on, {percent(gain.before)} were right "
        f"{start} and {percent(gain.after)} in rounds {passes[gain.first - 1].last_round + 1} to "
        f"{passes[gain.last].last_round}, {points(change.value)} points [{points(change.low)}, {points(change.high)}]; "
        f"greedy {percent(passes[0].greedy)} and {percent(greedy)}"
    )
    if gain.fall is not None and gain.fall.since > 0:
        fall = gain.fall.change
        since = f"since round {passes[gain.fall.since].last_round}"
        text += f"; {points(fall.value)} [{points(fall.low)}, {points(fall.high)}] {since}"
    return text + "."


def percent(share: float) -> str:
    """As 24.1 %."""
    return f"{100 * share:.1f} %"


def points(share: float) -> str:
    """A difference in percentage points, with its sign."""
    return f"{100 * share:+.1f}"

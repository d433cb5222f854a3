"""A node's state in plain words: whether it runs, and what hinders it. Pure functions of its status and reports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from codezero.observe.status import PROBING, SAVING, SILENT_S, STARTING, WAITING, Status
from codezero.proposals import BatchReport
from codezero.runtime.amounts import gib, span
from codezero.types import RoundReport

RECENT = 20
"""The number of latest rounds or batches that obstacles are looked for in."""
FEW = 10
"""The least number of batches before solvers' silence is called an obstacle."""
DOING = {
    STARTING: "starting",
    WAITING: "waiting for the swarm's next round",
    PROBING: "measuring itself",
    SAVING: "saving",
    "draw": "drawing tasks",
    "solve": "writing solutions",
    "exchange": "exchanging solutions with peers",
    "score": "judging solutions",
    "learn": "learning",
    "settle": "handing in rewards",
    "write": "writing problems",
    "check": "checking problems",
    "publish": "publishing problems",
    "listen": "listening to solvers",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Presence:
    """A node's state: whether it runs, and what it does."""

    state: str
    """One of running, silent, stopped, died and unknown."""
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Obstacle:
    """Something that hinders a node."""

    what: str
    meaning: str


def presence(status: Status | None, running: bool, now_s: float) -> Presence:
    if status is None:
        if running:
            return Presence(state="running", text="It runs, and has not said yet what it does.")
        return Presence(state="unknown", text="It has left no status: it never ran, or is of an older version.")
    if not running:
        if status.ended == "stopped":
            return Presence(state="stopped", text="It was stopped. The same command goes on where it was.")
        if status.ended:
            return Presence(state="died", text=f"It ended with an error: {status.ended}")
        return Presence(
            state="died", text="It is gone and said nothing: killed, or out of memory. Start it again: it goes on."
        )
    silent_s = now_s - status.updated_at_s
    if silent_s > SILENT_S:
        return Presence(
            state="silent", text=f"Its process lives but has written nothing for {span(silent_s)}; see its log."
        )
    what = "Round" if status.role == "solver" else "Batch"
    number = "" if status.round is None or status.stage == STARTING else f"{what} {status.round}: "
    how_far = f", {status.done} of {status.total}" if status.total else ""
    left_s = status.left_s(now_s)
    left = "" if left_s is None else f"; about {span(left_s)} left"
    doing = DOING.get(status.stage, status.stage)
    return Presence(state="running", text=f"{number}{doing}{how_far}{left}.")


def obstacles(reports: Sequence[RoundReport], status: Status | None) -> list[Obstacle]:
    """Returns what keeps a solver from learning, from rewards or from its peers, the worst first."""
    found = []
    recent = reports[-RECENT:]
    skipped = [report.skipped for report in recent if report.skipped is not None]
    if len(skipped) * 2 > len(recent):
        reason, count = Counter(skipped).most_common(1)[0]
        found.append(
            Obstacle(
                what=f"{len(skipped)} of the last {len(recent)} rounds made no update, {count} of them: {reason}",
                meaning="A round teaches when some solutions of a task earn more than others. With equal rewards "
                "throughout, tasks are too hard or too easy for the model: more solutions a task "
                "(rollout.num_generations), easier tasks, or a proposer help.",
            )
        )
    unscored = sum(report.dropped.get("unscored", 0) for report in recent)
    if unscored:
        found.append(
            Obstacle(
                what=f"{unscored} groups of the last {len(recent)} rounds went without a verdict",
                meaning="The evaluator could not be asked, or not tell whether their solutions are right; "
                "logs/swarm.log has a warning where it could not be asked.",
            )
        )
    if status is not None and status.planned_bytes and status.rss_bytes > 1.15 * status.planned_bytes:
        found.append(
            Obstacle(
                what=f"It uses {gib(status.rss_bytes)} of memory, {gib(status.planned_bytes)} were planned",
                meaning="If the machine runs out, the system kills the node; train.method=lora needs less.",
            )
        )
    if status is not None and status.push_trouble:
        found.append(Obstacle(what=status.push_trouble, meaning="Training does not need the push, and goes on."))
    if reports:
        found += _told(reports[-1])
    return found


def _told(last: RoundReport) -> list[Obstacle]:
    """Returns the obstacles that the node itself has reported with its last round."""
    told = (
        (last.ledger, "Rewards wait on this machine and are handed in later; nothing is lost."),
        (last.network if last.network.startswith("alone") else "", "It trains on its own solutions meanwhile."),
        (last.judge, "The judge service gives no score; training does not need it."),
        (last.market if last.market != last.judge else "", "It places no bets; training goes on."),
    )
    return [Obstacle(what=what, meaning=meaning) for what, meaning in told if what]


def proposer_obstacles(batches: Sequence[BatchReport]) -> list[Obstacle]:
    recent = batches[-RECENT:]
    found = []
    written, valid = sum(one.num_written for one in recent), sum(one.num_valid for one in recent)
    if written and valid * 5 < written:
        reasons = sum((Counter(one.rejected) for one in recent), Counter[str]())
        most = f", most for {reasons.most_common(1)[0][0]}" if reasons else ""
        found.append(
            Obstacle(
                what=f"{valid} of {written} problems of late could be published{most}",
                meaning="The model writes few that pass the checks; a larger one (proposer.model) writes more.",
            )
        )
    if len(recent) >= FEW and not any(one.num_judged for one in recent):
        found.append(
            Obstacle(
                what="No solver has answered a problem of late",
                meaning="Without answers the level cannot follow. See that solvers run in the same swarm.",
            )
        )
    return found

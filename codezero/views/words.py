"""A node's state in plain words for all views: whether it runs, what it does, and what hinders it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from codezero.config import checkout
from codezero.observe.roles import SOLVER
from codezero.observe.status import PROBING, SAVING, SILENT_S, STARTING, STOPPED, WAITING, Status
from codezero.proposals import BatchReport
from codezero.reports import CasesReport, RoundReport
from codezero.runtime.amounts import gib, span, tallied
from codezero.runtime.kernel import IS_LINUX

RECENT = 20
"""The number of latest rounds or batches in which obstacles are looked for."""
SMALLER = "swarm.num_local=2 train.lora_learning_rate=5e-5"
"""The settings of a node that needs less memory; fewer attempts a round want a lower rate."""
FEW, FEW_BATCHES = 5, 10
"""The least numbers of rounds and batches before peers' or solvers' silence is called an obstacle."""
MANY_UNSCORED = 0.1
"""The share of groups without a verdict from which they are called an obstacle."""
FULL_DISK = "the disk of its state folder is full or not writable (`df -h`)"
"""A cause that may have kept a node from writing its status, whatever else has happened to it."""
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
    "cases": "writing test cases",
    "try": "trying test cases on solutions",
    "again": "second attempts at refused solutions",
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
    meaning: str = ""
    do: str = ""
    """The remedy; empty where nothing is to be done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Obstacle:
    """Something that hinders a node."""

    part: str
    """The part of the node that is hindered, in a word."""
    what: str
    meaning: str
    do: str = ""


def presence(status: Status | None, pid: int | None, now_s: float) -> Presence:
    """Returns the state of a node that runs as process `pid`, None if it does not run."""
    if status is None or (pid is not None and pid != status.pid):
        if pid is not None:
            return Presence(state="running", text="running, and has not said yet what it does")
        return Presence(state="unknown", text="not running, and has written no status yet")
    ago = span(now_s - status.updated_at_s)
    if pid is None and status.ended == STOPPED:
        return Presence(state="stopped", text=f"stopped {ago} ago", do="the same command continues where it stopped")
    if pid is None and status.ended:
        do = "do what the message says; docs/troubleshooting.md may have more"
        return Presence(state="died", text=f"ended {ago} ago: {status.ended}", do=do)
    if pid is None:
        where = "`sudo dmesg | grep -i oom`" if IS_LINUX else "the app Console"
        killed = f"it was killed: memory ran out ({where} shows it), somebody killed it, or the machine went down"
        meaning = f"{killed}; or {FULL_DISK}"
        do = f"start it again, it continues where it stopped; if memory is short, {SMALLER} helps"
        return Presence(state="died", text=f"ended {ago} ago without a word", meaning=meaning, do=do)
    if now_s - status.updated_at_s > SILENT_S:
        meaning = f"it hangs, is suspended, or this machine is out of memory or very busy; or {FULL_DISK}"
        ends = f"`kill {pid}` ends it (`kill -9 {pid}` where that does not)"
        do = f"see the end of its log; {ends}, and it continues where it stopped when started again"
        return Presence(state="silent", text=f"no sign of life for {ago}", meaning=meaning, do=do)
    what = "round" if status.role == SOLVER else "batch"
    number = "" if status.round is None or status.stage == STARTING else f"{what} {status.round}: "
    how_far = f", {status.done} of {status.total}" if status.total else ""
    left_s = status.left_s(now_s)
    left = "" if left_s is None else f"; about {span(left_s)} left"
    return Presence(state="running", text=f"{number}{doing(status)}{how_far}{left}")


def doing(status: Status) -> str:
    """Returns the stage in words."""
    return DOING.get(status.stage, status.stage)


def obstacles(reports: Sequence[RoundReport], status: Status | None) -> list[Obstacle]:
    """Returns what keeps a solver from learning, from rewards or from its peers, the worst first."""
    recent = reports[-RECENT:]
    meaning = (
        "a round teaches when some solutions of a task earn more than others; with equal rewards throughout, tasks are "
        "too hard or too easy for the model"
    )
    do = (
        "easier tasks (tasks.builtin.max_difficulty=2), more solutions a task (rollout.num_generations=16, in a swarm "
        "only if all nodes have it), or a proposer help"
    )
    found = _without_updates(recent, "rounds made no update", meaning, do)
    unscored = sum(report.dropped.get("unscored", 0) for report in recent)
    num_judged = sum(report.num_local_groups + report.num_pooled_groups for report in recent)
    if unscored > MANY_UNSCORED * num_judged:
        last = f"{len(recent)} rounds" if len(recent) > 1 else "round"
        what = f"{unscored} of {num_judged} groups of the last {last} went without a verdict"
        meaning = "the evaluator could not be asked, or not tell whether their solutions are right"
        do = "see the warning in logs/swarm.log, which is there where it could not be asked"
        found.append(Obstacle(part="judge", what=what, meaning=meaning, do=do))
    if status is not None and status.planned_bytes and status.rss_bytes > 1.15 * status.planned_bytes:
        what = f"it uses {gib(status.rss_bytes)} of memory, {gib(status.planned_bytes)} were planned"
        meaning = "the system may kill it"
        do = f"leave it more room: {SMALLER}, or a smaller model"
        found.append(Obstacle(part="memory", what=what, meaning=meaning, do=do))
    peaks = [report.peak_rss_bytes for report in recent]
    middle = peaks[len(peaks) // 2] if len(peaks) >= 10 else 0
    if middle and peaks[-1] > 1.2 * middle:  # a peak never falls
        what = f"the node's peak grew from {gib(middle)} to {gib(peaks[-1])} in {len(peaks) // 2} rounds"
        meaning = "it may run out of memory"
        archive = f"the archive of `{checkout.COMMAND} doctor --bundle FILE`"
        do = f"start it again, it continues where it stopped; and report it, with {archive}"
        found.append(Obstacle(part="memory", what=what, meaning=meaning, do=do))
    return found + (_reported_by_node(recent, status) if recent else [])


def verifier_obstacles(batches: Sequence[CasesReport]) -> list[Obstacle]:
    """Returns what keeps a test writer from learning."""
    meaning = "a batch teaches when some answers about a candidate earn more than others"
    do = "more answers (verifier.num_generations=16), more solutions (verifier.num_candidates=16) or a larger model"
    return _without_updates(batches[-RECENT:], "batches made no update", meaning, do)


def _without_updates(
    recent: Sequence[RoundReport] | Sequence[CasesReport], what: str, meaning: str, do: str
) -> list[Obstacle]:
    """Returns the obstacle of rounds or batches of which most made no update, as `what` says."""
    skipped = [one.skipped for one in recent if one.skipped is not None]
    if len(recent) < FEW or len(skipped) * 2 <= len(recent):
        return []
    reason, count = Counter(skipped).most_common(1)[0]
    told = f"{len(skipped)} of the last {len(recent)} {what}, {count} of them: {reason}"
    return [Obstacle(part="learning", what=told, meaning=meaning, do=do)]


def _reported_by_node(recent: Sequence[RoundReport], status: Status | None) -> list[Obstacle]:
    """Returns the obstacles that the node itself has reported."""
    last = recent[-1]
    alone = ""
    if last.network and len(recent) >= FEW and not any(report.num_external_groups for report in recent):
        dropped = tallied(last.dropped) or "nothing"
        alone = f"none of the last {len(recent)} rounds learnt from another node: {last.network}; dropped: {dropped}"
    told = (
        ("ledger", last.ledger, "rewards wait on this machine and are handed in later; nothing is lost", ""),
        ("swarm", alone, "the node trains alone", "with `group_size` all nodes need one rollout.num_generations"),
        ("judge", last.judge, "the judge service gives no score; training does not need it", ""),
        ("market", last.market if last.market != last.judge else "", "it places no bets; training continues", ""),
        ("push", status.push_trouble if status else "", "training does not need the push, and continues", ""),
    )
    return [Obstacle(part=part, what=what, meaning=meaning, do=do) for part, what, meaning, do in told if what]


def proposer_obstacles(batches: Sequence[BatchReport]) -> list[Obstacle]:
    recent = batches[-RECENT:]
    found = []
    written, valid = sum(one.num_written for one in recent), sum(one.num_valid for one in recent)
    if written and valid * 5 < written:
        reasons = sum((Counter(one.rejected) for one in recent), Counter[str]())
        most = f", most for {reasons.most_common(1)[0][0]}" if reasons else ""
        what = f"{valid} of {written} recent problems could be published{most}"
        meaning = "the model writes few that pass the checks"
        do = "a larger one (proposer.model) writes more"
        found.append(Obstacle(part="problems", what=what, meaning=meaning, do=do))
    if len(recent) >= FEW_BATCHES and not any(one.num_judged for one in recent):
        what = "no solver has recently answered a problem"
        meaning = "without answers the level cannot follow"
        do = "check that solvers run in the same swarm"
        found.append(Obstacle(part="swarm", what=what, meaning=meaning, do=do))
    return found

"""The facts of one node's run for a report, gathered from its files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from codezero.identity.names import animal_name
from codezero.observe.batches import writer_text, writer_total
from codezero.observe.probes import Learning, Pass
from codezero.observe.roles import PROPOSER, SOLVER, VERIFIER
from codezero.observe.status import Status
from codezero.runtime.amounts import span, utc
from codezero.runtime.state import best_round
from codezero.types import SOLO_PEER_ID
from codezero.views.report.examples import Examples, find_examples
from codezero.views.runs import Run

MAX_PEERS = 20
DROPPED = {
    "zero_advantage": "all solutions equally good: nothing to learn from",
    "unscored": "the evaluator had a verdict on none of its solutions, or on a single one",
    "masked": "single solutions that it could not judge",
    "stale": "of another node, from too many rounds ago",
    "duplicate": "of another node, seen before",
    "group_size": "of another node, with another number of solutions",
    "too_long": "of another node, its task too long for the model",
    "unknown_task": "of another node, its task not among those known here (swarm.tasks=known)",
    "unlisted_task": "of another node, before this one had listed all tasks of that data set (swarm.tasks=known)",
    "unknown_environment": "of another node, its task of an environment that is not loaded here (tasks.modules)",
    "banned": "of a node in swarm.banned_peers",
}
"""The meanings of the commonest reasons for dropping groups; docs/terminal.md has all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    name: str
    count: int
    meaning: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """The facts of one run."""

    name: str
    role: str
    animal: str
    """The animal name; empty without a peer id."""
    peer_id: str
    about: list[tuple[str, str]]
    """Facts in words, as (what, value)."""
    finished: list[Any]
    """The finished rounds of a solver, or batches of another role."""
    group_size: int
    learning: Learning | None
    """The result of a solver's probes; None without a solver."""
    dropped: list[Count]
    skipped: list[Count]
    rejected: list[Count]
    peers: list[Count]
    """The numbers of groups trained on, by the animal name of the node that they came from."""
    more_peers: int
    examples: Examples | None

    @property
    def passes(self) -> Sequence[Pass]:
        """The passes of a solver's probes."""
        return self.learning.passes if self.learning is not None else ()

    @property
    def solves(self) -> bool:
        return self.role == SOLVER


def gather(run: Run) -> RunFacts:
    """Returns everything that a report says of a run. A repeated round or batch counts once, as it was last."""
    finished, status = run.finished(), run.status()
    peer_id = status.peer_id if status is not None and status.peer_id != SOLO_PEER_ID else ""
    sources = _summed([one.external_groups for one in run.reports()])
    return RunFacts(
        name=run.name,
        role=run.role,
        animal=status.animal if status is not None else "",
        peer_id=peer_id,
        about=_about(status, run.pid(), best_round(run.folder), run.role, finished),
        finished=finished,
        group_size=status.group_size if status is not None else 0,
        learning=run.learning(),
        dropped=_counts(_summed([one.dropped for one in finished]), DROPPED),
        skipped=_counts(Counter(one.skipped for one in finished if one.skipped is not None)),
        rejected=_counts(_summed([one.rejected for one in run.batches()])),
        peers=[Count(name=animal_name(peer), count=n, meaning=peer) for peer, n in sources.most_common(MAX_PEERS)],
        more_peers=max(0, len(sources) - MAX_PEERS),
        examples=find_examples(run.groups()),
    )


def _about(
    status: Status | None, pid: int | None, best: int | None, role: str, done: Sequence[Any]
) -> list[tuple[str, str]]:
    about = []
    noun = "round" if role == SOLVER else "batch"
    if status is not None:
        best_of = f"of {noun} {best}, where its probes were highest"
        trained = {"full": "all weights", "lora": "adapters (LoRA)"}.get(status.method, status.method)
        about += [
            ("model", status.model.rsplit("/", 1)[-1] if status.model.startswith("/") else status.model),
            ("trained", trained or "nothing"),
            ("codezero", status.version),
            ("tasks of others", status.peer_tasks),
            ("state", "runs" if pid is not None else status.ended or "not running; it did not end by itself"),
            ("best checkpoint", best_of if best is not None else ""),
        ]
    if done:
        first, last = (getattr(one, noun) for one in (done[0], done[-1]))
        about.append(("rounds" if role == SOLVER else "batches", f"{len(done)} ({first} to {last})"))
        if role == PROPOSER:
            written, valid = sum(one.num_written for one in done), sum(one.num_valid for one in done)
            about.append(("problems", f"{written} written, {valid} published"))
            tests = writer_total(one.writer for one in done)
            about.append(("test cases", writer_text(tests) if tests is not None else ""))
        else:
            version = f", policy version {done[-1].policy_version}" if role == SOLVER else ""
            about.append(("updates", f"{sum(one.skipped is None for one in done)}{version}"))
        if role == SOLVER:
            about.append(("tokens written", f"{sum(one.num_tokens for one in done):,}"))
        if role == VERIFIER:
            about.append(("answers of test cases", f"{sum(one.num_answers for one in done):,}"))
        about.append(("time at work", span(sum(sum(one.seconds.values()) for one in done))))
        stamped = sorted((one for one in done if one.finished_at_s > 0), key=lambda one: one.finished_at_s)
        if stamped:
            began_s = stamped[0].finished_at_s - sum(stamped[0].seconds.values())
            about.append(("when", f"{utc(began_s)} to {utc(stamped[-1].finished_at_s)}"))
    return [(what, value) for what, value in about if value]


def _summed(tallies: Sequence[Mapping[str, int]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for tally in tallies:
        total.update(tally)
    return total


def _counts(tally: Counter[str], meanings: Mapping[str, str] | None = None) -> list[Count]:
    return [Count(name=name, count=n, meaning=(meanings or {}).get(name, "")) for name, n in tally.most_common()]

"""Records of finished rounds: a report in `rounds.jsonl`, the groups in `groups.jsonl`, the node's status, a line on
the console, and a summary at the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from codezero.identity.names import animal_name
from codezero.observe import groups_file
from codezero.observe.groups_file import GroupsFile
from codezero.observe.report_file import ReportFile
from codezero.observe.status import StatusFile
from codezero.reports import RoundReport
from codezero.runtime.amounts import brief
from codezero.runtime.console import Console
from codezero.types import RoundId, ScoredGroup

MAX_NAMED = 2
"""The most peers that a round's line names."""


@dataclass(slots=True, kw_only=True)
class _Totals:
    """Sums over the rounds of this run, for its summary."""

    rounds: int = 0
    seconds: float = 0.0
    updates: int = 0
    scored: int = 0
    reward: float = 0.0
    passed: float = 0.0
    external: int = 0

    def add(self, report: RoundReport) -> None:
        self.rounds += 1
        self.seconds += sum(report.seconds.values())
        self.updates += report.skipped is None
        self.external += report.num_external_groups
        if report.reward_mean is not None and report.pass_at_k is not None:
            self.scored += 1
            self.reward += report.reward_mean
            self.passed += report.pass_at_k


class RoundMonitor:
    """The implementation of `ports.Observer`. `rounds.jsonl` has exactly one line per finished round, also after
    kills."""

    def __init__(self, log_dir: Path, console: Console, status: StatusFile, num_generations: int) -> None:
        self._file = ReportFile(log_dir / "rounds.jsonl", "round")
        self._groups_file = GroupsFile(log_dir / groups_file.NAME)
        self._console, self._status = console, status
        self._num_generations = num_generations
        self._totals = _Totals()
        self._groups: tuple[RoundId, Sequence[ScoredGroup], Sequence[ScoredGroup]] | None = None

    def resume(self, last: RoundReport | None) -> None:
        """Continues the files after the last saved round; None starts new ones."""
        self._file.resume(last)
        if last is None:
            self._groups_file.begin()
        else:
            self._note(last)

    def stage(self, name: str) -> None:
        self._status.stage(name)

    def groups(self, round_id: RoundId, scored: Sequence[ScoredGroup], chosen: Sequence[ScoredGroup]) -> None:
        self._groups = round_id, scored, chosen

    def report(self, report: RoundReport) -> None:
        """Shows and stores a finished round. Raises StateError if its report cannot be written."""
        self._file.append(report)
        if self._groups is not None:
            self._groups_file.append(*self._groups)
            self._groups = None
        self._totals.add(report)
        self._note(report)
        self._console.line(round_line(report, self._num_generations))

    def progress(self, stage: str, done: int, total: int) -> None:
        """Shows the progress of a stage, as a `ports.Progress`."""
        self._console.progress(stage, done, total)
        self._status.progress(stage, done, total)

    def _note(self, report: RoundReport) -> None:
        self._status.took(report.seconds)
        self._status.update(
            policy_version=report.policy_version, network=report.network, ledger=report.ledger, round=report.round
        )

    def summary(self) -> str:
        """Returns a summary of this run's rounds in one line."""
        totals = self._totals
        if not totals.rounds:
            return "stopped before a round was finished; nothing was lost"
        rounds = f"{totals.rounds} round{'s' * (totals.rounds > 1)}"
        parts = [f"{rounds} in {brief(totals.seconds)}, {totals.updates} with an update"]
        if totals.scored:
            parts.append(f"mean reward {totals.reward / totals.scored:+.2f} (higher is better)")
            passed = totals.passed / totals.scored
            parts.append(f"pass@{self._num_generations} {passed:.2f} as predicted by the evaluator")
        if totals.external:
            parts.append(f"{totals.external / totals.rounds:.1f} external groups a round")
        return "done: " + ", ".join(parts)


def round_line(report: RoundReport, num_generations: int) -> str:
    """Returns a round in one line: rewards, update, groups, problems, tokens and time."""
    parts = [f"round {report.round}"]
    if report.reward_mean is not None and report.pass_at_k is not None:
        parts += [f"reward {report.reward_mean:+.2f}", f"pass@{num_generations} {report.pass_at_k:.2f}"]
    else:
        parts.append("not scored")
    if report.mixed is not None:
        parts.append(mixed(report.mixed))
    if report.skipped is not None:
        parts.append(f"no update: {report.skipped}")
    else:
        parts.append(f"loss {_signless_zero(report.loss):.4f} grad {report.grad_norm:.2f}")
    proposed = f" ({report.num_proposed_groups} proposed)" if report.num_proposed_groups else ""
    replayed = f" replayed {report.num_replayed_groups}" if report.num_replayed_groups else ""
    parts.append(f"local {report.num_local_groups}{proposed}{replayed} external {external(report)}")
    if report.network:
        parts.append(report.network)
    if report.ledger:
        parts.append(f"ledger: {report.ledger}")
    if report.judge_score is not None:
        parts.append(f"judge service {report.judge_score:g}")
    if report.judge:
        parts.append(f"judge service: {report.judge}")
    if report.market and report.market != report.judge:
        parts.append(f"market: {report.market}")
    if report.dropped:
        parts.append("dropped " + ", ".join(f"{count} {reason}" for reason, count in report.dropped.items()))
    if unverified := report.fresh_tests.get("unverified"):
        parts.append(f"unverified {unverified}")
    parts.append(f"{report.num_tokens} tok {report.tokens_per_s:.0f}/s")
    parts.append(time_spent(report.seconds))
    return " | ".join(parts)


def mixed(share: float) -> str:
    """Returns the share of groups with right and wrong attempts, as text."""
    return f"mixed {share:.0%}"


def external(report: RoundReport) -> str:
    """Returns how many of the peers' judged groups were trained on, with the animal names or number of these peers."""
    if not report.num_pooled_groups:
        return "0"
    taken = f"{report.num_external_groups} of {report.num_pooled_groups}"
    peers = list(report.external_groups)
    if not peers:
        return taken
    return f"{taken} from " + (
        " and ".join(map(animal_name, peers)) if len(peers) <= MAX_NAMED else f"{len(peers)} peers"
    )


def _signless_zero(loss: float | None) -> float:
    return round(loss or 0.0, 4) + 0.0


def time_spent(seconds: Mapping[str, float]) -> str:
    """Returns the total and the stages of at least 0.5 s, such as `8s: solve 6 train 2`."""
    stages = "".join(f" {name} {spent:.0f}" for name, spent in seconds.items() if spent >= 0.5)
    return brief(sum(seconds.values())) + (f":{stages}" if stages else "")

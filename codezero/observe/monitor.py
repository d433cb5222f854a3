"""Records of finished rounds: a report in `rounds.jsonl`, the groups in `groups.jsonl`, the node's status, a line on
the console, and a summary at the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from codezero.identity.names import animal_name
from codezero.observe import groups_file
from codezero.observe.batches import BatchKind, BatchMonitor, time_spent
from codezero.observe.groups_file import GroupsFile
from codezero.observe.status import StatusFile
from codezero.reports import RoundReport
from codezero.runtime.amounts import tallied
from codezero.runtime.console import Console
from codezero.types import RoundId, ScoredGroup

MAX_NAMED = 2
"""The most peers that a round's line names."""


class RoundMonitor(BatchMonitor[RoundReport]):
    """Shows and stores a solver's rounds and their groups. Only `report` can fail."""

    def __init__(self, log_dir: Path, console: Console, status: StatusFile, num_generations: int) -> None:
        kind = BatchKind(
            file="rounds.jsonl",
            line=partial(round_line, num_generations=num_generations),
            sums=_sums,
            summary=partial(_summary, num_generations=num_generations),
            noun="round",
        )
        super().__init__(kind, log_dir, console, status)
        self._groups_file = GroupsFile(log_dir / groups_file.NAME)
        self._groups: tuple[RoundId, Sequence[ScoredGroup], Sequence[ScoredGroup]] | None = None

    def resume(self, last: RoundReport | None) -> None:
        """Continues the files after the last saved round; None starts new ones."""
        super().resume(last)
        if last is None:
            self._groups_file.begin()
        else:
            self._note(last)

    def stage(self, name: str) -> None:
        """Records that a stage begins."""
        self._status.stage(name)

    def groups(self, round_id: RoundId, scored: Sequence[ScoredGroup], chosen: Sequence[ScoredGroup]) -> None:
        """Records the round's judged groups and those chosen to train on."""
        self._groups = round_id, scored, chosen

    def _stored(self, report: RoundReport) -> None:
        if self._groups is not None:
            self._groups_file.append(*self._groups)
            self._groups = None
        self._note(report)

    def _note(self, report: RoundReport) -> None:
        self._status.update(
            policy_version=report.policy_version, network=report.network, ledger=report.ledger, round=report.round
        )


def _sums(report: RoundReport) -> dict[str, float]:
    sums = {"rounds": 1, "updates": int(report.skipped is None), "external": report.num_external_groups}
    if report.reward_mean is None or report.pass_at_k is None:
        return {**sums, "scored": 0}
    return {**sums, "scored": 1, "reward": report.reward_mean, "passed": report.pass_at_k}


def _summary(sums: Mapping[str, float], num_generations: int) -> str:
    parts = [f"{sums['updates']} with an update"]
    if sums["scored"]:
        parts.append(f"mean reward {sums['reward'] / sums['scored']:+.2f} (higher is better)")
        passed = sums["passed"] / sums["scored"]
        parts.append(f"pass@{num_generations} {passed:.2f} as predicted by the evaluator")
    if sums["external"]:
        parts.append(f"{sums['external'] / sums['rounds']:.1f} external groups a round")
    return ", ".join(parts)


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
        loss = round(report.loss or 0.0, 4) + 0.0  # a zero has no sign then
        parts.append(f"loss {loss:.4f} grad {report.grad_norm:.2f}")
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
        parts.append(f"dropped {tallied(report.dropped)}")
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
    named = " and ".join(map(animal_name, peers)) if len(peers) <= MAX_NAMED else f"{len(peers)} peers"
    return f"{taken} from {named}"

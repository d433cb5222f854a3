"""Round reports: one JSON object a line in `rounds.jsonl`, one readable line on the console, a summary at the end."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Callable
from pathlib import Path
from statistics import mean
from typing import Any

from codezero.errors import StateError
from codezero.observe.console import Console
from codezero.types import RoundReport

MAX_NAMED = 2
"""Peers called by name in a round's line."""


class RoundMonitor:
    """ports.Monitor that keeps `rounds.jsonl` at exactly one line a finished round, also across kills."""

    def __init__(self, path: Path, console: Console, num_generations: int, name_of: Callable[[str], str]) -> None:
        """`name_of` gives the name of a peer id that people know it by."""
        self._path, self._console, self._num_generations, self._name_of = path, console, num_generations, name_of
        self._seen: list[RoundReport] = []

    def resume(self, last: RoundReport | None) -> None:
        """Brings the file in line with the last saved round: drops torn and newer lines, adds a missing last one.

        A node killed between saving a round and reporting it leaves the line out; one that lost its newest checkpoint
        has lines of rounds it will play again.
        """
        if last is None:
            self._set_aside()
            return
        last_round = last.round
        lines = self._path.read_text(encoding="utf-8").splitlines() if self._path.exists() else []
        kept = [line for line in lines if 0 < _round_of(line) <= last_round]
        if not kept or _round_of(kept[-1]) < last_round:
            kept.append(_to_json(last))
        temporary = self._path.with_suffix(".tmp")
        self._write(temporary, "".join(line + "\n" for line in kept), "w")
        os.replace(temporary, self._path)

    def report(self, report: RoundReport) -> None:
        self._write(self._path, _to_json(report) + "\n", "a")
        self._seen.append(report)
        self._console.line(round_line(report, self._num_generations, self._name_of))

    def summary(self) -> str:
        """What this run did, in two lines."""
        if not self._seen:
            return "stopped before a round was finished; nothing was lost"
        seen = self._seen
        seconds = sum(sum(report.seconds.values()) for report in seen)
        rewards = [report.reward_mean for report in seen if report.reward_mean is not None]
        passed = [report.pass_at_k for report in seen if report.pass_at_k is not None]
        updates = sum(report.skipped is None for report in seen)
        parts = [f"{len(seen)} round{'s' * (len(seen) > 1)} in {_duration(seconds)}, {updates} with an update"]
        if rewards:
            parts.append(f"mean reward {mean(rewards):+.2f} (higher is better)")
        if passed:
            parts.append(f"pass@{self._num_generations} {mean(passed):.2f} as predicted by the evaluator")
        if any(report.num_external_groups for report in seen):
            external = mean(report.num_external_groups for report in seen)
            parts.append(f"{external:.1f} external groups a round")
        return "done: " + ", ".join(parts)

    def _set_aside(self) -> None:
        """A node that starts anew leaves the reports of an earlier one under a free name."""
        number = 1
        while self._path.with_suffix(f".{number}.jsonl").exists():
            number += 1
        if self._path.exists():
            os.replace(self._path, self._path.with_suffix(f".{number}.jsonl"))

    def _write(self, path: Path, text: str, mode: str) -> None:
        try:
            with path.open(mode, encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise StateError(
                f"cannot write {path}: {error.strerror}; free space or give another tracking.log_dir"
            ) from error


def round_line(report: RoundReport, num_generations: int, name_of: Callable[[str], str] = str) -> str:
    """One compact line: what was earned, what was learned, from what, and what it took."""
    parts = [f"round {report.round}"]
    if report.reward_mean is not None and report.pass_at_k is not None:
        parts += [f"reward {report.reward_mean:+.2f}", f"pass@{num_generations} {report.pass_at_k:.2f}"]
    else:
        parts.append("not scored")
    if report.skipped is not None:
        parts.append(f"no update: {report.skipped}")
    else:
        parts.append(f"loss {_signless_zero(report.loss):.4f} grad {report.grad_norm:.2f}")
    parts.append(f"local {report.num_local_groups} external {_external(report, name_of)}")
    if report.network:
        parts.append(report.network)
    if report.dropped:
        parts.append("dropped " + ", ".join(f"{count} {reason}" for reason, count in report.dropped.items()))
    parts.append(f"{report.num_tokens} tok {report.tokens_per_s:.0f}/s")
    stages = "".join(f" {name} {seconds:.0f}" for name, seconds in report.seconds.items() if seconds >= 0.5)
    parts.append(_duration(sum(report.seconds.values())) + (f":{stages}" if stages else ""))
    return " | ".join(parts)


def _external(report: RoundReport, name_of: Callable[[str], str]) -> str:
    """How many of the judged groups of peers were trained on, and which or how many peers they came from."""
    if not report.num_pooled_groups:
        return "0"
    taken = f"{report.num_external_groups} of {report.num_pooled_groups}"
    peers = list(report.external_groups)
    if not peers:
        return taken
    return f"{taken} from " + (" and ".join(map(name_of, peers)) if len(peers) <= MAX_NAMED else f"{len(peers)} peers")


def report_from_dict(values: dict[str, Any]) -> RoundReport:
    """The inverse of `dataclasses.asdict`."""
    return RoundReport(**values)


def _to_json(report: RoundReport) -> str:
    return json.dumps(dataclasses.asdict(report), allow_nan=False)


def _round_of(line: str) -> int:
    """The round a line reports; 0 for a line that is torn or foreign."""
    try:
        number = json.loads(line)["round"]
    except (ValueError, KeyError, TypeError):
        return 0
    return number if isinstance(number, int) else 0


def _signless_zero(loss: float | None) -> float:
    return round(loss or 0.0, 4) + 0.0


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}m{rest:02d}s" if minutes else f"{rest}s"

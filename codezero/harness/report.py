"""The summary of an evaluation, as one JSON object and as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from codezero.evaluate.metrics import CONFIDENCE
from codezero.harness.solved import WAYS, metrics


def summary(rows: Sequence[Mapping[str, Any]], ks: Sequence[int], **about: Any) -> dict[str, Any]:
    """Returns all counts and metrics as one JSON object."""
    return {
        **about,
        "problems": len({row["group"] for row in rows}),
        "solutions": len(rows),
        "passed": sum(bool(row["passed"]) for row in rows),
        "no_code": sum(row.get("reason") == NO_CODE for row in rows),
        "cut_off": sum(row.get("finish") == "length" for row in rows),
        "execution_s": round(sum(row["seconds"] for row in rows), 1),
        "metrics": {name: asdict(metric) for name, metric in metrics(rows, ks).items()},
    }


NO_CODE = "no fenced Python block"


def table(found: Mapping[str, Any]) -> str:
    """Returns the summary as text for people."""
    lines = [
        f"{found['problems']} problems, {found['solutions']} solutions: {found['passed']} passed, "
        f"{found['no_code']} without code, {found['cut_off']} cut off at the token limit",
        f"{'metric':<18}{'value':>8}   {CONFIDENCE:.0%} interval over problems",
    ]
    for name, metric in found["metrics"].items():
        lines.append(f"{name:<18}{metric['value']:>8.3f}   {metric['low']:.3f} to {metric['high']:.3f}")
    ways = [(way, text) for way, text in WAYS.items() if f"best by {way}" in found["metrics"]]
    lines += [f"best by {way}: {text}" for way, text in ways]
    lines += [f"left out: {count} x {reason}" for reason, count in sorted(found.get("left_out", {}).items())]
    return "\n".join(lines)

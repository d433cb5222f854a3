"""Computes pass@1, pass@k and average@k of results, with their confidence intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from codezero.evaluate.intervals import bootstrap
from codezero.evaluate.metrics import CONFIDENCE, Estimate, pass_at_k
from codezero.verifier.choose import WAYS


def metrics(rows: Sequence[Mapping[str, Any]], ks: Sequence[int]) -> dict[str, Estimate]:
    """Returns pass@k for each k that no problem has fewer solutions than, and average@n (`average` if their counts n
    differ).

    pass@k is the unbiased estimate (Chen et al. 2021, arXiv 2107.03374); average@n is the share of right solutions.
    """
    by_group: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        by_group.setdefault(row["group"], []).append(row)
    if not by_group:
        return {}
    groups = {group: [bool(row["passed"]) for row in found] for group, found in by_group.items()}
    counts = [(len(passed), sum(passed)) for passed in groups.values()]
    fewest, most = min(n for n, _ in counts), max(n for n, _ in counts)
    found = {
        f"pass@{k}": bootstrap([pass_at_k(n, c, k) for n, c in counts]) for k in sorted({1, *ks}) if 1 <= k <= fewest
    }
    found[f"average@{most}" if fewest == most else "average"] = bootstrap([c / n for n, c in counts])
    ways = sorted({way for row in rows for way in row.get("ranks", ())}, key=list(WAYS).index)
    return found | {f"best by {way}": bootstrap([chosen(group, way) for group in by_group.values()]) for way in ways}


def chosen(rows: Sequence[Mapping[str, Any]], way: str) -> float:
    """Returns the probability that the choice among the solutions to a problem is right: the share of those that are
    ranked highest."""
    highest = max(row["ranks"].get(way, 0.0) for row in rows)
    best = [bool(row["passed"]) for row in rows if row["ranks"].get(way, 0.0) == highest]
    return sum(best) / len(best)


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

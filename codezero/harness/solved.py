"""pass@k, average@k and the best of several, of executed solutions, with their confidence intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from codezero.evaluate.intervals import bootstrap
from codezero.evaluate.metrics import Estimate, pass_at_k

WAYS = {
    "shown": "one of the solutions that pass the tests shown in the question",
    "majority": "of these, one with the most copies",
    "agreement": "of these, one that agrees with the most others on similar inputs",
    "tests": "of these, one that passes the most tests that the model has written, with the most others",
}
"""The ways of choosing one of several solutions, in words."""


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

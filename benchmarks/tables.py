"""The tables of docs/measurements.md that are made from benchmarks/results, each between two marks of its name.

    python -m benchmarks.tables        # makes them again

A test fails where the document and the results differ. Below each table stands what it was measured on.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from importlib import import_module

import numpy as np

from benchmarks import harness
from benchmarks.harness import ROOT, Result, Target
from benchmarks.power import wilson
from codezero.evaluate.intervals import RESAMPLES, central
from codezero.evaluate.metrics import Estimate
from codezero.observe.probes import points

PAGE = ROOT / "docs" / "measurements.md"
COMMAND = "python -m benchmarks.tables"
TABLES = {
    "difficulty": "table",
    "draws": "table",
    "learning": "table",
    "sharing": "table",
    "staleness": "table",
    "settled-programs": "programs_table",
    "settled-attacks": "attacks_table",
    "settled-referenced": "attacks_table",
    "settled-checked": "attacks_table",
    "settled-methods": "attacks_table",
    "samples": "table",
    "written": "table",
    "cases": "table",
    "pair": "table",
    "calibrate": "table",
    "contest": "table",
    "fresh": "table",
    "rollout": "table",
    "rollout-rounds": "rounds_table",
    "round": "round_table",
    "round-lora": "learn_table",
    "memory": "table",
    "evening": "table",
    "decoding": "table",
    "saving": "table",
    "gpu-nvidia-h200": "table",
    "gpu-nvidia-h200-before": "table",
    "transfer": "table",
    "mutation": "table",
    "against-functions": "table",
    "against-programs": "table",
    "against-examples": "table",
    "recalled-visible": "attacks_table",
    "recalled-hidden": "attacks_table",
    "recalled-right": "programs_table",
}
"""The function of a benchmark that makes a table, by the name of the table's mark. A name is a benchmark and one of its
arms, or a benchmark with all of them that have no mark of their own."""
BEGIN, END = "<!-- made by benchmarks.tables: {} -->", "<!-- end of what is made -->"


def page(text: str) -> str:
    """The document with its tables as the results have them."""

    def made(match: re.Match[str]) -> str:
        return f"{match[1]}\n{table(match[2])}\n{match[3]}"

    begin, end = re.escape(BEGIN).replace(r"\{\}", r"([\w-]+)"), re.escape(END)
    return re.sub(f"({begin})\n.*?({end})", made, text, flags=re.DOTALL)


def table(name: str) -> str:
    """A table, and what it was measured on."""
    benchmark, _, arm = name.partition("-")
    results = {
        found: result
        for found, result in harness.results(benchmark).items()
        if (found == arm if arm else f"{benchmark}-{found}" not in TABLES)
    }
    if not results:
        raise SystemExit(f"there are no results for the table {name}: run `python -m benchmarks.{benchmark}` first")
    rows = getattr(import_module(f"benchmarks.{benchmark}"), TABLES[name])(results)
    return f"{rows}\n\n{_measured_on(benchmark, list(results.values()))}"


def _measured_on(benchmark: str, results: Sequence[Result]) -> str:
    sittings = [sitting for result in results for sitting in result.sittings]
    power = dict.fromkeys(power.sentence() for result in results for power in result.power)
    return f"`python -m benchmarks.{benchmark}`: {harness.described(sittings)}. Power: {'; '.join(power)}."


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (header, ["---"] * len(header), *rows))


def clustered(counts: Sequence[tuple[int, int]]) -> Estimate:
    """Returns the share of successes of trials in clusters, such as samples of a problem: (successes, trials) of each.

    The bootstrap draws clusters with replacement. If the share is the same in each, such as 0 or 1, its interval would
    have no width; then each cluster counts as one trial of Wilson's interval."""
    array = np.asarray(counts, float)
    successes, trials = array.sum(axis=0)
    if len(np.unique(array[:, 0] / array[:, 1])) == 1:
        return wilson(len(counts) * successes / trials, len(counts))
    rng = np.random.default_rng(0)
    drawn = [array[rng.integers(0, len(array), len(array))].sum(axis=0) for _ in range(RESAMPLES)]
    low, high = central([found / tried for found, tried in drawn])
    return Estimate(value=successes / trials, low=low, high=high)


def in_points(difference: Estimate) -> str:
    """Returns a difference of shares with its interval: `+6.1 points [+2.4, +9.9]`."""
    value, low, high = map(points, (difference.value, difference.low, difference.high))
    return f"{value} points [{low}, {high}]"


def share(counts: Iterable[tuple[int, int]], target: Target | None = None) -> str:
    """The share of successes in clusters of (successes, trials), such as problems: `0.9 % [0.4, 1.6]`, and where there
    is a target whether it is met. A dash where nothing was tried."""
    tried = [(successes, trials) for successes, trials in counts if trials]
    if not tried:
        return "-"
    found = clustered(tried)
    value, low, high = (f"{100 * one:.1f}".removesuffix(".0") for one in (found.value, found.low, found.high))
    text = f"{value} % [{low}, {high}]"
    return f"{text}, {outcome(target, found.value, '{:.4g} %', 100)}" if target else text


def outcome(target: Target, value: float, form: str, factor: float = 1) -> str:
    """`at most 1 %: met`, or **missed**; bounds are written as `form` has it, times `factor`."""
    bounds = {"at least": target.at_least, "at most": target.at_most}
    wanted = " and ".join(
        f"{word} {form.format(factor * bound)}" for word, bound in bounds.items() if bound is not None
    )
    return f"{wanted}: {'met' if target.is_met(value) else '**missed**'}"


def main() -> None:
    text = PAGE.read_text(encoding="utf-8")
    harness.write(PAGE, page(text))


if __name__ == "__main__":
    main()

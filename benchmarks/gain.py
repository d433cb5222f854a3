"""Measures what the probes of a node can show, with simulated runs of models that get better by so much.

`python -m benchmarks.gain [--runs 400]`; no model and no machine matters here, so nothing is stored.

Figures: docs/learning.md#how-to-see-it
"""

from __future__ import annotations

import numpy as np

from benchmarks.harness import command_line
from codezero.evaluate.gain import Direction, newest
from codezero.evaluate.intervals import Floats
from codezero.policy.probing.probe import SAMPLES, START_SAMPLES

NUM_PROBLEMS = 89
GAINS, PASSES = (0.0, 0.03, 0.05, 0.08, 0.10, 0.15), (1, 2, 4, 8, 16, 32)


def share_found(gain: float, passes: int, runs: int) -> float:
    """Returns the share of simulated runs of which the last look says that they learn."""
    rng = np.random.default_rng(0)
    return sum(_is_found(rng, gain, passes) for _ in range(runs)) / runs


def _is_found(rng: np.random.Generator, gain: float, passes: int) -> bool:
    before: Floats = rng.beta(0.3, 0.9, NUM_PROBLEMS)  # as small models: many never, few always
    room = before * (1 - before)
    after = np.clip(before + gain * room / room.mean(), 0, 1)
    later = rng.binomial(SAMPLES, np.broadcast_to(after, (passes, len(after)))) / SAMPLES
    start = rng.binomial(START_SAMPLES, before) / START_SAMPLES
    found = newest([start.tolist(), *later.tolist()])
    return found is not None and found.direction is Direction.RISING


def main() -> None:
    parser = command_line("gain", __doc__)
    parser.add_argument("--runs", type=int, default=400, metavar="N", help="simulated runs of each cell (default 400)")
    runs = parser.parse_args().runs
    print("share of runs found to learn, by points gained and passes after the start")
    print("points" + "".join(f"{number:>7}" for number in PASSES))
    for gain in GAINS:
        print(
            f"{100 * gain:>6.0f}" + "".join(f"{share_found(gain, number, runs):>7.2f}" for number in PASSES), flush=True
        )


if __name__ == "__main__":
    main()

"""Compares linear layers through oneDNN (codezero/llm/onednn.py) with torch's own, in the shapes of the 0.5B model.

    python -m benchmarks.linear

A few rows are a decoding step, where the weights are packed; 400 are a micro-batch in training. The numbers are torch's
time divided by oneDNN's: above 1, oneDNN is faster.

Figures: docs/measurements.md#speed
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence

import torch
from torch import nn

from benchmarks.harness import command_line
from benchmarks.measure import machine
from codezero.llm import device as devices
from codezero.llm import onednn

SHAPES = {
    "query, output": (896, 896),
    "key, value": (896, 128),
    "gate, up": (896, 4864),
    "down": (4864, 896),
    "head": (896, 151_936),
}
"""The numbers of inputs and outputs of the layers."""
ROWS = (1, 8, 16, 400)
MIN_RUNS = 5


def compare(in_features: int, out_features: int, rows: int, seconds: float) -> tuple[float, float, float]:
    """torch's time by oneDNN's for a forward pass, one with packed weights, and forward and backward together."""
    layer, routed = (nn.Linear(in_features, out_features, bias=False) for _ in range(2))
    onednn.route_linears(routed)
    x = torch.randn(rows, in_features, requires_grad=True)
    grad = torch.randn(rows, out_features)

    def train(linear: nn.Linear) -> None:
        linear.weight.grad = x.grad = None
        linear(x).backward(grad)

    with torch.no_grad():
        forward = _ratio(lambda: layer(x), lambda: routed(x), seconds)
        with onednn.packed_weights(routed):
            packed = _ratio(lambda: layer(x), lambda: routed(x), seconds)
    return forward, packed, _ratio(lambda: train(layer), lambda: train(routed), seconds)


def _ratio(base: Callable[[], object], other: Callable[[], object], seconds: float) -> float:
    """Median time of `base` by that of `other`, run in turns so that other programs disturb both alike."""
    base(), other()
    times: tuple[list[float], list[float]] = ([], [])
    end = time.perf_counter() + seconds
    while len(times[1]) < MIN_RUNS or time.perf_counter() < end:
        for work, found in zip((base, other), times, strict=True):
            start = time.perf_counter()
            work()
            found.append(time.perf_counter() - start)
    return statistics.median(times[0]) / statistics.median(times[1])


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints one line a shape and row count."""
    parser = command_line("linear", __doc__)
    parser.add_argument("--seconds", type=float, default=0.3, help="time for each ratio")
    parser.add_argument("--rows", type=int, nargs="+", default=ROWS)
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=list(SHAPES), metavar="NAME")
    parser.add_argument("--threads", type=int, default=0, help="CPU threads; 0 for one a physical core")
    options = parser.parse_args(arguments)
    devices.set_threads(options.threads)
    print(f"machine: {machine()}")
    if not onednn.is_available():
        raise SystemExit("torch has no oneDNN linears here: the node uses torch's own")
    print(f"{'layer':14} {'in x out':>12} {'rows':>5} {'forward':>8} {'packed':>8} {'forward+backward':>17}")
    for name in options.shapes:
        in_features, out_features = SHAPES[name]
        for rows in options.rows:
            forward, packed, train = compare(in_features, out_features, rows, options.seconds)
            shape = f"{in_features} x {out_features}"
            print(f"{name:14} {shape:>12} {rows:5} {forward:7.2f}x {packed:7.2f}x {train:16.2f}x", flush=True)


if __name__ == "__main__":
    main()

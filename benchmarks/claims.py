"""Measures how often two small nodes that learn apart believe each other's log-probs, and lies.

    python -m benchmarks.claims           # about ten minutes on a core
    python -m benchmarks.claims real      # what the 0.5B's attempts at four problems would send; five minutes

Both begin with one model and learn alone, 8 tasks a round. At a look each judges the other's attempts at held-out tasks
by `codezero.train.claims`: as they are, and with the lies of `LIES`. Prints the share that it believes, the median of
what `MOST_GAP` bounds and, of honest attempts, the mean weight of a token with the default cap.

Figures: docs/measurements.md#which-log-probs-of-peers-are-believed
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean, median

import torch

from benchmarks import arithmetic, small_swarm
from benchmarks.harness import command_line
from benchmarks.measure import machine
from benchmarks.sharing import START
from benchmarks.small_swarm import Node
from benchmarks.tables import markdown
from codezero.config import ModelConfig, TrainConfig
from codezero.llm import store
from codezero.llm.draw import SamplingParams
from codezero.llm.load import LoadedModel, load_model
from codezero.llm.logprobs import CompletionScorer
from codezero.llm.sample import sample_groups
from codezero.network.wire import pack_groups
from codezero.policy.solver import PolicySolver
from codezero.tasks.held_out import load_held_out
from codezero.train.claims import log_ratios, packed, unpacked
from codezero.types import SampledTokens

LOOKS = (0, 1, 4, 16, 64, 200, 400)
HELD_OUT, ANSWERS = 128, 4
CAP = math.log(TrainConfig().importance_cap)
LIES: dict[str, Callable[[Sequence[float]], Sequence[float]]] = {
    "certain": lambda logprobs: [0.0] * len(logprobs),
    "1 nat lower": lambda logprobs: [one - 1.0 for one in logprobs],
    "reversed": lambda logprobs: list(reversed(logprobs)),
}


@torch.no_grad()
def own_logprobs(made: LoadedModel, attempt: SampledTokens) -> list[float]:
    ids = torch.tensor([attempt.completion_ids])
    scorer = CompletionScorer(made.model, torch.tensor(attempt.prompt_ids))
    return [float(one) for one in scorer.logprobs(ids, torch.ones_like(ids, dtype=torch.bool))[0]]


def look(nodes: Sequence[Node], rng: torch.Generator) -> list[str]:
    """Returns a row of the table."""
    asked = arithmetic.held_out(HELD_OUT)
    pairs = [
        (own_logprobs(reader.model, attempt), attempt.logprobs)
        for author, reader in (nodes, nodes[::-1])
        for group in arithmetic.sample(author.model, asked, ANSWERS, rng)
        for attempt in group
    ]
    sent = [(own, unpacked(packed(said), len(own)) or ()) for own, said in pairs]
    gaps = [sum(abs(a - b) for a, b in zip(own, said, strict=True)) / -sum(own) for own, said in sent]
    ratios = [found for own, said in sent if (found := log_ratios(said, own)) is not None]
    weights = [math.exp(min(one, CAP)) for found in ratios for one in found]
    lies = [fmean(log_ratios(lie(said), own) is not None for own, said in sent) for lie in LIES.values()]
    return [
        f"{len(ratios) / len(sent):.0%}",
        f"{median(gaps):.2f}",
        f"{fmean(weights):.2f}",
        *(f"{x:.0%}" for x in lies),
    ]


def real() -> str:
    """Returns in words how many attempts of the 0.5B have log-probs for others, what they add to a record, and how far
    zeros for all tokens are from them, by the median of an attempt's tokens and by their mean."""
    name = ModelConfig().name
    folder = store.prepare(name, ModelConfig().cache_dir, report=print)
    policy = load_model(name, folder, torch.device("cpu"), torch.float32)
    solver = PolicySolver(
        policy,
        4,
        SamplingParams(max_new_tokens=96),
        seed=0,
        peer_id="us",
        progress=lambda *_: None,
        sample=sample_groups,
        shares_logprobs=True,
    )
    groups = solver.solve([*load_held_out().values()][:4], 0)
    rollouts = [rollout for group in groups for rollout in group.rollouts]
    bare = [replace(group, rollouts=tuple(replace(r, logprobs=b"") for r in group.rollouts)) for group in groups]
    zeros = [[-one for one in rollout.tokens.logprobs] for rollout in rollouts if rollout.tokens is not None]
    medians, means = (sorted(round(of(one), 3) for one in zeros) for of in (median, fmean))
    return (
        f"{sum(bool(one.logprobs) for one in rollouts)} of {len(rollouts)} attempts have log-probs; a record has "
        f"{len(pack_groups(groups))} bytes, {len(pack_groups(bare))} without\nzeros, medians: {medians}\n"
        f"zeros, means: {means}"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = command_line("claims", __doc__)
    parser.add_argument("what", nargs="?", choices=("small", "real"), default="small")
    parser.add_argument("--rounds", type=int, default=LOOKS[-1], metavar="N", help=f"default {LOOKS[-1]}")
    parser.add_argument(
        "--state", type=Path, default=Path("benchmarks/state/sharing"), help="has the model of the start"
    )
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    print(f"machine: {machine()}")
    if options.what == "real":
        print(real())
        return
    start = arithmetic.kept_beginner(0, START, options.state)
    nodes = [Node(number, small_swarm.Setup.of("8/0"), str(number), start) for number in range(2)]
    rng, rows = torch.Generator().manual_seed(0), []
    for number in range(options.rounds + 1):
        if number in LOOKS:
            rows.append([str(number), *look(nodes, rng)])
        for node in nodes:
            node.learn(number, node.solve(), [])
    print(markdown(["rounds apart", "believed", "gap", "weight", *LIES], rows))


if __name__ == "__main__":
    main()

"""Measures what decoding without copies gains (`codezero.llm.decoding`), and removing ended rows early.

    python -m benchmarks.decoding         # ten minutes on two calm cores

The catalogue's 0.5B model with an adapter, its own end tokens, and the built-in problems, in turn

- `before`: with transformers' cache and attention, ended rows removed once they are half of the batch;
- `now`: with the cache that grows in place and grouped queries, rows removed once an eighth has ended.

Counts are by piece and side: tokens drawn, wall seconds, processor seconds, processor seconds of others. The sides draw
other tokens after the first row has been removed, so costs are by token.

Figures: docs/measurements.md#speed
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack, nullcontext
from functools import cache, partial
from typing import Any
from unittest import mock

import torch
from transformers import DynamicCache

from benchmarks import harness
from benchmarks.harness import MODEL, Arm, Result
from benchmarks.measure import measure
from benchmarks.power import of_mean
from benchmarks.rollout import folder_of, policy, prompts
from benchmarks.tables import markdown
from codezero.llm import decoding, sample
from codezero.llm import device as devices

G = 4
BATCHES = {"16 attempts": 16, "16 attempts, others": 16, "64 attempts": 64}
TOKENS = 256
BEFORE = (
    (decoding, "make_cache", lambda model, most: DynamicCache(config=model.config)),
    (decoding, "grouped_queries", nullcontext),
    (sample, "ENDED_SHARE", 1 / 2),
)
"""The parts that are as they were: where each is, its name, and its replacement."""


class Decoding:
    def __init__(self, options: Any) -> None:
        self.loaded = policy(folder_of("agreement", options), moved=False)
        self.prompts = prompts(self.loaded)

    def piece(self, name: str) -> dict[str, list[float]]:
        number, rows = list(BATCHES).index(name), BATCHES[name]
        asked = self.prompts[number * 8 : number * 8 + rows // G]
        found = {}
        for side in ("before", "now"):
            with ExitStack() as stack:
                if side == "before":
                    for where, patched, instead in BEFORE:
                        stack.enter_context(mock.patch.object(where, patched, instead))
                groups, cost = measure(lambda: self._sample(asked, number))
            tokens = sum(len(one.completion_ids) for group in groups for one in group)
            found[side] = [tokens, cost.wall_s, cost.cpu_s, cost.other_cpu_s]
            print(f"  {side}: {tokens / cost.wall_s:.1f} tokens/s", flush=True)
        return found

    def _sample(self, asked: list[list[int]], seed: int) -> Any:
        request = sample.SampleRequest(
            prompts=asked,
            num_generations=G,
            params=sample.SamplingParams(max_new_tokens=TOKENS),
            end_ids=self.loaded.end_ids,
            pad_id=self.loaded.pad_id,
            generator=torch.Generator().manual_seed(seed),
        )
        return sample.sample_groups(self.loaded.model, request)


def table(results: Mapping[str, Result]) -> str:
    rows = []
    for name, found in results["copies"].counts.items():
        (had, _, before_s, _), (has, _, now_s, _) = found["before"], found["now"]
        before, now = 1000 * before_s / had, 1000 * now_s / has
        rows.append([name, f"{had}, {has}", f"{before:.0f}", f"{now:.0f}", f"{before / now:.2f}"])
    return markdown(
        ["batch", "tokens before, now", "before, CPU ms a token", "now, CPU ms a token", "times faster"], rows
    )


def main() -> None:
    options = harness.parser("decoding", __doc__).parse_args()
    devices.set_threads(0)
    devices.return_freed_memory()
    arm = Arm(
        benchmark="decoding",
        name="copies",
        settings={"model": MODEL, "attempts": G, "tokens": TOKENS, "threads": torch.get_num_threads()},
        seed=0,
        pieces=list(BATCHES),
        power=[of_mean("times faster", len(BATCHES), 0.2)],
    )
    make = cache(partial(Decoding, options))  # with the first piece: an arm that is done loads nothing
    harness.run(arm, lambda piece: make().piece(piece), options)


if __name__ == "__main__":
    main()

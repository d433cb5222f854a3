"""Measures what a node sends to a rollout server after an update, and how long that takes.

    python -m benchmarks.transfer full lora               # five minutes on two calm cores, 12 GiB
    python -m benchmarks.transfer full-slow lora-slow     # as long, over a link of 100 Mbit/s

With the catalogue's 0.5B model in float32: the product's updates at its default learning rates, of two built-in
problems with four attempts of `TOKENS` tokens each, its files of weights, and a server in another thread. The slow link
is a proxy that passes on so many bytes a second. `all`: all that is trained; the other pieces: after one update more.

- `take_s`: making the file, during which the node does nothing else. `bring_s`: asking the server what it has, the
  upload, and taking it over.
- `changed`: values that the update changed in bfloat16. `differ`: weights of the server that are not the node's,
  rounded, in the end.

Figures: docs/measurements.md#what-a-rollout-server-is-sent
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from benchmarks import harness
from benchmarks.harness import CACHE, MODEL, Arm, Counts, Result, Target
from benchmarks.power import of_none
from benchmarks.sides import PLAIN, Own, Work
from benchmarks.tables import markdown, outcome
from codezero.config import RolloutEngine, Transfer
from codezero.llm import device as devices
from codezero.llm import store
from codezero.llm.load import load_model
from codezero.llm.sample import sample_groups
from codezero.rollouts.client import RolloutServer
from codezero.rollouts.delta import bits, rounded
from codezero.rollouts.rollout_file import RolloutFile
from codezero.rollouts.server import Sampler, make_app
from codezero.rollouts.snapshots import Snapshots, adapter_weights, base_weights
from codezero.tasks.problems import load_problems
from tests.rollout_servers import TOKEN, served

ENGINE = RolloutEngine.transformers
G, TOKENS, UPDATES = 4, 64, 3
SLOW_BYTES_A_S = 100e6 / 8
FORM = "{:.0%}"
PIECES = ("all", *(f"update {number}" for number in range(1, UPDATES + 1)))
ARMS = ("full", "lora", "full-slow", "lora-slow")
PER_VALUE = Target(figure="bytes a changed value", at_most=3.5)
SHARE = Target(figure="share of all bytes, at a learning rate of 1e-6", at_most=0.03)
SAME = Target(figure="weights of the server that differ", at_most=0.0)


class Pair:
    """A node that trains and a server, with the same weights."""

    def __init__(self, method: str, url: str, measured_url: str, sampler: Sampler, folder: Path) -> None:
        self._lora, self._began = method == "lora", False
        self._own = Own(store.prepare(MODEL, CACHE), lora=self._lora)
        self._own.start_learning(PLAIN, TOKENS)
        model = self._own.policy.model
        self._snapshots = {kind: Snapshots(model, folder / kind.value, kind) for kind in Transfer}
        self._aside = RolloutServer(RolloutFile(url=url, token=TOKEN), "server")
        self._server = RolloutServer(RolloutFile(url=measured_url, token=TOKEN), "server")
        self._sampler = sampler
        self._work = Work(tasks=tuple(p.task for p in load_problems()[:2]), num_generations=G, num_tokens=TOKENS)

    def measure(self, piece: str) -> Counts:
        if piece != "all" and not self._began:
            self.measure("all")  # after a stop: a difference is one to weights that the server has
        self._began = True
        before = {name: rounded(weight) for name, weight in self._weights()}
        self._own.learn(self._work)
        snapshots = self._snapshots[Transfer.full if piece == "all" else Transfer.auto]
        sent = self._server.sent_bytes
        if piece == "all":
            self._snapshots[Transfer.auto].take(self._own.policy.model)  # for the difference of the next piece
        began_s = time.perf_counter()
        snapshots.take(self._own.policy.model)
        taken_s = time.perf_counter()
        self._server.bring(snapshots)
        brought_s = time.perf_counter()
        if piece == "all":  # from now on under the name that the next difference is to
            self._aside.bring(self._snapshots[Transfer.auto])
        now = {name: rounded(weight) for name, weight in self._weights()}
        return {
            "take_s": round(taken_s - began_s, 3),
            "bring_s": round(brought_s - taken_s, 3),
            "bytes": self._server.sent_bytes - sent,
            "all": sum(weight.nbytes for weight in now.values()),
            "changed": sum(int((bits(before[name]) != bits(weight)).sum()) for name, weight in now.items()),
            "differ": self._differ(now),
        }

    def _weights(self) -> Iterator[tuple[str, Any]]:
        model = self._own.policy.model
        return iter(adapter_weights(model).items()) if self._lora else base_weights(model)

    def _differ(self, now: dict[str, torch.Tensor]) -> int:
        model = self._sampler.model
        theirs = adapter_weights(model) if self._lora else dict(base_weights(model))
        return sum(not torch.equal(rounded(theirs[name]), weight) for name, weight in now.items())


def slowed(url: str) -> str:
    """The URL of a proxy, in a thread of this process, that passes on `SLOW_BYTES_A_S` each way of a connection."""
    port, found, loop = int(url.rpartition(":")[2]), threading.Event(), asyncio.new_event_loop()
    ports: list[int] = []

    async def pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
            await asyncio.sleep(len(data) / SLOW_BYTES_A_S)
        writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(pipe(reader, back), pipe(there, writer), return_exceptions=True)

    async def main() -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        ports.append(server.sockets[0].getsockname()[1])
        found.set()

    loop.create_task(main())
    threading.Thread(target=loop.run_forever, daemon=True).start()
    found.wait()
    return f"http://127.0.0.1:{ports[0]}"


def arm(name: str) -> Arm:
    return Arm(
        benchmark="transfer",
        name=name,
        settings={"model": MODEL, "tasks": 2, "generations": G, "tokens": TOKENS},
        seed=0,
        pieces=PIECES,
        power=[of_none("updates after which weights differ", len(PIECES), "updates")],
        targets=(PER_VALUE, SHARE, SAME) if name.startswith("full") else (SAME,),
    )


def table(results: dict[str, Result]) -> str:
    rows = []
    for name, result in results.items():
        for piece, found in result.counts.items():
            is_part = name.startswith("full") and piece != "all"
            share, each = found["bytes"] / found["all"], found["bytes"] / max(found["changed"], 1)
            changed = f"{2 * found['changed'] / found['all']:.2%}"
            rows.append(
                [
                    f"{name}, {piece}",
                    changed,
                    f"{found['bytes'] / 1e6:.1f}",
                    f"{share:.2%}{f', {outcome(SHARE, share, FORM)}' * is_part}",
                    f"{each:.2f}, {outcome(PER_VALUE, each, '{}')}" if is_part else "",
                    f"{found['take_s']:.1f}",
                    f"{found['bring_s']:.1f}",
                    str(found["differ"]),
                ]
            )
    header = ["trained, sent", "values changed", "MB", "of all bytes", "bytes a changed value", "node waits, s"]
    return markdown([*header, "until in use, s", "weights that differ"], rows)


def main() -> None:
    parser = harness.parser("transfer", __doc__)
    parser.add_argument("arms", nargs="+", choices=ARMS)
    options = parser.parse_args()
    devices.set_threads(0)
    for name in options.arms:
        folder = store.prepare(MODEL, CACHE)
        sampler = Sampler(load_model(MODEL, folder, torch.device("cpu"), torch.float32), sample_groups, ENGINE)
        with served(make_app(sampler, TOKEN)) as url:
            measured = slowed(url) if name.endswith("slow") else url
            pair = Pair(name.partition("-")[0], url, measured, sampler, options.state / "transfer" / name)
            harness.run(arm(name), pair.measure, options)
        del pair, sampler
    print(table(harness.results("transfer", options.results)))


if __name__ == "__main__":
    main()

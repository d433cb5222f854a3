"""Measures what saving costs a round of full fine-tuning: in the background, and between rounds as it was.

    python -m benchmarks.saving                 about 4 minutes, 6 GiB and 8 GB of disk on two calm cores

A piece is one round. `before_s`: the round waits while all is written, flushed, and read again for its sum, as until
this was measured. `alone_s`: sampling so many tokens with nothing beside it. `beside_s`: the same sampling while a
checkpoint is written; `write_s`: how long that took; `waited_s`: how long an update right after sampling would have
waited for it (learning, which takes as long as sampling, comes in between where there is any).

Figures: docs/measurements.md#speed
"""

from __future__ import annotations

import os
import shutil
import time
import zlib
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch

from benchmarks import harness
from benchmarks.harness import CACHE, MODEL
from benchmarks.power import of_none
from benchmarks.sides import PLAIN, Own, Work
from benchmarks.tables import markdown
from codezero.llm import device as devices
from codezero.llm import store
from codezero.tasks.problems import load_problems
from codezero.train.checkpoint import CheckpointStore
from codezero.train.saver import BackgroundSaver, FinishedRound

GENERATIONS, TOKENS, ROUNDS = 4, 24, 2
SHOWN = ("before_s", "alone_s", "beside_s", "write_s", "waited_s")


class Round:
    """A model in training, and a folder to save it in."""

    def __init__(self, folder: Path) -> None:
        self._own = Own(store.prepare(MODEL, CACHE))
        self._own.start_learning(PLAIN, TOKENS)
        assert self._own.learner is not None
        self._learner, self._folder, self._version = self._own.learner, folder, 0
        moments = [torch.zeros_like(weight, dtype=torch.bfloat16) for weight in self._learner.weights().values()]
        optimizer = {"num_steps": 1, "means": moments, "squares": [one.clone() for one in moments]}
        self._learner.load_state_dict({"policy_version": 1, "optimizer": optimizer})
        tasks = tuple(problem.task for problem in load_problems(2, 2)[1:3])
        self._work = Work(tasks=tasks, num_generations=GENERATIONS, num_tokens=TOKENS)
        self._own.solve(self._work)  # allocates what sampling keeps

    def measure(self) -> dict[str, float]:
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir(parents=True)
        before_s = _timed(self._save_as_before)
        shutil.rmtree(self._folder)
        alone_s = _timed(lambda: self._own.solve(self._work))
        saver = _Saver(CheckpointStore(self._folder), 0)
        self._version += 1
        saver.offer(FinishedRound(round=1, policy_version=self._version, learner=self._state(), node={}))
        beside_s = _timed(lambda: self._own.solve(self._work))
        waited_s = _timed(saver.before_update)
        num_bytes = sum(path.stat().st_size for path in self._folder.rglob("*.pt"))
        saver.close()
        shutil.rmtree(self._folder)
        seconds = {"before_s": before_s, "alone_s": alone_s, "beside_s": beside_s, "waited_s": waited_s}
        return {
            **{name: round(value, 2) for name, value in seconds.items()},
            "write_s": saver.took_s,
            "bytes": num_bytes,
        }

    def _state(self) -> dict[str, Any]:
        return {"weights": self._learner.weights(), "learner": self._learner.state_dict()}

    def _save_as_before(self) -> None:
        path, crc = self._folder / "before.pt", 0
        with path.open("wb") as file:
            torch.save(self._state(), file)
            file.flush()
            os.fsync(file.fileno())
        with path.open("rb") as file:
            while block := file.read(1 << 22):
                crc = zlib.crc32(block, crc)


class _Saver(BackgroundSaver):
    @property
    def took_s(self) -> float:
        return round(self._write_s, 2)


def _timed(work: Callable[[], object]) -> float:
    began_s = time.perf_counter()
    work()
    return time.perf_counter() - began_s


def arm() -> harness.Arm:
    return harness.Arm(
        benchmark="saving",
        name="full_0_5b",
        settings={"model": MODEL, "tasks": 2, "generations": GENERATIONS, "tokens": TOKENS},
        seed=0,
        pieces=[f"round {number}" for number in range(1, ROUNDS + 1)],
        power=[of_none("rounds that wait", ROUNDS, "rounds")],
    )


def table(results: Mapping[str, harness.Result]) -> str:
    found = results["full_0_5b"].counts
    rows = [[piece, *(f"{counts[key]:.1f}" for key in SHOWN)] for piece, counts in found.items()]
    header = ["", "all waits, as before, s", "sampling alone, s", "sampling beside a save, s", "the save, s"]
    return markdown([*header, "the update waits, s"], rows)


def main() -> None:
    options = harness.parser("saving", __doc__).parse_args()
    devices.set_threads(0)
    make = cache(partial(Round, options.state / "saving" / "checkpoints"))  # an arm that is done loads nothing
    for piece, counts in harness.run(arm(), lambda _: make().measure(), options).counts.items():
        print(f"{piece}: {counts}")


if __name__ == "__main__":
    main()

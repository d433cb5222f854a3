"""Compares the most memory that a node holds with its plan, in a process with the real 0.5B weights for each setting.

    python -m benchmarks.memory short               # completions of 64 tokens: ten minutes on two calm cores, 5 GiB
    python -m benchmarks.memory long                # of 256 tokens: a quarter of an hour, 7 GiB

A process sets up what a node sets up (`policy.build.Models`: policy, judge, sampler, by its own plan) and does the
pieces of a round at the lengths that are planned for: it samples, with adapters while a checkpoint is written, judges
four answers where there is a judge, and makes an update with moments in memory. To take minutes and not hours it learns
from one whole micro-batch, after a small one that leaves gradients in memory, and samples the last `STEPS` tokens only,
of one prompt that is longer by what is left out: cache and activations are those of whole completions.

The peak of a piece is the node's resident set at its largest (VmHWM, shared libraries included) and, for llama.cpp, the
largest PSS of the processes below it. Workers that read solutions are not started, and not counted in the plan: theirs
is a limit for hostile solutions (`benchmarks.workers` has what they take).

Figures: docs/measurements.md#memory
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import torch

from benchmarks import harness
from benchmarks.harness import MODEL, ROOT, Arm, Result, Target
from benchmarks.measure import free_memory, measure
from benchmarks.power import of_none
from benchmarks.tables import markdown, outcome
from codezero import node  # noqa: F401  # what a node imports counts
from codezero.config import Backend
from codezero.config.load import load_config
from codezero.evaluate.build import LLAMA_CPP_BYTES
from codezero.llm.catalogue import find
from codezero.llm.draw import SamplingParams
from codezero.llm.sample import SampleRequest
from codezero.policy import build
from codezero.prompts.evaluator import NO, YES
from codezero.runtime.amounts import GIB
from codezero.runtime.console import Console
from codezero.train.batch import TextEncoder
from codezero.train.checkpoint import CheckpointStore
from codezero.train.learner import GrpoLearner
from codezero.train.memory import QWEN_0_5B, MemoryEstimate, estimate, micro_batch_sequences
from codezero.train.saver import BackgroundSaver, FinishedRound
from codezero.types import Reward, SampledTokens, ScoredGroup

STEPS = 4
NEAR = Target(figure="|plan / measured peak - 1|", at_most=0.1)
FULL = Target(figure="peak of full, 2 x 4 x 256", at_most=7.0)
LORA = Target(figure="peak of LoRA with llama_cpp, 2 x 4 x 256", at_most=4.0)
SHARED = (
    *("preset=local", "model.device=cpu", f"model.name={MODEL}", f"evaluator.model={MODEL}", "evaluator.workers=1"),
    *("train.memory_limit_gib=64", "swarm.num_local=2", "rollout.num_generations=4", "evaluator.backend=execution"),
)
JUDGED, OUTSIDE = "evaluator.backend=transformers", "evaluator.backend=llama_cpp"
LLAMA, FULLY, ADAPTED = "rollout.engine=llama_cpp", "train.method=full", "train.method=lora"
ROWS: Mapping[str, Mapping[str, Sequence[str]]] = {
    "short": {
        "lora": (ADAPTED,),
        "lora, llama_cpp": (ADAPTED, LLAMA),
        "lora, llama_cpp, judge there": (ADAPTED, LLAMA, OUTSIDE),
        "lora, 8 tasks of 8": (ADAPTED, "swarm.num_local=8", "rollout.num_generations=8"),
        "lora, llama_cpp, 8 tasks of 8": (ADAPTED, LLAMA, "swarm.num_local=8", "rollout.num_generations=8"),
    },
    "wide": {
        "lora, prompts of 512": (ADAPTED, "prompt=512"),
        "full, 8 tasks of 8": (FULLY, "swarm.num_local=8", "rollout.num_generations=8"),
    },
    "long": {
        "lora, llama_cpp": (ADAPTED, LLAMA),
        "lora, llama_cpp, prompts of 512": (ADAPTED, LLAMA, "prompt=512"),
        "lora, judge here": (ADAPTED, JUDGED),
        "lora, micro-batches of 4": (ADAPTED, "train.micro_batch_size=4"),
        "full": (FULLY,),
    },
}
TOKENS = {"short": 64, "long": 256, "wide": 64}
PROMPT = 150
"""Tokens of a prompt, about what a built-in problem has."""


class Tree:
    """Watches the processes below this one."""

    def __init__(self) -> None:
        self._peak, self._stop = 0, threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        own = psutil.Process()
        while not self._stop.wait(0.05):
            total = 0
            for child in own.children(recursive=True):
                with suppress(psutil.Error):
                    if child.cmdline() != own.cmdline():  # until exec a new process has our memory
                        total += child.memory_full_info().pss
            self._peak = max(self._peak, total)

    def take(self) -> int:
        """Bytes at the largest since the last call."""
        peak, self._peak = self._peak, 0
        return peak


def row(settings: Sequence[str]) -> dict[str, list[int]]:
    """Returns the bytes held in each piece, by this process, which does nothing else, and by those below it."""
    tree, found = Tree(), {}
    config, build.PROMPT_TOKENS = read(settings)
    folder = ROOT / "benchmarks" / "state" / "memory"

    def held(name: str, work: Callable[[], Any]) -> Any:
        free_memory()
        tree.take()
        result, cost = measure(work)
        found[name] = [cost.peak_bytes, tree.take()]
        return result

    models = held("start", lambda: build.Models(config, folder, Console()))
    with tempfile.TemporaryDirectory(dir=folder) as checkpoints:
        node = Node(models, config, Path(checkpoints))
        held("solve", node.solve)
        if models.judge_backend is not None:
            held("score", node.judge)
        held("learn", node.learn)
        node.close()
    return found


def read(settings: Sequence[str]) -> tuple[Any, int]:
    """The configuration, and the length of prompts."""
    prompt = next((int(one.partition("=")[2]) for one in settings if one.startswith("prompt=")), PROMPT)
    return load_config([one for one in settings if not one.startswith("prompt=")]), prompt


def planned(settings: Sequence[str]) -> MemoryEstimate:
    """Returns the memory plan of today, without workers."""
    config, prompt = read(settings)
    judge = {
        Backend.transformers: 4 * QWEN_0_5B.num_parameters,
        Backend.llama_cpp: LLAMA_CPP_BYTES + find(MODEL).size_bytes,
    }
    backend = config.evaluator.backend
    load = build.workload(config, "cpu", torch.float32, judge.get(backend, 0), backend is Backend.transformers)
    return estimate(QWEN_0_5B, config.train.method, config.train, replace(load, workers_bytes=0, prompt_tokens=prompt))


class Node:
    """The parts of a node that a round's memory depends on."""

    def __init__(self, models: Any, config: Any, folder: Path) -> None:
        self._models, self._config = models, config
        self._saver = BackgroundSaver(CheckpointStore(folder), 0)
        encoder = TextEncoder(
            tokenizer=models.policy.tokenizer,
            encode_prompt=lambda task: (),
            end_token_id=models.policy.end_ids[0],
            max_prompt_length=models.prompt_tokens,
            max_completion_length=config.rollout.max_new_tokens,
        )
        self._learner = GrpoLearner(
            *(models.policy.model, encoder, models.train),
            temperature=config.rollout.temperature,
            max_completion_length=encoder.max_completion_length,
            reference_model=models.reference,
            engine=config.rollout.engine,
            before_update=self._saver.before_update,
        )
        weights = self._learner.weights().values()
        moments = [torch.empty_like(one, dtype=torch.bfloat16).fill_(0) for one in weights]  # every page is touched
        state = {"num_steps": 1, "means": moments, "squares": [one.clone() for one in moments]}
        self._learner.load_state_dict({"policy_version": 1, "optimizer": state})

    def solve(self) -> None:
        """Samples, while a checkpoint is written where that is small."""
        models, config = self._models, self._config
        if models.settings["train.method"] == "lora":
            learner = {"weights": self._learner.weights(), "learner": self._learner.state_dict()}
            self._saver.offer(FinishedRound(round=1, policy_version=1, learner=learner, node={}))
        length = models.prompt_tokens + config.rollout.max_new_tokens - STEPS
        rows = config.swarm.num_local * config.rollout.num_generations
        request = SampleRequest(
            prompts=[self._ids(length, 0)],
            num_generations=rows,
            params=SamplingParams(max_new_tokens=STEPS),
            end_ids=(),
            pad_id=models.policy.pad_id,
            generator=torch.Generator().manual_seed(0),
        )
        models.sample(models.policy.model, request)

    def judge(self) -> None:
        texts = [" x" * num for num in (self._models.prompt_tokens, self._config.rollout.max_new_tokens, 20)]
        roles = ("user", "assistant", "user")
        chat = [{"role": role, "content": text} for role, text in zip(roles, texts, strict=True)]
        backend = self._models.judge_backend
        ask = getattr(backend, "review", backend.choose)
        ask([chat] * self._config.evaluator.batch_size, (YES, NO))

    def learn(self) -> None:
        """An update from a few tokens, whose gradients stay in memory, and then a whole micro-batch."""
        models, config = self._models, self._config
        load = build.workload(config, "cpu", torch.float32, 0, evaluator_is_base=False)
        size, length = micro_batch_sequences(models.train, load), config.rollout.max_new_tokens
        few, whole = self._group(16, [4, 4], 0), self._group(models.prompt_tokens, [*[length] * size, 4], 1)
        report = self._learner.step([few, whole])
        assert report.skipped is None, report

    def _group(self, prompt_tokens: int, lengths: Sequence[int], seed: int) -> ScoredGroup:
        """Returns a group in which every completion has an advantage."""
        prompt = tuple(self._ids(prompt_tokens, seed))
        sampled = [
            SampledTokens(prompt_ids=prompt, completion_ids=tuple(self._ids(n, i)), logprobs=(-1.0,) * n)
            for i, n in enumerate(lengths)
        ]
        rewards = [Reward(total=float(i), parts={}) for i in range(len(lengths))]
        return ScoredGroup.of_tokens(sampled, rewards, policy_version=1)

    def close(self) -> None:
        self._saver.close()

    @staticmethod
    def _ids(length: int, seed: int) -> list[int]:
        """Tokens of text at random."""
        return torch.randint(1000, 100_000, (length,), generator=torch.Generator().manual_seed(seed)).tolist()


def arm(name: str) -> Arm:
    settings = {"shared": SHARED, "rows": ROWS[name], "tokens": TOKENS[name], "prompt": PROMPT, "steps": STEPS}
    pieces = list(ROWS[name])
    power = (of_none("settings whose peak is missed by more than a tenth", len(pieces), "settings"),)
    targets = (NEAR, FULL, LORA) if name == "long" else (NEAR,)
    return Arm(benchmark="memory", name=name, settings=settings, seed=0, pieces=pieces, power=power, targets=targets)


def settings_of(name: str, which: str) -> list[str]:
    return [*SHARED, f"rollout.max_new_tokens={TOKENS[name]}", *ROWS[name][which]]


def piece(name: str, options: Any, which: str) -> dict[str, list[int]]:
    (ROOT / "benchmarks" / "state" / "memory").mkdir(parents=True, exist_ok=True)
    command = (sys.executable, "-c", "from benchmarks.memory import main_of_row; main_of_row()")
    done = subprocess.run(
        (*command, *settings_of(name, which)), cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True
    )
    found: dict[str, list[int]] = json.loads(done.stdout.splitlines()[-1])
    plan, (peak, where) = planned(settings_of(name, which)), peak_of(found)
    print(f"  {which}: {plan.peak / GIB:.2f} planned, {peak / GIB:.2f} held, in {where}", flush=True)
    return found


def main_of_row() -> None:
    print(json.dumps(row(sys.argv[1:])))


def peak_of(found: Mapping[str, Sequence[int]]) -> tuple[int, str]:
    """Bytes, and the piece that holds so many."""
    return max((sum(both), name) for name, both in found.items())


def table(results: Mapping[str, Result]) -> str:
    rows, worst = [], 0.0
    for name, result in sorted(results.items(), reverse=True):
        for which, found in result.counts.items():
            plan, (peak, where) = planned(settings_of(name, which)), peak_of(found)
            target = {"full": FULL, "lora, llama_cpp": LORA}.get(which) if name == "long" else None
            held = f"{peak / GIB:.2f}" + (f", {outcome(target, peak / GIB, '{:.1f}')}" if target else "")
            off = plan.peak / peak - 1
            worst = max(worst, abs(off))
            rows.append([which, str(TOKENS[name]), f"{plan.peak / GIB:.2f}", held, where, f"{off:+.1%}"])
    header = ["setting", "tokens", "planned, GiB", "held, GiB", "most in", "plan is off by"]
    return f"{markdown(header, rows)}\n\nThe plan is off by {worst:.1%} at most, {outcome(NEAR, worst, '{:.0%}')}."


def main() -> None:
    parser = harness.parser("memory", __doc__)
    parser.add_argument("arms", nargs="+", choices=ROWS)
    options = parser.parse_args()
    for name in options.arms:
        harness.run(arm(name), partial(piece, name, options), options)


if __name__ == "__main__":
    main()

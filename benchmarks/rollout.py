"""Measures how fast the rollout engines sample, and how near llama.cpp's rollouts are to the policy.

    python -m benchmarks.rollout speed                      # five minutes on two calm cores
    python -m benchmarks.rollout avx2                       # alone: three minutes more
    python -m benchmarks.rollout agreement moved pinned     # ten minutes each; may share the machine
    python -m benchmarks.rollout rounds                     # ten minutes on two calm cores

All with the catalogue's 0.5B model and its built-in problems.

- `speed`: completions of `TOKENS` tokens each, four attempts a prompt, by both engines with the same adapter, and by
  llama.cpp's decoder alone: no adapter, no drawing, no log-probs, tokens made up.
- `avx2`: batch 16 of the same, with torch held back to AVX2, which is all that the wheel's llama.cpp uses.
- `agreement`: what llama.cpp samples, 8 groups of four, at version 0 from our Q8_0 copy of the weights. The learner's
  log-probs of the same tokens, KL(sampler || learner) by k3 (http://joschu.net/blog/kl-approx.html), the effective
  sample size over tokens, and the cosine of two gradients in float32: one weighed by learner / sampler, one not.
- `moved`: the same where all matrices and the adapter were moved at random first, as training would, so that no 4-bit
  grid is left that Q8_0 could hit.
- `pinned`: the same with the catalogue's Q4_K_M file itself as the base.
- `rounds`: whole rounds of a node alone, 4 tasks x 4 attempts, at most 256 tokens, LoRA, learning and judging included;
  with two threads, but `remote` with a rollout server of one thread on the same machine and a node of one.

Figures: docs/measurements.md#speed
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch

from benchmarks import harness
from benchmarks.harness import CACHE, MODEL, ROOT, Arm, Result, Target
from benchmarks.measure import measure
from benchmarks.power import of_none
from benchmarks.tables import markdown, outcome
from codezero.config import Importance, TrainConfig
from codezero.llm import device as devices
from codezero.llm import store
from codezero.llm.draw import SamplingParams
from codezero.llm.llama_engine import LlamaCppEngine
from codezero.llm.llama_library import LlamaContext
from codezero.llm.load import LoadedModel, load_model
from codezero.llm.sample import SampleGroups, SampleRequest, sample_groups
from codezero.prompts import solver as prompt
from codezero.tasks.problems import load_problems
from codezero.train.batch import TrainSequence
from codezero.train.method import apply_lora
from codezero.train.passes import PolicyPasses

G, TOKENS, GROUPS = 4, 48, 8
BATCHES = (8, 16)
ANSWER_TOKENS = 64
WITH_GRADIENTS = ("0",)
"""Pieces whose gradients are compared; they take ten times as long."""
ENGINES = ("transformers", "llama_cpp", "decoder alone")
MOVED = 0.01
"""The standard deviation of a matrix's random changes, as a share of the matrix's own; a quarter of this number is that
of an adapter's output side, which begins at 0."""
FASTER = Target(figure="tokens/s at batch 16, llama_cpp / transformers", at_least=2.5)
NEAR = Target(figure="tokens/s at batch 16, llama_cpp / llama.cpp's decoder alone", at_least=0.6)
KL = Target(figure="KL(sampler || learner), nats a token", at_most=0.01)
SAMPLE = Target(figure="effective sample size", at_least=0.9)
COSINE = Target(figure="cosine of weighed and plain gradient", at_least=0.99)
HOURLY = Target(figure="rollouts an hour, of 150 tokens", at_least=800.0)


def folder_of(kind: str, options: Any) -> Path:
    """The policy's weights: as prepared, or moved at random."""
    prepared = store.prepare(MODEL, CACHE)
    if kind != "moved":
        return prepared
    folder: Path = options.state / "rollout" / "moved"
    if not (folder / "tokenizer.json").exists():
        loaded = load_model(MODEL, prepared, torch.device("cpu"), torch.float32)
        random = torch.Generator().manual_seed(1)
        with torch.no_grad():
            for weight in loaded.model.parameters():
                if weight.ndim == 2:
                    weight += MOVED * weight.std() * torch.randn(weight.shape, generator=random)
        loaded.model.save_pretrained(folder)
        loaded.tokenizer.save_pretrained(folder)
    return folder


def policy(folder: Path, moved: bool) -> LoadedModel:
    """Returns the policy in float32 with an adapter, as it starts or moved."""
    loaded = load_model(MODEL, folder, torch.device("cpu"), torch.float32)
    adapted = apply_lora(loaded.model, TrainConfig(), 0)
    random = torch.Generator().manual_seed(2)
    for name, weight in adapted.named_parameters():
        if moved and "lora_B" in name:
            weight.data = MOVED / 4 * torch.randn(weight.shape, generator=random)
    return LoadedModel(
        name=MODEL,
        model=adapted,
        tokenizer=loaded.tokenizer,
        end_ids=loaded.end_ids,
        context_length=loaded.context_length,
    )


def prompts(loaded: LoadedModel) -> list[list[int]]:
    return [loaded.encode_chat(prompt.messages(problem.task.question)) for problem in load_problems()]


class Speed:
    def __init__(self, options: Any) -> None:
        folder = folder_of("agreement", options)
        self.loaded = policy(folder, moved=True)
        self.engine = LlamaCppEngine(folder, options.state / "rollout" / "q8", cache_bytes=1 << 30)
        self.prompts = prompts(self.loaded)

    def piece(self, name: str) -> dict[str, list[float]]:
        """Returns tokens, wall s, processor s and processor s of others, by engine."""
        asked = self.prompts[: int(name) // G]
        work = {
            "transformers": partial(self._sample, sample_groups, asked),
            "llama_cpp": partial(self._sample, self.engine.sample_groups, asked),
            "decoder alone": partial(self._decode, asked),
        }
        found = {}
        for engine in ENGINES:
            _, cost = measure(work[engine])
            found[engine] = [int(name) * TOKENS, cost.wall_s, cost.cpu_s, cost.other_cpu_s]
            print(f"  {engine}: {int(name) * TOKENS / cost.wall_s:.1f} tokens/s", flush=True)
        return found

    def _sample(self, engine: SampleGroups, asked: list[list[int]]) -> None:
        request = SampleRequest(
            prompts=asked,
            num_generations=G,
            params=SamplingParams(max_new_tokens=TOKENS),
            end_ids=[],
            pad_id=self.loaded.pad_id,
            generator=torch.Generator().manual_seed(0),
        )
        engine(self.loaded.model, request)

    def _decode(self, asked: list[list[int]]) -> None:
        rows = len(asked) * G
        context = LlamaContext(self.engine.base, None, rows, max(map(len, asked)) + TOKENS, torch.get_num_threads())
        for number, ids in enumerate(asked):
            context.read(ids, number * G, lambda: None)
            for row in range(number * G + 1, (number + 1) * G):
                context.share(number * G, row)
        for step in range(TOKENS - 1):
            context._decode([(7, len(asked[row // G]) + step, row, True) for row in range(rows)])


class Agreement:
    def __init__(self, options: Any, kind: str) -> None:
        folder = folder_of(kind, options)
        self.loaded = policy(folder, kind == "moved")
        self.engine = LlamaCppEngine(folder, options.state / "rollout" / f"q8-{kind}", cache_bytes=1 << 30)
        if kind == "pinned":
            self.engine.base = store.weight_file(MODEL, CACHE)
        self.prompts = prompts(self.loaded)

    def piece(self, name: str) -> dict[str, float]:
        """Returns sums over the tokens of two groups, the median gap, and the gradients' cosine."""
        number, loaded = int(name), self.loaded
        asked = [self.prompts[(2 * number + i) % len(self.prompts)] for i in range(2)]
        request = SampleRequest(
            prompts=asked,
            num_generations=G,
            params=SamplingParams(max_new_tokens=ANSWER_TOKENS),
            end_ids=loaded.end_ids,
            pad_id=loaded.pad_id,
            generator=torch.Generator().manual_seed(number),
        )
        groups = self.engine.sample_groups(loaded.model, request)
        sequences = [
            TrainSequence(
                prompt_ids=one.prompt_ids,
                completion_ids=one.completion_ids,
                advantage=(1.0, -1.0, 0.5, -0.5)[i],
                sampler_logprobs=one.logprobs,
            )
            for group in groups
            for i, one in enumerate(group)
        ]
        passes = self._passes(Importance.token)
        known = passes.with_old_logprobs(sequences)
        gaps = torch.tensor(
            [old - x for s in known for old, x in zip(s.old_logprobs or (), s.sampler_logprobs or (), strict=True)]
        )
        ratio = gaps.double().exp()
        found = {
            "tokens": len(gaps),
            "median": gaps.abs().median().item(),
            "kl": (ratio - 1 - gaps).sum().item(),
            "w": ratio.sum().item(),
            "ww": ratio.square().sum().item(),
        }
        if name in WITH_GRADIENTS:
            weighed, plain = (self._gradient(self._passes(kind), known) for kind in (Importance.token, Importance.none))
            found["cosine"] = torch.cosine_similarity(weighed, plain, dim=0).item()
        return found

    def _passes(self, importance: Importance) -> PolicyPasses:
        return PolicyPasses(
            self.loaded.model,
            TrainConfig(importance=importance),
            temperature=1.0,
            max_completion_length=ANSWER_TOKENS,
            reference_model=None,
            progress=lambda stage, done, total: None,
        )

    def _gradient(self, passes: PolicyPasses, sequences: list[TrainSequence]) -> torch.Tensor:
        model = self.loaded.model
        model.zero_grad(set_to_none=True)
        passes.add_gradients(sequences, 0, len(sequences))
        return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None]).double()


def rounds(options: Any, name: str) -> list[dict[str, Any]]:
    """Reports of a node's rounds; the first allocates and compiles."""
    folder = options.state / "rollout" / f"node-{name}-{time.time():.0f}"
    if name != "remote":
        return played(folder, f"rollout.engine={name}", "rounds=2")
    folder.mkdir(parents=True)
    file = folder / "server.yaml"
    serve = (sys.executable, "-m", "codezero", "rollout", "serve", "--port", "0", "--file", str(file))
    settings = (f"model.name={MODEL}", "model.device=cpu", "model.threads=1")
    with subprocess.Popen([*serve, *settings], cwd=ROOT, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            next(line for line in server.stdout if "(Ctrl-C ends it)" in line)
            found = played(folder, "rollout.engine=remote", f"rollout.servers=[{file}]", "model.threads=1", "rounds=4")
        finally:
            server.terminate()  # else a node that fails leaves it, and its end is waited for
        print(server.stdout.read(), end="")
    return found


def played(folder: Path, *settings: str) -> list[dict[str, Any]]:
    """Reports of the rounds of a node with these settings."""
    command = (
        *(sys.executable, "-m", "codezero", "run", "preset=local", "train.method=lora", *settings),
        *(
            "swarm.num_local=4",
            "probe.share=0",
            f"state_dir={folder}/state",
            f"tracking.log_dir={folder}/logs",
        ),
        *("model.device=cpu", "evaluator.model=" + MODEL, "model.name=" + MODEL, "train.lora_learning_rate=1e-4"),
    )
    subprocess.run(command, cwd=ROOT, check=True)
    kept = ("round", "num_tokens", "tokens_per_s", "seconds", "sampler_gap", "sample_size", "peak_rss_bytes")
    lines = (folder / "logs" / "rounds.jsonl").read_text().splitlines()
    return [{key: report[key] for key in kept} for report in map(json.loads, lines)]


def arm(name: str) -> Arm:
    settings = {"model": MODEL, "attempts": G, "threads": torch.get_num_threads()}
    if name in ("speed", "avx2"):
        pieces, targets, units = [str(b) for b in BATCHES if name == "speed" or b == 16], (FASTER, NEAR), "batch sizes"
        settings["tokens"] = TOKENS
    elif name == "rounds":
        pieces, targets, units = ["llama_cpp", "transformers", "remote"], (HOURLY,), "engines"
    else:
        pieces, targets, units = [str(i) for i in range(GROUPS // 2)], (KL, SAMPLE, COSINE), "pairs of groups"
        settings |= {"base": name, "answer_tokens": ANSWER_TOKENS, "moved": MOVED if name == "moved" else 0.0}
    power = (of_none("pieces that fail", len(pieces), units),)
    return Arm(benchmark="rollout", name=name, settings=settings, seed=0, pieces=pieces, power=power, targets=targets)


def shown(target: Target, value: float, form: str) -> str:
    return f"{form.format(value)}, {outcome(target, value, form)}"


def speed_table(results: Mapping[str, Result]) -> str:
    rows = []
    pieces = [(name, *piece) for name in ("speed", "avx2") if name in results for piece in results[name].counts.items()]
    for name, batch, found in pieces:
        speed = {engine: tokens / wall for engine, (tokens, wall, *_) in found.items()}
        cpu = {engine: 1000 * cpu / tokens for engine, (tokens, _, cpu, _) in found.items()}
        faster, near = cpu["transformers"] / cpu["llama_cpp"], cpu["decoder alone"] / cpu["llama_cpp"]
        met = batch == "16"
        rows.append(
            [
                batch if name == "speed" else f"{batch}, AVX2",
                *(f"{speed[engine]:.1f} ({cpu[engine]:.0f} ms)" for engine in ENGINES),
                shown(FASTER, faster, "{:.2f}") if met else f"{faster:.2f}",
                shown(NEAR, near, "{:.2f}") if met else f"{near:.2f}",
            ]
        )
    header = ["batch", *(f"{engine}, tokens/s" for engine in ENGINES), "to transformers", "to the decoder"]
    return markdown(header, rows)


def agreement_table(results: Mapping[str, Result]) -> str:
    rows = []
    for name, result in results.items():
        if name in ("speed", "avx2", "rounds"):
            continue
        found = list(result.counts.values())
        total = {key: sum(one[key] for one in found) for key in ("tokens", "kl", "w", "ww")}
        rows.append(
            [
                name,
                str(total["tokens"]),
                f"{sorted(one['median'] for one in found)[len(found) // 2]:.4f}",
                shown(KL, total["kl"] / total["tokens"], "{:.4f}"),
                shown(SAMPLE, total["w"] ** 2 / (total["tokens"] * total["ww"]), "{:.3f}"),
                shown(COSINE, min(one["cosine"] for one in found if "cosine" in one), "{:.4f}"),
            ]
        )
    header = ["base", "tokens", "median gap", "KL", "effective sample size", "cosine, of two groups"]
    return markdown(header, rows)


def rounds_table(results: Mapping[str, Result]) -> str:
    """The last round of each engine, since the first allocates and compiles."""
    rows = []
    for engine, reports in results["rounds"].counts.items():
        last = reports[-1]
        hourly = 3600 / 150 * last["num_tokens"] / sum(last["seconds"].values())
        cells = [f"{last['seconds'][stage]:.0f}" for stage in ("solve", "score", "learn")]
        rows.append([engine, str(last["num_tokens"]), *cells, shown(HOURLY, hourly, "{:.0f}")])
    header = ["engine", "tokens", "solve, s", "score, s", "learn, s", "rollouts of 150 tokens an hour"]
    return markdown(header, rows)


def table(results: Mapping[str, Result]) -> str:
    return f"{speed_table(results)}\n\n{agreement_table(results)}"


def main() -> None:
    parser = harness.parser("rollout", __doc__)
    parser.add_argument("arms", nargs="+", choices=("speed", "avx2", "agreement", "moved", "pinned", "rounds"))
    options = parser.parse_args()
    if options.arms == ["avx2"]:
        os.environ |= {"ONEDNN_MAX_CPU_ISA": "AVX2", "MKL_ENABLE_INSTRUCTIONS": "AVX2", "ATEN_CPU_CAPABILITY": "avx2"}
    devices.set_threads(int(os.environ.get("OMP_NUM_THREADS", "0")))
    devices.return_freed_memory()
    for name in options.arms:
        if name == "rounds":
            harness.run(arm(name), partial(rounds, options), options)
            continue
        kind = partial(Speed, options) if name in ("speed", "avx2") else partial(Agreement, options, name)
        make = cache(kind)  # with the first piece: an arm that is done loads nothing
        harness.run(arm(name), lambda piece, make=make: make().piece(piece), options)


if __name__ == "__main__":
    main()

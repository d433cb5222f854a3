"""Measures a node on a GPU: its speed, its memory against the plan, waits for the device, a kill and a resume.

    benchmarks/gpu.sh                          # all, in less than ten minutes, without a network
    benchmarks/gpu.sh --tiny                   # in a minute, with a tiny model, also on a CPU
    benchmarks/gpu.sh "decode 0.5B 64"         # this piece, whose result is only printed

Each piece is a process of its own, so that one that fails leaves the others: its result is then the error.

- `decode SHAPE ROWS`: so many attempts of `TOKENS` tokens each, four a prompt, by the node's own sampler. Tokens a
  second, memory, and how often the host waits for the device (`torch.cuda.set_sync_debug_mode`).
- `update SHAPE METHOD`: an update from 64 attempts of `TRAINED` tokens by a node's own plan, its judge in memory too.
- `rounds SHAPE METHOD`: `codezero run`, killed without warning after two rounds, and started again for two more.

A model that was prepared in `--cache` is used; where there is none, one of its shape with random weights is, in
`benchmarks/state/gpu`. Speed, memory and plan are as valid with it, what a round learns is not.

Figures: docs/measurements.md#on-an-nvidia-gpu
"""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch

from benchmarks import harness
from benchmarks.harness import CACHE, ROOT, Arm, Counts, Result, Target
from benchmarks.power import of_none
from benchmarks.tables import markdown, outcome
from codezero.config.load import load_config
from codezero.llm import device as devices
from codezero.llm import store
from codezero.llm.draw import SamplingParams
from codezero.llm.load import load_model
from codezero.llm.sample import SampleRequest, sample_groups
from codezero.policy.build import Models, plan_node
from codezero.prompts import solver
from codezero.runtime.amounts import GIB
from codezero.runtime.console import Console
from codezero.tasks.problems import load_problems
from codezero.train.batch import TextEncoder
from codezero.train.learner import GrpoLearner
from codezero.types import ScoredGroup
from tests.builders import rollout, scored, task, tiny_model, tiny_tokenizer

G, TOKENS, WARM_UP_TOKENS = 4, 128, 8
GROUPS, SIZE, TRAINED = 8, 8, 300
MOST_S = 300
"""Seconds after which a piece is ended."""
Shape = Mapping[str, Any]
SHAPES: Mapping[str, Shape] = {
    "0.5B": {"hidden_size": 896, "intermediate_size": 4864, "num_hidden_layers": 24, "num_attention_heads": 14},
    "1.5B": {"hidden_size": 1536, "intermediate_size": 8960, "num_hidden_layers": 28, "num_attention_heads": 12},
}
"""The shapes of Qwen2.5's models."""
PIECES = (
    *("decode 0.5B 8", "decode 0.5B 64", "decode 0.5B 256", "decode 1.5B 64"),
    *("update 0.5B full", "update 1.5B lora", "rounds 0.5B full", "rounds 0.5B lora"),
)
TINY = (
    "decode tiny 8",
    "update tiny full",
    "update tiny lora",
    "rounds tiny full",
    "rounds tiny lora",
)
SPEED = Target(figure="tokens/s, 0.5B at 64 attempts", at_least=10_000)
WAITS = Target(figure="waits for the device a token of each attempt", at_most=1 / 16)
SOON = Target(figure="seconds of an update from 64 attempts of 300 tokens", at_most=2.0)
MEMORY = {
    "0.5B full": Target(figure="GiB, 0.5B full", at_most=10.0),
    "1.5B lora": Target(figure="GiB, 1.5B LoRA", at_most=6.0),
}
HEADER = ("piece", "speed", "memory of the GPU", "waits for it")


def folder_of(shape: str, options: Any) -> Path:
    """The folder with the model's weights, made here if it was not prepared."""
    name = f"Qwen2.5-Coder-{shape}-Instruct"
    there = None if shape == "tiny" else store.prepared(name, options.cache)
    folder: Path = there or options.state / "gpu" / shape
    if not (folder / "tokenizer.json").exists():
        size = {} if shape == "tiny" else {**SHAPES[shape], "vocab_size": 151_936, "initializer_range": 0.02}
        tiny_model(**size).to(torch.bfloat16).save_pretrained(folder)
        tiny_tokenizer().save_pretrained(folder)
    return folder


def settings_of(shape: str, method: str, options: Any) -> list[str]:
    folder = folder_of(shape, options)
    return [
        *("preset=local", f"model.name={folder}", f"evaluator.model={folder}", "evaluator.backend=transformers"),
        *(f"train.method={method}", f"model.device={options.device}", "probe.share=0", "tracking.view=off"),
    ]


def decode(shape: str, rows: str, options: Any) -> Counts:
    device = devices.choose_device(load_config([f"model.device={options.device}"]).model.device)
    dtype = devices.choose_dtype(load_config([]).model.dtype, device)
    loaded = load_model(shape, folder_of(shape, options), device, dtype)
    prompts = [loaded.encode_chat(solver.messages(one.task.question)) for one in load_problems()]
    asked = [prompts[i % len(prompts)] for i in range(int(rows) // G)]

    def sample(num_tokens: int) -> None:
        request = SampleRequest(
            prompts=asked,
            num_generations=G,
            params=SamplingParams(max_new_tokens=num_tokens),
            end_ids=(),
            pad_id=loaded.pad_id,
            generator=torch.Generator(device).manual_seed(0),
        )
        sample_groups(loaded.model, request)

    sample(WARM_UP_TOKENS)
    with Meter(device) as meter:
        sample(TOKENS)
    return {"tokens": len(asked) * G * TOKENS, "steps": TOKENS, **meter.found}


def update(shape: str, method: str, options: Any) -> Counts:
    """The second of two updates; the first allocates."""
    settings = [*settings_of(shape, method, options), f"rollout.max_new_tokens={TRAINED}"]
    settings += [f"swarm.num_local={GROUPS}", f"rollout.num_generations={SIZE}"]
    config = load_config(settings)
    folder, console = options.state / "gpu" / "none", Console()
    planned = plan_node(config, folder, console).memory
    node = Models(config, folder, console)
    encoder = TextEncoder(
        tokenizer=node.policy.tokenizer,
        encode_prompt=lambda task: (),
        end_token_id=node.policy.end_ids[0],
        max_prompt_length=node.prompt_tokens,
        max_completion_length=TRAINED,
    )
    logging.disable(logging.WARNING)  # these tokens were drawn by nobody, so sampler and learner disagree on them
    learner = GrpoLearner(
        node.policy.model,
        encoder,
        node.train,
        temperature=1.0,
        max_completion_length=encoder.max_completion_length,
        reference_model=node.reference,
    )
    groups = [group(number, node.prompt_tokens) for number in range(GROUPS)]
    learner.step(groups)
    with Meter(next(node.policy.model.parameters()).device) as meter:
        learner.step(groups)
    return {"planned": planned.peak if planned else 0, **meter.found}


def group(number: int, prompt_tokens: int) -> ScoredGroup:
    """A group of random tokens in which every attempt has an advantage."""
    rng = torch.Generator().manual_seed(number)
    prompt, *answers = (torch.randint(250, (n,), generator=rng).tolist() for n in (prompt_tokens, *[TRAINED] * SIZE))
    return scored([rollout(prompt, answer) for answer in answers], range(SIZE), of=task(str(number)))


class Meter:
    """Wall seconds, waits of the host, and memory of the device at most, while it is open."""

    def __init__(self, device: torch.device) -> None:
        self._device, self._is_cuda = device, device.type == "cuda"
        self._warned = warnings.catch_warnings(record=True)
        self.found: dict[str, Any] = {}

    def __enter__(self) -> Meter:
        self._seen = self._warned.__enter__()
        warnings.simplefilter("always")
        if self._is_cuda:
            torch.cuda.synchronize()
            torch.cuda.reset_peak_memory_stats()
            torch.cuda.set_sync_debug_mode("warn")
        self._began = time.perf_counter()
        return self

    def __exit__(self, *error: object) -> None:
        if self._is_cuda:
            torch.cuda.set_sync_debug_mode("default")
            torch.cuda.synchronize()
        self.found["wall_s"] = time.perf_counter() - self._began
        self.found["waits"] = sum("synchroniz" in str(one.message) for one in self._seen)
        self.found["bytes"] = torch.cuda.max_memory_allocated() if self._is_cuda else 0
        self._warned.__exit__(None, None, None)


def rounds(shape: str, method: str, options: Any) -> Counts:
    """The reports of the rounds; the one that ran when the node was killed may have been played twice."""
    folder = options.state / "gpu" / f"node-{shape}-{method}-{time.time():.0f}"
    reports = folder / "logs" / "rounds.jsonl"
    settings = [*settings_of(shape, method, options), f"state_dir={folder}/state", f"tracking.log_dir={folder}/logs"]
    settings += [f"swarm.identity_path={folder}/swarm.pem", "save_every_s=0", "rollout.max_new_tokens=64"]
    if shape == "tiny":
        settings += ["swarm.num_local=2", "rollout.num_generations=2"]

    def played() -> list[dict[str, Any]]:
        return [json.loads(line) for line in reports.read_text().splitlines()] if reports.exists() else []

    command = [sys.executable, "-m", "codezero", "run", *settings]
    with subprocess.Popen([*command, "rounds=0"], cwd=ROOT) as killed:
        while len(played()) < 2 and killed.poll() is None:
            time.sleep(0.1)
        killed.kill()
    subprocess.run([*command, "rounds=2"], cwd=ROOT, check=True)
    kept = ("round", "policy_version", "num_local_groups", "num_tokens", "tokens_per_s", "skipped", "seconds")
    return [{key: one[key] for key in kept} for one in played()]


KINDS: Mapping[str, Callable[..., Counts]] = {
    "decode": decode,
    "update": update,
    "rounds": rounds,
}


def in_process(options: Any, piece: str) -> Counts:
    """A piece's result from a process of its own, or its error."""
    command = [sys.executable, "-m", "benchmarks.gpu", piece, "--alone", "--device", options.device]
    command += ["--state", str(options.state), "--cache", options.cache]
    try:
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, timeout=MOST_S, check=False)
    except subprocess.TimeoutExpired:
        return {"error": f"not done after {MOST_S} s"}
    lines = done.stdout.splitlines()
    if done.returncode:
        return {"error": f"ended with {done.returncode}; {lines[-1] if lines else 'no output'}"}
    found = json.loads(lines[-1])
    print(f"  {piece}: {cells(piece, found)[1]}", flush=True)
    return found


def cells(piece: str, found: Counts) -> list[str]:
    """A row of the table; only the real shapes have targets."""
    kind, shape, how = piece.split()
    if "error" in found:
        return [piece, found["error"], "", ""]
    if kind == "rounds":
        numbers, seconds = [one["round"] for one in found], [sum(one["seconds"].values()) for one in found]
        resumed = "resumed" if sorted(set(numbers)) == list(range(1, max(numbers) + 1)) else "**not resumed**"
        shown = ", ".join(f"{one:.1f}" for one in seconds)
        return [piece, f"rounds {', '.join(map(str, numbers))} in {shown} s, killed and {resumed}", "", ""]
    held = found["bytes"] / GIB
    if "tokens" in found:
        speed, waits = found["tokens"] / found["wall_s"], found["waits"] / found["steps"]
        row = [f"{speed:,.0f} tokens/s", f"{held:.1f} GiB", f"{waits:.2f} a step"]
        targets = [(SPEED, speed, "{:,.0f}")] if f"{shape} {how}" == "0.5B 64" else [], [], [(WAITS, waits, "{:.2f}")]
    else:
        row = [
            f"{found['wall_s']:.2f} s",
            f"{held:.1f} GiB" + (f" of {found['planned'] / GIB:.1f} planned" if found["planned"] else ""),
            str(found["waits"]),
        ]
        limit = MEMORY.get(f"{shape} {how}")
        targets = [(SOON, found["wall_s"], "{:.0f} s")], [(limit, held, "{:.0f}")] if limit else [], []
    told = ["".join(f", {outcome(*one)}" for one in those) if shape != "tiny" else "" for those in targets]
    return [piece, *(cell + more for cell, more in zip(row, told, strict=True))]


def table(results: Mapping[str, Result]) -> str:
    rows = [cells(piece, found) for result in results.values() for piece, found in result.counts.items()]
    return markdown(HEADER, rows)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = harness.parser("gpu", __doc__)
    parser.add_argument("pieces", nargs="*", metavar="PIECE", help=f"of {', '.join(PIECES + TINY)}")
    parser.add_argument("--tiny", action="store_true", help="with a tiny model, also on a CPU, to see that all works")
    parser.add_argument("--device", default="auto", help="as model.device (default auto)")
    parser.add_argument("--cache", default=CACHE, metavar="DIR", help="where models were prepared")
    parser.add_argument("--alone", action="store_true", help="only print the result of one piece, as JSON")
    options = parser.parse_args(arguments)
    options.state = options.state.absolute()
    if options.alone:
        kind, *rest = options.pieces[0].split()
        print(json.dumps(KINDS[kind](*rest, options)))
        return
    if unknown := [one for one in options.pieces if one not in PIECES + TINY]:
        parser.error(f"{unknown[0]} is no piece: choose from {', '.join(PIECES + TINY)}")
    if not options.tiny and options.device == "auto" and not torch.cuda.is_available():
        raise SystemExit("there is no NVIDIA GPU that torch can use here: --tiny shows on a CPU that all of this works")
    if options.pieces:
        print(markdown(HEADER, [cells(piece, in_process(options, piece)) for piece in options.pieces]))
        return
    pieces = TINY if options.tiny else PIECES
    name = torch.cuda.get_device_name().replace(" ", "-").lower() if torch.cuda.is_available() else "cpu"
    arm = Arm(
        benchmark="gpu",
        name="tiny" if options.tiny else name,
        settings={"tokens": TOKENS, "trained": [GROUPS, SIZE, TRAINED], "device": options.device},
        seed=0,
        pieces=pieces,
        power=[of_none("pieces that fail", len(pieces), "pieces")],
        targets=[SPEED, WAITS, SOON, *MEMORY.values()],
    )
    result = harness.run(arm, partial(in_process, options), options)
    print(table({arm.name: result}))


if __name__ == "__main__":
    main()

"""Whether a node's model gets better: measured by execution before and after it was trained by `codezero run`.

    python -m benchmarks.learning before                           # evaluates the start, once
    python -m benchmarks.learning train defaults                   # until it has `ROLLOUTS` rollouts
    python -m benchmarks.learning train defaults --rounds 32       # at most so many rounds more in this call
    python -m benchmarks.learning after defaults                   # evaluates the newest checkpoint
    python -m benchmarks.learning after defaults --checkpoint best
    python -m benchmarks.learning before --samples 8               # pass@8: an arm of its own, as is `after`'s
    python -m benchmarks.learning report                           # a table, and a picture of each run; and the gain on
                                                                   # problems whose question is like none in training
    python -m benchmarks.learning sweep lr-5e-5 g16                # all of these for each run, on the tuning split

Every stage can be stopped at any time, and the same command goes on. A run is a node's folder in
`benchmarks/state/learning`, trained on MBPP's problems 601 to 974 with the settings of `RUNS`; a link there to the
folder of `state` and `logs` takes up a node that was trained by hand with these. `codezero eval` solves the problems
of the run's split greedily and `SAMPLES` times at T=1 and executes what comes: 11 to 260 for runs that are reported,
511 to 600 for those that choose settings; no run trains on either. Gains are paired over problems. A node takes no
probes in a call of fewer than 20 rounds. Whether sharing pays: `shared` is one of two nodes with four own tasks each a
round, `alone` such a node alone, `double` one alone with eight.

Without a file of MBPP (`--mbpp`) the problems come from the hub. `--quick` is a run of seconds, which shows only that
all of it works; its results lie beside its state.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import harness, learnt, training
from benchmarks.evaluations import evaluated, hash_of
from benchmarks.harness import ROOT, Arm, Counts
from benchmarks.learnt import GAIN, GREEDY, SAMPLED, SURE, table
from benchmarks.power import of_mean
from benchmarks.splits import MBPP, Split, alike, check
from codezero.llm import store

BENCHMARK = "learning"
MODEL, CACHE = "Qwen2.5-Coder-0.5B-Instruct", "~/.cache/codezero"
ROLLOUTS = 4096
EQUAL = 1024
"""Rollouts of each of the runs that are compared with one another."""
BLOCK = 256
"""Rollouts that are kept together."""
SAMPLES, TOKENS, BATCH = 2, 256, 128
"""An evaluation's number of solutions to a problem at T=1, the tokens of the longest one, as a node has it by default,
and the number written at a time. More problems make an interval narrower than more solutions to each."""
SPREAD = 0.35
"""The standard deviation over problems of a paired difference of pass@1, for the power: the mean of ten runs, which had
0.27 to 0.39. They were planned with 0.27."""

Settings = Mapping[str, Any]
LEARNING: Settings = {
    "rollout.engine": "transformers",
    "rollout.num_generations": 8,
    "rollout.max_new_tokens": 256,
    "swarm.num_local": 8,
    "tasks.draw": "informative",
    "train.method": "lora",
    "train.lora_learning_rate": 1e-4,
    "train.loss_type": "dr_grpo",
    "train.scale_rewards": "none",
    "train.min_advantage": 0.1,
    "train.max_trained": 4,
}
"""A node's defaults on a CPU. Advantages are not divided by the group's standard deviation, which gives groups that
differ only in form, a quarter of those that are trained on, the weight of those with right and wrong attempts."""
STEADY: Settings = {**LEARNING, "rollout.max_new_tokens": 160}
"""What the defaults were chosen by. Its run had probe.share=0 to save time."""
CONTRASTS: Settings = {
    **STEADY,
    "swarm.num_local": 4,
    "train.lora_learning_rate": 2e-4,
    "train.loss_type": "grpo",
    "train.scale_rewards": "group",
    "train.min_advantage": 0.0,
    "train.max_trained": 2,
}
"""Twice as many updates, each at twice the rate from the best and the worst attempt of a few groups: groups of two
alone came to 98 % of what groups of 16 gave in arXiv 2510.00977. It made the model worse."""
EARLIER: Settings = {
    "rollout.engine": "transformers",
    "rollout.num_generations": 4,
    "rollout.max_new_tokens": 256,
    "swarm.num_local": 2,
    "tasks.draw": "uniform",
    "train.method": "lora",
    "train.lora_learning_rate": 1e-5,
    "train.loss_type": "grpo",
    "train.scale_rewards": "group",
    "train.min_advantage": 0.0,
    "train.max_trained": 0,
}
"""The defaults of a node with adapters before any of this was measured. The result in benchmarks/results was made
without the last four, so with those of `LEARNING`."""
MANY: Settings = {
    **LEARNING,
    "rollout.num_generations": 16,
    "swarm.num_local": 32,
    "train.max_trained": 8,
}
"""Eight times as many attempts a round as by default, which a GPU takes little longer for."""
ALWAYS: Settings = {
    "tasks": "mbpp",
    "swarm": "alone",
    "ledger": "local",
    "evaluator": "auto",
    "tracking.view": "off",
}
QUICK: Settings = {
    "rollout.engine": "transformers",
    "rollout.num_generations": 2,
    "rollout.max_new_tokens": 8,
    "swarm.num_local": 2,
    "model.threads": 1,
    "save_every_s": 0,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    settings: Settings
    """Over those of configs/node.yaml."""
    nodes: int = 1
    """More than one train on each other's groups too; the first is evaluated."""
    split: Split = Split.report
    rollouts: int = ROLLOUTS


def varied(**changed: Any) -> Run:
    """A short run with one thing changed, to choose settings by; `__` stands for a dot."""
    settings = {key.replace("__", "."): value for key, value in changed.items()}
    return Run(settings={**LEARNING, "probe.share": 0, **settings}, split=Split.tune, rollouts=4 * BLOCK)


SWEEP = {
    "as-defaults": varied(),
    "lr-5e-5": varied(train__lora_learning_rate=5e-5),
    "lr-2e-4": varied(train__lora_learning_rate=2e-4),
    "full-1e-5": varied(train__method="full", train__learning_rate=1e-5),
    "g4": varied(rollout__num_generations=4, swarm__num_local=16),
    "g16": varied(rollout__num_generations=16, swarm__num_local=4),
    "tasks-4": varied(swarm__num_local=4),
    "trained-2": varied(train__max_trained=2),
    "trained-8": varied(train__max_trained=0),
    "llama-cpp": varied(rollout__engine="llama_cpp", train__importance="token"),
    "grpo": varied(train__loss_type="grpo", train__scale_rewards="group", train__min_advantage=0.0),
    "cispo": varied(train__loss_type="cispo"),
    "tokens-160": varied(rollout__max_new_tokens=160),
}
RUNS = {
    "defaults": Run(settings=LEARNING),
    "uniform": Run(settings={**LEARNING, "swarm.num_local": 4, "tasks.draw": "uniform"}, rollouts=EQUAL),
    "earlier": Run(settings=EARLIER, rollouts=EQUAL),
    "steady": Run(settings=STEADY),
    "informative": Run(settings=CONTRASTS),
    "shared": Run(settings={**LEARNING, "swarm.num_local": 4, "swarm.num_external": 4}, nodes=2, rollouts=EQUAL),
    "alone": Run(settings={**LEARNING, "swarm.num_local": 4}, rollouts=EQUAL),
    "double": Run(settings=LEARNING, rollouts=2 * EQUAL),
    "gpu": Run(settings=LEARNING, rollouts=6144),
    "many": Run(settings=MANY, rollouts=100 * 512),
    **SWEEP,
}


def run_of(name: str, options: Any) -> tuple[str, Run]:
    """A run as the command line has it, with the name of its folder and results."""
    run = RUNS[name]
    settings = {**ALWAYS, **run.settings, **(QUICK if options.quick else {}), "seed": options.seed}
    settings |= {"model.name": options.model, "evaluator.model": options.model}
    if run.nodes > 1:
        settings["swarm"] = "native"
    rollouts = options.rollouts or (8 if options.quick else run.rollouts)
    return name + f"-seed{options.seed}" * (options.seed > 0), replace(run, settings=settings, rollouts=rollouts)


def folder_of(name: str, run: Run, options: Any) -> Path:
    """The folder of the node that is evaluated."""
    folder: Path = options.state / BENCHMARK / name
    return folder / "node-1" if run.nodes > 1 else folder


def evaluate(name: str, run: Run | None, split: Split, checkpoint: str, options: Any) -> None:
    """Evaluates the start (no run), or a run's newest or best checkpoint, as an arm of its own."""
    samples = options.samples or (2 if options.quick else SAMPLES)
    settings = {"model": options.model, "split": split.name, "problems": data(options), "samples": samples}
    settings |= {"max_new_tokens": 8 if options.quick else TOKENS}
    pieces = [learnt.GREEDY_PIECE, learnt.SAMPLED_PIECE]
    if run is not None:
        weights = training.weights_of(folder_of(name, run, options), checkpoint)
        if not weights.exists():
            raise SystemExit(f"{weights} is not there: run `{training_command(name)}` first")
        last = json.loads(weights.with_name("manifest.json").read_text(encoding="utf-8"))["round"]
        trained = harness.results(BENCHMARK, options.results).get(f"{name}-train")
        if trained is None or learnt.trained(trained, last)[0] < last:
            raise SystemExit(
                f"{weights} is of round {last}, and the result of {name}-train lacks rounds before it: let "
                f"`{training_command(name)}` end first (--rollouts N ends it sooner)"
            )
        settings |= {"settings": run.settings, "round": last}
    if options.samples:
        pieces = [learnt.SAMPLED_PIECE]
    elif checkpoint == "newest":
        pieces += [learnt.PROBE_PIECE, learnt.ATTEMPTS_PIECE]
    units = len(split.ids)
    arm = Arm(
        benchmark=BENCHMARK,
        name=f"{name}-{checkpoint or split.name}{learnt.of_samples(options.samples)}",
        settings=settings,
        seed=options.seed if run is not None else 0,  # all runs begin with one start
        pieces=pieces,
        power=[of_mean(SAMPLED, units, SPREAD)],
        targets=[] if options.samples else [GAIN, SURE, GREEDY],
    )
    harness.run(arm, partial(piece_of, name, run, split, checkpoint, settings, options), options)


def training_command(name: str) -> str:
    return f"python -m benchmarks.learning train {name.replace('-seed', ' --seed ')}"


def piece_of(
    name: str, run: Run | None, split: Split, checkpoint: str, settings: Settings, options: Any, piece: str
) -> Counts:
    folder = folder_of(name, run, options) if run else Path()
    if piece == learnt.PROBE_PIECE:
        return training.probed(folder)
    if piece == learnt.ATTEMPTS_PIECE:
        trained = list(harness.results(BENCHMARK, options.results)[f"{name}-train"].counts)
        return training.attempts(folder, [training.bounds(one) for one in trained])
    count, temperature = (1, 0) if piece == learnt.GREEDY_PIECE else (settings["samples"], 1)
    weights = training.weights_of(folder, checkpoint) if run else store.prepare(options.model, CACHE)
    asked = {key: settings[key] for key in ("model", "split", "problems", "max_new_tokens")}
    asked |= {"samples": count, "temperature": temperature, "seed": 0}
    model = ["--checkpoint", str(folder / "state" / ("best" * (checkpoint == "best")))] if run else []
    model = model or ["--model", options.model]
    out = options.state / BENCHMARK / "evaluations" / f"{hash_of(weights)[:12]}-{digest(asked)}"
    return evaluated(weights, asked, partial(solved, asked, split, model, out, options), options.state / "evaluations")


def solved(asked: Settings, split: Split, model: Sequence[str], out: Path, options: Any) -> Counts:
    """Has `codezero eval` solve the problems of a split: right solutions by problem, answers cut off, those without
    code. What it did before a stop stays in `out`."""
    command = [
        *(sys.executable, "-m", "codezero", "eval", "--dataset", "mbpp", "--split", split.value),
        *(["--path", str(options.mbpp.absolute())] if options.mbpp else []),
        *("--limit", str(len(split.ids)), "--samples", str(asked["samples"]), "--seed", str(asked["seed"])),
        *("--temperature", str(asked["temperature"]), "--max-new-tokens", str(asked["max_new_tokens"])),
        *("--batch", str(BATCH), "--threads", "1" if options.quick else "0", "--out", str(out.absolute()), *model),
    ]
    if subprocess.run(command, cwd=ROOT, check=False).returncode != 0:
        raise SystemExit("codezero eval ended early, for the reason above; the same command goes on")
    rows = [json.loads(line) for line in (out / "results.jsonl").read_text(encoding="utf-8").splitlines()]
    check({row["group"] for row in rows}, [split])
    right: dict[str, int] = {}
    for row in rows:
        name = row["group"].partition("/")[2]
        right[name] = right.get(name, 0) + row["passed"]
    cut_off = sum(row["finish"] == "length" for row in rows)
    return {"samples": asked["samples"], "right": right, "cut_off": cut_off}


def train(name: str, options: Any) -> None:
    """Trains a run on to its number of rollouts, or at most `--rounds` further."""
    name, run = run_of(name, options)
    if options.again and training.saved(folder_of(name, run, options)):
        raise SystemExit(f"{options.state / BENCHMARK / name} is trained already: move it away to train it again")
    rollouts_a_round = run.settings["swarm.num_local"] * run.settings["rollout.num_generations"]
    rounds = max(1, (4 if options.quick else BLOCK) // rollouts_a_round)
    arm = Arm(
        benchmark=BENCHMARK,
        name=f"{name}-train",
        settings={"settings": run.settings, "problems": data(options), "rollouts a round": rollouts_a_round},
        seed=options.seed,
        pieces=[],
        power=[of_mean(SAMPLED, len(run.split.ids), SPREAD)],
    )
    blocks = -(-run.rollouts // (rounds * rollouts_a_round))
    if options.rounds:
        there = harness.done(arm, options.results)
        blocks = min(blocks, (len(there.counts) if there else 0) + -(-options.rounds // rounds))
    arm.pieces.extend(f"rounds {block * rounds + 1}-{(block + 1) * rounds}" for block in range(blocks))
    settings = run.settings | ({"tasks.mbpp.path": options.mbpp.absolute()} if options.mbpp else {})
    print(f"settings: {' '.join(f'{key}={value}' for key, value in settings.items())}", flush=True)
    with training.Node(settings, folder_of(name, run, options), blocks * rounds, run.nodes) as node:
        harness.run(arm, node.block, options)


def data(options: Any) -> str:
    return harness.digest_of(options.mbpp) if options.mbpp else "hub"


def digest(asked: Settings) -> str:
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:8]


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = harness.parser(BENCHMARK, __doc__)
    parser.add_argument("stage", choices=("before", "train", "after", "report", "sweep"))
    parser.add_argument("runs", nargs="*", metavar="RUN", help=f"of {', '.join(RUNS)}")
    parser.add_argument("--split", choices=[Split.report.name, Split.tune.name], help="of before (default: both)")
    parser.add_argument("--checkpoint", choices=("newest", "best"), default="newest", help="of after (default: newest)")
    parser.add_argument(
        "--samples", type=int, default=0, metavar="K", help="of before and after: only these, for pass@K"
    )
    parser.add_argument("--rollouts", type=int, default=0, metavar="N", help="of train: to so many in all")
    parser.add_argument("--rounds", type=int, default=0, metavar="N", help="of train: at most so many more, in blocks")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="another seed is another run (default 0)")
    parser.add_argument("--model", default=MODEL, metavar="NAME", help=f"what is trained (default {MODEL})")
    there = MBPP if MBPP.exists() else None
    parser.add_argument("--mbpp", type=Path, default=there, metavar="FILE", help=f"MBPP's problems (default {MBPP})")
    parser.add_argument("--quick", action="store_true", help="a run of seconds, to see that all works")
    options = parser.parse_args(arguments)
    known = SWEEP if options.stage == "sweep" else RUNS
    if unknown := [name for name in options.runs if name not in known]:
        parser.error(f"{unknown[0]} is no run of {options.stage}: choose from {', '.join(known)}")
    if options.quick:
        options.state /= "quick"
        options.results = options.state / "results"
    return options


def main(arguments: Sequence[str] | None = None) -> None:
    options = parse(arguments)
    if options.stage == "before":
        for split in (Split.report, Split.tune):
            if options.split in (None, split.name):
                evaluate("start", None, split, "", options)
    elif options.stage == "sweep":
        evaluate("start", None, Split.tune, "", options)
        for name in options.runs or SWEEP:
            train(name, options)
            after(name, options)
    elif options.stage != "report":
        for name in options.runs or ["defaults"]:
            (train if options.stage == "train" else after)(name, options)
    if options.stage != "train":
        found = harness.results(BENCHMARK, options.results)
        print(table(found))
        if options.stage == "report" and options.mbpp:
            print(learnt.unlike_training(found, alike(Split.report, options.mbpp)))
        for path in learnt.pictures(found, options.results / BENCHMARK):
            print(path)


def after(name: str, options: Any) -> None:
    folder, run = run_of(name, options)
    evaluate(folder, run, run.split, options.checkpoint, options)


if __name__ == "__main__":
    main()

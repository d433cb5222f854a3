"""One round's solve and learn: this node against the reference procedure, GenRL 0.3.0's trainer, on the CPU.

    python -m benchmarks.round --generations 4 8        about 30 minutes and 14 GiB for the 0.5B model on two cores
    python -m benchmarks.round --quick --model FOLDER   does it work?

Both sides start from the same weights in float32, one after the other in this process, and do the same work:

- solve: two built-in problems, G generations each, every completion exactly `--tokens` tokens long, end tokens kept
  from ending it. The reference takes G passes over the batch of prompts.
- learn: the same texts for both, windows of the built-in solutions that survive re-tokenising, with fixed rewards.
  The reference makes an optimizer step every two sequences, recomputes activations and keeps Adam's moments in
  float32. This node by default makes one step a round and keeps them in bfloat16. Two more rows take that back: the
  first makes as many steps as the reference, the second also has moments like it. They share the solve phase.

A first short round, not counted, allocates the optimizer's state. Peaks are those of the whole process, and of the
larger of the two phases for the round. This node's setting of the C library's allocator cannot be undone, so a
reference that is measured after it has that too.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from benchmarks import reference
from benchmarks.measure import Cost, free_memory, machine, measure
from codezero.config import Moments, TrainConfig
from codezero.llm import device as devices
from codezero.llm import store
from codezero.llm.load import LoadedModel, load_model
from codezero.llm.sample import SamplingParams, sample_groups
from codezero.prompts import solver as prompt
from codezero.tasks.problems import load_problems
from codezero.train.batch import TextEncoder
from codezero.train.learner import GrpoLearner
from codezero.types import (
    FinishReason,
    Outcome,
    Reward,
    Rollout,
    RolloutGroup,
    SampledTokens,
    ScoredGroup,
    Task,
    Verdict,
)

REWARDS = (1.5, 0.2, -0.2, 0.7)
"""Of a group's attempts in turn; no mean of full turns is among them, so every attempt has an advantage."""
WARM_UP_TOKENS = 16
SOLVE_TARGET, LEARN_TARGET, PEAK_TARGET = 2.5, 1.5, 0.7
"""Reference time / own time, at least; own peak / reference peak, at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What both sides do in one round."""

    tasks: tuple[Task, ...]
    num_generations: int
    num_tokens: int
    """Of every completion."""

    @property
    def chats(self) -> list[list[dict[str, str]]]:
        return [prompt.messages(task.question) for task in self.tasks]

    @property
    def rewards(self) -> list[float]:
        return [REWARDS[index % len(REWARDS)] for index in range(self.num_generations)]

    @property
    def total_tokens(self) -> int:
        return len(self.tasks) * self.num_generations * self.num_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table."""

    side: str
    solve: Cost
    learn: Cost

    @property
    def peak_bytes(self) -> int:
        return max(self.solve.peak_bytes, self.learn.peak_bytes)


def training_texts(tokenizer: Any, work: Work) -> list[list[str]]:
    """Texts [tasks][G] of exactly `work.num_tokens` tokens that are the same tokens again when tokenised."""
    source = "\n".join(f"{p.task.question}\n{p.solution}" for p in load_problems())
    ids = tokenizer(source, add_special_tokens=False).input_ids
    texts: list[str] = []
    start, wanted = 0, len(work.tasks) * work.num_generations
    while len(texts) < wanted:
        window = ids[start : start + work.num_tokens]
        if len(window) < work.num_tokens:
            raise SystemExit("the built-in problems do not hold that much text: use fewer generations or tokens")
        text = tokenizer.decode(window)
        if tokenizer(text, add_special_tokens=False).input_ids == window:
            texts.append(text)
            start += work.num_tokens
        else:
            start += 1
    return [texts[i : i + work.num_generations] for i in range(0, wanted, work.num_generations)]


class Own:
    """This node's solver and learner."""

    name = "codezero"

    def __init__(self, folder: Path) -> None:
        devices.return_freed_memory()  # as a node does at its start
        self.policy: LoadedModel = load_model("policy", folder, torch.device("cpu"), torch.float32)
        self.generator = torch.Generator().manual_seed(0)
        self.learner: GrpoLearner | None = None

    def start_learning(self, config: TrainConfig, num_tokens: int) -> None:
        """A new learner with an empty optimizer."""
        self.learner = None
        free_memory()
        encoder = TextEncoder(
            tokenizer=self.policy.tokenizer,
            encode_prompt=lambda task: self.policy.encode_chat(prompt.messages(task.question)),
            end_token_id=self.policy.end_ids[0],
            max_prompt_length=self.policy.context_length,
            max_completion_length=num_tokens,
        )
        self.learner = GrpoLearner(self.policy.model, encoder, config, temperature=1.0)

    def solve(self, work: Work) -> int:
        """Returns the number of tokens sampled."""
        groups = sample_groups(
            self.policy.model,
            [self.policy.encode_chat(chat) for chat in work.chats],
            work.num_generations,
            SamplingParams(max_new_tokens=work.num_tokens),
            end_ids=(),
            pad_id=self.policy.pad_id,
            generator=self.generator,
        )
        return sum(len(rollout.completion_ids) for group in groups for rollout in group)

    def learn(self, work: Work) -> int:
        """Returns the number of completion tokens trained on."""
        assert self.learner is not None
        texts = training_texts(self.policy.tokenizer, work)
        groups = [self._scored(task, answers, work) for task, answers in zip(work.tasks, texts, strict=True)]
        return self.learner.step(groups).num_tokens

    def _scored(self, task: Task, answers: Sequence[str], work: Work) -> ScoredGroup:
        assert self.learner is not None
        prompt_ids = tuple(self.policy.encode_chat(prompt.messages(task.question)))
        rollouts = []
        for answer in answers:
            ids = tuple(self.policy.encode_text(answer))
            # The learner ignores log-probs that its present policy sampled.
            tokens = SampledTokens(prompt_ids=prompt_ids, completion_ids=ids, logprobs=(0.0,) * len(ids))
            rollouts.append(Rollout(text=answer, finish=FinishReason.LENGTH, tokens=tokens))
        return ScoredGroup(
            group=RolloutGroup(
                peer_id="local",
                model_id=self.policy.name,
                policy_version=self.learner.policy_version,
                task=task,
                rollouts=tuple(rollouts),
            ),
            verdicts=(Verdict(outcome=Outcome.JUDGED),) * len(answers),
            rewards=tuple(Reward(total=reward, parts={}) for reward in work.rewards),
        )


class Reference:
    """GenRL's procedure in the shape of `Own`."""

    def __init__(self, trainer: reference.WrittenOut) -> None:
        self.trainer, self.name = trainer, "reference"

    def solve(self, work: Work) -> int:
        texts = self.trainer.generate(work.chats, work.num_tokens)
        return sum(len(group) for group in texts) * work.num_tokens  # its end token is held back

    def learn(self, work: Work) -> int:
        texts = training_texts(self.trainer.tokenizer, work)
        self.trainer.train(work.chats, texts, torch.tensor([work.rewards] * len(work.tasks)))
        return self.trainer.count_tokens(texts)


def measure_own(folder: Path, work: Work, warm_up: Work, repeat: int) -> list[Row]:
    """A row for the defaults, and those in which it does as the reference does."""
    steps = reference.MINIBATCH
    variants = {
        "codezero": TrainConfig(),
        "codezero, equal steps": TrainConfig(minibatch_size=steps),
        "codezero, equal steps+moments": TrainConfig(minibatch_size=steps, moments=Moments.float32),
    }
    own = Own(folder)
    rows: list[Row] = []
    for side, config in variants.items():
        own.start_learning(config, work.num_tokens)
        own.learn(warm_up)
        if rows:
            solve = rows[0].solve
        else:
            own.solve(warm_up)
            solve = _costs(f"{side}: solve", lambda: own.solve(work), work, repeat)
        rows.append(Row(side=side, solve=solve, learn=_costs(f"{side}: learn", lambda: own.learn(work), work, repeat)))
    return rows


def measure_reference(trainer: reference.WrittenOut, work: Work, warm_up: Work, repeat: int) -> list[Row]:
    """One row."""
    side = Reference(trainer)
    side.solve(warm_up)
    side.learn(warm_up)
    solve = _costs("reference: solve", lambda: side.solve(work), work, repeat)
    return [
        Row(side="reference", solve=solve, learn=_costs("reference: learn", lambda: side.learn(work), work, repeat))
    ]


def _costs(what: str, phase: Callable[[], int], work: Work, repeat: int) -> Cost:
    """The median cost of a phase, whose tokens are counted."""
    costs = []
    for _ in range(repeat):
        num_tokens, cost = measure(phase)
        if num_tokens != work.total_tokens:
            raise SystemExit(f"{what}: {num_tokens} tokens instead of {work.total_tokens}, nothing to compare")
        took = f"{cost.wall_s:.1f} s, {cost.cpu_s:.1f} CPU s (others {cost.other_cpu_s:.1f})"
        print(f"{what}: {took}, {cost.peak_bytes / 2**30:.2f} GiB", file=sys.stderr, flush=True)
        costs.append(cost)
    return Cost(
        wall_s=statistics.median(c.wall_s for c in costs),
        cpu_s=statistics.median(c.cpu_s for c in costs),
        other_cpu_s=statistics.median(c.other_cpu_s for c in costs),
        peak_bytes=max(c.peak_bytes for c in costs),
    )


def table(rows: Sequence[Row], work: Work) -> str:
    """Costs of all sides, then their ratios to the reference where it was measured."""
    phase = f"{'CPU s':>7} {'GiB':>6}"
    lines = [f"{'side':29} {'solve s':>8} {phase}   {'learn s':>8} {phase}   {'peak GiB':>8} {'tokens':>7}"]
    for row in rows:
        phases = "   ".join(
            f"{c.wall_s:8.1f} {c.cpu_s:7.1f} {c.peak_bytes / 2**30:6.2f}" for c in (row.solve, row.learn)
        )
        lines.append(f"{row.side:29} {phases}   {row.peak_bytes / 2**30:8.2f} {work.total_tokens:7}")
    base = next((row for row in rows if row.side == "reference"), None)
    for row in rows if base else ():
        if row is not base:
            lines.append(_ratios(base, row))
    costs = [cost for row in rows for cost in (row.solve, row.learn)]
    others = sum(c.other_cpu_s for c in costs) / sum(c.other_cpu_s + c.cpu_s for c in costs)
    lines.append(f"other programs took {others:.0%} of the processor time used: trust the wall times if that is small")
    return "\n".join(lines)


def _ratios(base: Row, row: Row) -> str:
    solve, learn = base.solve.wall_s / row.solve.wall_s, base.learn.wall_s / row.learn.wall_s
    solve_cpu, learn_cpu = base.solve.cpu_s / row.solve.cpu_s, base.learn.cpu_s / row.learn.cpu_s
    peak = row.peak_bytes / base.peak_bytes

    def verdict(met: bool) -> str:
        return "met" if met else "MISSED"

    return (
        f"{row.side}: solve {solve:.2f}x faster (CPU {solve_cpu:.2f}x; target {SOLVE_TARGET}x "
        f"{verdict(solve >= SOLVE_TARGET)}), learn {learn:.2f}x (CPU {learn_cpu:.2f}x; target {LEARN_TARGET}x "
        f"{verdict(learn >= LEARN_TARGET)}), peak {peak:.2f} (target {PEAK_TARGET} {verdict(peak <= PEAK_TARGET)})"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Measures and prints one table for every number of generations."""
    options = _parser().parse_args(arguments)
    warnings.filterwarnings("ignore", message=".*gradient_checkpointing_enable")  # GenRL's name for it
    devices.set_threads(options.threads)
    folder = store.prepare(options.model, options.cache_dir)
    make_reference = reference.Genrl if options.genrl else reference.WrittenOut
    num_tokens = min(options.tokens, WARM_UP_TOKENS) if options.quick else options.tokens
    print(f"machine: {machine()}")
    print(f"reference: {make_reference.name}")
    tasks = tuple(problem.task for problem in load_problems(2, 2)[1:3])
    works = [Work(tasks=tasks, num_generations=g, num_tokens=num_tokens) for g in options.generations]
    tables: list[list[Row]] = [[] for _ in works]
    for side in options.sides:
        for work, rows in zip(works, tables, strict=True):
            warm_up = replace(work, num_tokens=min(num_tokens, WARM_UP_TOKENS))
            torch.manual_seed(0)
            if side == "reference":
                trainer = make_reference(folder, work.num_generations)
                rows += measure_reference(trainer, work, warm_up, options.repeat)
                del trainer
            else:
                rows += measure_own(folder, work, warm_up, options.repeat)
            free_memory()
    for work, rows in zip(works, tables, strict=True):
        print(
            f"\n{options.model}: {len(tasks)} tasks x {work.num_generations} generations x {num_tokens} tokens, float32"
        )
        print(table(rows, work))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.round", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", default="Qwen2.5-Coder-0.5B-Instruct", help="catalogue name, hub id or folder")
    parser.add_argument("--cache-dir", default="~/.cache/codezero", help="where prepared models are kept")
    parser.add_argument("--generations", type=int, nargs="+", default=[4, 8], metavar="G", help="a table for each")
    parser.add_argument("--tokens", type=int, default=256, help="length of every completion")
    parser.add_argument("--repeat", type=int, default=1, help="measured rounds a side; the median is shown")
    parser.add_argument("--threads", type=int, default=0, help="CPU threads; 0 for one a physical core")
    parser.add_argument(
        "--sides",
        nargs="+",
        choices=["reference", "codezero"],
        default=["reference", "codezero"],
        help="which sides, in this order",
    )
    parser.add_argument(
        "--genrl",
        action="store_true",
        help="run GenRL's own trainer (pip install --no-deps gensyn-genrl==0.3.0) as the reference",
    )
    parser.add_argument("--quick", action="store_true", help=f"{WARM_UP_TOKENS} tokens only")
    return parser


if __name__ == "__main__":
    main()

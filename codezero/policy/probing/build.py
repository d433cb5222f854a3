"""Builds the probe of a node or a test writer, as the configuration says."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path

from codezero.config import NodeConfig, RolloutEngine
from codezero.evaluate.reading import AttemptReader
from codezero.llm.load import LoadedModel
from codezero.llm.sample import SampleGroups
from codezero.observe.probes import LEAST_ROUNDS, ProbeSeries
from codezero.policy.probing.probe import SAMPLES, START_SAMPLES, Probe
from codezero.policy.solver import PolicySolver, measuring_solver
from codezero.ports import Progress
from codezero.prompts import solver as prompt
from codezero.tasks.held_out import load_held_out
from codezero.types import Task
from codezero.workers import Workers

PACKAGE = Path(__file__).parents[2]
JUDGING = (
    *("evaluate/dryrun", "evaluate/rules", "evaluate/jobs.py", "evaluate/read_attempts.py"),
    *("prompts/solver.py", "tasks/assertions.py", "tasks/testcases.py"),
)
"""The files and folders of the code that reads solutions and tests, and tells whether a solution is right."""


def held_out_for(config: NodeConfig, steps: int) -> dict[str, Task]:
    """Returns the problems that a run of so many rounds or batches, 0 for one without a limit, measures itself on; none
    if it does not."""
    return load_held_out() if config.probe.share and (steps == 0 or steps >= LEAST_ROUNDS) else {}


def make_probe(
    config: NodeConfig,
    policy: LoadedModel,
    problems: Mapping[str, Task],
    series: ProbeSeries,
    workers: Workers,
    progress: Progress,
    *,
    engine: RolloutEngine,
    sample: SampleGroups,
    rows: int,
    turn: Callable[[], AbstractContextManager[object]],
) -> Probe | None:
    """Returns the probe that measures the policy on these problems; None if there are none. `sample` is the engine's
    function; `rows` and `turn` are as for Probe."""
    if not problems:
        return None

    def make_solver(num_samples: int, temperature: float, number: int) -> PolicySolver:
        length, seed = config.rollout.max_new_tokens, config.seed + 1_000_003 * (number + 1)
        return measuring_solver(policy, num_samples, length, temperature, seed, lambda *_: None, sample=sample)

    texts = [engine.value, f"{config.rollout.max_new_tokens} tokens, {START_SAMPLES}, then {SAMPLES} samples"]
    for task in problems.values():
        texts += [str(policy.encode_chat(prompt.messages(task.question))), task.tests]
    for path in (PACKAGE / name for name in JUDGING):  # another version may have other verdicts
        files = [path] if path.suffix else sorted(path.rglob("*.py"))
        texts += [file.read_text(encoding="utf-8") for file in files]
    model = f"{policy.name} in {str(policy.model.dtype).removeprefix('torch.')}"
    return Probe(
        problems,
        f"{model}, {hashlib.sha256(chr(0).join(texts).encode()).hexdigest()[:16]}",
        make_solver,
        AttemptReader(workers, dry_run=True, fatal_rules=True, show=False),
        Path(config.tracking.log_dir).expanduser(),
        series,
        share=config.probe.share,
        rows=rows,
        turn=turn,
        progress=progress,
    )

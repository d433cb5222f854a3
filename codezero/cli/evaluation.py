"""`codezero eval`: runs a model over a benchmark, executes its solutions in a sandbox, and counts those that pass."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codezero.cli.options import INTERRUPTED, Commands, add_command, count, heavy_imports, number, path, positive
from codezero.errors import ConfigError, StateError, told_as
from codezero.runtime.console import printable
from codezero.runtime.logs import quiet_libraries

if TYPE_CHECKING:
    from codezero.policy.trained import Trained
    from codezero.runtime.results import Results
    from codezero.workers import Workers

DATASETS = ("humaneval", "mbpp", "livecodebench", "code_contests", "codeforces")
_EXAMPLES = """\
examples:
  codezero eval --dataset humaneval                        greedy, one solution a problem, from the hub
  codezero eval --dataset mbpp --path mbpp.jsonl --samples 10 --temperature 0.8 --k 1,5,10
  codezero eval --dataset codeforces --limit 50 --model Qwen2.5-Coder-1.5B-Instruct
  codezero eval --dataset mbpp --checkpoint state          what a node has learnt
  codezero eval --dataset mbpp --checkpoint state/best     the same where its probes were highest
  codezero eval --dataset mbpp --best-of 8 --verify --temperature 0.8
                                                           choose one of 8 by tests that the model writes
  codezero eval --dataset mbpp --best-of 8 --verify --writer state --temperature 0.8
                                                           the same, with tests by what codezero verify trained
  codezero eval --score solutions.jsonl                    only execute stored solutions, without a model

Solutions are untrusted code: they run in a sandbox, whose protections on this machine are printed at the start. Where
there are none (macOS, most containers) nothing runs; CODEZERO_UNCONFINED=1 runs them anyway, with your rights.
A stopped evaluation continues when it is started again with the same settings. Results lie in --out.
"""
_CHECKPOINT = "measure what a node has trained; STATE_DIR/best, or best for state/best: where its probes were highest"
_WRITER = "with --verify: tests by what `codezero verify` has trained, a second model in memory"
_BATCH = "completions at a time; 0, the default, takes 64, or 256 on a CUDA GPU, or what memory holds"
_OF_A_MODEL = (
    *("path", "split", "model", "checkpoint", "device", "dtype", "threads", "samples", "best_of", "verify", "writer"),
    *("temperature", "max_new_tokens", "batch", "seed"),
)
"""The options that mean nothing for stored solutions."""
_BEST_OF = "N solutions a problem, and how often one is right that is chosen without executing any"


def add_commands(commands: Commands) -> None:
    text = "measure a model on a benchmark by executing its solutions"
    command = add_command(commands, "eval", _eval, text, examples=_EXAMPLES)
    what = command.add_mutually_exclusive_group(required=True)
    what.add_argument("--dataset", choices=DATASETS, help="the problems, by the schema of their rows")
    what.add_argument(
        "--score", type=path, metavar="FILE", help="execute the solutions stored in this .jsonl file instead"
    )
    command.add_argument(
        "--path", type=path, metavar="FILE", help="a .jsonl or .parquet file of problems (default: the hub)"
    )
    command.add_argument("--split", help="the split of the dataset (default: its test split)")
    command.add_argument("--limit", type=count, default=0, metavar="N", help="the first N problems only")
    command.add_argument(
        "--out", type=path, metavar="DIR", help="where results are kept (default: eval/ and the dataset's name)"
    )
    command.add_argument("--json", type=path, metavar="FILE", help="also write the summary to this file")
    command.add_argument("--k", type=_ks, default=(1,), metavar="K,K", help="which pass@k to report (default 1)")
    command.add_argument("--case-s", type=_seconds, default=6.0, metavar="S", help="seconds a test case may take")

    model = command.add_argument_group("the model")
    model.add_argument("--model", metavar="NAME", help="catalogue name, hub id or folder (default: the solver's)")
    model.add_argument("--checkpoint", type=path, metavar="STATE_DIR", help=_CHECKPOINT)
    model.add_argument("--cache-dir", default="~/.cache/codezero", help="where prepared models are kept")
    model.add_argument("--device", choices=("auto", "cpu", "cuda", "mps"), default="auto")
    model.add_argument("--dtype", choices=("auto", "float32", "bfloat16"), default="auto")
    model.add_argument("--threads", type=count, default=0, help="CPU threads; 0 takes one per physical core")
    many = model.add_mutually_exclusive_group()
    many.add_argument("--samples", type=positive, default=1, metavar="N", help="solutions a problem (default 1)")
    many.add_argument("--best-of", type=positive, default=0, metavar="N", help=_BEST_OF)
    model.add_argument("--verify", action="store_true", help="with --best-of: also by tests that the model writes")
    model.add_argument("--writer", type=path, metavar="STATE_DIR", help=_WRITER)
    model.add_argument("--temperature", type=_temperature, default=0.0, metavar="T", help="0 is greedy (default)")
    model.add_argument("--max-new-tokens", type=positive, default=512, metavar="N", help="default 512")
    model.add_argument("--batch", type=count, default=0, metavar="N", help=_BATCH)
    model.add_argument("--seed", type=count, default=0, help="the seed of the sampling (default 0)")
    command.set_defaults(default_of=command.get_default)


_seconds = number(float, lambda value: 0 < value <= 300, "a number of seconds up to 300")
_temperature = number(float, lambda value: 0 <= value < 100, "a temperature from 0 on")
_ks = number(
    lambda text: tuple(int(part) for part in text.split(",")), lambda ks: min(ks) >= 1, "numbers such as 1,5,10"
)


def _eval(options: argparse.Namespace) -> int:
    try:
        with ExitStack() as stack:
            summary = _measure(options, stack) if options.score is None else _score(options, stack)
    except KeyboardInterrupt:
        print(f"stopped: results so far are in {_out(options)}; the same command continues", file=sys.stderr)
        return INTERRUPTED
    from codezero.harness.report import table

    print("\n".join(map(printable, table(summary).split("\n"))))
    if options.json:
        with told_as(StateError, f"cannot write {options.json}", "give another --json"):
            options.json.write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")
    return 0


def _out(options: argparse.Namespace) -> Path:
    """Returns the folder of the results."""
    out: Path | None = options.out
    return out or Path("eval") / (options.dataset or options.score.stem)


def _results(options: argparse.Namespace, settings: dict[str, Any], solutions: int) -> Results:
    """Opens the results so far, with the given number of solutions a problem."""
    from codezero.runtime.results import Results

    out = _out(options)
    return Results(out / "results.jsonl", out / "settings.json", settings, solutions, ("group", "passed"))


def _score(options: argparse.Namespace, stack: ExitStack) -> dict[str, Any]:
    import hashlib

    needless = [name for name in _OF_A_MODEL if getattr(options, name) != options.default_of(name)]
    if needless:
        raise ConfigError(f"--score executes stored solutions: leave out --{needless[0].replace('_', '-')}")
    from codezero.harness import bench, report
    from codezero.workers import Workers

    workers = stack.enter_context(Workers(1))
    rows, left_out = bench.read_stored(options.score, workers)
    rows = rows[: options.limit or None]
    fewest = min(Counter(row["group"] for row in rows).values())
    if max(options.k) > fewest:
        raise ConfigError(f"--k {max(options.k)} needs as many solutions a problem: one has {fewest}, give a smaller k")
    content = hashlib.sha256(options.score.read_bytes()).hexdigest()
    settings = {"score": content, "case_s": options.case_s}
    isolation = _say_isolation()
    with _results(options, settings, 1) as results, _progress(len(rows), "solution") as bar:
        bench.run_stored(rows, results, workers, options.case_s, bar.update)
        found = results.rows[: len(rows)]
    return report.summary(found, options.k, **settings, left_out=dict(left_out), sandbox=isolation)


def _measure(options: argparse.Namespace, stack: ExitStack) -> dict[str, Any]:
    options.samples = options.best_of or options.samples
    _check(options)
    from codezero.harness import bench, report, sources
    from codezero.workers import Workers

    quiet_libraries()
    source = sources.ProblemSource(
        dataset=options.dataset,
        path=options.path,
        split=options.split,
        show_all_tests=not options.best_of,
    )
    trained, writer = _trained(options), _writer(options)
    workers = stack.enter_context(Workers(1))
    problems, left_out = sources.load(source, workers, options.limit)
    name = _model_name(options, trained)
    settings = {
        "dataset": options.dataset,
        "problems": source.named(),
        "model": name,
        "checkpoint": trained.fingerprint if trained else None,
        **{key: getattr(options, key) for key in ("dtype", "samples", "temperature", "max_new_tokens", "seed")},
        "case_s": options.case_s,
        **({"best_of": "tests" if options.verify else "solutions"} if options.best_of else {}),
        **({"writer": writer.fingerprint} if writer else {}),
    }
    isolation = _say_isolation()
    with _results(options, settings, options.samples) as results, _progress(len(problems), "problem") as bar:
        bench.require_unchanged(problems, options.dataset, results)
        if len(results.groups) < len(problems):
            _solve(options, problems, results, name, trained, writer, workers, bar)
        wanted = {f"{options.dataset}/{problem.name}" for problem in problems}
        found = [row for row in results.rows if row["group"] in wanted]
    return report.summary(found, options.k, **settings, left_out=dict(left_out), sandbox=isolation)


def _check(options: argparse.Namespace) -> None:
    if max(options.k) > options.samples:
        raise ConfigError(f"--k {max(options.k)} needs as many solutions a problem: use --samples {max(options.k)}")
    if options.verify and not options.best_of:
        raise ConfigError("--verify chooses one of several solutions: use --best-of 8 too")
    if options.writer is not None and not options.verify:
        raise ConfigError("--writer writes the tests to choose by: use --best-of 8 --verify too")
    if options.samples > 1 and options.temperature == 0:
        raise ConfigError(
            f"{options.samples} solutions a problem would be equal at temperature 0: use --temperature 0.8"
        )


def _solve(
    options: argparse.Namespace,
    problems: Any,
    results: Any,
    name: str,
    trained: Trained | None,
    writer: Trained | None,
    workers: Workers,
    bar: Any,
) -> None:
    from codezero.config import Device, Dtype
    from codezero.runtime import state

    with heavy_imports():
        from codezero.harness import bench, policy
        from codezero.harness.best import rank_solutions
        from codezero.llm.sample import sample_groups
        from codezero.llm.within_memory import WithinMemory
        from codezero.policy.solver import measuring_solver

    def load(name: str, trained: Trained | None) -> Any:
        # The folder of a running node is refused, since its checkpoints come and go.
        with state.locked_state(trained.folder) if trained else nullcontext():
            return policy.load_policy(
                name, options.cache_dir, Device(options.device), Dtype(options.dtype), options.threads, trained
            )

    loaded, where = load(name, trained)
    questions = [problem.task.question for problem in problems]
    batch = options.batch or policy.rows_at_once(loaded, questions, options.max_new_tokens)
    bar.write(f"model: {name}, on {where}, {batch} completions at a time", file=sys.stderr)
    sample = WithinMemory(sample_groups)
    by = loaded if options.verify else None
    if writer is not None:
        by, _ = load(writer.model, writer)
        bar.write(f"test writer: {writer.model} of {writer.folder}, {writer.checkpoint}", file=sys.stderr)

    num_tokens, spent_s, speed = 0, 0.0, ""

    def written(tokens: int, seconds: float) -> None:
        nonlocal num_tokens, spent_s, speed
        num_tokens, spent_s = num_tokens + tokens, spent_s + seconds
        speed = f", {num_tokens / max(spent_s, 1e-9):.1f} tokens/s"

    def progress(_: str, done: int, total: int) -> None:
        bar.set_postfix_str(f"token {done}/{total}{speed}", refresh=False)
        bar.update(0)

    def make_solver(first: int) -> Any:
        seed = options.seed + 1_000_003 * first  # each batch has its own random stream, the same after a stop
        samples, length, temperature = options.samples, options.max_new_tokens, options.temperature
        return measuring_solver(loaded, samples, length, temperature, seed, progress, sample)

    def rank(solved: Any, first: int) -> Any:
        seed = options.seed + 1_000_003 * first + 1
        return rank_solutions(
            solved,
            workers,
            by,
            seed,
            temperature=options.temperature,
            sample=sample,
            on_step=lambda done, total: progress("", done, total),
        )

    bench.solve_and_run(
        problems,
        options.dataset,
        results,
        make_solver,
        options.samples,
        batch,
        options.case_s,
        bar.update,
        written,
        rank if options.best_of else None,
    )
    bar.write(f"written: {num_tokens} tokens in {spent_s:.0f} s{speed}", file=sys.stderr)


def _model_name(options: argparse.Namespace, trained: Trained | None) -> str:
    from codezero.config import ModelConfig

    if trained is None:
        return options.model or ModelConfig().name
    if options.model not in (None, trained.model):
        raise ConfigError(f"--checkpoint {options.checkpoint} was trained from {trained.model}: leave --model out")
    return trained.model


def _trained(options: argparse.Namespace) -> Trained | None:
    if options.checkpoint is None:
        return None
    from codezero.harness.policy import trained_in

    return trained_in(options.checkpoint)


def _writer(options: argparse.Namespace) -> Trained | None:
    if options.writer is None:
        return None
    from codezero.verifier.trained import writer_in

    return writer_in(options.writer)


def _say_isolation() -> str:
    from codezero.sandbox.run import isolation

    line = isolation()
    print(f"sandbox: {line}", file=sys.stderr)
    return line


@contextmanager
def _progress(total: int, unit: str) -> Iterator[Any]:
    from tqdm import tqdm

    interval = 0.2 if sys.stderr.isatty() else 30.0  # seconds; a log must not get a line for each solution
    with tqdm(total=total, unit=unit, dynamic_ncols=True, mininterval=interval, miniters=0) as bar:
        yield bar

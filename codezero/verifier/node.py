"""A test writer: builds its parts from the configuration, and starts them in order."""

from __future__ import annotations

import dataclasses
from functools import partial

import msgspec

from codezero import __version__
from codezero.build import CommonParts, run
from codezero.config import Network, NodeConfig, TrainMethod, checkout
from codezero.errors import ConfigError
from codezero.evaluate.reading import AttemptReader
from codezero.observe.batches import BatchMonitor
from codezero.observe.cases import CASES
from codezero.observe.probes import PAIR
from codezero.observe.report_file import ReportFile
from codezero.observe.roles import VERIFIER
from codezero.observe.status import SAVING
from codezero.observe.trackers.metrics import cases_metrics
from codezero.policy import writer
from codezero.policy.probing.measure import Measuring
from codezero.reports import CasesReport
from codezero.runtime import state
from codezero.train.checkpoint import CheckpointStore
from codezero.train.method import SOLVER
from codezero.verifier import build
from codezero.verifier.batch import VerifierStages, run_batch
from codezero.verifier.exercises import CandidateSolver, Problems
from codezero.verifier.pair import LearningSolver
from codezero.verifier.write import MAX_NEW_TOKENS, CaseWriter
from codezero.workers import Workers


def run_verifier(config: NodeConfig) -> int:
    """Runs a test writer until it is stopped or has done `verifier.batches` batches; returns the exit code.

    Raises CodezeroError: it cannot start or continue.
    """
    if config.swarm.network is not Network.none:
        raise ConfigError(
            f"swarm.network={config.swarm.network.value}: test cases are not sent to other nodes yet, so "
            "`codezero verify` learns alone: leave out swarm=..."
        )
    return run(config, VERIFIER, lambda parts: VerifierNode(config, parts))


class VerifierNode:
    """The parts of a test writer; their stack closes them in reverse order."""

    def __init__(self, config: NodeConfig, parts: CommonParts) -> None:
        self._config, self._console = config, parts.console
        self._folder, self._status = parts.folder, parts.status
        self._console.line(f"codezero {__version__}: test writer")
        if config.train.method is TrainMethod.full:
            self._console.line("a test writer trains adapters: train.method=full has no effect on it")
        bound = build.bound_settings(config)
        state.check_settings(self._folder, bound)
        self._checkpoints = CheckpointStore(self._folder / "checkpoints")
        self._monitor = BatchMonitor(CASES, parts.log_dir, self._console, self._status)
        self._tasks = build.make_tasks(config)
        workers = parts.stack.enter_context(Workers(1))
        model = build.load(config, self._console)
        state.bind_settings(self._folder, bound)  # from here on a proposer can follow it
        self._status.update(model=model.name, method=TrainMethod.lora.value, group_size=config.verifier.num_generations)
        device = model.model.device
        sample = build.make_sampler(config, device, self._folder, self._console)
        self._solver = build.make_solver(config, model, self._monitor.progress, sample)
        self._writer = CaseWriter(
            model,
            num_generations=config.verifier.num_generations,
            temperature=config.verifier.temperature,
            seed=config.seed,
            progress=self._monitor.progress,
            sample=sample,
        )
        self._learner = writer.make_learner(
            model,
            writer.train_config(config.verifier.learning_rate, config.verifier.lora_r),
            max_new_tokens=MAX_NEW_TOKENS,
            temperature=config.verifier.temperature,
            progress=self._monitor.progress,
            engine=build.engine_of(config),
        )
        solver_weights = partial(build.solver_weights, config, model)
        attempt_reader = AttemptReader(
            workers, dry_run=True, fatal_rules=True, show=False, problem_of=self._tasks.withheld.problem
        )
        candidates = CandidateSolver(self._solver, attempt_reader, solver_weights)
        self._learning_solver = None
        if config.verifier.train_solver:
            learner = build.make_solver_learner(config, model, self._monitor.progress)
            self._learning_solver = LearningSolver(candidates, workers, learner, solver_weights)
        probe = build.make_solver_probe(config, model, workers, self._monitor.progress, sample)
        file = ReportFile(parts.log_dir / PAIR.file, "round")
        self._measuring = Measuring(probe, file, self._checkpoints, self._folder, self._console, self._status)
        self._stages = VerifierStages(
            problems=Problems(self._tasks, workers),
            candidates=candidates,
            writer=self._writer,
            workers=workers,
            learner=self._learner,
            solver=self._learning_solver,
            progress=self._monitor.progress,
            on_stage=self._status.stage,
        )
        self._batch = self._resume()
        self._trackers = parts.trackers(config, self._batch or None)

    def run(self) -> None:
        """Does batches until `verifier.batches` are done. A KeyboardInterrupt may end it anywhere without loss."""
        config, done = self._config.verifier, 0
        while config.batches == 0 or done < config.batches:
            if self._learning_solver is not None:
                self._measuring.measure(self._batch, self._learning_solver.learner.policy_version)
                self._measuring.keep_best()
            self._batch += 1
            self._status.update(round=self._batch)
            report = run_batch(self._batch, self._stages, config.batch_size, self._config.seed)
            self._status.stage(SAVING)
            self._save(report)
            self._status.update(policy_version=report.policy_version)
            self._monitor.report(report)
            self._trackers.log(report.batch, cases_metrics(report, self._measuring.learning))
            done += 1

    def finish(self) -> None:
        """Prints the run's summary and how to continue."""
        self._console.line(self._monitor.summary())
        chooses = ("--best-of", 8, "--verify", "--writer", self._folder.parent, "--temperature", 0.8)
        self._console.line(
            f"state in {self._folder}, reports in {self._config.tracking.log_dir}/{CASES.file}; start again with the "
            f"same settings to continue, or use it: {checkout.command('eval', '--dataset', 'mbpp', *chooses)}"
        )
        if self._learning_solver is not None:
            measures = checkout.command("eval", "--dataset", "mbpp", "--checkpoint", self._folder)
            self._console.line(f"measure the solver: {measures}")

    def _resume(self) -> int:
        """Restores the newest whole checkpoint; returns the number of its batch, 0 on a first start."""
        found = self._checkpoints.load_latest()
        self._measuring.resume(found.round if found is not None else 0)
        if found is None:
            self._monitor.resume(None)
            self._console.line(f"state: new in {self._folder}")
            return 0
        kept = found.node
        self._tasks.load_state_dict(kept["tasks"])
        self._solver.load_state_dict(kept["solver"])
        self._writer.load_state_dict(kept["writer"])
        writer.restore(self._learner, found.learner)
        if self._learning_solver is not None:
            writer.restore(self._learning_solver.learner, found.learner[SOLVER])
        self._monitor.resume(msgspec.convert(kept["report"], CasesReport))
        self._status.update(policy_version=self._learner.policy_version)
        self._console.line(f"state: continuing in {self._folder} after batch {found.round}")
        return found.round

    def _save(self, report: CasesReport) -> None:
        learnt, version = writer.saved(self._learner), self._learner.policy_version
        if self._learning_solver is not None:
            learnt[SOLVER] = writer.saved(self._learning_solver.learner)
            version += self._learning_solver.learner.policy_version  # each update of either changes it
        self._checkpoints.save(
            report.batch,
            version,
            learnt,
            {
                "tasks": self._tasks.state_dict(),
                "solver": self._solver.state_dict(),
                "writer": self._writer.state_dict(),
                "report": dataclasses.asdict(report),
            },
        )

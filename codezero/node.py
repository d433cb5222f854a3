"""Builds a solver: the only module that knows all of its parts, and the order in which they start."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

import torch

from codezero.build import CommonParts, run
from codezero.config import Network, NodeConfig, PeerTasks, TrainMethod, checkout
from codezero.evaluate.build import make_evaluator, start_workers
from codezero.ledger.build import load_key, make_ledger
from codezero.loop import Stages, run_round
from codezero.network.selection import SapoSelection
from codezero.observe import probes
from codezero.observe.monitor import RoundMonitor
from codezero.observe.report_file import ReportFile
from codezero.observe.roles import SOLVER
from codezero.observe.status import SAVING, WAITING
from codezero.observe.trackers.metrics import round_metrics
from codezero.policy.ahead import AheadSolver
from codezero.policy.build import Models
from codezero.policy.probing.build import held_out_for, make_probe
from codezero.policy.probing.measure import Measuring
from codezero.policy.solver import PolicySolver, sampling
from codezero.proposer.refusal import refusal
from codezero.publish.build import start_publisher
from codezero.publish.tokens import HubTokens, take_tokens
from codezero.reports import RoundReport
from codezero.runtime import state
from codezero.services.build import Services
from codezero.tasks.build import make_task_source, task_lists
from codezero.tasks.environment import load_environments
from codezero.tasks.held_out import load_held_out
from codezero.tasks.known import WantedTasks, rule
from codezero.tasks.listed import HubTaskIds, Lister
from codezero.tasks.proposed import WithProposals, proposed_candidates, to_task
from codezero.train import checkpoint
from codezero.train.batch import TextEncoder
from codezero.train.checkpoint import CheckpointStore
from codezero.train.learner import GrpoLearner
from codezero.train.replay import ReplayingLearner
from codezero.train.saver import BackgroundSaver, FinishedRound
from codezero.types import RoundId, Task
from codezero.workers import Workers


def run_node(config: NodeConfig) -> int:
    """Runs a node until it is stopped or has played `config.rounds` rounds. Returns the exit code.

    Raises CodezeroError: it cannot start or continue.
    """
    # Before any child process could inherit them.
    tokens, key = take_tokens(config.push, os.environ), load_key(config.ledger)
    return run(config, SOLVER, lambda parts: Node(config, tokens, key, parts))


class Node:
    """The parts of a node, started in an order that finds errors early and cheaply; their stack closes them in
    reverse."""

    def __init__(self, config: NodeConfig, tokens: HubTokens, key: bytes | None, parts: CommonParts) -> None:
        self._config, self._console, self._folder, self._status = config, parts.console, parts.folder, parts.status
        console, stack, membership = parts.console, parts.stack, parts.membership
        self._status.update(model=config.model.name, group_size=config.rollout.num_generations)
        self._ledger = make_ledger(config, key, self._folder, membership.peer_id, console, stack)
        self._services = Services(config, self._ledger, self._folder, membership.peer_id, console)
        self._checkpoints = CheckpointStore(self._folder / "checkpoints")
        self._monitor = RoundMonitor(parts.log_dir, console, self._status, config.rollout.num_generations)
        sources = make_task_source(config.tasks, config.seed)
        self._rule = ""

        workers = stack.enter_context(start_workers(config))
        models = Models(config, self._folder, console, tokens.download)
        if models.remote is not None:
            stack.callback(models.remote.close)
        # Metal may end a process in which two threads use it at once (pytorch/pytorch#197805).
        device_lock = models.policy_lock if models.policy.model.device.type == "mps" else None
        self._saver = BackgroundSaver(self._checkpoints, config.save_every_s, self._saved, device_lock=device_lock)
        stack.callback(self._saver.close)  # also if an error ends the node
        self._settings = models.settings
        chosen = dataclasses.replace(config.swarm, num_local=models.num_local)
        self._config = config = dataclasses.replace(config, swarm=chosen)
        self._status.update(method=models.settings["train.method"], planned_bytes=models.planned_bytes)
        self._solver = self._make_solver(models, membership.peer_id)
        encoder = self._make_encoder(models)
        held_out = load_held_out() if config.probe.share else {}  # also in a run too short to be measured
        self._measuring = self._make_measuring(models, workers, held_out_for(config, config.rounds))
        proposals = membership.proposals()
        self._tasks = WithProposals(
            sources,
            config.tasks.proposals.share,
            proposals.collect,
            refusal(workers, lambda one: encoder.fits(to_task(one, config.tasks.show_all_tests)), held_out.values()),
            proposals.take_rejected,
            config.tasks.show_all_tests,
            proposed_candidates(config.tasks.draw, config.seed),
        )
        self._wanted = WantedTasks(
            config.swarm.tasks,
            sources.withheld,
            self._tasks,
            self._start_lists(stack),
            held_out.values(),
            config.tasks.environments,
        )
        self._learner = self._make_learner(models, encoder)
        self._replaying = ReplayingLearner(self._learner, config.train.replay, config.seed)
        ahead, most = None, config.rollout.max_staleness
        if models.remote is not None:
            ahead = AheadSolver(self._tasks, self._solver, models.policy, models.remote, most, models.policy_lock)
        self._stages = Stages(
            tasks=ahead or self._tasks,
            solver=ahead or self._solver,
            gossip=membership.gossip(encoder.fits, self._wanted.why_not),
            evaluator=make_evaluator(
                config,
                models.judge_backend,
                self._monitor.progress,
                workers,
                problem_of=sources.withheld.problem,
                secret=state.secret_of(self._folder),
            ),
            feedback=proposals,
            selection=SapoSelection(config.swarm, config.seed),
            learner=self._replaying,
            ledger=self._ledger,
            policy_lock=models.policy_lock,
            samples_ahead=ahead is not None and most > 0,
            observer=self._monitor,
        )
        self._last = self._resume()
        self._services.start(models.policy, models.policy_lock, stack)
        method = TrainMethod(models.settings["train.method"])
        self._publisher = start_publisher(
            config, tokens, models.policy, method, membership.peer_id, self._folder, console, self._note_push, stack
        )
        self._trackers = parts.trackers(config, self._last.number if self._last else None)

    def _make_solver(self, models: Models, peer_id: str) -> PolicySolver:
        config = self._config
        return PolicySolver(
            models.policy,
            config.rollout.num_generations,
            sampling(config.rollout),
            seed=config.seed,
            peer_id=peer_id,
            progress=self._monitor.progress,
            sample=models.sample,
            systems={name: one.SYSTEM for name, one in load_environments(config.tasks.environments).items()},
            shares_logprobs=config.swarm.logprobs,
            max_prompt_length=models.longest_prompt,
        )

    def _make_encoder(self, models: Models) -> TextEncoder:
        return TextEncoder(
            tokenizer=models.policy.tokenizer,
            encode_prompt=self._solver.encode_prompt,
            end_token_id=models.policy.end_ids[0],
            max_prompt_length=models.prompt_tokens,
            max_completion_length=self._config.rollout.max_new_tokens,
            claims_of=models.policy.public_name if self._config.swarm.logprobs else "",
        )

    def _make_measuring(self, models: Models, workers: Workers, held_out: Mapping[str, Task]) -> Measuring:
        config = self._config
        probe = make_probe(
            config,
            models.policy,
            held_out,
            probes.NODE,
            workers,
            self._monitor.progress,
            engine=models.engine,
            sample=models.sample,
            rows=config.swarm.num_local * config.rollout.num_generations,
            turn=lambda: models.policy_lock,
        )
        file = ReportFile(Path(config.tracking.log_dir).expanduser() / probes.NODE.file, "round")
        return Measuring(probe, file, self._checkpoints, self._folder, self._console, self._status)

    def _make_learner(self, models: Models, encoder: TextEncoder) -> GrpoLearner:
        return GrpoLearner(
            models.policy.model,
            encoder,
            models.train,
            temperature=self._config.rollout.temperature,
            max_completion_length=encoder.max_completion_length,
            reference_model=models.reference,
            engine=models.engine,
            progress=self._monitor.progress,
            before_update=self._saver.before_update,
        )

    def _start_lists(self, stack: ExitStack) -> list[HubTaskIds]:
        """Says which tasks of peers are trained on. Returns the lists that this takes, which a thread completes."""
        swarm, tasks = self._config.swarm, self._config.tasks
        if swarm.network is Network.none:
            return []
        self._rule = rule(swarm.tasks, tasks)
        self._console.line(f"tasks of peers: {self._rule}")
        lists = task_lists(tasks, self._folder) if swarm.tasks is PeerTasks.known else []
        if lists:
            lister = Lister(lists)
            stack.callback(lister.stop)
            lister.start()
        return lists

    def _note_push(self, pushed: str, trouble: str) -> None:
        self._status.update(pushed=pushed, push_trouble=trouble)

    def run(self) -> None:
        """Plays `config.rounds` rounds, or without end if it is 0. A KeyboardInterrupt may end it anywhere without
        loss."""
        played = 0
        while self._config.rounds == 0 or played < self._config.rounds:
            self._measuring.measure(self._last.number if self._last else 0, self._learner.policy_version)
            self._status.stage(WAITING)
            told = self._rule, self._wanted.progress()
            round_id = self._ledger.next_round(self._last)
            self._status.update(round=round_id.number, peer_tasks="; ".join(filter(None, told)))
            self._services.begin(round_id.number)
            report = self._services.report(run_round(round_id, self._stages, self._config.swarm.num_local))
            self._offer(report)
            self._monitor.report(report)
            self._trackers.log(report.round, round_metrics(report, self._measuring.learning))
            self._last = round_id
            played += 1

    def finish(self) -> None:
        """Saves the last finished round if it is not saved yet, and shows the results of this run and how to continue.
        Raises CheckpointError: the round cannot be written."""
        if self._saver.is_behind:
            self._status.stage(SAVING)
            self._console.line("saving the last finished round")
        self._saver.close()
        total = self._ledger.total_reward()
        self._console.line(self._monitor.summary())
        self._console.line(
            f"total reward {total:+.2f} in all rounds so far; state in {self._folder}, reports in "
            f"{self._config.tracking.log_dir}/rounds.jsonl ({checkout.command('report', self._folder)} shows them); "
            "start again with the same settings to continue"
        )

    def _resume(self) -> RoundId | None:
        """Restores the newest undamaged checkpoint and returns its round; None if there is no checkpoint."""
        found = self._checkpoints.load_latest()
        self._measuring.resume(found.round if found is not None else 0)
        if found is None:
            self._monitor.resume(None)
            self._console.line(f"state: new in {self._folder}")
            return None
        checkpoint.restore_weights(self._learner.weights(), found.learner["weights"])
        self._learner.load_state_dict(found.learner["learner"])
        self._tasks.load_state_dict(found.node["tasks"])
        self._solver.load_state_dict(found.node["solver"])
        self._replaying.load_state_dict(found.node.get("replay", {}))  # 0.1.0 saved none
        torch.set_rng_state(found.node["torch_rng"])
        self._monitor.resume(RoundReport(**found.node["report"]))
        self._console.line(f"state: continuing in {self._folder} after round {found.round}")
        return RoundId(number=found.round)

    def _offer(self, report: RoundReport) -> None:
        """Gives a finished round to the saver, which writes it now or later."""
        state.bind_settings(self._folder, self._settings)
        if self._publisher is not None:
            self._publisher.note(report)
        finished = FinishedRound(
            round=report.round,
            policy_version=self._learner.policy_version,
            learner={"weights": self._learner.weights(), "learner": self._learner.state_dict()},
            node={
                "tasks": self._tasks.state_dict(),
                "solver": self._solver.state_dict(),
                "replay": self._replaying.state_dict(),
                "torch_rng": torch.get_rng_state(),
                "report": dataclasses.asdict(report),
            },
        )
        self._saver.offer(finished)

    def _saved(self, number: int, checkpoint: Path) -> None:
        kept = self._measuring.keep_best()
        if self._publisher is not None:
            self._publisher.offer(number, checkpoint, self._checkpoints.best if kept else None)

"""A proposer node: builds its parts from the configuration, and starts them in order."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from codezero import __version__
from codezero.build import CommonParts, run
from codezero.config import Network, NodeConfig, ProposerBackend, Reference
from codezero.errors import StateError, told_as
from codezero.llm.load import LoadedModel
from codezero.observe.batches import PROPOSED, BatchMonitor
from codezero.observe.roles import PROPOSER
from codezero.observe.status import SAVING
from codezero.observe.trackers.metrics import batch_metrics
from codezero.policy import writer
from codezero.prompts import proposer as prompt
from codezero.proposals import BatchReport, Proposal
from codezero.proposer import build
from codezero.proposer.batch import ProposerStages, run_batch
from codezero.proposer.checker import Checker
from codezero.proposer.difficulty import difficulty
from codezero.proposer.duplicates import Seen
from codezero.proposer.feedback import FeedbackBook
from codezero.proposer.learn import ProposalLearner
from codezero.proposer.models import LocalModel, Model, ServedModel
from codezero.proposer.reference import ReferenceCheck
from codezero.proposer.write import Writer
from codezero.proposer.written_tests import WrittenTests
from codezero.runtime import state
from codezero.runtime.files import append
from codezero.tasks.build import local_questions
from codezero.train.checkpoint import CheckpointStore
from codezero.train.learner import GrpoLearner
from codezero.types import TaskOrigin
from codezero.workers import Workers

UNTRAINED = -1
"""The policy version of what a run without training saves: no weights of a run that trains are linked to it."""
TAIL_BYTES = 1 << 22
"""The end of `--out` that can hold the problems of the last batch."""
MAX_SHOWN_AGAIN = 32
"""The number of own proposals that a restarted proposer publishes again and takes feedback on."""


def run_proposer(config: NodeConfig, out: Path | None) -> int:
    """Runs a proposer until it is stopped or has written `proposer.batches` batches; returns the exit code. `out` gets
    every valid problem as a line of JSON.

    Raises CodezeroError: it cannot start or continue.
    """
    return run(config, PROPOSER, lambda parts: ProposerNode(config, out, parts))


class ProposerNode:
    """The parts of a proposer; their stack closes them in reverse order."""

    def __init__(self, config: NodeConfig, out: Path | None, parts: CommonParts) -> None:
        self._config, self._out, self._console = config, out, parts.console
        self._folder, self._status, membership = parts.folder, parts.status, parts.membership
        self._console.line(f"codezero {__version__}: proposer")
        if out is not None:
            with _writing(out):  # now, and not only after a batch, whose problems are published then
                if out.exists() and not out.is_file():
                    raise StateError(f"{out} is not a file, to which problems can be added: give another --out")
                out.open("ab").close()
        self._solvers = membership.solvers()
        self._patience_s = 0.0 if config.swarm.network is Network.none else config.proposer.patience_s
        self._checkpoints = CheckpointStore(self._folder / "checkpoints")
        self._monitor = BatchMonitor(PROPOSED, parts.log_dir, self._console, self._status)

        model, self._weights = self._make_model()
        self._bound = build.bound_settings(config, model.name)
        self._status.update(model=model.name)
        self._writer = Writer(model, config.proposer, seed=config.seed)
        workers = parts.stack.enter_context(Workers(1))
        name = model.name if self._weights is None else self._weights.public_name
        self._checker = self._make_checker(membership.peer_id, name, workers)
        self._tests: WrittenTests | None = None
        if config.proposer.writer and self._weights is not None:
            self._tests = build.make_tests(config, self._weights, workers, self._monitor.progress)
        self._difficulty, self._feedback = difficulty(config.proposer), FeedbackBook()
        self._learner: ProposalLearner | None = None
        self._engine: GrpoLearner | None = None
        if config.proposer.train and self._weights is not None:
            self._engine = writer.make_learner(
                self._weights,
                build.train_config(config.proposer),
                max_new_tokens=config.proposer.max_new_tokens,
                temperature=config.proposer.temperature,
                progress=self._monitor.progress,
            )
            self._learner = ProposalLearner(self._engine)
        self._saved_training_state: tuple[Mapping[str, Any], Mapping[str, Any]] = {}, {}
        """The saved state of engine and learner of an earlier run, which a run that does not train saves again."""
        self._stages = ProposerStages(
            difficulty=self._difficulty,
            writer=self._writer,
            checker=self._checker,
            solvers=self._solvers,
            feedback=self._feedback,
            learner=self._learner,
            tests=self._tests,
            on_stage=self._status.stage,
        )
        self._published: list[Proposal] = []
        """The latest proposals, the newest last."""
        self._batch = self._resume()
        self._trackers = parts.trackers(config, self._batch or None)

    def run(self) -> None:
        """Writes batches until `proposer.batches` are done. A KeyboardInterrupt may end it anywhere without loss."""
        config, written = self._config.proposer, 0
        while config.batches == 0 or written < config.batches:
            self._batch += 1
            self._status.update(round=self._batch)
            report, valid = run_batch(self._batch, self._stages, config.batch_size, self._patience_s)
            self._published = [*self._published, *valid][-MAX_SHOWN_AGAIN:]
            if self._out is not None:
                _append(self._out, valid)
            self._status.stage(SAVING)
            self._save(report)
            self._monitor.report(report)
            self._status.update(network=report.network)
            self._trackers.log(report.batch, batch_metrics(report))
            written += 1

    def finish(self) -> None:
        """Prints the run's summary and how to continue."""
        self._console.line(self._monitor.summary())
        where = f"problems in {self._out}, " if self._out is not None else ""
        self._console.line(
            f"{where}state in {self._folder}, reports in {self._config.tracking.log_dir}/proposals.jsonl; start again "
            "with the same settings to continue"
        )

    def _make_model(self) -> tuple[Model, LoadedModel | None]:
        """Returns the model, and its weights if they are in this process."""
        config = self._config
        if build.choose_backend(config.proposer) is ProposerBackend.openai:
            served = ServedModel(config.proposer)
            self._console.line(f"proposer: {served.name} at {config.proposer.url}")
            return served, None
        weights = build.load(config, self._console)
        own, progress = partial(build.own_weights, config, weights), self._monitor.progress
        return LocalModel(weights, config.proposer, seed=config.seed, progress=progress, weights=own), weights

    def _make_checker(self, peer_id: str, model_id: str, workers: Workers) -> Checker:
        config = self._config.proposer
        reference = None
        if config.reference is not Reference.none:
            reference = ReferenceCheck(config.reference, workers)
        known = [*local_questions(self._config.tasks), prompt.EXAMPLE.question]  # small models copy the example
        seen = Seen(remembered=config.remembered, similarity=config.similarity, known=known)
        return Checker(peer_id=peer_id, model_id=model_id, seen=seen, reference=reference, workers=workers)

    def _resume(self) -> int:
        """Restores the newest whole checkpoint; returns the number of its batch, 0 on a first start."""
        found = self._checkpoints.load_latest()
        if found is None:
            self._monitor.resume(None)
            self._console.line(f"state: new in {self._folder}")
            return 0
        kept = found.node
        self._writer.load_state_dict(kept["writer"])
        self._checker.load_state_dict(kept["checker"])
        self._difficulty.load_state_dict(kept["difficulty"])
        self._feedback.load_state_dict(kept["feedback"])
        self._published = [Proposal(**values) for values in kept["published"]]
        self._solvers.remember(self._published)
        if self._learner is None or self._engine is None:
            self._saved_training_state = found.learner, kept["learner"]
        elif found.learner:
            writer.restore(self._engine, found.learner)
            self._learner.load_state_dict(kept["learner"])
        if self._tests is not None and kept.get("tests"):  # the last batch may have had no test writer
            self._tests.load_state_dict(kept["tests"])
        last = msgspec.convert(kept["report"], BatchReport)
        self._monitor.resume(last)
        self._status.update(network=last.network)
        self._console.line(f"state: continuing in {self._folder} after batch {found.round}")
        return found.round

    def _save(self, report: BatchReport) -> None:
        state.bind_settings(self._folder, self._bound)
        (engine, learner), version = self._saved_training_state, UNTRAINED
        if self._learner is not None and self._engine is not None:
            engine, learner = writer.saved(self._engine), self._learner.state_dict()
            version = self._engine.policy_version
        self._checkpoints.save(
            report.batch,
            version,
            engine,
            {
                "writer": self._writer.state_dict(),
                "checker": self._checker.state_dict(),
                "difficulty": self._difficulty.state_dict(),
                "feedback": self._feedback.state_dict(),
                "learner": learner,
                "tests": self._tests.state_dict() if self._tests is not None else {},
                "published": [dataclasses.asdict(proposal) for proposal in self._published],
                "report": dataclasses.asdict(report),
            },
        )


def _append(path: Path, proposals: Sequence[Proposal]) -> None:
    """Appends proposals as JSON lines, without those that it has of a batch that is played again. Raises StateError:
    the file cannot be read or written."""
    lines = [
        {
            "id": proposal.proposal_id,
            "source": TaskOrigin.PROPOSER.value,
            "difficulty": proposal.difficulty,
            "question": proposal.question,
            "tests": proposal.tests,
            "model": proposal.model_id,
            "raw": proposal.raw,
        }
        for proposal in proposals
    ]
    with _writing(path):
        has = b""
        if path.exists():
            with path.open("rb") as file:
                file.seek(max(0, path.stat().st_size - TAIL_BYTES))
                has = file.read().rpartition(b"\n")[0]  # without a line that a kill has left torn
        new = [line for line in lines if f'"id": "{line["id"]}"'.encode() not in has]
        append(path, "".join(json.dumps(line) + "\n" for line in new).encode(), sync=True)


def _writing(path: Path) -> AbstractContextManager[None]:
    """Returns a context that raises StateError if the file cannot be read or written in it."""
    return told_as(StateError, f"cannot write {path}", "free space or give another --out")

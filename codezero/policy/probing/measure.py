"""Measures a solver between its rounds or batches: takes probes, says what they show, and keeps the best checkpoint."""

from __future__ import annotations

import logging
from pathlib import Path

from codezero.config import checkout
from codezero.evaluate.gain import Direction
from codezero.observe.probes import Learning
from codezero.observe.report_file import ReportFile
from codezero.observe.status import PROBING, StatusFile
from codezero.policy.probing.probe import Probe, without_later
from codezero.runtime import state
from codezero.runtime.console import Console
from codezero.train.checkpoint import CheckpointStore

logger = logging.getLogger(__name__)


class Measuring:
    """The measuring of one solver; a KeyboardInterrupt may end it anywhere, and loses at most the running probe."""

    def __init__(
        self,
        probe: Probe | None,
        file: ReportFile,
        checkpoints: CheckpointStore,
        folder: Path,
        console: Console,
        status: StatusFile,
    ) -> None:
        """`probe` is None if the solver is not measured; `file` may then have probes of earlier runs. `folder` is the
        state folder, that of `checkpoints`."""
        self._probe, self._file, self._checkpoints, self._folder = probe, file, checkpoints, folder
        self._console, self._status = console, status
        self._has_fallen = self._is_best = False

    @property
    def learning(self) -> Learning | None:
        """The result of the probes up to the last whole pass; None if the solver is not measured."""
        return self._probe.learning if self._probe is not None else None

    def resume(self, last: int) -> None:
        """Restores what is known up to this round or batch, 0 for a new start. Raises StateError: the file of probes
        cannot be written."""
        if self._probe is None:
            without_later(self._file, last)
            return
        self._probe.resume(last)
        self._is_best = self._is_new_best(self._probe.learning)  # a kill may have come before a checkpoint was kept

    def measure(self, last: int, policy_version: int) -> None:
        """Takes probes while any is due, after this round or batch. Raises StateError: they cannot be written."""
        if self._probe is None or not self._probe.is_due:
            return
        self._status.stage(PROBING)
        if not self._probe.reports:
            self._console.line(
                "probe: the model is measured before it learns, for ten minutes at most; probe.share=0 leaves that out"
            )
        while self._probe.is_due:
            if self._probe.take(last, policy_version):
                self._tell(self._probe.learning)

    def _tell(self, found: Learning) -> None:
        """Shows the result of a whole pass. If it is the best so far, `keep_best` is to keep a checkpoint."""
        self._console.line(f"probe: {found.text}")
        self._is_best = self._is_new_best(found)
        fall = found.gain.fall if found.gain is not None else None
        if fall is not None and not self._has_fallen:
            measures = checkout.command("eval", "--dataset", "mbpp", "--checkpoint", self._folder / "best")
            kept = (
                f"{self._folder}/checkpoints/best has the best weights. Once the node is stopped, {measures} measures "
                "them"
            )
            logger.warning(
                "the solver has got worse beyond chance. Check train.learning_rate and train.lora_learning_rate: "
                "lower ones may help. %s",
                kept if fall.since else "The weights at the start were better",
            )
        self._has_fallen = fall is not None

    def _is_new_best(self, found: Learning) -> bool:
        """Returns True if the last pass is the best one, and no checkpoint is kept for it yet. One from before the
        first pass, when probes were of another kind, gives way only to a rise: nothing compares it with these."""
        if found.best is None or found.best != len(found.passes) - 1:
            return False
        kept, last = state.best_round(self._folder), found.passes[found.best].last_round
        is_rise = found.direction is Direction.RISING
        return kept is None or (kept < last and (is_rise or kept >= found.passes[0].last_round))

    def keep_best(self) -> bool:
        """Keeps the newest checkpoint as the best if the probes say so. Returns whether it is kept now."""
        kept = self._is_best and self._checkpoints.keep_best()
        self._is_best = self._is_best and not kept
        return kept

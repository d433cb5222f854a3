"""One node: the only place that picks classes from the configuration, and that knows the order of start and stop."""

from __future__ import annotations

import dataclasses
import logging
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch

from codezero import __version__
from codezero.config import NodeConfig, TrainMethod
from codezero.errors import StateError
from codezero.evaluate.evaluator import FrozenEvaluator
from codezero.evaluate.judge import TransformersJudge
from codezero.ledger.local import LocalLedger
from codezero.llm import device as devices
from codezero.llm import store
from codezero.llm.load import LoadedModel, load_model
from codezero.loop import Stages, run_round
from codezero.network.solo import SoloGossip
from codezero.observe import logs
from codezero.observe.console import Console
from codezero.observe.monitor import RoundMonitor, report_from_dict
from codezero.rollout.solver import PolicySolver
from codezero.state import locked_state
from codezero.tasks.build import make_task_source
from codezero.train import method
from codezero.train.checkpoint import Checkpoint, CheckpointStore
from codezero.train.learner import GrpoLearner
from codezero.types import RoundId, RoundReport

logger = logging.getLogger(__name__)

PEER_ID = "local"
"""What a node without a network calls itself."""


class Node:
    """A node from its configuration to its last round."""

    def __init__(self, config: NodeConfig, console: Console) -> None:
        self._config, self._console = config, console
        self._stack = ExitStack()
        self._last: RoundId | None = None

    def __enter__(self) -> Node:
        """Starts everything a round needs, and takes up saved state."""
        with ExitStack() as stack:
            self._start(stack)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

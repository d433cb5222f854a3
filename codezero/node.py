"""One node: the only place that picks classes from the configuration, and that knows the order of start and stop."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

import torch

from codezero import __version__
from codezero.config import NodeConfig
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
from codezero.stop import stop_on_signals
from codezero.tasks.build import make_task_source
from codezero.train import method
from codezero.train.checkpoint import Checkpoint, CheckpointStore
from codezero.train.learner import GrpoLearner
from codezero.types import RoundId, RoundReport

logger = logging.getLogger(__name__)

PEER_ID = "local"
"""What a node without a network calls itself."""
SMALL_JUDGE, LARGE_JUDGE = "Qwen2.5-Coder-0.5B-Instruct", "Qwen2.5-Coder-1.5B-Instruct"


def run_node(config: NodeConfig) -> int:
    """Runs a node until it is stopped or has played `config.rounds` rounds; returns the exit code.

    Raises CodezeroError: whatever keeps it from starting or going on, in one line.
    """
    console = Console()
    with stop_on_signals(console), Node(config, console) as node:
        try:
            node.run()
        except KeyboardInterrupt:
            logger.info("stopped by a signal")
        node.finish()
    return 0

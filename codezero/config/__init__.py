"""The settings of a node: one dataclass per section, which checks its values when it is made.

`configs/` has the shipped values, which `load.load_config()` reads. Importing this package must not import torch.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from codezero.config.check import require
from codezero.config.proposer import DifficultyPolicy, ProposerBackend, ProposerConfig, Reference
from codezero.config.reward import Backend, EvaluatorConfig, RewardConfig, VerdictMode
from codezero.config.services import JudgeConfig, MarketConfig, PushConfig, PushedCheckpoint
from codezero.config.solver import (
    BuiltinConfig,
    DatasetConfig,
    Device,
    Dtype,
    ModelConfig,
    ProbeConfig,
    ProposalsConfig,
    RolloutConfig,
    RolloutEngine,
    TaskDraw,
    TasksConfig,
    Transfer,
)
from codezero.config.swarm import (
    MAX_GENERATIONS,
    PASSPHRASE_ENV,
    LedgerConfig,
    LedgerKind,
    Network,
    PeerTasks,
    Reach,
    Strategy,
    SwarmConfig,
    Vote,
    Weighting,
)
from codezero.config.tracking import LogFormat, TerminalView, TrackingConfig, Wandb
from codezero.config.training import Importance, LossType, Moments, RewardScale, TrainConfig, TrainMethod
from codezero.config.verifier import VerifierConfig

__all__ = [
    "PASSPHRASE_ENV",
    "Backend",
    "BuiltinConfig",
    "DatasetConfig",
    "Device",
    "DifficultyPolicy",
    "Dtype",
    "EvaluatorConfig",
    "Importance",
    "JudgeConfig",
    "LedgerConfig",
    "LedgerKind",
    "LogFormat",
    "LossType",
    "MarketConfig",
    "ModelConfig",
    "Moments",
    "Network",
    "NodeConfig",
    "PeerTasks",
    "ProbeConfig",
    "ProposalsConfig",
    "ProposerBackend",
    "ProposerConfig",
    "PushConfig",
    "PushedCheckpoint",
    "Reach",
    "Reference",
    "RewardConfig",
    "RewardScale",
    "RolloutConfig",
    "RolloutEngine",
    "Strategy",
    "SwarmConfig",
    "TaskDraw",
    "TasksConfig",
    "TerminalView",
    "TrackingConfig",
    "TrainConfig",
    "TrainMethod",
    "Transfer",
    "VerdictMode",
    "VerifierConfig",
    "Vote",
    "Wandb",
    "Weighting",
]


@dataclass
class NodeConfig:
    seed: int = 0
    """Seed of task order, sampling and adapters; the same seed and state give the same rounds."""
    rounds: int = 0
    """Stop after this many rounds; 0 runs until stopped."""
    state_dir: str = "state"
    """Folder of checkpoints and the local ledger; only one node at a time can use it."""
    save_every_s: float = 120.0
    """Seconds between checkpoints, which are written during the next round, and at a stop: a kill loses at most so many
    seconds of finished rounds, or one round if that takes longer. 0 saves every round."""
    model: ModelConfig = field(default_factory=ModelConfig)
    rollout: RolloutConfig = field(default_factory=RolloutConfig)
    tasks: TasksConfig = field(default_factory=TasksConfig)
    evaluator: EvaluatorConfig = field(default_factory=EvaluatorConfig)
    reward: RewardConfig = field(default_factory=RewardConfig)
    train: TrainConfig = field(default_factory=TrainConfig)
    probe: ProbeConfig = field(default_factory=ProbeConfig)
    proposer: ProposerConfig = field(default_factory=ProposerConfig)
    verifier: VerifierConfig = field(default_factory=VerifierConfig)
    swarm: SwarmConfig = field(default_factory=SwarmConfig)
    ledger: LedgerConfig = field(default_factory=LedgerConfig)
    judge: JudgeConfig = field(default_factory=JudgeConfig)
    market: MarketConfig = field(default_factory=MarketConfig)
    push: PushConfig = field(default_factory=PushConfig)
    tracking: TrackingConfig = field(default_factory=TrackingConfig)

    def __post_init__(self) -> None:
        require(0 <= self.seed < 2**63, "seed", self.seed, "use a number from 0 to 2^63 - 1")
        require(self.state_dir != "", "state_dir", "''", "use state, or . for the current folder")
        require(self.save_every_s >= 0, "save_every_s", self.save_every_s, "use 0 to save every round")
        require(self.rounds >= 0, "rounds", self.rounds, "use 0 to run until stopped")
        full = self.rollout.engine is RolloutEngine.llama_cpp and self.train.method is TrainMethod.full
        require(
            not full,
            "rollout.engine",
            "llama_cpp",
            "it samples with adapters over frozen weights: use train.method=lora too, or rollout.engine=transformers",
        )
        can_be_sent = self.swarm.network is Network.none or self.rollout.num_generations <= MAX_GENERATIONS
        require(
            can_be_sent,
            "rollout.num_generations",
            self.rollout.num_generations,
            f"nodes send each other at most {MAX_GENERATIONS} attempts of a group: use so many, or swarm=alone",
        )
        require(
            not (self.tasks.modules and self.swarm.network is Network.genrl),
            "tasks.modules",
            self.tasks.modules,
            "GenRL's format has no environments: use swarm=native or swarm=alone",
        )
        drawn = self.tasks.mbpp.weight > 0 and self.tasks.mbpp.split == "validation"
        require(
            not (drawn and self.probe.share),
            "tasks.mbpp.split",
            "validation",
            "the node measures itself on these problems: use split train, or probe.share=0",
        )
        pair = self.verifier.train_solver
        alone = "the solver of a test writer (verifier.train_solver) learns from new groups alone: leave it out"
        require(not (pair and self.train.replay), "train.replay", self.train.replay, alone)
        require(
            not (pair and self.train.method is TrainMethod.full),
            "train.method",
            "full",
            "the solver of a test writer (verifier.train_solver) has adapters: use train.method=lora",
        )
        pushes_best = self.push.enabled and self.push.checkpoint is PushedCheckpoint.best
        require(
            not pushes_best or self.probe.share > 0,
            "push.checkpoint",
            "best",
            "without probes no checkpoint is known to be the best: use probe.share=0.05, or push.checkpoint=newest",
        )
        on_chain = not self.market.enabled or self.ledger.kind is not LedgerKind.local
        require(
            on_chain, "market.enabled", "true", "bets are made on a chain, so use ledger=wallet or ledger=modal too"
        )

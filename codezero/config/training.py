"""Settings of the update."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from codezero.config.check import require

MOST_RANK = 512
"""The largest rank of adapters, as rollout servers take them."""


class TrainMethod(Enum):
    full = "full"
    lora = "lora"


class LossType(Enum):
    grpo = "grpo"
    dr_grpo = "dr_grpo"
    dapo = "dapo"
    bnpo = "bnpo"
    cispo = "cispo"
    m2po = "m2po"


class RewardScale(Enum):
    group = "group"
    batch = "batch"
    none = "none"


class Moments(Enum):
    bfloat16 = "bfloat16"
    float32 = "float32"


class Importance(Enum):
    none = "none"
    token = "token"
    sequence = "sequence"


@dataclass
class TrainConfig:
    method: TrainMethod = TrainMethod.lora
    """The trained weights: full trains all, lora small adapters."""
    loss_type: LossType = LossType.dr_grpo
    """The loss, with its average over tokens: grpo, dr_grpo, dapo, bnpo or cispo (names as in TRL); or m2po, for
    attempts of earlier policies (docs/learning.md)."""
    epsilon: float = 0.2
    """Lower clip range of the probability ratio; not used by cispo and m2po."""
    epsilon_high: float = 0.28
    """Upper clip range of the probability ratio; not used by cispo and m2po."""
    epsilon_max: float = 5.0
    """For cispo: the upper bound of the probability ratio itself."""
    m2_threshold: float = 0.04
    """For m2po: the bound tau of the second moment, the mean squared log ratio of the tokens that a trust region
    concerns. 0.04 is the paper's, AstraFlow takes 0.01 for code."""
    beta: float = 0.0
    """Weight of the KL penalty against the starting weights; 0 keeps no reference model."""
    learning_rate: float = 1e-6
    """Adam's step size for full fine-tuning; held constant."""
    lora_learning_rate: float = 1e-4
    """Adam's step size for LoRA, held constant."""
    weight_decay: float = 0.0
    """Decoupled weight decay; 0 makes AdamW plain Adam."""
    moments: Moments = Moments.bfloat16
    """Precision of Adam's two moments; bfloat16, rounded stochastically, saves 4 bytes per parameter."""
    masters: bool = True
    """Keep a float32 copy of each bfloat16 weight. Without it updates are rounded stochastically into the weight, and
    gradients add up in bfloat16: 8 bytes per parameter, not 14. Turned off where train.method=full does not fit
    otherwise; of no effect on weights in float32."""
    max_grad_norm: float = 1.0
    """The largest global norm of gradients; larger ones are scaled down to it."""
    scale_rewards: RewardScale = RewardScale.none
    """The standard deviation that centred rewards are divided by: of the group, of the batch, or none."""
    min_advantage: float = 0.1
    """The smallest advantage, as a share of the round's largest by magnitude; a smaller one counts as 0. Such attempts
    are not run through the model, which saves time and changes the gradient slightly."""
    importance: Importance = Importance.token
    """The weights of own rollouts, learner's probability / sampler's: by token, by sequence or none (TRL's
    token_truncate and sequence_truncate). They have no effect if this process samples, which computes alike."""
    importance_cap: float = 3.0
    """The largest such weight (TRL's vllm_importance_sampling_clip_max), and the largest ratio of new to old
    probability of a token of an attempt below the mean (TRL's delta)."""
    max_trained: int = 4
    """The most attempts of a group to train on, those whose rewards vary most; 0 takes all. All are published."""
    replay: int = 0
    """Own past groups in each update, drawn from the mixed ones of the last eight updates; 0 takes none. They take time
    to learn from, but not to sample and judge (docs/learning.md)."""
    num_iterations: int = 1
    """Passes over a round's groups."""
    minibatch_size: int = 0
    """Sequences per optimizer step; 0 takes the whole round in one step."""
    micro_batch_size: int = 0
    """Sequences per forward and backward pass; 0 chooses by device, fewer if memory is short. It changes memory, not
    the result."""
    gradient_checkpointing: bool = False
    """Recompute activations in the backward pass: less memory, about a third more time. It is always done when training
    does not fit otherwise."""
    lora_r: int = 16
    """Rank of the LoRA adapters, at most 512."""
    lora_alpha: int = 32
    """LoRA scale; the update is multiplied by lora_alpha / lora_r."""
    memory_limit_gib: float = 0.0
    """Memory that the node may use by its plan, in GiB; 0 takes the memory that is free at the start."""

    def __post_init__(self) -> None:
        require(self.epsilon >= 0, "train.epsilon", self.epsilon, "use 0.2 unless you know better")
        require(self.epsilon_high >= 0, "train.epsilon_high", self.epsilon_high, "use 0.28 unless you know better")
        require(self.epsilon_max >= 1, "train.epsilon_max", self.epsilon_max, "use 5: below 1 it cuts every token")
        require(self.m2_threshold > 0, "train.m2_threshold", self.m2_threshold, "use 0.04: at 0 it cuts every token")
        require(self.beta >= 0, "train.beta", self.beta, "use 0 for no KL penalty")
        require(self.learning_rate > 0, "train.learning_rate", self.learning_rate, "use a positive step such as 1e-6")
        require(self.lora_learning_rate > 0, "train.lora_learning_rate", self.lora_learning_rate, "use 1e-4")
        require(self.weight_decay >= 0, "train.weight_decay", self.weight_decay, "use 0 for none")
        require(self.max_grad_norm > 0, "train.max_grad_norm", self.max_grad_norm, "use a positive norm such as 1.0")
        require(0 <= self.min_advantage < 1, "train.min_advantage", self.min_advantage, "use a share below 1, or 0")
        require(self.importance_cap >= 1, "train.importance_cap", self.importance_cap, "use 3.0 unless you know better")
        require(self.max_trained == 0 or self.max_trained >= 2, "train.max_trained", self.max_trained, "use 0 for all")
        require(self.replay >= 0, "train.replay", self.replay, "use 0 to train on new groups alone")
        require(self.num_iterations >= 1, "train.num_iterations", self.num_iterations, "use 1 or more")
        require(self.minibatch_size >= 0, "train.minibatch_size", self.minibatch_size, "use 0 for one step a round")
        require(self.micro_batch_size >= 0, "train.micro_batch_size", self.micro_batch_size, "use 0 to choose for you")
        require(1 <= self.lora_r <= MOST_RANK, "train.lora_r", self.lora_r, f"use a rank up to {MOST_RANK}, such as 16")
        require(self.lora_alpha >= 1, "train.lora_alpha", self.lora_alpha, "use twice the rank, such as 32")
        require(self.memory_limit_gib >= 0, "train.memory_limit_gib", self.memory_limit_gib, "use 0 for what is free")

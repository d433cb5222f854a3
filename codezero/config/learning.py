"""Settings of a node's learning: model, rollouts, tasks, measurement, update."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from codezero.config.check import require


class Device(Enum):
    auto = "auto"
    cpu = "cpu"
    cuda = "cuda"
    mps = "mps"


class Dtype(Enum):
    auto = "auto"
    float32 = "float32"
    bfloat16 = "bfloat16"


class TrainMethod(Enum):
    auto = "auto"
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


class RolloutEngine(Enum):
    auto = "auto"
    transformers = "transformers"
    continuous = "continuous"
    llama_cpp = "llama_cpp"
    vllm = "vllm"
    remote = "remote"


LOGPROBS_AFTER = (RolloutEngine.continuous, RolloutEngine.vllm)
"""The engines whose log-probs are those after top-p and top-k."""


class Transfer(Enum):
    auto = "auto"
    full = "full"


class Importance(Enum):
    none = "none"
    token = "token"
    sequence = "sequence"


class TaskDraw(Enum):
    informative = "informative"
    uniform = "uniform"


@dataclass
class ModelConfig:
    name: str = "Qwen2.5-Coder-0.5B-Instruct"
    """The solver's weights: a catalogue name (`codezero models list`), a hub id, or a local folder."""
    device: Device = Device.auto
    """The device that models run on; auto prefers cuda, then mps, then cpu."""
    dtype: Dtype = Dtype.auto
    """Precision of weights and arithmetic; auto is bfloat16 on NVIDIA GPUs that compute in it (Ampere and newer), else
    float32."""
    cache_dir: str = "~/.cache/codezero"
    """The folder of prepared models."""
    threads: int = 0
    """CPU threads for arithmetic; 0 takes one per physical core that the node may use."""

    def __post_init__(self) -> None:
        require(self.name.strip() != "", "model.name", self.name, "give a catalogue name, a hub id or a folder")
        require(self.threads >= 0, "model.threads", self.threads, "use 0 for one per core")


@dataclass
class RolloutConfig:
    engine: RolloutEngine = RolloutEngine.auto
    """The sampler: transformers in this process; continuous, which is transformers' continuous batching, for GPUs;
    auto, which is continuous on an NVIDIA GPU, and transformers elsewhere, if continuous fails, and with top-p or
    top-k; llama_cpp in a process of its own, with a quantised copy of the base and the adapter (on a CPU with
    train.method=lora; needs the extra llama-cpp, docs/launch-script.md); vllm in a server of its own that sleeps while
    the node learns (on an NVIDIA GPU, where it was never run; needs the extra vllm); or remote, the servers below."""
    servers: list[str] = field(default_factory=list)
    """With engine=remote: the files that `codezero rollout serve` wrote (docs/rollout-service.md). If no server
    answers, the node samples by itself."""
    transfer: Transfer = Transfer.auto
    """With engine=remote: how weights that are trained in full get to the servers: auto sends what has changed where it
    can, full all of them each time. Adapters are always sent whole."""
    max_staleness: int = 1
    """With engine=remote: the most updates between the weights that attempts are sampled with and those that learn from
    them. The servers sample so many rounds ahead, while the node judges and learns; 0 waits for them."""
    num_generations: int = 4
    """Attempts per task, G: the group that advantages are relative to."""
    max_new_tokens: int = 256
    """The longest completion in tokens; a longer one is cut off and marked as such."""
    temperature: float = 1.0
    """Sampling temperature; training divides logits by the same value."""
    top_p: float = 1.0
    """Nucleus sampling mass; 1.0 samples from the whole distribution."""
    top_k: int = 0
    """Number of most likely tokens that are sampled from; 0 takes all."""

    def __post_init__(self) -> None:
        require(
            self.num_generations >= 2,
            "rollout.num_generations",
            self.num_generations,
            "GRPO compares attempts at one task, so use 2 or more",
        )
        remote = self.engine is RolloutEngine.remote
        require(
            bool(self.servers) == remote,
            "rollout.servers",
            self.servers,
            "with rollout.engine=remote give the file of a rollout server or more, and none with another engine",
        )
        require(0 <= self.max_staleness <= 4, "rollout.max_staleness", self.max_staleness, "use 1, or 0 to 4")
        require(self.max_new_tokens >= 1, "rollout.max_new_tokens", self.max_new_tokens, "use 1 or more")
        require(self.temperature > 0, "rollout.temperature", self.temperature, "use a value above 0, such as 1.0")
        require(0 < self.top_p <= 1, "rollout.top_p", self.top_p, "use a value in (0, 1]")
        require(self.top_k >= 0, "rollout.top_k", self.top_k, "use 0 to keep all tokens")
        require(
            self.engine not in LOGPROBS_AFTER or self.keeps_all,
            "rollout.engine",
            self.engine.value,
            "its log-probs are those after top-p and top-k: use rollout.top_p=1 and rollout.top_k=0, or "
            "rollout.engine=transformers",
        )

    @property
    def keeps_all(self) -> bool:
        """True if top-p and top-k leave no token out."""
        return self.top_p == 1 and self.top_k == 0

    def engine_on(self, device_type: str) -> RolloutEngine:
        """Returns the engine on a kind of device, which is never auto."""
        if self.engine is not RolloutEngine.auto:
            return self.engine
        continuous = device_type == "cuda" and self.keeps_all
        return RolloutEngine.continuous if continuous else RolloutEngine.transformers


@dataclass
class DatasetConfig:
    weight: float = 0.0
    """Share of this source in the mixture, relative to the others; 0 leaves it out."""
    path: str | None = None
    """A local .jsonl or .parquet file in the dataset's own schema; null streams it from the hub."""
    split: str = "train"
    """The split to draw from."""


@dataclass
class BuiltinConfig:
    weight: float = 1.0
    """Share of the built-in problems in the mixture, relative to the others; 0 leaves them out."""
    min_difficulty: int = 1
    """The easiest level drawn, 1 (beginner) to 5 (expert)."""
    max_difficulty: int = 5
    """The hardest level drawn, 1 (beginner) to 5 (expert)."""

    def __post_init__(self) -> None:
        require(
            1 <= self.min_difficulty <= self.max_difficulty <= 5,
            "tasks.builtin.min_difficulty",
            f"{self.min_difficulty}..{self.max_difficulty}",
            "levels run from 1 to 5 and the minimum may not exceed tasks.builtin.max_difficulty",
        )


@dataclass
class ProposalsConfig:
    share: float = 0.5
    """Share of a round's tasks that are peers' proposals; the other tasks, and all if there are no proposals, come from
    the sources below. 0 takes no proposals."""

    def __post_init__(self) -> None:
        require(0 <= self.share <= 1, "tasks.proposals.share", self.share, "use a share in [0, 1]")


@dataclass
class TasksConfig:
    proposals: ProposalsConfig = field(default_factory=ProposalsConfig)
    """Problems that proposers of the swarm write."""
    mbpp: DatasetConfig = field(default_factory=DatasetConfig)
    """Mostly Basic Programming Problems; hub id google-research-datasets/mbpp."""
    code_contests: DatasetConfig = field(default_factory=DatasetConfig)
    """Contest problems; hub id deepmind/code_contests."""
    builtin: BuiltinConfig = field(default_factory=BuiltinConfig)
    """The problems that ship with codezero."""
    modules: list[str] = field(default_factory=list)
    """Environments, as names of Python modules (docs/environments.md), each a source of weight 1. Of peers' groups only
    those of codezero's own problems and of these are used."""
    draw: TaskDraw = TaskDraw.informative
    """The order of tasks: informative prefers those, also proposals, that this node's attempts sometimes solve and
    sometimes not, and sources with such tasks; uniform takes each task of a source once before any comes again, and
    each proposal once."""
    fallback: bool = True
    """Use the built-in problems if a dataset is not available from the hub; a missing local file is always an error."""
    show_all_tests: bool = False
    """Show a solver all assertions of an MBPP problem or a proposal; otherwise the first, and one more for each kind
    of result that cannot be guessed. Solutions are judged by all of them in either case."""
    hidden_tests: bool = True
    """Judge contest programs by private and generated tests too, and leave out problems with several right answers.
    These tests are neither shown nor sent; from the hub up to 230 MB are downloaded before the first round."""

    def __post_init__(self) -> None:
        for name in ("mbpp", "code_contests", "builtin"):
            weight = getattr(self, name).weight
            require(weight >= 0, f"tasks.{name}.weight", weight, "use 0 to leave a source out")
        total = self.mbpp.weight + self.code_contests.weight + self.builtin.weight + len(self.modules)
        require(total > 0, "tasks", "every weight 0", "give at least one source a weight, as tasks.builtin.weight=1")
        taken = {"mbpp", "code_contests", "builtin"}.intersection(self.environments)
        distinct = not taken and len(self.environments) == len(self.modules)
        require(distinct, "tasks.modules", self.modules, "give each another last name, none that of a source above")

    @property
    def environments(self) -> dict[str, str]:
        """The modules by the names of their environments: the last parts of their own."""
        return {module.rpartition(".")[2]: module for module in self.modules}


@dataclass
class ProbeConfig:
    share: float = 0.05
    """Share of the node's time for measuring it by dry runs on problems that it never trains on, beside up to ten
    minutes before the first round. 0 measures nothing, and a run of fewer than 20 rounds is not measured."""

    def __post_init__(self) -> None:
        require(0 <= self.share <= 0.5, "probe.share", self.share, "use a share such as 0.05, or 0 for no probes")


@dataclass
class TrainConfig:
    method: TrainMethod = TrainMethod.auto
    """The trained weights: full trains all, lora small adapters; auto takes full if memory and disk suffice."""
    loss_type: LossType = LossType.grpo
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
    lora_learning_rate: float = 1e-5
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
    scale_rewards: RewardScale = RewardScale.group
    """The standard deviation that centred rewards are divided by: of the group, of the batch, or none."""
    min_advantage: float = 0.0
    """The smallest advantage, as a share of the round's largest by magnitude; a smaller one counts as 0. Such attempts
    are not run through the model, which saves time and changes the gradient slightly."""
    importance: Importance = Importance.token
    """The weights of own rollouts, learner's probability / sampler's: by token, by sequence or none (TRL's
    token_truncate and sequence_truncate). They have no effect if this process samples, which computes alike."""
    importance_cap: float = 3.0
    """The largest such weight (TRL's vllm_importance_sampling_clip_max)."""
    max_trained: int = 0
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
    """Rank of the LoRA adapters."""
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
        require(self.lora_learning_rate > 0, "train.lora_learning_rate", self.lora_learning_rate, "use 1e-5")
        require(self.max_grad_norm > 0, "train.max_grad_norm", self.max_grad_norm, "use a positive norm such as 1.0")
        require(0 <= self.min_advantage < 1, "train.min_advantage", self.min_advantage, "use a share below 1, or 0")
        require(self.importance_cap >= 1, "train.importance_cap", self.importance_cap, "use 3.0 unless you know better")
        require(self.max_trained == 0 or self.max_trained >= 2, "train.max_trained", self.max_trained, "use 0 for all")
        require(self.replay >= 0, "train.replay", self.replay, "use 0 to train on new groups alone")
        require(self.num_iterations >= 1, "train.num_iterations", self.num_iterations, "use 1 or more")
        require(self.minibatch_size >= 0, "train.minibatch_size", self.minibatch_size, "use 0 for one step a round")
        require(self.micro_batch_size >= 0, "train.micro_batch_size", self.micro_batch_size, "use 0 to choose for you")
        require(self.lora_r >= 1, "train.lora_r", self.lora_r, "use a rank such as 16")
        require(self.memory_limit_gib >= 0, "train.memory_limit_gib", self.memory_limit_gib, "use 0 for what is free")

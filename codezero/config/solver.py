"""Settings of a solver: its model, rollouts, tasks and probes."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from codezero.config.check import require

LEAST_TEMPERATURE, MOST_TEMPERATURE = 0.01, 100.0
"""The lowest sampling temperature of what is trained on, below which vLLM samples at this one, and the highest that
rollout servers take."""


class Device(Enum):
    auto = "auto"
    cpu = "cpu"
    cuda = "cuda"
    mps = "mps"


class Dtype(Enum):
    auto = "auto"
    float32 = "float32"
    bfloat16 = "bfloat16"


class RolloutEngine(Enum):
    transformers = "transformers"
    llama_cpp = "llama_cpp"
    vllm = "vllm"
    remote = "remote"


class Transfer(Enum):
    auto = "auto"
    full = "full"


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
    """Precision of weights and arithmetic; auto is bfloat16 on NVIDIA GPUs that compute in it (Ampere and newer), for
    a proposer that does not learn also on CPUs that do, else float32."""
    cache_dir: str = "~/.cache/codezero"
    """The folder of prepared models."""
    threads: int = 0
    """CPU threads for arithmetic; 0 takes one per physical core that the node may use."""

    def __post_init__(self) -> None:
        require(self.name.strip() != "", "model.name", self.name, "give a catalogue name, a hub id or a folder")
        require(0 <= self.threads <= 1024, "model.threads", self.threads, "use 0 for one per core, at most 1024")


@dataclass
class RolloutConfig:
    engine: RolloutEngine = RolloutEngine.transformers
    """The sampler: transformers in this process; llama_cpp in a process of its own, with a quantised copy of the base
    and the adapter (on a CPU with train.method=lora; needs the extra llama-cpp, docs/launch-script.md); vllm in a
    server of its own that sleeps while the node learns (on an NVIDIA GPU, where it was never run; needs the extra
    vllm); or remote, the servers below."""
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
    """Attempts per task, G: the group that advantages are relative to. At most 64 in a swarm."""
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
        fits = LEAST_TEMPERATURE <= self.temperature <= MOST_TEMPERATURE
        require(fits, "rollout.temperature", self.temperature, "use a value from 0.01 to 100, such as 1.0")
        require(0 < self.top_p <= 1, "rollout.top_p", self.top_p, "use a value in (0, 1]")
        require(self.top_k >= 0, "rollout.top_k", self.top_k, "use 0 to keep all tokens")
        require(
            self.engine is not RolloutEngine.vllm or (self.top_p == 1 and self.top_k == 0),
            "rollout.engine",
            self.engine.value,
            "its log-probs are those after top-p and top-k: use rollout.top_p=1 and rollout.top_k=0, or "
            "rollout.engine=transformers",
        )


@dataclass
class DatasetConfig:
    weight: float = 0.0
    """Share of this source in the mixture, relative to the others; 0 leaves it out."""
    path: str | None = None
    """A local .jsonl or .parquet file in the dataset's own schema (docs/environments.md has MBPP's); null streams it
    from the hub."""
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
    minutes before the first round. 0 measures nothing, and a run of fewer than 20 rounds is not measured. The same of
    a test writer's solver (verifier.train_solver), with batches in place of rounds."""

    def __post_init__(self) -> None:
        require(0 <= self.share <= 0.5, "probe.share", self.share, "use a share such as 0.05, or 0 for no probes")

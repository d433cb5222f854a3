"""Settings of the judgement and the rewards of solutions."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from codezero.config.check import require
from codezero.config.solver import Dtype

MAX_REWARD = 1.2 + 1e-6
"""The largest reward by magnitude, so that the rewards of a swarm's nodes can be compared: 1.2, with a margin for
rounding."""


class Backend(Enum):
    auto = "auto"
    transformers = "transformers"
    llama_cpp = "llama_cpp"
    ollama = "ollama"
    openai = "openai"
    execution = "execution"


class VerdictMode(Enum):
    auto = "auto"
    likelihood = "likelihood"
    logit = "logit"
    generate = "generate"


@dataclass
class EvaluatorConfig:
    backend: Backend = Backend.auto
    """The kind of judge: transformers (in this process), llama_cpp (in a process of its own), ollama, openai (any
    server with that protocol), or auto (one of the first two, or none where mask would leave it nothing to decide).
    execution asks no model: it RUNS the tests, in a sandbox."""
    model: str = "auto"
    """The frozen judge: auto (1.5B if memory allows, else 0.5B), a catalogue name, a hub id or a folder; for llama_cpp
    a catalogue name or a .gguf file; for ollama and openai the server's name for the model."""
    verdict: VerdictMode = VerdictMode.auto
    """The way of judging: likelihood scores the solution as the judge's own answer (in this process only); logit
    compares its yes with no; generate makes it write JSON; auto is likelihood if available, else logit."""
    dry_run: bool = True
    """Interpret solutions on their tests' literal inputs, in a budgeted interpreter of a pure subset of Python; cases
    that it cannot decide are left to the judge."""
    mask: bool = True
    """With dry_run, leave an attempt out of its group if neither dry run nor judge can tell whether it is right.
    Without mask, an unsure judge decides, and a group with an attempt without its opinion stays unscored."""
    workers: int = 0
    """Processes that read and interpret solutions, each with at most 1 GiB of memory. 0 takes one for every 6 GiB that
    the node may use, at most one per core and eight; with an NVIDIA GPU one per core, up to 64. It affects the time of
    judging, not the result."""
    fresh: int = 16
    """Number of tests with inputs that nobody has seen, drawn for tasks with a reference solution on this node, for
    attempts that pass the visible tests; 0 for none. Needs dry_run."""
    fatal_rules: bool = True
    """Count solutions that break a fatal rule (do not parse, lack the function, game the tests) as wrong without asking
    the judge."""
    dtype: Dtype = Dtype.auto
    """Precision of the judge in this process; auto is bfloat16 on cuda and on CPUs that compute in it, else float32."""
    max_new_tokens: int = 256
    """The longest verdict in tokens, for generate."""
    batch_size: int = 4
    """The most rollouts in one forward pass of the judge (on an accelerator 16 times as many), or the most simultaneous
    requests to a server."""
    url: str = ""
    """Base URL of the server, for ollama and openai; empty takes the server's default address on this machine."""
    api_key_env: str = "OPENAI_API_KEY"
    """Environment variable with the server's key, if it needs one."""
    timeout_s: float = 120.0
    """Seconds after which a request to a judge outside this process has failed."""
    retries: int = 2
    """Number of retries of a failed request, after growing, jittered waits."""
    execute_external: bool = False
    """With backend=execution, also run code that peers sent; without it their groups stay unscored."""

    def __post_init__(self) -> None:
        require(0 <= self.workers <= 64, "evaluator.workers", self.workers, "use 0 for as many as the machine holds")
        require(0 <= self.fresh <= 50, "evaluator.fresh", self.fresh, "use 16, or 0 for no fresh tests")
        require(self.max_new_tokens >= 1, "evaluator.max_new_tokens", self.max_new_tokens, "use 1 or more")
        require(self.batch_size >= 1, "evaluator.batch_size", self.batch_size, "use 1 or more")
        require(self.timeout_s > 0, "evaluator.timeout_s", self.timeout_s, "use a number of seconds such as 120")
        require(self.retries >= 0, "evaluator.retries", self.retries, "use 0 to try once only")


@dataclass
class RewardConfig:
    correct: float = 0.7
    """Weight of the predicted probability (0..1) that all tests pass."""
    structure: float = 0.1
    """Weight of the mean score (0..1) of the rules on structure: parses, defines what the tests call, returns."""
    formatting: float = 0.1
    """Weight of the mean score (0..1) of the rules on formatting: one fenced block, of reasonable length."""
    alignment: float = 0.1
    """Weight of the mean score (0..1) of the rules on alignment: solves the task, neither copies nor games it."""
    hard_verdict: bool = False
    """Round the predicted probability to 0 or 1 before weighting it."""
    no_text: float = -1.2
    """The whole reward of an attempt that is not text."""
    no_code: float = -1.0
    """The reward instead of the parts above for an answer without a fenced Python block."""
    finished: float = 0.2
    """The reward added if the model ended its answer itself."""
    truncated: float = -0.2
    """The reward added if the token limit cut the answer off."""

    def __post_init__(self) -> None:
        ends = (self.finished, self.truncated)
        weights = (self.correct, self.structure, self.formatting, self.alignment)
        highest = max(sum(w for w in weights if w > 0), self.no_code) + max(ends)
        lowest = min(self.no_text, min(sum(w for w in weights if w < 0), self.no_code) + min(ends))
        for bound in (highest, lowest, self.no_text):
            require(abs(bound) <= MAX_REWARD, "reward", f"a total of {bound:g}", "keep totals in [-1.2, 1.2]")

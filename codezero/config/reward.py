"""Settings of how solutions are judged and what they are worth."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from codezero.config.check import require
from codezero.config.learning import Dtype

MAX_REWARD = 1.2 + 1e-6
"""Largest reward by magnitude, so that the rewards of a swarm's nodes can be compared: 1.2, and what floating point may
add to it."""


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
    """Where the frozen judge runs: transformers (in this process), llama_cpp (a process of its own), ollama, openai (a
    server that speaks that protocol), or auto. execution asks no model: it RUNS the tests, in a sandbox."""
    model: str = "auto"
    """The frozen judge: auto (1.5B where memory allows, else 0.5B), a catalogue name, a hub id or a folder; for
    llama_cpp a catalogue name or a .gguf file; for ollama and openai the name that the server knows it by."""
    verdict: VerdictMode = VerdictMode.auto
    """likelihood asks how likely the judge finds the solution as its own answer (in this process only); logit reads its
    yes against no; generate lets it write JSON; auto is likelihood where it can be had, else logit."""
    dry_run: bool = True
    """Interpret solutions on their tests' literal inputs, in a budgeted interpreter of a pure subset of Python; what it
    cannot decide is left to the judge."""
    mask: bool = True
    """With dry_run, leave an attempt out of its group where neither that nor the judge can tell whether it is right;
    without, a judge that is unsure decides, and a group with an attempt that it has no opinion of stays unscored."""
    workers: int = 0
    """Processes that read and interpret solutions, each with at most 1 GiB of memory; 0 takes one for every 6 GiB that
    the node may use, and no more than there are cores. Changes the time that judging takes, not its result."""
    fresh: int = 16
    """Tests with inputs that nobody has seen, drawn for a task of which the node has a reference solution at hand, for
    attempts that pass what is visible; 0 for none. Needs dry_run."""
    fatal_rules: bool = True
    """Count what breaks a fatal rule (does not parse, lacks the function, games the tests) as wrong, unasked."""
    dtype: Dtype = Dtype.auto
    """Precision of the judge in this process; auto is bfloat16 on cuda and on CPUs that compute in it, else float32."""
    max_new_tokens: int = 256
    """Longest verdict in tokens, for generate."""
    batch_size: int = 4
    """Rollouts judged in one forward pass, or asked of a server at once."""
    url: str = ""
    """Base URL of the server, for ollama and openai; empty takes the one each listens on by default on this machine."""
    api_key_env: str = "OPENAI_API_KEY"
    """Environment variable that holds the server's key, if it wants one."""
    timeout_s: float = 120.0
    """Seconds after which a request to a judge outside this process has failed."""
    retries: int = 2
    """Times a failed request is repeated, after a growing, jittered wait."""
    execute_external: bool = False
    """With backend=execution, also run code that peers sent; without it their groups stay unscored."""

    def __post_init__(self) -> None:
        require(0 <= self.workers <= 64, "evaluator.workers", self.workers, "use 0 for as many as the machine holds")
        require(0 <= self.fresh <= 50, "evaluator.fresh", self.fresh, "use 5, or 0 for no fresh tests")
        require(self.max_new_tokens >= 1, "evaluator.max_new_tokens", self.max_new_tokens, "use 1 or more")
        require(self.batch_size >= 1, "evaluator.batch_size", self.batch_size, "use 1 or more")
        require(self.timeout_s > 0, "evaluator.timeout_s", self.timeout_s, "use a number of seconds such as 120")
        require(self.retries >= 0, "evaluator.retries", self.retries, "use 0 to try once only")


@dataclass
class RewardConfig:
    correct: float = 0.7
    """Weight of the predicted probability that all tests pass (0..1)."""
    structure: float = 0.1
    """Weight of the mean score (0..1) of the rules on structure: parses, defines what the tests call, returns."""
    formatting: float = 0.1
    """Weight of the mean score (0..1) of the rules on formatting: one fenced block, of reasonable length."""
    alignment: float = 0.1
    """Weight of the mean score (0..1) of the rules on alignment: solves the task, neither copies nor games it."""
    hard_verdict: bool = False
    """Round the predicted probability to 0 or 1 before weighting it."""
    no_text: float = -1.2
    """Instead of everything, when the attempt is not text."""
    no_code: float = -1.0
    """Instead of the parts above, when there is no fenced Python block."""
    finished: float = 0.2
    """Added when the model ended its answer itself."""
    truncated: float = -0.2
    """Added when the token limit cut the answer off."""

    def __post_init__(self) -> None:
        ends = (self.finished, self.truncated)
        weights = (self.correct, self.structure, self.formatting, self.alignment)
        highest = max(sum(w for w in weights if w > 0), self.no_code) + max(ends)
        lowest = min(self.no_text, min(sum(w for w in weights if w < 0), self.no_code) + min(ends))
        for bound in (highest, lowest, self.no_text):
            require(abs(bound) <= MAX_REWARD, "reward", f"a total of {bound:g}", "keep totals in [-1.2, 1.2]")

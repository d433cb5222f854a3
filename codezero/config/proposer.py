"""Settings of a proposer: the model that writes problems, their checks and levels, and its training."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from codezero.config.check import require
from codezero.config.solver import MOST_TEMPERATURE


class ProposerBackend(Enum):
    auto = "auto"
    transformers = "transformers"
    openai = "openai"


class Reference(Enum):
    none = "none"
    dry_run = "dry_run"
    sandbox = "sandbox"


class DifficultyPolicy(Enum):
    target = "target"
    trend = "trend"


@dataclass
class ProposerConfig:
    batches: int = 0
    """Stop after this many batches; 0 runs until stopped."""
    backend: ProposerBackend = ProposerBackend.auto
    """Backend of the proposer's model: transformers (in this process) or openai (a server with that protocol); auto
    takes the server if proposer.url is set."""
    model: str = "auto"
    """The model that writes problems: auto (Qwen3-4B if an NVIDIA GPU has 24 GiB for it, else the solver's model; once
    trained it stays the same), a catalogue name, a hub id or a folder; for openai its name on the server."""
    batch_size: int = 4
    """Problems written at a time."""
    max_new_tokens: int = 384
    """Longest answer in tokens."""
    temperature: float = 0.8
    """Sampling temperature."""
    top_p: float = 0.95
    """Nucleus sampling mass; 1.0 samples from the whole distribution."""
    repair: bool = False
    """If an answer cannot be parsed, ask the model to write it once more in the right format."""
    reference: Reference = Reference.dry_run
    """Ask for a solution too, and publish only problems whose tests it passes: by dry_run (interpreted, never executed;
    wrong expected results in tests are corrected) or in a sandbox, which RUNS the model's code."""
    writer: str = ""
    """State folder of a `codezero verify` that trains a test writer from the proposer's model, or has trained one. Its
    newest checkpoint writes tests about verifier.num_candidates attempts at each problem; published are those that the
    reference passes, first those that an attempt fails. Empty leaves the tests to the proposer."""
    policy: DifficultyPolicy = DifficultyPolicy.target
    """Rule for the level: target keeps the solvers' success rate near one half, trend raises the level when their
    success rises and lowers it when that falls."""
    level: int = 2
    """Level of the first batch, 1 (beginner) to 5 (expert)."""
    band_low: float = 0.3
    """Success rate below which a level is too hard, for target."""
    band_high: float = 0.7
    """Success rate above which a level is too easy, for target."""
    explore: float = 0.2
    """Share of batches written at a neighbouring level, to measure success there; for target."""
    window: int = 10
    """Judged proposals in each of the two windows that trend compares."""
    threshold: float = 0.05
    """Smallest difference of the windows' mean rewards at which trend changes the level."""
    update_every: int = 5
    """Number of batches between two decisions of trend."""
    patience_s: float = 120.0
    """Longest wait for feedback before the next batch, in seconds; 0 writes without pause."""
    remembered: int = 1000
    """Number of past proposals that a new one is compared with, to avoid duplicates."""
    similarity: float = 0.6
    """Jaccard similarity of word triples from which two problems count as duplicates."""
    train: bool = False
    """Train the proposer, by LoRA, to write problems that solvers solve about half the time."""
    learning_rate: float = 1e-5
    """Adam's step size, for train."""
    lora_r: int = 16
    """Rank of the adapters, for train."""
    epsilon: float = 0.2
    """Lower clip range of the probability ratio, for train."""
    epsilon_high: float = 0.28
    """Upper clip range of the probability ratio, for train."""
    num_iterations: int = 1
    """Passes over a batch, for train."""
    beta: float = 0.0
    """Weight of the KL penalty against the starting weights, for train."""
    url: str = ""
    """Base URL of the server, for openai, such as http://127.0.0.1:8000/v1."""
    api_key_env: str = "OPENAI_API_KEY"
    """Environment variable with the server's API key, if it needs one."""
    timeout_s: float = 300.0
    """Timeout of a request to the server, in seconds."""
    retries: int = 2
    """Number of retries of a failed request, after increasing, jittered waits."""

    def __post_init__(self) -> None:
        for key in ("batches", "beta", "patience_s", "retries"):
            require(getattr(self, key) >= 0, f"proposer.{key}", getattr(self, key), "use 0 or more")
        for key in ("batch_size", "max_new_tokens", "window", "update_every", "remembered", "lora_r", "num_iterations"):
            require(getattr(self, key) >= 1, f"proposer.{key}", getattr(self, key), "use 1 or more")
        for key in ("temperature", "threshold", "similarity", "learning_rate", "timeout_s"):
            require(getattr(self, key) > 0, f"proposer.{key}", getattr(self, key), "use a value above 0")
        fits = self.temperature <= MOST_TEMPERATURE
        require(fits, "proposer.temperature", self.temperature, "use a value up to 100, such as 0.8")
        require(0 < self.top_p <= 1, "proposer.top_p", self.top_p, "use a value in (0, 1]")
        require(1 <= self.level <= 5, "proposer.level", self.level, "levels run from 1 to 5")
        band = f"{self.band_low}..{self.band_high}"
        ordered = 0 <= self.band_low < self.band_high <= 1
        require(ordered, "proposer.band_low..band_high", band, "use two rates with 0 <= low < high <= 1")
        require(0 <= self.explore < 1, "proposer.explore", self.explore, "use a share in [0, 1)")
        require(self.epsilon >= 0, "proposer.epsilon", self.epsilon, "use 0.2 unless you know better")
        require(self.epsilon_high >= 0, "proposer.epsilon_high", self.epsilon_high, "use 0.28 unless you know better")
        served = self.backend is ProposerBackend.openai
        require(not (served and self.model == "auto"), "proposer.model", self.model, "give the name the server serves")
        behind = served or self.url != ""
        trained = "a model behind a server cannot be trained; leave out proposer.url"
        require(not (self.train and behind), "proposer.train", self.train, trained)
        adapted = "a model behind a server cannot have a test writer's adapters; leave out proposer.url"
        require(not (self.writer and behind), "proposer.writer", self.writer, adapted)
        judged = not self.writer or self.reference is not Reference.none
        require(judged, "proposer.writer", self.writer, "tests are tried on a solution: set proposer.reference=dry_run")

"""Settings of a test writer: how many test cases it writes, on what, and how it learns."""

from __future__ import annotations

from dataclasses import dataclass

from codezero.config.check import require
from codezero.config.solver import LEAST_TEMPERATURE, MOST_TEMPERATURE


@dataclass
class VerifierConfig:
    batches: int = 0
    """Stop after this many batches; 0 runs until stopped."""
    batch_size: int = 2
    """Problems in a batch; each with one candidate solution is a group that advantages are relative to."""
    num_candidates: int = 8
    """Solutions to each problem that the model writes without the test writer's adapters; one of them is shown to the
    test writer, and all wrong ones grade its cases. rollout.max_new_tokens and rollout.temperature are theirs."""
    train_solver: bool = False
    """Train the model that writes the solutions too, by adapters of its own: on its solutions, and on second attempts
    at wrong ones with the results of cases that refused them. rollout, train and probe have its settings; it has
    adapters and replays nothing. A state folder keeps it."""
    num_generations: int = 8
    """Answers of two test cases for each problem and candidate, G."""
    temperature: float = 1.0
    """Sampling temperature of test cases; training divides logits by the same value."""
    learning_rate: float = 1e-4
    """Adam's step size."""
    lora_r: int = 16
    """Rank of the adapters; a state folder keeps it."""

    def __post_init__(self) -> None:
        require(self.batches >= 0, "verifier.batches", self.batches, "use 0 or more")
        for key in ("batch_size", "num_candidates", "lora_r"):
            require(getattr(self, key) >= 1, f"verifier.{key}", getattr(self, key), "use 1 or more")
        compares = "GRPO compares answers to one request, so use 2 or more"
        require(self.num_generations >= 2, "verifier.num_generations", self.num_generations, compares)
        require(self.learning_rate > 0, "verifier.learning_rate", self.learning_rate, "use a value above 0")
        fits = LEAST_TEMPERATURE <= self.temperature <= MOST_TEMPERATURE
        require(fits, "verifier.temperature", self.temperature, "use a value from 0.01 to 100, such as 1.0")

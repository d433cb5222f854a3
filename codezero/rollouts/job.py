"""A request under way at rollout servers: each server's share of it as a message, and replies as attempts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

from codezero.llm.replies import Done, grouped
from codezero.llm.sample import SampleRequest
from codezero.rollouts.client import RolloutServer
from codezero.rollouts.protocol import RolloutRequest
from codezero.types import SampledTokens


@dataclass(frozen=True, slots=True)
class PromptResult:
    """The attempts at a prompt, the name of the weights that they are from, and where they were sampled."""

    attempts: list[SampledTokens]
    weights: str
    server: RolloutServer


@dataclass(slots=True)
class RolloutJob:
    """A request under way, and the seed of its random numbers."""

    request: SampleRequest
    seed: int
    steps: dict[RolloutServer, int] = field(default_factory=dict)
    """The steps made by servers that are at work now."""
    found: Future[list[PromptResult | None]] = field(default_factory=Future)
    """The attempts at each prompt; None at one that no server has sampled."""

    def message(self, share: Sequence[int], weights: str) -> RolloutRequest:
        """Returns what a server is asked for: attempts at some of the prompts, with the weights of this name."""
        request = self.request
        return RolloutRequest(
            weights=weights,
            prompts=[list(request.prompts[i]) for i in share],
            num_generations=request.num_generations,
            max_new_tokens=request.params.max_new_tokens,
            temperature=request.params.temperature,
            top_p=request.params.top_p,
            top_k=request.params.top_k,
            end_ids=list(request.end_ids),
            pad_id=request.pad_id,
            seed=self.seed ^ share[0],  # shares must differ, also those of equal prompts
        )

    def attempts(self, share: Sequence[int], done: Done) -> Iterator[tuple[int, list[SampledTokens]]]:
        """Returns each prompt of a share with its attempts in the reply."""
        prompts = [self.request.prompts[i] for i in share]
        return zip(share, grouped(done, prompts, self.request.num_generations), strict=True)

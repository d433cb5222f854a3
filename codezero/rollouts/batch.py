"""A batch of prompts for rollout servers: each server's share of it as a request, and replies as attempts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

from codezero.llm.replies import Done
from codezero.llm.sample import SamplingParams
from codezero.rollouts.client import RolloutServer
from codezero.rollouts.protocol import RolloutRequest
from codezero.types import SampledTokens


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptBatch:
    prompts: Sequence[Sequence[int]]
    num_generations: int
    params: SamplingParams
    end_ids: Sequence[int]
    pad_id: int
    seed: int

    def request(self, share: Sequence[int], weights: str) -> RolloutRequest:
        """Returns the request for attempts at some of the prompts, with the weights of this name."""
        return RolloutRequest(
            weights=weights,
            prompts=[list(self.prompts[i]) for i in share],
            num_generations=self.num_generations,
            max_new_tokens=self.params.max_new_tokens,
            temperature=self.params.temperature,
            top_p=self.params.top_p,
            top_k=self.params.top_k,
            end_ids=list(self.end_ids),
            pad_id=self.pad_id,
            seed=self.seed ^ share[0],  # shares must differ, also those of equal prompts
        )

    def attempts(self, share: Sequence[int], done: Done) -> Iterator[tuple[int, list[SampledTokens]]]:
        """Yields each prompt of a share with its attempts in the reply."""
        size = self.num_generations
        for number, prompt in enumerate(share):
            yield (
                prompt,
                [
                    SampledTokens(
                        prompt_ids=tuple(self.prompts[prompt]),
                        completion_ids=tuple(done.ids[row]),
                        logprobs=tuple(done.logprobs[row]),
                    )
                    for row in range(number * size, (number + 1) * size)
                ],
            )


@dataclass(frozen=True, slots=True)
class Found:
    """The attempts at a prompt, the name of the weights that they are from, and where they were sampled."""

    attempts: list[SampledTokens]
    weights: str
    server: RolloutServer


@dataclass(slots=True)
class Sampling:
    """A batch under way."""

    batch: PromptBatch
    steps: dict[RolloutServer, int] = field(default_factory=dict)
    """The steps made by servers that are at work now."""
    found: Future[list[Found | None]] = field(default_factory=Future)
    """The attempts at each prompt; None at one that no server has sampled."""

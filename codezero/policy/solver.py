"""The solver: asks the policy for G attempts at each task, all tasks of a round in one batch."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from codezero.config import RolloutConfig
from codezero.errors import PromptTooLong
from codezero.llm.load import LoadedModel
from codezero.llm.sample import SampleGroups, SamplingParams, sample_groups
from codezero.ports import Progress
from codezero.prompts import solver as prompt
from codezero.types import FinishReason, Rollout, RolloutGroup, SampledTokens, Task

logger = logging.getLogger(__name__)


class PolicySolver:
    """ports.Solver on the policy. Its random state is its own, so a resumed node samples alike."""

    def __init__(
        self,
        policy: LoadedModel,
        config: RolloutConfig,
        *,
        seed: int,
        peer_id: str,
        progress: Progress,
        sample: SampleGroups = sample_groups,
    ) -> None:
        """`sample` is the rollout engine: the one in this process, or another with its signature."""
        self._sample = sample
        self._policy, self._config, self._peer_id, self._progress = policy, config, peer_id, progress
        self._generator = torch.Generator(device=policy.model.device).manual_seed(seed)
        self._skipped: Counter[str] = Counter()

    def solve(self, tasks: Sequence[Task], policy_version: int) -> tuple[RolloutGroup, ...]:
        """One group a task, in order; a task whose prompt leaves no room for an answer is left out and counted."""
        fitting = []
        for task in tasks:
            try:
                fitting.append((task, self.encode_prompt(task)))
            except PromptTooLong as error:
                logger.warning("task left out: %s. Nothing has to be done", error)
                self._skipped["prompt_too_long"] += 1
        config = self._config
        sampled = self._sample(
            self._policy.model,
            [ids for _, ids in fitting],
            config.num_generations,
            SamplingParams(
                max_new_tokens=config.max_new_tokens,
                temperature=config.temperature,
                top_p=config.top_p,
                top_k=config.top_k,
            ),
            end_ids=self._policy.end_ids,
            pad_id=self._policy.pad_id,
            generator=self._generator,
            on_step=lambda done, total: self._progress("solve", done, total),
        )
        return tuple(
            RolloutGroup(
                peer_id=self._peer_id,
                model_id=self._policy.name,
                policy_version=policy_version,
                task=task,
                rollouts=tuple(self._rollout(tokens) for tokens in group),
            )
            for (task, _), group in zip(fitting, sampled, strict=True)
        )

    def encode_prompt(self, task: Task) -> list[int]:
        """Prompt ids of a task. Raises PromptTooLong: the longest answer would not fit the model's context with it."""
        ids = self._policy.encode_chat(prompt.messages(task.question))
        room = self._policy.context_length - self._config.max_new_tokens
        if len(ids) > room:
            raise PromptTooLong(
                f"the prompt of {task.origin.value} task {task.task_id} has {len(ids)} tokens, {self._policy.name} has "
                f"room for {room} beside rollout.max_new_tokens={self._config.max_new_tokens}"
            )
        return ids

    def _rollout(self, tokens: SampledTokens) -> Rollout:
        ended = tokens.completion_ids[-1] in self._policy.end_ids
        shown = tokens.completion_ids[:-1] if ended else tokens.completion_ids
        return Rollout(
            text=self._policy.tokenizer.decode(shown, skip_special_tokens=True),
            finish=FinishReason.STOP if ended else FinishReason.LENGTH,
            tokens=tokens,
        )

    def take_skipped(self) -> Mapping[str, int]:
        """Tasks left out since the last call, by reason."""
        skipped, self._skipped = self._skipped, Counter()
        return +skipped

    def state_dict(self) -> dict[str, Any]:
        return {"generator": self._generator.get_state()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._generator.set_state(state["generator"])


def measuring_solver(
    policy: LoadedModel,
    num_samples: int,
    max_new_tokens: int,
    temperature: float,
    seed: int,
    progress: Progress,
    sample: SampleGroups = sample_groups,
) -> PolicySolver:
    """The solver that a node has, which may here also write one solution, or decode greedily (temperature 0)."""
    config = RolloutConfig(max_new_tokens=max_new_tokens)
    config.num_generations, config.temperature = num_samples, temperature  # a node that trains refuses both
    return PolicySolver(policy, config, seed=seed, peer_id="local", progress=progress, sample=sample)

"""The solver: samples G attempts at each task from the policy, all tasks of a round in one batch."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from codezero.config import RolloutConfig
from codezero.errors import PromptTooLong
from codezero.llm.draw import SamplingParams
from codezero.llm.load import LoadedModel
from codezero.llm.sample import SampleGroups, SampleRequest, restore_generator
from codezero.ports import Progress
from codezero.prompts import solver as prompt
from codezero.train.claims import packed
from codezero.types import FinishReason, Rollout, RolloutGroup, SampledTokens, Task

logger = logging.getLogger(__name__)


def sampling(rollout: RolloutConfig) -> SamplingParams:
    """Returns the settings by which a node's attempts are sampled."""
    return SamplingParams(
        max_new_tokens=rollout.max_new_tokens,
        temperature=rollout.temperature,
        top_p=rollout.top_p,
        top_k=rollout.top_k,
    )


class PolicySolver:
    """The implementation of `ports.Solver`. It has its own random state, so that a resumed node samples alike."""

    def __init__(
        self,
        policy: LoadedModel,
        num_generations: int,
        params: SamplingParams,
        *,
        seed: int,
        peer_id: str,
        progress: Progress,
        sample: SampleGroups,
        systems: Mapping[str, str] | None = None,
        shares_logprobs: bool = False,
        max_prompt_length: int | None = None,
    ) -> None:
        """`sample` is the rollout engine. `systems` has the system prompts of environments by name. With
        `shares_logprobs` rollouts have log-probs for peers. `max_prompt_length` is the longest prompt that memory
        holds, in tokens; by default the model's context is the only limit."""
        self._sample, self._shares_logprobs = sample, shares_logprobs
        self._systems = {"": prompt.SYSTEM, **(systems or {})}
        self._policy, self._num_generations, self._params = policy, num_generations, params
        self._peer_id, self._progress = peer_id, progress
        self._max_prompt_length = max_prompt_length
        self._generator = torch.Generator(device=policy.model.device).manual_seed(seed)
        self._skipped: Counter[str] = Counter()

    def solve(self, tasks: Sequence[Task], policy_version: int) -> tuple[RolloutGroup, ...]:
        """Returns one group per task, in order; leaves out and counts tasks whose prompts are too long."""
        fitting = self.fitting(tasks)
        sampled = self._sample(self._policy.model, self.request([ids for _, ids in fitting]))
        return tuple(self.group(task, group, policy_version) for (task, _), group in zip(fitting, sampled, strict=True))

    def fitting(self, tasks: Sequence[Task]) -> list[tuple[Task, list[int]]]:
        """Returns tasks with the ids of their prompts; leaves out and counts those whose prompts are too long."""
        found = []
        for task in tasks:
            try:
                found.append((task, self.encode_prompt(task)))
            except PromptTooLong as error:
                logger.warning("task left out: %s. Nothing has to be done", error)
                self._skipped["prompt_too_long"] += 1
        return found

    def group(self, task: Task, attempts: Sequence[SampledTokens], policy_version: int) -> RolloutGroup:
        """Returns the group of the attempts at a task that were sampled with weights of this version."""
        return RolloutGroup(
            peer_id=self._peer_id,
            model_id=self._policy.public_name,
            policy_version=policy_version,
            task=task,
            rollouts=tuple(self._rollout(tokens) for tokens in attempts),
        )

    def request(self, prompts: Sequence[Sequence[int]]) -> SampleRequest:
        """Returns the request for attempts at prompts of ids, with the solver's random state."""
        return SampleRequest(
            prompts=prompts,
            num_generations=self._num_generations,
            params=self._params,
            end_ids=self._policy.end_ids,
            pad_id=self._policy.pad_id,
            generator=self._generator,
            on_step=lambda done, total: self._progress("solve", done, total),
        )

    def encode_prompt(self, task: Task) -> list[int]:
        """Returns the ids of a task's prompt. Raises PromptTooLong: memory does not hold a round of such prompts, or
        the model's context does not hold it with the longest answer."""
        ids = self._policy.encode_chat(prompt.messages(task.question, self._systems[task.environment]))
        what = f"the prompt of {task.origin.value} task {task.task_id} has {len(ids)} tokens"
        longest, held = self._params.max_new_tokens, self._max_prompt_length
        room = self._policy.context_length - longest
        if len(ids) > room:
            raise PromptTooLong(
                f"{what}, {self._policy.name} has room for {room} beside rollout.max_new_tokens={longest}"
            )
        if held is not None and len(ids) > held:
            raise PromptTooLong(f"{what}, memory holds a round of at most {held}")
        return ids

    def _rollout(self, tokens: SampledTokens) -> Rollout:
        ended = tokens.completion_ids[-1] in self._policy.end_ids
        shown = tokens.completion_ids[:-1] if ended else tokens.completion_ids
        text = self._policy.tokenizer.decode(shown, skip_special_tokens=True)
        # Others have the text alone, which they encode as `TextEncoder` does.
        end = self._policy.end_ids[:1] if ended and text else ()
        encoded = (*self._policy.encode_text(text), *end) if self._shares_logprobs else ()
        return Rollout(
            text=text,
            finish=FinishReason.STOP if ended else FinishReason.LENGTH,
            tokens=tokens,
            logprobs=packed(tokens.logprobs) if encoded == tokens.completion_ids else b"",
        )

    def take_skipped(self) -> Mapping[str, int]:
        """Returns the numbers of tasks left out since the last call, by reason."""
        skipped, self._skipped = self._skipped, Counter()
        return +skipped

    def state_dict(self) -> dict[str, Any]:
        return {"generator": self._generator.get_state()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        restore_generator(self._generator, state["generator"])


def measuring_solver(
    policy: LoadedModel,
    num_samples: int,
    max_new_tokens: int,
    temperature: float,
    seed: int,
    progress: Progress,
    sample: SampleGroups,
) -> PolicySolver:
    """Returns a solver like a node's, which may also write one solution per task or decode greedily (temperature 0)."""
    params = SamplingParams(max_new_tokens=max_new_tokens, temperature=temperature)
    return PolicySolver(policy, num_samples, params, seed=seed, peer_id="local", progress=progress, sample=sample)

"""The two sides of `benchmarks/round.py`, in the same work: this node and the reference."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from benchmarks import reference
from benchmarks.measure import free_memory
from codezero.config import EvaluatorConfig, LossType, RewardScale, TrainConfig
from codezero.evaluate.backends.transformers import TransformersBackend
from codezero.llm import device as devices
from codezero.llm.draw import SamplingParams
from codezero.llm.load import LoadedModel, load_model
from codezero.llm.sample import SampleRequest, sample_groups
from codezero.prompts import evaluator, solver
from codezero.tasks.problems import load_problems
from codezero.train.batch import TextEncoder
from codezero.train.checkpoint import CheckpointStore
from codezero.train.learner import GrpoLearner
from codezero.train.method import apply_lora
from codezero.types import (
    Reward,
    SampledTokens,
    ScoredGroup,
    Task,
)

REWARDS = (1.5, 0.2, -0.2, 0.7)
"""The rewards of a group's attempts in turn; no mean of full turns is among them, so every attempt has an advantage."""
PLAIN = TrainConfig(loss_type=LossType.grpo, scale_rewards=RewardScale.group, min_advantage=0.0, max_trained=0)
"""GRPO as published, with all attempts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """The work of both sides in one round."""

    tasks: tuple[Task, ...]
    num_generations: int
    num_tokens: int
    """Of every completion."""

    @property
    def chats(self) -> list[list[dict[str, str]]]:
        return [solver.messages(task.question) for task in self.tasks]

    @property
    def rewards(self) -> list[float]:
        return [REWARDS[index % len(REWARDS)] for index in range(self.num_generations)]

    @property
    def total_tokens(self) -> int:
        return len(self.tasks) * self.num_generations * self.num_tokens


def training_texts(tokenizer: Any, work: Work) -> list[list[str]]:
    """Texts [tasks][G] of exactly `work.num_tokens` tokens that are the same tokens again when tokenised."""
    source = "\n".join(f"{p.task.question}\n{p.reference}" for p in load_problems())
    ids = tokenizer(source, add_special_tokens=False).input_ids
    texts: list[str] = []
    start, wanted = 0, len(work.tasks) * work.num_generations
    while len(texts) < wanted:
        window = ids[start : start + work.num_tokens]
        if len(window) < work.num_tokens:
            raise SystemExit("the built-in problems do not hold that much text: use fewer generations or tokens")
        text = tokenizer.decode(window)
        if tokenizer(text, add_special_tokens=False).input_ids == window:
            texts.append(text)
            start += work.num_tokens
        else:
            start += 1
    return [texts[i : i + work.num_generations] for i in range(0, wanted, work.num_generations)]


class Own:
    """This node's solver and learner."""

    def __init__(self, folder: Path, *, lora: bool = False) -> None:
        devices.return_freed_memory()  # as a node does at its start
        self.policy: LoadedModel = load_model("policy", folder, torch.device("cpu"), torch.float32)
        if lora:
            self.policy = replace(self.policy, model=apply_lora(self.policy.model, TrainConfig(), 0))
        self.generator = torch.Generator().manual_seed(0)
        self.learner: GrpoLearner | None = None

    def start_learning(self, config: TrainConfig, num_tokens: int) -> None:
        """A new learner with an empty optimizer."""
        self.learner = None
        free_memory()
        encoder = TextEncoder(
            tokenizer=self.policy.tokenizer,
            encode_prompt=lambda task: self.policy.encode_chat(solver.messages(task.question)),
            end_token_id=self.policy.end_ids[0],
            max_prompt_length=self.policy.context_length,
            max_completion_length=num_tokens,
        )
        self.learner = GrpoLearner(
            self.policy.model, encoder, config, temperature=1.0, max_completion_length=encoder.max_completion_length
        )

    def solve(self, work: Work) -> int:
        """Returns the number of tokens sampled."""
        request = SampleRequest(
            prompts=[self.policy.encode_chat(chat) for chat in work.chats],
            num_generations=work.num_generations,
            params=SamplingParams(max_new_tokens=work.num_tokens),
            end_ids=(),
            pad_id=self.policy.pad_id,
            generator=self.generator,
        )
        groups = sample_groups(self.policy.model, request)
        return sum(len(rollout.completion_ids) for group in groups for rollout in group)

    def learn(self, work: Work) -> int:
        """Returns the number of completion tokens, of attempts that all have an advantage."""
        assert self.learner is not None
        texts = training_texts(self.policy.tokenizer, work)
        groups = [self._scored(task, answers, work) for task, answers in zip(work.tasks, texts, strict=True)]
        assert self.learner.step(groups).skipped is None
        return sum(len(one.tokens.completion_ids) for group in groups for one in group.group.rollouts if one.tokens)

    def save(self, folder: Path) -> None:
        """Writes a checkpoint and waits for it, as a node that stops does."""
        assert self.learner is not None
        state = {"weights": self.learner.weights(), "learner": self.learner.state_dict()}
        CheckpointStore(folder).save(1, self.learner.policy_version, state, {})
        shutil.rmtree(folder)

    def judge(self, work: Work) -> int:
        """Has the policy's weights judge every attempt, as a frozen judge of the same size does; returns how many."""
        texts = training_texts(self.policy.tokenizer, work)
        chats = [
            evaluator.review_messages(task.question, task.tests, answer)
            for task, answers in zip(work.tasks, texts, strict=True)
            for answer in answers
        ]
        backend = TransformersBackend(self.policy, EvaluatorConfig())
        return sum(found is not None for found in backend.review(chats))

    def _scored(self, task: Task, answers: Sequence[str], work: Work) -> ScoredGroup:
        assert self.learner is not None
        prompt_ids = tuple(self.policy.encode_chat(solver.messages(task.question)))
        ids = [tuple(self.policy.encode_text(answer)) for answer in answers]
        # The learner ignores log-probs that its present policy sampled.
        tokens = [SampledTokens(prompt_ids=prompt_ids, completion_ids=one, logprobs=(0.0,) * len(one)) for one in ids]
        rewards = [Reward(total=reward, parts={}) for reward in work.rewards]
        return ScoredGroup.of_tokens(tokens, rewards, policy_version=self.learner.policy_version)


class Reference:
    """GenRL's procedure in the shape of `Own`."""

    def __init__(self, trainer: reference.GenrlTrainer) -> None:
        self.trainer = trainer

    def solve(self, work: Work) -> int:
        texts = self.trainer.generate(work.chats, work.num_tokens)
        return sum(len(group) for group in texts) * work.num_tokens  # its end token is held back

    def learn(self, work: Work) -> int:
        texts = training_texts(self.trainer.tokenizer, work)
        self.trainer.train(work.chats, texts, torch.tensor([work.rewards] * len(work.tasks)))
        return self.trainer.count_tokens(texts)

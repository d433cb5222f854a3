from dataclasses import replace

import pytest
import torch

from codezero.config import RolloutConfig
from codezero.errors import RolloutError
from codezero.llm.sample import sample_groups
from codezero.llm.within_memory import WithinMemory
from codezero.policy.solver import PolicySolver, sampling
from codezero.prompts import solver as prompt
from codezero.train.claims import unpacked
from codezero.types import FinishReason, SampledTokens
from tests.builders import loaded, task
from tests.unit.train.builders import text_encoder


@pytest.fixture(scope="module")
def policy():
    return loaded()


def solver(
    policy,
    seed=0,
    progress=lambda *_: None,
    sample=sample_groups,
    shares_logprobs=False,
    max_prompt_length=None,
    **config,
):
    settings = RolloutConfig(**{"num_generations": 3, "max_new_tokens": 40, **config})
    return PolicySolver(
        policy,
        settings.num_generations,
        sampling(settings),
        seed=seed,
        peer_id="local",
        progress=progress,
        sample=sample,
        shares_logprobs=shares_logprobs,
        max_prompt_length=max_prompt_length,
    )


@pytest.mark.parametrize(
    ("name", "sent"),
    [("/home/alice/models/mine/", "mine"), ("../mine", "mine"), ("org/model", "org/model"), ("tiny", "tiny")],
)
def test_other_nodes_get_a_folders_name_without_its_path(policy, name, sent):
    made = solver(replace(policy, name=name))
    assert made.group(task("first"), [], policy_version=1).model_id == sent


def test_one_group_a_task_with_g_rollouts_and_their_exact_tokens(policy):
    tasks = [task("first"), task("second, longer than the first")]
    groups = solver(policy).solve(tasks, policy_version=7)
    assert [group.task for group in groups] == tasks
    for group in groups:
        assert (group.peer_id, group.model_id, group.policy_version, len(group.rollouts)) == ("local", "tiny", 7, 3)
        for rollout in group.rollouts:
            assert list(rollout.tokens.prompt_ids) == policy.encode_chat(prompt.messages(group.task.question))
            ended = rollout.tokens.completion_ids[-1] == policy.end_ids[0]
            assert rollout.finish is (FinishReason.STOP if ended else FinishReason.LENGTH)
            assert ended or len(rollout.tokens.completion_ids) == 40
            assert "<|im_end|>" not in rollout.text


A, B, NOT_UTF8, START, END, OTHER_END = 64, 65, 127, 258, 256, 257


@pytest.mark.parametrize(
    ("ids", "is_shared"),
    [
        ((A, B, END), True),
        ((A, B), True),
        ((A, NOT_UTF8, B), False),
        ((A, START, B, END), False),
        ((A, B, OTHER_END), False),
        ((END,), False),
    ],
    ids=["ended", "cut off", "no text", "a token that is no text", "another end token", "nothing but an end"],
)
def test_log_probs_are_shared_where_others_get_the_sampled_tokens_from_the_text(policy, ids, is_shared):
    logprobs = tuple(-0.5 * number for number, _ in enumerate(ids))
    tokens = SampledTokens(prompt_ids=(1,), completion_ids=ids, logprobs=logprobs)
    policy = replace(policy, end_ids=(END, OTHER_END))
    made = {shares: solver(policy, shares_logprobs=shares).group(task(), [tokens], 0) for shares in (True, False)}
    (shared,), (kept,) = (one.rollouts for one in made.values())
    others = text_encoder(tokenizer=policy.tokenizer)
    assert kept.logprobs == b""
    assert unpacked(shared.logprobs, len(ids)) == (logprobs if is_shared else None)
    assert (others.completion_ids(shared) == ids) == is_shared


def test_both_ways_of_ending_occur(policy):
    finishes = {
        r.finish for g in solver(policy, num_generations=32, max_new_tokens=120).solve([task()], 0) for r in g.rollouts
    }
    assert finishes == {FinishReason.STOP, FinishReason.LENGTH}


def test_a_prompt_longer_than_the_context_is_left_out_and_counted(policy):
    made = solver(policy)
    groups = made.solve([task("x" * 3000), task("short")], 0)
    assert [group.task.question for group in groups] == ["short"]
    assert made.take_skipped() == {"prompt_too_long": 1}
    assert made.take_skipped() == {}


def test_a_prompt_longer_than_memory_holds_is_left_out_too(policy, caplog):
    short = len(policy.encode_chat(prompt.messages("short")))
    made = solver(policy, max_prompt_length=short)
    groups = made.solve([task("short"), task("longer")], 0)
    assert [group.task.question for group in groups] == ["short"]
    assert f"has {short + 1} tokens, memory holds a round of at most {short}" in caplog.text
    assert made.take_skipped() == {"prompt_too_long": 1}


def test_a_round_of_only_overlong_prompts_is_empty(policy):
    assert solver(policy).solve([task("x" * 3000)], 0) == ()


def test_resumed_solver_samples_what_an_unkilled_one_would(policy):
    unkilled, before, after = solver(policy), solver(policy), solver(policy, seed=99)
    unkilled.solve([task()], 0)
    before.solve([task()], 0)
    after.load_state_dict(before.state_dict())
    assert unkilled.solve([task()], 0) == after.solve([task()], 0)


def test_a_state_of_another_kind_of_device_is_a_new_seed_that_depends_on_it(policy):
    def resumed_from(number):
        made = solver(policy)
        made.load_state_dict({"generator": torch.full((16,), number, dtype=torch.uint8)})  # as long as CUDA's
        return made.solve([task()], 0)

    assert resumed_from(1) == resumed_from(1) != resumed_from(2)


@pytest.mark.parametrize("room", [9, 5, 2, 1])
def test_a_batch_that_memory_does_not_hold_is_split_now_and_later(policy, room):
    tried = []

    def sample(model, request):
        tried.append(len(request.prompts) * request.num_generations)
        if tried[-1] > room:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return sample_groups(model, request)

    made = solver(policy, sample=WithinMemory(sample), max_new_tokens=2)
    tasks = [task("first"), task("second"), task("third")]
    found = made.solve(tasks, 0)
    assert [(group.task, len(group.rollouts)) for group in found] == [(one, 3) for one in tasks]
    assert tried[0] == 9
    tried.clear()
    made.solve(tasks, 0)
    assert sum(tried) == 9
    assert max(tried) <= room


def test_memory_that_holds_no_attempt_says_what_to_do(policy):
    def sample(model, request):
        raise torch.OutOfMemoryError("CUDA out of memory")

    with pytest.raises(RolloutError, match="set a smaller max_new_tokens"):
        solver(policy, sample=WithinMemory(sample)).solve([task()], 0)

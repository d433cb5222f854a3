import pytest
import torch

from codezero.config import RolloutConfig
from codezero.llm.load import load_model
from codezero.policy.solver import PolicySolver
from codezero.prompts import solver as prompt
from codezero.types import FinishReason
from tests.builders import save_tiny, task


@pytest.fixture(scope="module")
def policy(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tiny")
    save_tiny(folder)
    return load_model("tiny", folder, torch.device("cpu"), torch.float32)


def solver(policy, seed=0, progress=lambda *_: None, **config):
    settings = RolloutConfig(**{"num_generations": 3, "max_new_tokens": 40, **config})
    return PolicySolver(policy, settings, seed=seed, peer_id="local", progress=progress)


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

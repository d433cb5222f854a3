import copy
import logging
import math
from dataclasses import replace

import pytest
import torch
from peft import LoraConfig, get_peft_model

from codezero.config import Importance, LossType, RewardScale, RolloutEngine, TrainConfig
from codezero.errors import TrainingError
from codezero.llm.logprobs import CompletionScorer
from codezero.reports import SkipReason
from codezero.train.checkpoint import restore_weights
from codezero.types import FinishReason, Rollout, ScoredGroup
from tests.builders import group, rollout, scored, tiny_model, tiny_tokenizer
from tests.unit.train.builders import grpo_learner

GOOD, BAD = (40, 41, 42, 256), (50, 51)


def learner(
    model=None,
    progress=lambda stage, done, total: None,
    reference_model=None,
    engine=RolloutEngine.transformers,
    **config,
):
    plain = {"loss_type": LossType.grpo, "scale_rewards": RewardScale.group, "min_advantage": 0.0, "max_trained": 0}
    settings = {"learning_rate": 1e-3, "lora_learning_rate": 1e-2, **plain, **config}
    more = {"reference_model": reference_model, "engine": engine, "progress": progress}
    return grpo_learner(model or tiny_model(), TrainConfig(**settings), **more)


def adapted_model():
    return get_peft_model(tiny_model(), LoraConfig(target_modules="all-linear", r=4))


def good_and_bad(**kwargs):
    return scored([rollout(completion_ids=GOOD), rollout(completion_ids=BAD)], [1.0, 0.0], **kwargs)


def logprob(model, completion_ids):
    ids = torch.tensor([completion_ids])
    with torch.no_grad():
        return CompletionScorer(model, torch.tensor([1, 2, 3])).logprobs(ids, torch.ones_like(ids).bool()).sum().item()


def weights(model):
    return {name: p.detach().clone() for name, p in model.named_parameters()}


def assert_unchanged(model, before):
    for name, p in model.named_parameters():
        assert torch.equal(p, before[name]), name
        assert p.grad is None, name


def count_forwards(model):
    calls = []
    model.base_model.register_forward_hook(lambda *_: calls.append(1))
    return calls


def count_tokens(teacher):
    """A list to which each optimizer step adds the number of its tokens."""
    counts, add = [], teacher._passes.add_gradients

    def counting(minibatch, *rest):
        counts.append(sum(len(one.completion_ids) for one in minibatch))
        return add(minibatch, *rest)

    teacher._passes.add_gradients = counting
    return counts


@pytest.mark.parametrize("build", [tiny_model, adapted_model])
@pytest.mark.parametrize("checkpointing", [False, True])
def test_rewarded_completion_becomes_likelier_and_the_other_less(build, checkpointing):
    model = build()
    before = logprob(model, GOOD), logprob(model, BAD)
    teacher = learner(model, gradient_checkpointing=checkpointing)
    for version in range(5):
        report = teacher.step([good_and_bad(policy_version=version)])
    assert logprob(model, GOOD) > before[0] + 0.5
    assert logprob(model, BAD) < before[1] - 0.5
    assert report.policy_version == teacher.policy_version == 5
    assert report.skipped is None
    assert all(p.grad is None for p in model.parameters())
    assert not any(m.training for m in model.modules())


def test_adapter_training_leaves_the_base_as_it_is():
    model = adapted_model()
    before = weights(model)
    learner(model).step([good_and_bad()])
    moved = {name for name, p in model.named_parameters() if not torch.equal(p, before[name])}
    assert moved
    assert all("lora_" in name for name in moved)


def ragged():
    draw = torch.Generator().manual_seed(0)
    ids = lambda n: torch.randint(0, 256, (n,), generator=draw).tolist()  # noqa: E731
    groups = []
    for size in (2, 3, 5):
        prompt_ids = ids(size)
        rollouts = [rollout(prompt_ids=prompt_ids, completion_ids=ids(1 + 2 * i)) for i in range(size)]
        groups.append(scored(rollouts, [float(i % 2) for i in range(size)]))
    return groups


@pytest.mark.parametrize("loss_type", ["grpo", "dr_grpo", "dapo"])
@pytest.mark.parametrize("build", [tiny_model, adapted_model])
def test_micro_batches_and_checkpointing_change_memory_not_the_result(build, loss_type):
    settings = {"loss_type": LossType(loss_type), "max_grad_norm": 1e9}
    wanted = learner(build(), **settings).step(ragged())
    for size, checkpointing in ((1, False), (2, False), (3, True), (16, False)):
        found = learner(build(), micro_batch_size=size, gradient_checkpointing=checkpointing, **settings).step(ragged())
        assert found.loss == pytest.approx(wanted.loss, abs=1e-6)
        assert found.grad_norm == pytest.approx(wanted.grad_norm, rel=1e-5)


def test_checkpointing_runs_each_layer_again_in_the_backward_pass():
    model = tiny_model()
    calls = []
    teacher = learner(model, gradient_checkpointing=True)
    model.base_model.layers[0].mlp.register_forward_pre_hook(lambda *_: calls.append(1))
    teacher.step([good_and_bad()])
    assert len(calls) == 2


def test_groups_of_equal_rewards_cost_no_forward():
    model = tiny_model()
    teacher = learner(model)
    before, calls = weights(model), count_forwards(model)
    equal = scored([rollout(), rollout()], [0.7, 0.7])

    report = teacher.step([equal, equal])
    assert (report.skipped, report.num_zero_advantage, len(calls)) == (SkipReason.ZERO_ADVANTAGE, 2, 0)
    assert_unchanged(model, before)
    assert report.policy_version == 0

    report = teacher.step([equal, good_and_bad()])
    assert (report.skipped, report.num_zero_advantage, len(calls)) == (None, 1, 3)  # prompt, micro-batch, prompt


def naive_gradient_norm(prompts, completions, rewards):
    """The norm of the policy gradient as it is written down, with one sequence a forward pass."""
    model, total = tiny_model(), torch.tensor(rewards)
    advantages = (total - total.mean()) / (total.std() + 1e-4)
    for prompt, completion, advantage in zip(prompts, completions, advantages, strict=True):
        logits = model(torch.tensor([prompt + completion])).logits[0, len(prompt) - 1 : -1]
        logprobs = logits.log_softmax(-1)[range(len(completion)), list(completion)]
        (-advantage * logprobs.mean() / len(rewards)).backward()
    return torch.stack([p.grad.norm() for p in model.parameters()]).norm().item()


def three_attempts():
    return scored([rollout(completion_ids=ids) for ids in (GOOD, (60, 61, 62), BAD)], [1.0, 0.5, 0.0])


def test_an_attempt_without_advantage_costs_no_forward_and_counts_in_the_mean():
    model = tiny_model()
    teacher = learner(model, micro_batch_size=1)
    calls = count_forwards(model)
    found = teacher.step([three_attempts()])
    assert len(calls) == 2 + 2  # the prompt, which is run again for its gradients, and the two that teach
    naive = naive_gradient_norm([(1, 2, 3)] * 3, [GOOD, (60, 61, 62), BAD], [1.0, 0.5, 0.0])
    assert found.grad_norm == pytest.approx(naive, rel=1e-4)


def test_an_attempt_without_advantage_is_passed_where_the_kl_penalty_needs_it():
    model = adapted_model()
    teacher = learner(model, micro_batch_size=1, beta=0.04)
    calls = count_forwards(model.get_base_model())
    teacher.step([three_attempts()])
    assert len(calls) == (1 + 3) + (2 + 3)  # of the reference, and of the policy, whose prompt is run again


def test_an_optimizer_step_of_attempts_without_advantage_is_still_one():
    model = tiny_model()
    teacher = learner(model, minibatch_size=1)
    teacher.step([three_attempts()])
    assert teacher.state_dict()["optimizer"]["num_steps"] == 3


def test_more_than_one_step_freezes_the_old_logprobs_once():
    model = tiny_model()
    teacher = learner(model, num_iterations=2)
    calls = count_forwards(model)
    report = teacher.step([good_and_bad()])
    assert len(calls) == 2 + 2 * 3  # once without gradient, twice with, where the prompt is run again
    assert report.policy_version == 1


def test_ratio_is_clipped_after_a_large_first_step():
    assert learner(num_iterations=1, learning_rate=0.05).step([good_and_bad()]).clip_fraction == 0.0
    assert learner(num_iterations=3, learning_rate=0.05).step([good_and_bad()]).clip_fraction > 0.3


def test_m2po_measures_the_ratios_before_every_step_but_the_first():
    model = tiny_model()
    teacher = learner(model, loss_type=LossType.m2po, num_iterations=3, learning_rate=0.05)
    calls = count_forwards(model)
    assert teacher.step([good_and_bad()]).clip_fraction > 0
    assert len(calls) == 2 + 3 + 2 * (2 + 3)  # old log-probs, the first step, and two with a pass for their bounds


def test_minibatches_take_several_optimizer_steps():
    teacher = learner(minibatch_size=3)
    teacher.step(ragged())
    assert teacher.state_dict()["optimizer"]["num_steps"] == 4  # 10 sequences in threes


def test_stale_local_group_is_corrected_by_its_recorded_logprobs():
    model = tiny_model()
    likely = tuple(logprob(model, GOOD[: i + 1]) - (logprob(model, GOOD[:i]) if i else 0.0) for i in range(4))
    rollouts = [rollout(completion_ids=GOOD, logprobs=[x - 1 for x in likely]), rollout(completion_ids=BAD)]
    teacher = learner(model)
    teacher.policy_version = 3
    assert teacher.step([scored(rollouts, [1.0, 0.0], policy_version=2)]).clip_fraction >= 4 / 6


def test_own_rollouts_of_one_group_may_each_have_a_prompt_of_their_own():
    prompts, completions, rewards = [(1, 2, 3), (9, 8), (1, 2, 3)], [GOOD, BAD, (60, 61, 62)], [1.0, -0.5, 0.0]
    rollouts = [rollout(prompt_ids=p, completion_ids=c) for p, c in zip(prompts, completions, strict=True)]
    report = learner().step([scored(rollouts, rewards)])
    assert report.grad_norm == pytest.approx(naive_gradient_norm(prompts, completions, rewards), rel=1e-4)


def test_unscored_groups_are_left_out(caplog):
    caplog.set_level(logging.INFO)
    unscored = ScoredGroup(group=group([rollout(), rollout()]), verdicts=(), rewards=())
    report = learner().step([unscored])
    assert report.skipped is SkipReason.NO_GROUPS
    assert caplog.messages == ["no update: no scored groups (0 of 1 groups scored)"]
    assert learner().step([]).skipped is SkipReason.NO_GROUPS
    assert learner().step([unscored, good_and_bad()]).skipped is None


def test_nan_reward_stops_the_update(caplog):
    caplog.set_level(logging.INFO)
    model = tiny_model()
    before = weights(model)
    report = learner(model).step([good_and_bad(), scored([rollout(), rollout()], [math.nan, 1.0])])
    assert report.skipped is SkipReason.NOT_FINITE
    assert "rewards [nan, 1.0] of " in caplog.text
    assert_unchanged(model, before)


@pytest.mark.parametrize("bad", [-math.inf, -1e4])
def test_a_ratio_that_is_not_finite_stops_the_update(bad, caplog):
    caplog.set_level(logging.INFO)
    model = tiny_model()
    teacher = learner(model)
    teacher.policy_version = 1
    before = weights(model)
    # An impossible old log-prob makes the ratio infinite; a clip bounds its value, but 0 times infinity is no gradient.
    rollouts = [rollout(completion_ids=GOOD), rollout(completion_ids=BAD, logprobs=(bad, bad))]
    report = teacher.step([scored(rollouts, [1.0, 0.0], policy_version=0)])
    assert report.skipped is SkipReason.NOT_FINITE
    assert "(gradient norm is nan in optimizer step 1 of 1;" in caplog.text
    assert report.policy_version == 1
    assert_unchanged(model, before)
    assert teacher.step([good_and_bad(policy_version=1)]).skipped is None


def test_gradient_that_is_not_finite_stops_the_update(caplog):
    caplog.set_level(logging.INFO)
    model = tiny_model()
    before = weights(model)
    model.base_model.norm.weight.register_hook(lambda grad: grad * math.nan)
    assert learner(model).step([good_and_bad()]).skipped is SkipReason.NOT_FINITE
    assert "(gradient norm is nan" in caplog.text
    assert_unchanged(model, before)


def test_peers_text_is_learned_from():
    model = tiny_model()
    texts = [Rollout(text="good", finish=FinishReason.STOP), Rollout(text="", finish=FinishReason.STOP)]
    ids = (*tiny_tokenizer()("good").input_ids, 256)
    before = logprob(model, ids)
    teacher = learner(model)
    counts = count_tokens(teacher)
    teacher.step([scored(texts, [1.0, 0.0], external=True, peer_id="peer")])
    assert logprob(model, ids) > before
    assert counts == [5]  # four bytes and the end; the empty text is dropped but counts in the mean reward


@pytest.mark.parametrize("num_iterations", [1, 3])
def test_peers_text_updates_exactly_as_the_same_tokens_of_our_own_do(num_iterations):
    texts = [Rollout(text="good", finish=FinishReason.STOP), Rollout(text="bad", finish=FinishReason.LENGTH)]
    good, bad = (tuple(tiny_tokenizer()(text).input_ids) for text in ("good", "bad"))
    unknown = float("nan")  # what sampled them: peers do not tell either
    tokens = [rollout(completion_ids=ids, logprobs=[unknown] * len(ids)) for ids in ((*good, 256), bad)]
    of_peer, of_own = tiny_model(), tiny_model()
    settings = {"num_iterations": num_iterations, "learning_rate": 0.05}
    found = learner(of_peer, **settings).step([scored(texts, [1.0, 0.0], external=True, peer_id="peer")])
    wanted = learner(of_own, **settings).step([scored(tokens, [1.0, 0.0])])
    assert found == wanted
    assert (found.clip_fraction > 0.3) == (num_iterations == 3)  # old log-probs are those of our policy
    assert all(torch.equal(a, b) for a, b in zip(of_peer.parameters(), of_own.parameters(), strict=True))


def test_hostile_groups_of_peers_of_any_size_are_learned_from_beside_our_own():
    texts = ["", "\x00", "<|im_end|>", "\u202e" * 9, "a" * 100_000, "", "ok"]
    sizes = (1, 2, 7)
    peers = [
        scored(
            [Rollout(text=text, finish=FinishReason.STOP) for text in texts[-size:]],
            [float(i) for i in range(size)],
            external=True,
            peer_id=f"peer {size}",
        )
        for size in sizes
    ]
    teacher = learner()
    counts = count_tokens(teacher)
    report = teacher.step([good_and_bad(), *peers])
    assert report.skipped is None
    assert report.num_zero_advantage == 1  # the group of one
    assert counts == [6 + 3 + (2 + 8 + 8 + 8 + 3)]  # ours, "ok", and the last group cut to 8 tokens each


def test_only_empty_completions_is_a_skipped_update():
    texts = [Rollout(text="", finish=FinishReason.LENGTH)] * 2
    report = learner().step([scored(texts, [1.0, 0.0], external=True)])
    assert report.skipped is SkipReason.NO_GROUPS


def test_progress_counts_sequences_of_every_pass():
    seen = []
    learner(num_iterations=2, progress=lambda *args: seen.append(args), micro_batch_size=1).step([good_and_bad()])
    assert seen == [("learn", 1, 4), ("learn", 2, 4), ("learn", 3, 4), ("learn", 4, 4)]


@pytest.mark.parametrize("build", [tiny_model, adapted_model])
def test_kl_against_the_starting_weights_or_the_adapters_base_starts_at_zero(build):
    model = build()
    reference = None if build is adapted_model else copy.deepcopy(model).requires_grad_(False)
    teacher = learner(model, beta=0.04, reference_model=reference)
    assert teacher.step([good_and_bad()]).kl == pytest.approx(0.0, abs=1e-9)
    assert teacher.step([good_and_bad(policy_version=1)]).kl > 1e-6


def test_resumed_learner_goes_on_as_if_never_stopped():
    straight = tiny_model()
    teacher = learner(straight, scale_rewards=RewardScale.none)
    teacher.step([good_and_bad()])
    resumed = tiny_model()
    resumed.load_state_dict(copy.deepcopy(straight.state_dict()))
    other = learner(resumed, scale_rewards=RewardScale.none)
    other.load_state_dict(copy.deepcopy(teacher.state_dict()))
    for each in (teacher, other):
        each.step([good_and_bad(policy_version=1)])
    assert other.policy_version == 2
    assert all(torch.equal(a, b) for a, b in zip(straight.parameters(), resumed.parameters(), strict=True))


@pytest.mark.parametrize("masters", [True, False])
def test_bfloat16_weights_learn_from_steps_below_their_precision(masters):
    model = tiny_model().bfloat16()
    teacher = learner(model, learning_rate=2e-5, masters=masters)
    before = weights(model)
    teacher.step([good_and_bad()])
    first = sum(int((p != before[n]).sum()) for n, p in model.named_parameters())
    for version in range(1, 20):
        teacher.step([good_and_bad(policy_version=version)])
    last = sum(int((p != before[n]).sum()) for n, p in model.named_parameters())
    assert last > 3 * first


@pytest.mark.parametrize("is_old", [False, True])
def test_masters_survive_a_resume(is_old):
    model = tiny_model().bfloat16()
    teacher = learner(model, learning_rate=2e-5)
    teacher.step([good_and_bad()])
    state, weights_then = copy.deepcopy(teacher.state_dict()), copy.deepcopy(teacher.weights())
    if is_old:  # the first format: weights as the model has them, masters beside the moments
        state["optimizer"]["masters"] = list(weights_then.values())
        weights_then = {name: weight.bfloat16() for name, weight in weights_then.items()}
    teacher.step([good_and_bad(policy_version=1)])
    resumed = tiny_model().bfloat16()
    other = learner(resumed, learning_rate=2e-5)
    restore_weights(other.weights(), weights_then)
    other.load_state_dict(state)
    other.step([good_and_bad(policy_version=1)])
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), resumed.parameters(), strict=True))


OUT_OF_MEMORY = {
    "cuda": torch.OutOfMemoryError("CUDA out of memory"),
    "mps": RuntimeError("MPS backend out of memory (MPS allocated: 17.9 GB, max allowed: 18.1 GB)"),
}


def full_memory_above(model, limit, error=OUT_OF_MEMORY["cuda"]):
    def check(module, args, kwargs):
        if len(kwargs["inputs_embeds"]) > limit:
            raise error

    model.base_model.register_forward_pre_hook(check, with_kwargs=True)


@pytest.mark.parametrize("error", OUT_OF_MEMORY.values(), ids=OUT_OF_MEMORY)
def test_out_of_memory_halves_the_micro_batch_and_gives_the_same_update(error):
    rollouts = [rollout(completion_ids=(4, 5, 6 + i)) for i in range(5)]
    rewards = [0.0, 1.0, 0.0, 2.0, 3.0]
    roomy, small = tiny_model(), tiny_model()
    wanted = learner(roomy).step([scored(rollouts, rewards)])
    teacher = learner(small)
    full_memory_above(small, 2, error)
    found = teacher.step([scored(rollouts, rewards)])
    assert found.loss == pytest.approx(wanted.loss, abs=1e-6)
    assert found.grad_norm == pytest.approx(wanted.grad_norm, rel=1e-5)
    calls = count_forwards(small)
    teacher.step([scored(rollouts, rewards, policy_version=1)])
    assert len(calls) == 2 + 3  # no second attempt: the smaller size is remembered


def test_out_of_memory_with_one_sequence_says_what_to_do():
    model = tiny_model()
    teacher = learner(model)
    full_memory_above(model, 0)
    before = weights(model)
    with pytest.raises(TrainingError, match="gradient_checkpointing"):
        teacher.step([good_and_bad()])
    assert_unchanged(model, before)


@pytest.mark.parametrize("loss_type", LossType)
@pytest.mark.parametrize("scale", RewardScale)
def test_a_masked_attempt_is_as_if_it_had_never_been_sampled(loss_type, scale):
    attempts = [(GOOD, 1.0), ((60, 61, 62, 63, 64), None), (BAD, 0.0), (BAD, None), ((70,), 0.25)]
    after = []
    for kept in (attempts, [one for one in attempts if one[1] is not None]):
        model = tiny_model()
        groups = [scored([rollout(completion_ids=ids) for ids, _ in kept], [reward for _, reward in kept])]
        groups += [scored([rollout(completion_ids=GOOD)] * 2, [1.0, None])] * (len(kept) == len(attempts))
        report = learner(model, loss_type=loss_type, scale_rewards=scale, beta=0.0).step(groups)
        after.append((weights(model), report.loss, report.num_zero_advantage))
    (moved, *numbers), (expected, *same) = after
    assert numbers == same
    assert all(torch.equal(moved[name], expected[name]) for name in expected)


def test_of_a_group_only_those_whose_rewards_vary_most_are_trained_on():
    rewards = [0.5, 1.0, 0.4, 0.0]
    after = []
    for kept, most in ((rewards, 2), ([None, 1.0, None, 0.0], 0)):
        model = tiny_model()
        group = scored([rollout(completion_ids=ids) for ids in (GOOD, GOOD, BAD, BAD)], kept)
        teacher = learner(model, max_trained=most)
        counts = count_tokens(teacher)
        teacher.step([group])
        assert counts == [len(GOOD) + len(BAD)]
        after.append(weights(model))
    moved, expected = after
    assert all(torch.equal(moved[name], expected[name]) for name in expected)


def test_a_round_in_which_too_little_could_be_told_makes_no_update():
    model = tiny_model()
    before = weights(model)
    report = learner(model).step([scored([rollout()] * 3, [None, 1.0, None]), scored([rollout()] * 2, [None, None])])
    assert (report.skipped, report.num_zero_advantage) == (SkipReason.NO_GROUPS, 0)
    assert_unchanged(model, before)


def sampled(model, shift=0.0):
    """A group whose sampler found each token likelier than the model does by `shift`."""
    rollouts = []
    for ids in (GOOD, BAD):
        found = torch.tensor([ids])
        with torch.no_grad():
            present = CompletionScorer(model, torch.tensor([1, 2, 3])).logprobs(found, torch.ones_like(found).bool())
        rollouts.append(rollout(completion_ids=ids, logprobs=[x + shift for x in present[0].tolist()]))
    return scored(rollouts, (1.0, 0.0))


@pytest.mark.parametrize("steps", [{}, {"num_iterations": 2, "minibatch_size": 1}])
def test_sampler_and_learner_are_compared_before_the_update(steps, caplog):
    model = tiny_model()
    report = learner(model, **steps).step([sampled(model)])
    assert report.sampler_gap == pytest.approx(0.0, abs=1e-5)
    assert report.sample_size == pytest.approx(1.0, abs=1e-6)
    report = learner(model, **steps).step([sampled(model, shift=-0.01)])
    assert report.sampler_gap == pytest.approx(0.01, abs=1e-4)
    assert not [record for record in caplog.records if record.name.startswith("codezero.train")]


@pytest.mark.parametrize(
    ("engine", "fix"),
    [(RolloutEngine.llama_cpp, "rollout.engine=transformers"), (RolloutEngine.transformers, "model.dtype=float32")],
)
def test_a_sampler_that_is_not_the_policy_is_warned_of_with_what_to_do(engine, fix, caplog):
    model = tiny_model()
    report = learner(model, engine=engine).step([sampled(model, shift=0.3)])
    assert report.sampler_gap == pytest.approx(0.3, abs=1e-4)
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert fix in caplog.text


def test_peers_texts_are_not_compared_with_any_sampler():
    peers = [Rollout(text=text, finish=FinishReason.STOP, tokens=None) for text in ("ab", "c")]
    assert learner().step([scored(peers, [1.0, 0.0], external=True)]).sampler_gap is None


def gradient_norm(engine, shift, **config):
    model = tiny_model()
    return learner(model, engine=engine, **config).step([sampled(model, shift)]).grad_norm


def test_tokens_of_another_sampler_are_weighed_and_our_own_are_not():
    plain = gradient_norm(RolloutEngine.transformers, 0.0)
    assert gradient_norm(RolloutEngine.transformers, -0.5) == plain
    assert gradient_norm(RolloutEngine.llama_cpp, -0.5, importance=Importance.none) == plain
    assert gradient_norm(RolloutEngine.llama_cpp, -0.5) == pytest.approx(plain * math.exp(0.5), rel=1e-4)
    assert gradient_norm(RolloutEngine.llama_cpp, -5.0, importance_cap=2.0) == pytest.approx(plain * 2.0, rel=1e-4)


@pytest.mark.parametrize("weight", [0.5, 2.0])
def test_a_group_s_weight_is_a_factor_of_its_gradient(weight):
    group = good_and_bad()
    plain, weighted = (learner(max_grad_norm=1e9).step([replace(group, weight=one)]) for one in (1.0, weight))
    assert weighted.grad_norm == pytest.approx(weight * plain.grad_norm, rel=1e-5)

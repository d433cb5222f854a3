"""M2PO's bounds and loss against AstraFlow's clip range and the paper's mask, both written anew with numpy."""

import math

import numpy as np
import pytest
import torch

from codezero.config import LossType, TrainConfig
from codezero.train.batch import TrainSequence
from codezero.train.trust_region import HIGHEST, LOWEST, second_moment_bounds
from tests.builders import tiny_model
from tests.unit.train.builders import flat_gradient, policy_passes

TAU = 0.04
PROMPT = (1, 2, 3)


def bounds(log_ratios, advantages, tau=TAU):
    found = second_moment_bounds(torch.tensor(log_ratios), torch.tensor(advantages), tau)
    return found.low, found.high


def concerned(log_ratios, advantages):
    """True for tokens with A > 0 and r > 1, or A < 0 and r < 1."""
    return ((advantages > 0) & (log_ratios > 0)) | ((advantages < 0) & (log_ratios < 0))


def clip_range_of_astraflow(log_ratios, advantages, tau):
    """1 - eps_low and 1 + eps_high: t² is the largest squared log ratio that is kept, and one always is."""
    squares = np.sort(log_ratios[concerned(log_ratios, advantages)] ** 2)[::-1]
    if len(squares) == 0 or squares.mean() <= tau:
        return 1 - 0.95, 1 + 20.0
    rests = [squares[dropped:].mean() for dropped in range(len(squares))]
    dropped = next((i for i, mean in enumerate(rests) if mean < tau), len(squares) - 1)
    t = math.sqrt(squares[dropped])
    return 1 - min(1 - math.exp(-t), 0.95), 1 + min(math.exp(t) - 1, 20.0)


def mask_of_the_paper(log_ratios, advantages, tau):
    """M: the tokens with the largest squared log ratios are left out until the mean of the others is at most tau."""
    kept = np.ones(len(log_ratios), bool)
    among = concerned(log_ratios, advantages)
    while (among & kept).any() and (log_ratios[among & kept] ** 2).mean() > tau:
        kept[np.argmax(np.where(among & kept, log_ratios**2, -1.0))] = False
    return kept


def clipped(log_ratios, advantages, low, high):
    ratios = np.exp(log_ratios)
    return ((ratios < low) & (advantages < 0)) | ((ratios > high) & (advantages > 0))


def drawn(seed, num=60, spread=0.4):
    rng = np.random.default_rng(seed)
    return rng.normal(0, spread, num), rng.normal(0, 1, num)


def test_the_tokens_left_out_are_those_worked_out_by_hand():
    log_ratios, advantages = [0.1, -0.2, 0.3, 0.4, -0.5, -3.0, 3.0], [1.0, -1.0, 0.5, 2.0, -1.0, 1.0, -1.0]
    # Of the five concerned the squares are .01 .04 .09 .16 .25, their running means .01 .025 .047 .075 .11.
    assert bounds(log_ratios, advantages) == pytest.approx((math.exp(-0.25), math.exp(0.25)))
    assert bounds(log_ratios, advantages, tau=0.05) == pytest.approx((math.exp(-0.35), math.exp(0.35)))
    log_ratios, advantages = np.array(log_ratios), np.array(advantages)
    assert clip_range_of_astraflow(log_ratios, advantages, TAU) == pytest.approx((math.exp(-0.2), math.exp(0.2)))
    assert mask_of_the_paper(log_ratios, advantages, TAU).tolist() == [True, True, False, False, False, True, True]


@pytest.mark.parametrize("tau", [0.002, 0.01, 0.04, 0.1, 1.0])
def test_the_same_tokens_are_left_out_as_by_astraflow_and_the_paper(tau):
    num_left_out = 0
    for seed in range(20):
        log_ratios, advantages = drawn(seed)
        found = clipped(log_ratios, advantages, *bounds(log_ratios, advantages, tau))
        low, high = clip_range_of_astraflow(log_ratios, advantages, tau)
        assert (found == clipped(log_ratios, advantages, low * (1 - 1e-9), high * (1 + 1e-9))).all()
        left_out = ~mask_of_the_paper(log_ratios, advantages, tau)
        if (left_out != concerned(log_ratios, advantages)).any():  # else the paper keeps none, and AstraFlow one
            assert (found == left_out).all()
        num_left_out += found.sum()
    assert (num_left_out > 100) == (tau <= 0.04)
    assert (num_left_out > 0) == (tau < 1.0)


def test_bounds_narrow_as_tau_falls():
    log_ratios, advantages = drawn(0, spread=0.8)
    found = [bounds(log_ratios, advantages, tau) for tau in (math.inf, 0.1, 0.04, 0.01, 0.001)]
    assert found == sorted(found)
    assert found == sorted(found, key=lambda pair: -pair[1])
    assert len(set(found)) == 5
    assert found[0] == (LOWEST, HIGHEST)


def test_one_outlier_is_left_out_alone():
    log_ratios, advantages = np.array([0.1, -0.1] * 50 + [3.0]), np.array([1.0, -1.0] * 50 + [1.0])
    left_out = clipped(log_ratios, advantages, *bounds(log_ratios, advantages))
    assert left_out.tolist() == [False] * 100 + [True]


def test_one_token_beyond_the_outer_bounds_is_clipped_whatever_the_mean():
    assert bounds([5.0] + [0.001] * 1000, [1.0] * 1001) == (LOWEST, HIGHEST)
    assert bounds([5.0, 6.0] + [0.001] * 1000, [1.0] * 1002) == pytest.approx((LOWEST, HIGHEST))


def test_infinite_and_unknown_ratios_do_no_harm():
    assert bounds([math.inf, 0.1, 0.2, math.nan], [1.0, 1.0, 1.0, 1.0]) == pytest.approx((LOWEST, HIGHEST))
    assert bounds([], []) == bounds([0.0], [1.0]) == (LOWEST, HIGHEST)


def passes(model, **config):
    return policy_passes(model, TrainConfig(**{"loss_type": LossType.m2po, **config}))


def present_logprobs(model, completion_ids):
    logits = model(torch.tensor([(*PROMPT, *completion_ids)])).logits[0, len(PROMPT) - 1 : -1]
    return logits.log_softmax(-1)[range(len(completion_ids)), list(completion_ids)]


def stale_sequences():
    """Completions of 2 to 7 tokens, sampled by a policy whose log-probs differ by 0.4."""
    rng, model, found = np.random.default_rng(0), tiny_model(), []
    for length in range(2, 8):
        ids = tuple(rng.integers(0, 256, length).tolist())
        old = present_logprobs(model, ids).detach().numpy() + rng.normal(0, 0.4, length)
        advantage = rng.normal()
        found.append(
            TrainSequence(prompt_ids=PROMPT, completion_ids=ids, advantage=advantage, old_logprobs=tuple(old.tolist()))
        )
    return found


def gradient_of_the_paper(sequences, tau):
    """The gradient of -J, J = 1/N Σ M r A, and the number of tokens left out."""
    model = tiny_model()
    rows = [present_logprobs(model, s.completion_ids) - torch.tensor(s.old_logprobs) for s in sequences]
    log_ratios = torch.cat(rows)
    advantages = torch.cat([torch.full((len(s.completion_ids),), s.advantage) for s in sequences])
    kept = mask_of_the_paper(log_ratios.detach().double().numpy(), advantages.double().numpy(), tau)
    (-(log_ratios.exp() * advantages)[torch.tensor(kept)].sum() / len(kept)).backward()
    return flat_gradient(model), int((~kept).sum())


@pytest.mark.parametrize("tau", [0.01, 0.04, 0.1, math.inf])
@pytest.mark.parametrize("micro_batch_size", [1, 4, 0])
def test_the_gradient_is_the_papers_whatever_the_micro_batches(tau, micro_batch_size):
    sequences = stale_sequences()
    wanted, num_left_out = gradient_of_the_paper(sequences, tau)
    assert (num_left_out > 2) == (tau <= 0.04)
    model = tiny_model()
    result = passes(model, m2_threshold=tau, micro_batch_size=micro_batch_size).add_gradients(sequences, 0, 6)
    assert result.clipped_tokens == num_left_out
    assert wanted.abs().max() > 0.01
    torch.testing.assert_close(flat_gradient(model), wanted, atol=1e-6, rtol=1e-5)


def test_a_right_token_that_an_earlier_policy_hardly_knew_counts_in_full():
    """The cap on importance weights concerns attempts below the mean alone."""
    gaps = torch.tensor([0.0, math.log(5.0), 0.0])
    old = present_logprobs(tiny_model(), (7, 8, 9)).detach() - gaps
    sequence = TrainSequence(
        prompt_ids=PROMPT, completion_ids=(7, 8, 9), advantage=1.0, old_logprobs=tuple(old.tolist())
    )
    wanted, _ = gradient_of_the_paper([sequence], math.inf)
    model = tiny_model()
    result = passes(model, m2_threshold=math.inf).add_gradients([sequence], 0, 1)
    assert result.clipped_tokens == 0
    torch.testing.assert_close(flat_gradient(model), wanted, atol=1e-5, rtol=1e-3)


@pytest.mark.parametrize("loss_type", [LossType.m2po, LossType.grpo])
def test_a_wrong_token_that_an_earlier_policy_hardly_knew_teaches_nothing(loss_type):
    """Its ratio is between the cap on importance weights, 3, and the upper bound of either loss."""
    old = present_logprobs(tiny_model(), (7, 8, 9)).detach() - math.log(10.0)
    sequence = TrainSequence(
        prompt_ids=PROMPT, completion_ids=(7, 8, 9), advantage=-1.0, old_logprobs=tuple(old.tolist())
    )
    model = tiny_model()
    result = passes(model, loss_type=loss_type, epsilon_high=20.0).add_gradients([sequence], 0, 1)
    assert result.clipped_tokens == 3
    assert result.loss == pytest.approx(3.0)
    assert flat_gradient(model).abs().max() == 0


def test_attempts_without_known_behaviour_are_not_clipped_and_cost_no_pass():
    fresh = [
        TrainSequence(prompt_ids=PROMPT, completion_ids=(7, 8, 9), advantage=1.0),
        TrainSequence(prompt_ids=PROMPT, completion_ids=(7, 9, 8), advantage=-1.0),
    ]
    found = []
    for loss_type in (LossType.m2po, LossType.dapo):
        model, calls = tiny_model(), []
        model.base_model.register_forward_hook(lambda *_, calls=calls: calls.append(1))
        result = passes(model, loss_type=loss_type).add_gradients(fresh, 0, 2)
        found.append((len(calls), result.clipped_tokens, result.loss, flat_gradient(model).tolist()))
    assert found[0] == found[1]


def test_a_stale_attempt_does_not_change_what_new_ones_teach():
    fresh = TrainSequence(prompt_ids=PROMPT, completion_ids=(7, 8, 9), advantage=1.0)
    far = TrainSequence(prompt_ids=PROMPT, completion_ids=(9, 9), advantage=1.0, old_logprobs=(-90.0, -91.0))
    model, alone = tiny_model(), tiny_model()
    result = passes(model).add_gradients([fresh, far], 0, 2)
    passes(alone).add_gradients([fresh], 0, 1)
    assert result.clipped_tokens == 2
    torch.testing.assert_close(flat_gradient(model), flat_gradient(alone) * 3 / 5, atol=2e-6, rtol=1e-5)

"""Loss and gradients against TRL's GRPOTrainer on the same tokens, advantages and old log-probs."""

import math
import random
from dataclasses import replace

import pytest
import torch
from datasets import Dataset
from trl import GRPOConfig, GRPOTrainer

from codezero.config import Importance, LossType, TrainConfig
from codezero.train.batch import TrainSequence
from codezero.train.passes import PolicyPasses
from tests.builders import tiny_model, tiny_tokenizer
from tests.unit.train.builders import flat_gradient, policy_passes

MAX_LENGTH = 12
PAD = 258
TRLS = [one for one in LossType if one is not LossType.m2po]


def sequences(with_old: bool) -> list[TrainSequence]:
    """Five prompts, groups of 2, 3, 5, 2 and 4 with completions of 1 to 12 tokens."""
    draw = random.Random(3)
    ids = lambda n: tuple(draw.randrange(256) for _ in range(n))  # noqa: E731
    found = []
    for size, prompt_length in zip((2, 3, 5, 2, 4), (7, 1, 4, 9, 3), strict=True):
        prompt_ids = ids(prompt_length)
        for _ in range(size):
            found.append(
                TrainSequence(
                    prompt_ids=prompt_ids, completion_ids=ids(draw.randint(1, 12)), advantage=draw.gauss(0, 1)
                )
            )
    if not with_old:
        return found
    # Ratios off 1 by more than 0.2 for about half of the tokens.
    present = passes(tiny_model(), TrainConfig()).with_old_logprobs(found)
    return [replace(s, old_logprobs=tuple(x + draw.gauss(0, 0.4) for x in s.old_logprobs)) for s in present]


def passes(model, config, reference_model=None) -> PolicyPasses:
    given = {"temperature": 0.9, "max_completion_length": MAX_LENGTH, "reference_model": reference_model}
    return policy_passes(model, config, **given)


@pytest.fixture(scope="module")
def trainer(tmp_path_factory):
    config = GRPOConfig(
        output_dir=str(tmp_path_factory.mktemp("trl")),
        per_device_train_batch_size=16,
        num_generations=2,
        max_completion_length=MAX_LENGTH,
        temperature=0.9,
        bf16=False,
        use_cpu=True,
        gradient_checkpointing=False,
        report_to=[],
    )
    return GRPOTrainer(
        model=tiny_model(),
        reward_funcs=lambda completions, **kwargs: [0.0] * len(completions),
        args=config,
        train_dataset=Dataset.from_dict({"prompt": ["x"] * 16}),
        processing_class=tiny_tokenizer(),
    )


def padded(rows, side, value, dtype=torch.long):
    longest = max(len(row) for row in rows)
    fill = [[value] * (longest - len(row)) for row in rows]
    return torch.tensor(
        [[*f, *r] if side == "left" else [*r, *f] for r, f in zip(rows, fill, strict=True)], dtype=dtype
    )


def trl_loss_and_gradient(trainer, seqs, config: TrainConfig, reference, importance=None):
    """One call of TRL's loss on all sequences, its prompts left-padded as TRL pads them."""
    model = trainer.model
    model.zero_grad(set_to_none=True)
    trainer.loss_type = config.loss_type.value
    trainer.beta = config.beta
    trainer.args.delta = config.importance_cap
    is_cispo = config.loss_type is LossType.cispo  # whose bound of the ratio TRL calls epsilon_high as well
    trainer.epsilon_low, trainer.epsilon_high = config.epsilon, config.epsilon_max if is_cispo else config.epsilon_high
    trainer.current_gradient_accumulation_steps = 1
    model.eval()
    inputs = {
        "prompt_ids": padded([s.prompt_ids for s in seqs], "left", PAD),
        "prompt_mask": padded([[1] * len(s.prompt_ids) for s in seqs], "left", 0),
        "completion_ids": padded([s.completion_ids for s in seqs], "right", PAD),
        "completion_mask": padded([[1] * len(s.completion_ids) for s in seqs], "right", 0),
        "advantages": torch.tensor([s.advantage for s in seqs]),
        "num_items_in_batch": torch.tensor(float(sum(len(s.completion_ids) for s in seqs))),
    }
    if seqs[0].old_logprobs is not None:
        inputs["old_per_token_logps"] = padded([s.old_logprobs for s in seqs], "right", 0.0, torch.float32)
    if config.beta > 0:
        rows = passes(reference, TrainConfig()).with_old_logprobs(
            [TrainSequence(prompt_ids=s.prompt_ids, completion_ids=s.completion_ids, advantage=0.0) for s in seqs]
        )
        inputs["ref_per_token_logps"] = padded([s.old_logprobs for s in rows], "right", 0.0, torch.float32)
    trainer.use_vllm = trainer.vllm_importance_sampling_correction = importance is not None
    if importance is not None:
        inputs["importance_sampling_ratio"] = importance
    loss = trainer.compute_loss(model, inputs)
    trainer.use_vllm = False
    loss.backward()
    return loss.item(), flat_gradient(model)


@pytest.mark.parametrize("micro_batch_size", [1, 3, 0])
@pytest.mark.parametrize("beta", [0.0, 0.04])
@pytest.mark.parametrize("with_old", [False, True])
@pytest.mark.parametrize("loss_type", TRLS)
def test_equals_trl(trainer, loss_type, with_old, beta, micro_batch_size):
    config = TrainConfig(loss_type=loss_type, epsilon_max=1.2, beta=beta, micro_batch_size=micro_batch_size)
    reference = tiny_model(seed=0, initializer_range=0.19)
    seqs = sequences(with_old)
    wanted_loss, wanted_gradient = trl_loss_and_gradient(trainer, seqs, config, reference)

    model = tiny_model()
    result = passes(model, config, reference).add_gradients(seqs, 0, len(seqs))

    assert wanted_gradient.abs().max() > 0.01
    assert result.loss == pytest.approx(wanted_loss, abs=1e-6)
    torch.testing.assert_close(flat_gradient(model), wanted_gradient, atol=1e-6, rtol=1e-5)
    if with_old:
        assert 0.15 < result.clipped_tokens / result.num_tokens < 0.5


@pytest.mark.parametrize("loss_type", TRLS)
def test_whoever_claims_to_have_been_sure_to_write_something_else_is_no_more_than_the_whole_update(loss_type):
    """A rollout server that claims old log-probs of -80 for an attempt below the mean, whose ratio is then 10^34."""
    honest = sequences(True)
    claims = [replace(s, old_logprobs=(-80.0,) * len(s.completion_ids)) if s.advantage < 0 else s for s in honest]

    def norm(seqs):
        model = tiny_model()
        result = passes(model, TrainConfig(loss_type=loss_type)).add_gradients(seqs, 0, len(seqs))
        assert math.isfinite(result.loss)
        return flat_gradient(model).norm().item()

    assert norm(claims) < 5 * norm(honest)


@pytest.mark.parametrize(
    ("importance", "mode", "fewest_capped"),
    [(Importance.token, "token_truncate", 0.0), (Importance.sequence, "sequence_truncate", 0.1)],
)
@pytest.mark.parametrize("beta", [0.0, 0.04])
@pytest.mark.parametrize("loss_type", TRLS)
def test_weights_of_another_samplers_tokens_equal_trls(trainer, loss_type, beta, importance, mode, fewest_capped):
    config = TrainConfig(loss_type=loss_type, epsilon_max=1.2, beta=beta, importance=importance, importance_cap=1.5)
    reference = tiny_model(seed=0, initializer_range=0.19)
    draw = random.Random(5)
    seqs = [replace(s, sampler_logprobs=tuple(x + draw.gauss(0, 0.2) for x in s.old_logprobs)) for s in sequences(True)]
    # GRPOTrainer computes the ratio while it generates, between rewards and advantages: these are its lines.
    gaps = padded(
        [[o - x for o, x in zip(s.old_logprobs, s.sampler_logprobs, strict=True)] for s in seqs],
        "right",
        0.0,
        torch.float32,
    )
    if mode == "sequence_truncate":
        gaps = gaps.sum(dim=-1, keepdim=True)
    ratio = torch.clamp(torch.exp(gaps), max=config.importance_cap)
    assert fewest_capped < (ratio == config.importance_cap).float().mean() < 0.9
    wanted_loss, wanted_gradient = trl_loss_and_gradient(trainer, seqs, config, reference, ratio)

    model = tiny_model()
    result = passes(model, config, reference).add_gradients(seqs, 0, len(seqs))

    assert result.loss == pytest.approx(wanted_loss, abs=1e-6)
    torch.testing.assert_close(flat_gradient(model), wanted_gradient, atol=1e-6, rtol=1e-5)

"""What peers say of the log-probs of their attempts: how much it counts if it is right, and if it is wrong."""

from __future__ import annotations

import copy
import math
import struct
from dataclasses import replace

import pytest
import torch

from codezero.config import Importance, LossType, TrainConfig
from codezero.llm.logprobs import CompletionScorer
from codezero.train.claims import packed, unpacked
from codezero.types import FinishReason, Rollout
from tests.builders import rollout, scored, tiny_model, tiny_tokenizer
from tests.unit.train.builders import END, grpo_learner, text_encoder

PROMPT = (1, 2, 3)
TEXTS = ("abcdefg", "tuvwxyz")
TOKENS = 8
"""Of each text, with its end."""
MODEL = "tiny"


@pytest.fixture(scope="module")
def model():
    return tiny_model()


@pytest.fixture(scope="module")
def knower():
    """It is nearly certain of the first text, so that log-probs of one text tell it from another."""
    made = tiny_model()
    optimizer = torch.optim.Adam(made.parameters(), 1e-2)
    ids = torch.tensor([[*PROMPT, *ids_of(TEXTS[0])]])
    for _ in range(30):
        made(input_ids=ids, labels=ids).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return made


def learner(model, claims_of=MODEL, **config):
    encoder = text_encoder(PROMPT, max_completion_length=16, claims_of=claims_of)
    return grpo_learner(model, TrainConfig(**config), encoder)


def ids_of(text):
    return [*tiny_tokenizer()(text).input_ids, END]


def own_logprobs(model, text):
    ids = torch.tensor([ids_of(text)])
    with torch.no_grad():
        return CompletionScorer(model, torch.tensor(PROMPT)).logprobs(ids, torch.ones_like(ids).bool())[0].tolist()


def heard(*claims: bytes, model_id=MODEL, policy_version=0):
    """A peer's group of the texts with these bytes."""
    rollouts = [
        Rollout(text=text, finish=FinishReason.STOP, logprobs=claim) for text, claim in zip(TEXTS, claims, strict=True)
    ]
    found = scored(rollouts, (1.0, 0.0), external=True, policy_version=policy_version)
    return replace(found, group=replace(found.group, model_id=model_id))


def moved(model, by, texts=TEXTS):
    """What a peer says to whom each token was likelier by this in nats."""
    return [packed([one + by for one in own_logprobs(model, text)]) for text in texts]


SILENT = (b"", b"")


def learnt(model, claims, **config):
    """(gradient norm, number of weighted attempts) of an update on such a group; the model stays as it is."""
    of_group = {key: config.pop(key) for key in ("model_id", "policy_version") if key in config}
    report = learner(copy.deepcopy(model), **config).step([heard(*claims, **of_group)])
    return report.grad_norm, report.num_weighted


# What is true counts


def test_attempts_of_an_equal_policy_count_as_without_log_probs(model):
    plain, none = learnt(model, SILENT)
    norm, num = learnt(model, moved(model, 0.0))
    assert (none, num) == (0, 2)
    assert norm == pytest.approx(plain, rel=1e-2)


@pytest.mark.parametrize("loss_type", [LossType.grpo, LossType.dapo, LossType.cispo])
@pytest.mark.parametrize("by", [-0.5, 0.5])
def test_attempts_of_another_policy_count_by_the_ratio_of_probabilities(model, loss_type, by):
    plain, _ = learnt(model, SILENT, loss_type=loss_type)
    assert learnt(model, moved(model, by), loss_type=loss_type) == (pytest.approx(plain * math.exp(-by), rel=1e-2), 2)


def test_m2po_takes_them_as_the_old_policy_and_may_clip_by_them(model):
    plain, _ = learnt(model, SILENT, loss_type=LossType.m2po)
    norm, num = learnt(model, moved(model, -0.1), loss_type=LossType.m2po)
    assert (norm, num) == (pytest.approx(plain * math.exp(0.1), rel=1e-2), 2)
    report = learner(copy.deepcopy(model), loss_type=LossType.m2po).step([heard(*moved(model, -1.0))])
    assert report.clip_fraction > 0


def test_by_sequence_all_tokens_of_an_attempt_weigh_the_product_of_their_ratios(model):
    plain, _ = learnt(model, SILENT, importance=Importance.sequence)
    norm, _ = learnt(model, moved(model, 0.1), importance=Importance.sequence)
    assert norm == pytest.approx(plain * math.exp(-0.1 * TOKENS), rel=2e-2)


def test_later_steps_of_a_round_keep_the_weights_of_the_first(model):
    steps = {"num_iterations": 2}
    plain, _ = learnt(model, SILENT, **steps)
    assert learnt(model, moved(model, -0.5), **steps) == (pytest.approx(plain * math.exp(0.5), rel=1e-2), 2)


@pytest.mark.parametrize("policy_version", [0, 1, 2**53])
def test_a_peer_s_count_of_its_updates_says_nothing_of_its_policy(model, policy_version):
    claims = moved(model, -0.5)
    assert learnt(model, claims, policy_version=policy_version) == learnt(model, claims)


def test_own_attempts_beside_them_count_as_ever_and_are_alone_compared_with_the_sampler(model):
    own = [
        rollout(
            prompt_ids=PROMPT, completion_ids=ids_of(text), logprobs=[one - 0.01 for one in own_logprobs(model, text)]
        )
        for text in TEXTS
    ]
    alone = learner(copy.deepcopy(model)).step([scored(own, (1.0, 0.0))])
    both = learner(copy.deepcopy(model)).step([scored(own, (1.0, 0.0)), heard(*moved(model, -0.5))])
    assert both.num_weighted == 2
    assert (both.sampler_gap, alone.sampler_gap) == (pytest.approx(0.01, abs=1e-4),) * 2
    assert both.grad_norm == pytest.approx(alone.grad_norm * (1 + math.exp(0.5)) / 2, rel=1e-2)


@pytest.mark.parametrize("config", [{"importance": Importance.none}, {"claims_of": ""}, {"claims_of": "other"}])
def test_where_nothing_uses_them_they_cost_no_pass(model, config):
    passes, claims = [], moved(model, -0.5)
    hook = model.base_model.register_forward_hook(lambda *_: passes.append(1))
    plain = learnt(model, SILENT, **config)
    without = len(passes)
    assert learnt(model, claims, **config) == plain
    hook.remove()
    assert len(passes) == 2 * without
    assert plain[1] == 0


# What is false does not


FORMS = {
    "too few": packed([-1.0] * (TOKENS - 1)),
    "too many": packed([-1.0] * (TOKENS + 1)),
    "half a number": packed([-1.0] * TOKENS)[:-1],
    "a huge blob": bytes(2**17),
    "float32": struct.pack(f"<{TOKENS}f", *[-1.0] * TOKENS),
    "nan": struct.pack(f"<{TOKENS}e", *[-1.0] * (TOKENS - 1), math.nan),
    "inf": struct.pack(f"<{TOKENS}e", math.inf, *[-1.0] * (TOKENS - 1)),
    "minus inf": struct.pack(f"<{TOKENS}e", -math.inf, *[-1.0] * (TOKENS - 1)),
    "positive": struct.pack(f"<{TOKENS}e", *[-1.0] * (TOKENS - 1), 0.5),
    "the other byte order": struct.pack(f">{TOKENS}e", *[-1.0] * TOKENS),
}


@pytest.mark.parametrize("claim", FORMS.values(), ids=FORMS)
def test_bytes_of_another_form_count_as_none(model, claim):
    if claim is not FORMS["the other byte order"]:  # whose bytes are log-probs too, but false ones
        assert unpacked(claim, TOKENS) is None
    assert learnt(model, [claim, claim]) == learnt(model, SILENT)


LIES = {
    "certainty": lambda model: [packed([0.0] * TOKENS)] * 2,
    "near certainty": lambda model: [packed([-1e-4] * TOKENS)] * 2,
    "the lowest number": lambda model: [packed([-65504.0] * TOKENS)] * 2,
    "far too unlikely": lambda model: moved(model, -20.0),
    "one token as good as impossible": lambda model: [
        packed([-1000.0, *own_logprobs(model, text)[1:]]) for text in TEXTS
    ],
    "other text": lambda model: moved(model, 0.0, TEXTS[::-1]),
    "another order": lambda model: [packed(own_logprobs(model, text)[::-1]) for text in TEXTS[:1]] + [b""],
}


@pytest.mark.parametrize("loss_type", [LossType.grpo, LossType.m2po])
@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
def test_a_lie_counts_as_none(knower, lie, loss_type):
    assert learnt(knower, lie(knower), loss_type=loss_type) == learnt(knower, SILENT, loss_type=loss_type)


def test_log_probs_of_a_peer_that_names_another_model_count_as_none(model):
    claims = moved(model, -0.5)
    assert learnt(model, claims, model_id="tiny-2") == learnt(model, SILENT)
    assert learnt(model, claims, model_id="") == learnt(model, SILENT)


def test_one_attempt_that_lies_takes_nothing_from_the_others_of_its_group(model):
    honest, _ = moved(model, 0.0)
    assert learnt(model, [honest, packed([0.0] * TOKENS)])[1] == 1


@pytest.mark.parametrize("loss_type", [*LossType])
@pytest.mark.parametrize("importance", [Importance.token, Importance.sequence])
def test_no_lie_that_is_believed_weighs_more_than_the_cap(model, loss_type, importance):
    config = {"loss_type": loss_type, "importance": importance, "importance_cap": 1.25, "m2_threshold": 9.0}
    plain, _ = learnt(model, SILENT, **config)
    norm, num = learnt(model, moved(model, -2.0), **config)
    assert num == 2
    assert plain < norm <= 1.25 * plain * (1 + 1e-5)


def test_a_learner_that_can_no_longer_say_believes_nothing():
    broken = tiny_model()
    made = learner(broken)
    with torch.no_grad():
        broken.model.norm.weight.fill_(math.nan)
    report = made.step([heard(*[packed([-1.0] * TOKENS)] * 2)])
    assert (report.skipped.value, report.num_weighted) == ("loss or gradient is not finite", 0)


def test_a_rounding_error_above_zero_is_sent_as_certainty():
    assert unpacked(packed([1e-3, -0.5, -1e-9]), 3) == (0.0, -0.5, 0.0)

"""Log-probs of rollouts in records: what is sent, and what is made of those that peers send."""

from __future__ import annotations

import random
from dataclasses import replace

import msgspec
import pytest
import zstandard

from codezero.network.wire import fit, pack_groups, read_genrl, unpack_groups
from codezero.network.wire.body import MAX_EXTENSION_BYTES
from codezero.network.wire.codec import MAX_RECORD_BYTES
from codezero.train.claims import packed
from tests.unit.network.wire_builders import SWARM, announce, extended, genrl, group, identity


def with_logprobs(*logprobs: bytes, **kwargs):
    one = group(texts=[f"text {number}" for number in range(len(logprobs))], **kwargs)
    return replace(one, rollouts=tuple(replace(a, logprobs=b) for a, b in zip(one.rollouts, logprobs, strict=True)))


def read(body: bytes):
    groups, dropped = unpack_groups(body, announce(body))
    assert dropped == ()
    return list(groups)


def items_of(body: bytes) -> list[dict]:
    return msgspec.msgpack.decode(zstandard.decompress(body))


def test_each_rollout_s_log_probs_are_read_as_they_were_sent_and_none_where_there_are_none():
    groups = [with_logprobs(packed([-0.5, -2.0]), b"", question="one"), with_logprobs(b"", b"", question="two")]
    body = pack_groups(groups)
    assert read(body) == groups
    first, second = items_of(body)
    assert first["extensions"] == {"logprobs": [b"\0\xb8\0\xc0", None]}
    assert "extensions" not in second


def test_genrl_s_format_has_none():
    one = with_logprobs(packed([-0.5]), packed([-0.25]))
    found = read_genrl(genrl([one]), identity().peer_id, swarm=SWARM, round_number=7)
    assert found.announcement is not None
    assert [attempt.logprobs for attempt in found.groups[0].rollouts] == [b"", b""]


@pytest.mark.parametrize(("num_tokens", "is_sent"), [(1020, True), (1024, False)])
def test_those_that_make_a_group_s_extension_too_large_for_its_readers_stay_at_home(num_tokens, is_sent):
    one = with_logprobs(*[packed([-1.0] * num_tokens)] * 64)
    (found,) = read(pack_groups([one]))
    assert len({attempt.logprobs for attempt in found.rollouts}) == 1
    assert bool(found.rollouts[0].logprobs) == is_sent
    assert [attempt.text for attempt in found.rollouts] == [attempt.text for attempt in one.rollouts]


def test_where_a_record_is_too_small_for_all_whole_groups_go_out_and_the_first_keep_theirs():
    noise = random.Random(1)
    groups = [with_logprobs(*[noise.randbytes(2000) for _ in range(16)]) for _ in range(16)]
    record, count = fit(pack_groups, groups)
    assert len(record) <= MAX_RECORD_BYTES
    assert count == len(groups)
    having = [bool(found.rollouts[0].logprobs) for found in read(record)]
    assert 0 < sum(having) < 16
    assert having == sorted(having, reverse=True)


HOSTILE = {
    "a text": "logprobs",
    "a number": -1.0,
    "no list": {"0": b"\0\xb8", "1": b"\0\xb8"},
    "nothing": None,
    "numbers": [-0.5, -0.5],
    "lists of numbers": [[-0.5], [-0.5]],
    "texts": ["\0", "\0"],
    "too few": [b"\0\xb8"],
    "too many": [b"\0\xb8"] * 3,
    "sixty-five": [b"\0\xb8"] * 65,
    "none at all": [],
    "a huge blob": bytes(MAX_EXTENSION_BYTES - 8),
}


@pytest.mark.parametrize("value", HOSTILE.values(), ids=HOSTILE)
def test_a_value_of_another_form_costs_the_log_probs_alone(value):
    plain = pack_groups([group(question="one"), group(question="two")])
    assert read(extended(plain, {"logprobs": value})) == read(plain)
    assert read(extended(plain, {"logprobs": value})) == [group(question="one"), group(question="two")]


def test_bytes_of_any_length_are_passed_on_as_they_are():
    """What they mean, the learner sees: it knows the number of tokens."""
    huge = bytes(MAX_EXTENSION_BYTES - 16)
    (found,) = read(extended(pack_groups([group()]), {"logprobs": [huge, b"\xff"]}))
    assert [attempt.logprobs for attempt in found.rollouts] == [huge, b"\xff"]

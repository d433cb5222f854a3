"""Announcements and bodies: what goes in comes out, and nothing else does."""

from __future__ import annotations

import dataclasses
import hashlib
import random

import msgspec
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from codezero.network.wire import (
    PROPOSALS,
    Reason,
    WireError,
    feedback_to,
    pack_groups,
    read_announcement,
    sign_announcement,
    unpack_groups,
)
from codezero.network.wire.announcement import MAX_ANNOUNCEMENT_BYTES
from codezero.network.wire.body import MAX_BODY_BYTES
from codezero.network.wire.codec import MAX_RECORD_BYTES
from codezero.types import SampledTokens
from tests.unit.network.wire_builders import SWARM, announce, body_of, group, groups, identity

encode = msgspec.msgpack.encode


def unpack(body: bytes):
    """The groups of a peer that has announced just these bytes, none of which is dropped."""
    groups, dropped = unpack_groups(body, announce(body))
    assert dropped == ()
    return groups


def envelope(content: bytes, **changes) -> bytes:
    signature = identity().sign(b"codezero announcement\0\x02" + content)
    return b"\x02" + encode(
        {"content": content, "public_key": identity().public_key, "signature": signature, **changes}
    )


def wire_group(**changes):
    """A group as the body's schema has it."""
    task = {"origin": "mbpp", "question": "q", "tests": "t", "difficulty": None}
    rollouts = [{"text": "a", "finish": "stop"}]
    return {"model_id": "tiny", "policy_version": 3, "task": task, "rollouts": rollouts, **changes}


def fails(reason: Reason, call, *args, **kwargs) -> str:
    with pytest.raises(WireError) as caught:
        call(*args, **kwargs)
    assert caught.value.reason is reason, caught.value
    return caught.value.detail


@given(published=groups(st.text(max_size=9)))
def test_groups_come_back_as_they_were(published):
    assert unpack(pack_groups(published)) == tuple(published)


@given(
    swarm=st.text(min_size=1, max_size=64),
    number=st.integers(0, 2**53),
    published_at_s=st.floats(0, 1e11),
    instance=st.binary(min_size=8, max_size=8).map(bytes.hex),
)
@settings(max_examples=30)
def test_an_announcement_comes_back_as_it_was(swarm, number, published_at_s, instance):
    sent = announce(swarm=swarm, round=number, published_at_s=published_at_s, instance=instance)
    raw = sign_announcement(sent, identity())
    assert len(raw) <= MAX_ANNOUNCEMENT_BYTES
    read = read_announcement(raw, swarm=swarm, peer_id=identity().peer_id, round_number=number)
    assert read == sent


def test_only_the_announcement_says_whose_groups_they_are_and_tokens_stay_at_home():
    own = group(peer_id="somebody else")
    tokens = SampledTokens(prompt_ids=(1,), completion_ids=(2,), logprobs=(-1.0,))
    rollouts = tuple(dataclasses.replace(rollout, tokens=tokens) for rollout in own.rollouts)
    body = pack_groups([dataclasses.replace(own, rollouts=rollouts, address="10.0.0.1", age=2)])
    assert unpack(body) == (group(),)


def test_the_bytes_of_both_versions():
    """Other nodes read these: a change here needs another version."""
    plain = zstandard.decompress(pack_groups([group(question="q", tests="t", texts=["a"])]))
    assert plain == encode([wire_group()])
    (content,) = {msgspec.msgpack.decode(signed(version)[1:])["content"] for version in (1, 2)}
    assert content == encode(
        {
            "swarm": SWARM,
            "topic": "rollouts",
            "peer_id": identity().peer_id,
            "round": 7,
            "published_at_s": 1.5e9,
            "expires_at_s": 1.5e9 + 600,
            "instance": "00112233aabbccdd",
            "digest": hashlib.sha256(b"body").digest(),
            "size": 4,
        }
    )
    assert read_announcement(envelope(content)) == announce()


@pytest.mark.parametrize("version", [1, 2])
def test_an_announcement_with_any_byte_changed_is_refused(version):
    raw = signed(version)
    for position in range(len(raw)):
        for flip in (0x01, 0x80, random.Random(position).randrange(1, 256)):
            changed = bytearray(raw)
            changed[position] ^= flip
            with pytest.raises(WireError):
                read_announcement(bytes(changed))


def test_a_body_with_any_byte_changed_or_cut_off_or_added_is_not_the_announced_one():
    body = pack_groups([group()])
    for position in range(len(body)):
        changed = bytearray(body)
        changed[position] ^= 1 << position % 8
        fails(Reason.BAD_SIGNATURE, unpack_groups, bytes(changed), announce(body))
        fails(Reason.BAD_SIGNATURE, unpack_groups, body[:position], announce(body))
    fails(Reason.BAD_SIGNATURE, unpack_groups, body + b"\0", announce(body))


def signed(version: int) -> bytes:
    raw = sign_announcement(announce(), identity(), version)
    assert raw[0] == version
    return raw


def test_an_announcement_is_signed_in_one_version():
    for version, other in ((1, 2), (2, 1)):
        fails(Reason.BAD_SIGNATURE, read_announcement, bytes([other]) + signed(version)[1:], version=other)


def test_an_announcement_played_back_elsewhere_is_refused():
    raw = sign_announcement(announce(), identity())
    fails(Reason.WRONG_PEER, read_announcement, raw, peer_id=identity("bob").peer_id)
    fails(Reason.WRONG_SWARM, read_announcement, raw, swarm="swarm-b")
    fails(Reason.WRONG_TOPIC, read_announcement, raw, topic=PROPOSALS)
    told = sign_announcement(announce(topic=feedback_to("QmA")), identity())
    fails(Reason.WRONG_TOPIC, read_announcement, told, topic=feedback_to("QmB"))
    assert fails(Reason.WRONG_ROUND, read_announcement, raw, round_number=8) == "it was signed for 7, not for 8"
    fails(Reason.WRONG_ROUND, read_announcement, sign_announcement(announce(round=1), identity()), round_number=0)


def test_a_liar_cannot_speak_for_another_peer():
    fails(Reason.WRONG_PEER, sign_announcement, announce(), identity("bob"))
    content = encode(announce())
    fails(Reason.WRONG_PEER, read_announcement, envelope(content, public_key=identity("bob").public_key))
    bobs = identity("bob").sign(b"codezero announcement\0\x02" + content)
    fails(Reason.BAD_SIGNATURE, read_announcement, envelope(content, signature=bobs))
    without_purpose = identity().sign(content)
    fails(Reason.BAD_SIGNATURE, read_announcement, envelope(content, signature=without_purpose))


def test_another_version_is_named():
    for raw, found in ((b"\x03" + signed(2)[1:], 3), (signed(1), 1), (b"\0" + signed(2)[1:], 0), (b"", "missing")):
        detail = fails(Reason.WRONG_VERSION, read_announcement, raw)
        assert detail == f"version {found}, only 2 is read here"


@pytest.mark.parametrize(
    "changes",
    [
        {"swarm": ""},
        {"swarm": "s" * 65},
        {"swarm": 3},
        {"swarm": "\ud800"},
        {"topic": ""},
        {"topic": "Rollouts"},
        {"topic": "rollouts\n"},
        {"topic": "rollouts/01"},
        {"topic": "feedback"},
        {"topic": "feedback/"},
        {"topic": "feedback/a/b"},
        {"topic": "feedback/" + "Q" * 65},
        {"topic": "feedback/Q\n"},
        {"topic": 7},
        {"round": -1},
        {"round": 2**53 + 1},
        {"round": 2**70},
        {"round": 1.0},
        {"round": True},
        {"published_at_s": float("nan")},
        {"published_at_s": float("inf")},
        {"published_at_s": -1.0},
        {"published_at_s": 3},
        {"instance": "0" * 15},
        {"instance": "0" * 15 + "G"},
        {"instance": "0" * 16 + "\n"},
        {"digest": b"short"},
        {"digest": "text of thirty-two characters..."},
        {"size": -1},
    ],
    ids=str,
)
def test_a_field_out_of_bounds_is_malformed_and_not_sent(changes):
    fails(Reason.MALFORMED, sign_announcement, announce(**changes), identity())


def test_an_announcement_has_exactly_its_fields():
    fields = msgspec.to_builtins(announce(), builtin_types=[bytes])
    assert read_announcement(envelope(encode(fields))) == announce()
    fails(Reason.MALFORMED, read_announcement, envelope(encode({**fields, "more": 1})))
    fails(Reason.MALFORMED, read_announcement, envelope(encode({k: v for k, v in fields.items() if k != "size"})))
    fails(Reason.MALFORMED, read_announcement, envelope(encode(dict(reversed(fields.items())))))
    repeated = b"\x89" + encode(fields)[1:] + encode("size") + encode(4)
    fails(Reason.MALFORMED, read_announcement, envelope(repeated))
    fails(Reason.MALFORMED, read_announcement, envelope(encode(fields)) + b"\0")
    fails(Reason.MALFORMED, read_announcement, envelope(encode(fields), more=1))


@pytest.mark.parametrize(
    "value",
    [
        {},
        [3],
        [wire_group(more=1)],
        [wire_group(model_id="m" * 257)],
        [wire_group(policy_version=-1)],
        [wire_group(rollouts=[])],
        [wire_group(rollouts=[{"text": "a", "finish": "stop"}] * 65)],
        [wire_group(rollouts=[{"text": "a", "finish": ""}])],
        [wire_group(rollouts=[{"text": "a", "finish": "n" * 65}])],
        [wire_group(rollouts=[{"text": b"a", "finish": "stop"}])],
        [wire_group(rollouts=[{"text": "a" * (2**16 + 1), "finish": "stop"}])],
        [wire_group(task={"origin": 7, "question": "q", "tests": "t", "difficulty": None})],
        [wire_group(task={"origin": "mbpp", "question": "q", "tests": None, "difficulty": None})],
        [wire_group(task={"origin": "mbpp", "question": "q", "tests": "t", "difficulty": -1})],
        [wire_group()] * 65,
    ],
    ids=lambda value: str(value)[:60],
)
def test_a_body_of_another_schema_is_malformed(value):
    fails(Reason.MALFORMED, unpack, body_of(value))


def test_one_bad_group_spoils_the_body():
    assert unpack(body_of([wire_group(), wire_group()]))
    fails(Reason.MALFORMED, unpack, body_of([wire_group(), wire_group(policy_version="3")]))


def test_invalid_utf8_is_malformed():
    plain = encode([wire_group(model_id="abc")]).replace(b"abc", b"a\xff\xfe")
    fails(Reason.MALFORMED, unpack, zstandard.compress(plain))


def test_a_body_with_something_behind_it_is_malformed():
    fails(Reason.MALFORMED, unpack, pack_groups([group()]) + b"more")
    fails(Reason.MALFORMED, unpack, pack_groups([group()]) * 2)
    fails(Reason.MALFORMED, unpack, zstandard.compress(encode([wire_group()]) + b"\0"))


def test_giants_are_oversized_and_not_sent():
    noise = ["".join(random.Random(k).choices("abcdefghijklmnopqrstuvwxyz012345", k=2**16)) for k in range(8)]
    assert "before compression" in fails(Reason.OVERSIZED, pack_groups, [group(texts=noise[:1] * 33)])
    assert "262144 are allowed" in fails(Reason.OVERSIZED, pack_groups, [group(texts=noise)])
    assert len(pack_groups([group(texts=noise[:1] * 31)])) < MAX_RECORD_BYTES
    fails(Reason.OVERSIZED, unpack, bytes(MAX_RECORD_BYTES + 1))
    fails(Reason.OVERSIZED, read_announcement, b"\x01" * (MAX_ANNOUNCEMENT_BYTES + 1))
    fails(Reason.OVERSIZED, unpack, zstandard.compress(bytes(MAX_BODY_BYTES + 1)))
    fails(Reason.MALFORMED, unpack, zstandard.compress(bytes(MAX_BODY_BYTES)))


@pytest.mark.parametrize(
    "bad", [group(texts=[]), group(texts=["a"] * 65), group(texts=["\ud800"]), group(question="\ud800")]
)
def test_what_others_would_refuse_is_not_sent(bad):
    fails(Reason.MALFORMED, pack_groups, [bad])


def test_details_cannot_write_into_a_terminal():
    detail = fails(Reason.OVERSIZED, unpack, body_of([wire_group(extensions={"\x1b[2J\n": bytes(2**18)})]))
    assert detail.isprintable()
    assert detail.isascii()

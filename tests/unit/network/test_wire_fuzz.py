"""Hostile records: every reader answers with a record or a WireError, and with little memory."""

from __future__ import annotations

import contextlib
import random
import struct
import tracemalloc
from collections import Counter

import msgspec
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from codezero.identity.key import peer_id_of
from codezero.network.wire import (
    Reason,
    WireError,
    pack_groups,
    read_announcement,
    read_genrl,
    sign_announcement,
    unpack_groups,
)
from codezero.network.wire.codec import MAX_RECORD_BYTES
from codezero.types import RolloutGroup
from tests.unit.network.wire_builders import SWARM, announce, extended, genrl, group, identity

encode, decode = msgspec.msgpack.encode, msgspec.msgpack.decode

READERS = {
    "announcement": read_announcement,
    "envelope": lambda raw: read_announcement(b"\x02" + raw),
    "content": lambda raw: read_announcement(
        b"\x02" + encode({"content": raw, "public_key": identity().public_key, "signature": bytes(256)})
    ),
    "frame": lambda raw: unpack_groups(raw, announce(raw))[0],
    "body": lambda raw: READERS["frame"](zstandard.compress(raw)),
    "genrl": lambda raw: read_genrl(raw, identity().peer_id, swarm=SWARM, round_number=7),
    "payload": lambda raw: READERS["genrl"](b"\x81\xa1q\x91" + raw),
}


def outcomes(raw: bytes) -> Counter:
    """What each reader made of the bytes; anything but a record or a WireError fails the test."""
    counts = Counter()
    for name, reader in READERS.items():
        try:
            found = reader(raw)
        except WireError as refusal:
            counts[name, refusal.reason] += 1
            continue
        groups = found if isinstance(found, tuple) else getattr(found, "groups", ())
        assert all(isinstance(one, RolloutGroup) and one.rollouts for one in groups)
        assert pack_groups(groups)
        counts[name, "read"] += 1
    return counts


def valid_records() -> list[bytes]:
    body = extended(pack_groups([group(), group(texts=["c"] * 3, difficulty=2)]))
    announcement = sign_announcement(announce(body), identity())
    return [
        announcement,
        announcement[1:],
        decode(announcement[1:])["content"],
        body,
        zstandard.decompress(body),
        genrl([group(), group(question="another")]),
        encode(next(iter(decode(genrl([group()])).values()))[0]),
    ]


def broken_bytes(raw: bytes, rng: random.Random) -> bytes:
    """The record with a few bytes changed, cut out, doubled, or written as a length."""
    broken = bytearray(raw)
    for _ in range(rng.choice([1, 1, 2, 4, 16])):
        start = rng.randrange(len(broken) + 1)
        end = start + rng.choice([0, 1, 1, 2, 8])
        piece = bytes(broken[start:end])
        kinds = [rng.randbytes(len(piece)), b"", piece * 2, b"\xdd\xff\xff\xff\xff", b"\xdb\x7f\xff\xff\xff", b"\xc0"]
        broken[start:end] = rng.choice(kinds)
    return bytes(broken)


def broken_structure(value, rng: random.Random):
    """The value with one part of it, anywhere, replaced by something else or left out."""
    if isinstance(value, dict) and value and rng.random() < 0.9:
        key = rng.choice(list(value))
        rest = {k: v for k, v in value.items() if k != key}
        kind = rng.random()
        return (
            rest
            if kind < 0.1
            else {**rest, "other": 1}
            if kind < 0.2
            else {**value, key: broken_structure(value[key], rng)}
        )
    if isinstance(value, list) and value and rng.random() < 0.9:
        place = rng.randrange(len(value))
        return [*value[:place], broken_structure(value[place], rng), *value[place + rng.choice([0, 1]) :]]
    odd = [None, True, -1, 2**63, 0.5, float("nan"), "", "text", b"\xff", [], {}, {1: 2}, [[]] * 70, "x" * 70_000]
    return rng.choice(odd)


def test_ten_thousand_records_of_random_and_broken_bytes():
    rng, counts = random.Random(3), Counter()
    valid = valid_records()
    for raw in valid:
        counts += outcomes(raw)
    assert {name for name, outcome in counts if outcome == "read"} == {*READERS} - {"content"}  # it is signed by nobody
    for _ in range(5_000):
        counts += outcomes(rng.randbytes(rng.choice([0, 1, 2, 8, 64, 500])))
        counts += outcomes(broken_bytes(rng.choice(valid), rng))
    assert counts.total() > 10_000 * len(READERS)
    assert {Reason.MALFORMED, Reason.WRONG_VERSION, Reason.BAD_SIGNATURE, Reason.WRONG_PEER} <= {o for _, o in counts}


def test_thousands_of_well_formed_records_of_wrong_types():
    rng, counts = random.Random(4), Counter()
    _, envelope, content, _, plain, record, payload = valid_records()
    for _ in range(1_000):
        for raw in (envelope, content, plain, record, payload):
            counts += outcomes(encode(broken_structure(decode(raw), rng)))
    assert counts["genrl", "read"] > 100
    assert counts["body", Reason.MALFORMED] > 1_000


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text() | st.binary(),
    lambda children: (
        st.lists(children, max_size=5)
        | st.dictionaries(st.text() | st.sampled_from(["__type__", "actions", "world_state", "metadata"]), children)
    ),
    max_leaves=20,
)


@given(value=VALUES)
@settings(max_examples=200, deadline=None)
def test_any_value_of_msgpack(value):
    outcomes(encode(value))


def test_any_public_key():
    """The peer id fits the key, and the key is not a key."""
    rng = random.Random(5)
    for _ in range(500):
        key = broken_bytes(identity().public_key, rng)
        envelope = {"content": encode(announce(peer_id=peer_id_of(key))), "public_key": key, "signature": bytes(256)}
        with pytest.raises(WireError):
            read_announcement(b"\x02" + encode(envelope))


@contextlib.contextmanager
def at_most_mib(limit: int):
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < limit * 2**20
    finally:
        tracemalloc.stop()


def giant(length: bytes) -> list[bytes]:
    return [code + length for code in (b"\xdd", b"\xdf", b"\xdb", b"\xc6", b"\xc9")]


def bomb(**declared) -> bytes:
    """1 GiB of zeros in one zstd frame."""
    compressor = zstandard.ZstdCompressor().compressobj(**declared)
    return b"".join([*(compressor.compress(bytes(2**20)) for _ in range(2**10)), compressor.flush()])


@pytest.fixture(scope="module")
def bombs() -> dict[str, bytes]:
    honest = bomb(size=2**30)
    assert len(honest) < MAX_RECORD_BYTES
    assert honest[:16].count(struct.pack("<I", 2**30)) == 1
    return {
        "a bomb that says so": honest,
        "a bomb that does not say so": bomb(),
        "a bomb that lies": honest.replace(struct.pack("<I", 2**30), struct.pack("<I", 1000), 1),
    }


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("a bomb that says so", Reason.OVERSIZED),
        ("a bomb that does not say so", Reason.OVERSIZED),
        ("a bomb that lies", Reason.MALFORMED),
    ],
)
def test_a_decompression_bomb_is_refused_in_little_memory(bombs, name, reason):
    with at_most_mib(4), pytest.raises(WireError) as caught:
        unpack_groups(bombs[name], announce(bombs[name]))
    assert caught.value.reason is reason


@pytest.mark.parametrize(
    "raw",
    [
        b"\x91" * 100_000,
        b"\x91" * 100_000 + b"\xc0",
        b"\x91" * 2**21,
        b"\x81\xa1q" * 80_000 + b"\xc0",
        b"\x81\xa8metadata" * 25_000,
        b"\x81\xa1q\x91\x83\xa8__type__\xa7Payload\xa8metadata" + b"\x91" * 100_000,
        *giant(b"\xff\xff\xff\xff"),
        *giant(b"\x7f\xff\xff\xff"),
        *[b"\x81\xa1q\x91" + raw for raw in giant(b"\xff\xff\xff\xff")],
        b"\xdd\x00\x03\xff\xfa" + b"\xc0" * 0x3FFFA,
        b"\x81\xa1q\xdd\x00\x03\xff\xf0" + b"\xc0" * 0x3FFF0,
        b"\xdf\x00\x01\x00\x00" + b"\xa0\xc0" * 0x10000,
    ],
    ids=lambda raw: f"{raw[:12].hex()}.. {len(raw)} bytes",
)
def test_deep_nesting_and_giant_lengths_are_refused_in_little_memory(raw):
    with at_most_mib(40):
        counts = outcomes(raw)
    assert {outcome for _, outcome in counts} <= {Reason.MALFORMED, Reason.OVERSIZED, Reason.WRONG_VERSION, "read"}
    assert counts["genrl", Reason.MALFORMED] + counts["genrl", Reason.OVERSIZED] == 1

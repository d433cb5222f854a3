"""Hostile records of proposals and feedback: every reader answers with a record or a WireError."""

from __future__ import annotations

import math
import random
from collections import Counter

import msgspec
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from codezero.network.wire import (
    AttemptResults,
    Reason,
    WireError,
    pack_feedback,
    pack_genrl_feedback,
    pack_genrl_proposals,
    pack_proposals,
    read_genrl_feedback,
    read_genrl_proposals,
    unpack_feedback,
    unpack_proposals,
)
from codezero.proposals import Proposal
from tests.unit.network.proposal_nodes import proposal, results
from tests.unit.network.test_wire_fuzz import VALUES, at_most_mib, broken_bytes, broken_structure, giant
from tests.unit.network.wire_builders import announce, extended, identity

encode, decode = msgspec.msgpack.encode, msgspec.msgpack.decode


def framed(unpack):
    def read(plain: bytes):
        body = zstandard.compress(plain)
        return unpack(body, announce(body))[0]

    return read


READERS = {
    "proposals": framed(unpack_proposals),
    "proposals frame": lambda raw: unpack_proposals(raw, announce(raw))[0],
    "feedback": framed(unpack_feedback),
    "feedback frame": lambda raw: unpack_feedback(raw, announce(raw))[0],
    "genrl proposals": lambda raw: read_genrl_proposals(raw, identity().peer_id)[0],
    "genrl feedback": lambda raw: read_genrl_feedback(raw)[0],
}


def is_sound(one) -> bool:
    if isinstance(one, Proposal):
        return bool(one.question and one.tests and one.proposal_id and one.difficulty in (None, 1, 2, 3, 4, 5))
    assert isinstance(one, AttemptResults)
    bounded = all(0 <= p <= 1 for p in one.p_correct) and all(abs(reward) < 1.21 for reward in one.rewards)
    return bool(one.name and one.p_correct and bounded and len(one.p_correct) == len(one.rewards))


def outcomes(raw: bytes) -> Counter:
    """What each reader made of the bytes; anything but sound items or a WireError fails the test."""
    counts: Counter = Counter()
    for name, reader in READERS.items():
        try:
            found = reader(raw)
        except WireError as refusal:
            counts[name, refusal.reason] += 1
            continue
        assert all(map(is_sound, found))
        counts[name, "read" if found else "nothing"] += 1
    return counts


def valid_records() -> list[bytes]:
    some, said = [proposal("f"), proposal("g", difficulty=None)], [results(), results("1" * 32, (0.5,), (-1.2,))]
    bodies = [extended(pack_proposals(some)), extended(pack_feedback(said))]
    return [
        *bodies,
        *map(zstandard.decompress, bodies),
        pack_genrl_proposals(some),
        pack_genrl_feedback(said),
    ]


def test_thousands_of_records_of_random_and_broken_bytes():
    rng, counts = random.Random(3), Counter()
    valid = valid_records()
    for raw in valid:
        counts += outcomes(raw)
    assert {name for name, outcome in counts if outcome == "read"} == {*READERS}
    for _ in range(5_000):
        counts += outcomes(rng.randbytes(rng.choice([0, 1, 2, 8, 64, 500])))
        counts += outcomes(broken_bytes(rng.choice(valid), rng))
    assert all(counts[name, Reason.MALFORMED] > 5_000 for name in READERS)
    assert all(counts[name, "read"] > 20 for name in ("genrl proposals", "genrl feedback", "feedback", "proposals"))


def test_thousands_of_well_formed_records_of_wrong_types():
    rng, counts = random.Random(4), Counter()
    odd = [None, -1.3, 1.3, 2, -1, math.nan, math.inf, -math.inf, True, "1", [1.0], {}]
    for raw in valid_records()[2:]:
        for _ in range(1_000):
            counts += outcomes(encode(broken_structure(decode(raw), rng)))
    for value in odd:
        feedback = [{"proposal_id": "0" * 32, "p_correct": [value, 1.0], "rewards": [1.0, value]}]
        counts += outcomes(encode(feedback))
        counts += outcomes(encode([{"proposal_raw": "r", "reward": [1.0, value], "dataset": "proposer"}]))
    assert counts["genrl proposals", "read"] > 500
    assert counts["genrl feedback", "read"] > 500
    assert counts["feedback", Reason.MALFORMED] > 3_000


NAMES = st.sampled_from(
    [
        "model_id",
        "question",
        "tests",
        "difficulty",
        "proposal_id",
        "p_correct",
        "rewards",
        "proposer_model",
        "proposal_question",
        "proposal_tests",
        "proposal_raw",
        "reward",
        "dataset",
    ]
)


@given(value=VALUES | st.lists(st.dictionaries(NAMES, VALUES, max_size=6), max_size=3))
@settings(max_examples=300, deadline=None)
def test_any_value_of_msgpack(value):
    outcomes(encode(value))


@given(
    entries=st.lists(
        st.fixed_dictionaries({"proposal_raw": st.text(), "reward": st.lists(st.floats() | st.integers(-2, 2))}),
        max_size=5,
    )
)
@settings(max_examples=300, deadline=None)
def test_any_genrl_rewards(entries):
    for dataset in ("proposer", "mbpp"):
        found, dropped = read_genrl_feedback(encode([{**entry, "dataset": dataset} for entry in entries]))
        assert len(found) + len(dropped) == len(entries)
        assert all(map(is_sound, found))
        assert not (found and dataset == "mbpp")


def test_deep_nesting_and_giant_lengths_are_refused_in_little_memory():
    deep = [b"\x91" * 100_000, b"\x81\xa1q" * 80_000 + b"\xc0", b"\x91\x81\xacproposal_raw" + b"\x91" * 100_000]
    lengths = [prefix + raw for prefix in (b"", b"\x91", b"\x91\x81\xa6reward") for raw in giant(b"\xff\xff\xff\xff")]
    wide = [b"\xdd\x00\x03\xff\xfa" + b"\xc0" * 0x3FFFA, b"\xdc\x10\x00" + b"\xc0" * 4096]
    for raw in (*deep, *lengths, *wide):
        with at_most_mib(10):
            counts = outcomes(raw)
        assert {outcome for _, outcome in counts} <= {Reason.MALFORMED, Reason.OVERSIZED, "nothing"}

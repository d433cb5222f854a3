"""Extensions that readers skip, words that they do not know, and what goes when a record is too large."""

from __future__ import annotations

import random

import msgspec
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from codezero.network.wire import (
    Reason,
    WireError,
    fit,
    pack_feedback,
    pack_groups,
    pack_proposals,
    unpack_feedback,
    unpack_groups,
    unpack_proposals,
)
from codezero.network.wire.body import BodyItem
from codezero.network.wire.codec import MAX_RECORD_BYTES
from codezero.network.wire.native import pack_items
from tests.unit.network.proposal_nodes import proposal, results
from tests.unit.network.test_wire_fuzz import VALUES, at_most_mib
from tests.unit.network.wire_builders import announce, body_of, extended, group

encode, decode = msgspec.msgpack.encode, msgspec.msgpack.decode

BODIES = {
    "groups": (pack_groups([group(question="one"), group(question="two")]), unpack_groups),
    "proposals": (pack_proposals([proposal("f"), proposal("g")]), unpack_proposals),
    "feedback": (pack_feedback([results(), results("1" * 32)]), unpack_feedback),
}
EACH_BODY = pytest.mark.parametrize(("body", "unpack"), BODIES.values(), ids=BODIES)


def read(unpack, body: bytes):
    """Returns the items of a body that a peer has announced, and the reasons of those that are dropped."""
    return unpack(body, announce(body))


def refusal(unpack, body: bytes) -> Reason:
    with pytest.raises(WireError) as caught:
        read(unpack, body)
    return caught.value.reason


def with_raw_extensions(body: bytes, raw: bytes) -> bytes:
    """The first item has an `extensions` field of these bytes."""
    first, *others = decode(zstandard.decompress(body), type=list[dict[str, msgspec.Raw]])
    return body_of([{**first, "extensions": msgspec.Raw(raw)}, *others])


@EACH_BODY
def test_extensions_are_skipped_whatever_they_are(body, unpack):
    for extensions in (
        {"cases": [b"\0\x3c", None]},
        {"of tomorrow": {"a": [1, {"b": b"\xff"}]}, "x": None},
        {f"name {number}": number for number in range(16)},
        {"n" * 64: "text"},
        {"large": bytes(2**17 - 5)},
    ):
        assert read(unpack, extended(body, extensions)) == read(unpack, body)


@given(extensions=st.dictionaries(st.text(min_size=1, max_size=9), VALUES, min_size=1, max_size=2))
@settings(max_examples=50, deadline=None)
def test_any_extension_is_skipped(extensions):
    for body, unpack in BODIES.values():
        assert read(unpack, extended(body, extensions)) == read(unpack, body)


@EACH_BODY
@pytest.mark.parametrize(
    ("extensions", "reason"),
    [
        (encode({}), Reason.MALFORMED),
        (encode(None), Reason.MALFORMED),
        (encode([["logprobs", 1]]), Reason.MALFORMED),
        (encode({1: 2}), Reason.MALFORMED),
        (encode({"": 1}), Reason.MALFORMED),
        (encode({"n" * 65: 1}), Reason.MALFORMED),
        (encode({f"name {number}": number for number in range(17)}), Reason.MALFORMED),
        (b"\x82" + (encode("twice") + b"\0") * 2, Reason.MALFORMED),
        (b"\xde\x00\x01" + encode("longer than needed") + b"\0", Reason.MALFORMED),
        (b"\x81" + b"\xa2\xff\xfe" + b"\0", Reason.MALFORMED),
        (encode({"large": bytes(2**17)}), Reason.OVERSIZED),
        (b"\x81\xa1n" + b"\x91" * 100_000 + b"\xc0", Reason.MALFORMED),
        (b"\x81\xa1n" + b"\x81\xa1x" * 60_000 + b"\xc0", Reason.MALFORMED),
        (b"\x81\xa1n\xdd\xff\xff\xff\xff", Reason.MALFORMED),
        (b"\x81\xa1n\xdf\x7f\xff\xff\xff", Reason.MALFORMED),
        (b"\x81\xa1n\xc6\xff\xff\xff\xff", Reason.MALFORMED),
        (b"\x81\xa1n\xc1", Reason.MALFORMED),
        (b"\xdf\xff\xff\xff\xff", Reason.MALFORMED),
    ],
    ids=[
        "empty, which is left out",
        "nothing",
        "no map",
        "a number for a name",
        "no name",
        "a long name",
        "too many",
        "one name twice",
        "another encoding of the map",
        "a name that is not UTF-8",
        "a large value",
        "a nesting bomb of lists",
        "a nesting bomb of maps",
        "a giant list that ends",
        "a giant map that ends",
        "giant bytes that end",
        "no msgpack",
        "a giant map of extensions",
    ],
)
def test_extensions_out_of_bounds_spoil_the_record(body, unpack, extensions, reason):
    with at_most_mib(10):
        assert refusal(unpack, with_raw_extensions(body, extensions)) is reason


@EACH_BODY
def test_other_fields_than_extensions_spoil_the_record(body, unpack):
    assert refusal(unpack, extended(body, {"x": 1}, more=1)) is Reason.MALFORMED


def task(**changes):
    return {"origin": "mbpp", "question": "q", "tests": "t", "difficulty": None, **changes}


@pytest.mark.parametrize(
    ("fields", "kept"),
    [
        ({"task": task(origin="of tomorrow")}, False),
        ({"task": task(origin="MBPP")}, False),
        ({"task": task(difficulty=0)}, False),
        ({"task": task(difficulty=6)}, False),
        ({"rollouts": [{"text": "a", "finish": "stop"}, {"text": "b", "finish": "tool"}]}, False),
        ({"task": task(difficulty=5)}, True),
    ],
    ids=str,
)
def test_a_word_that_is_not_known_costs_its_group_only(fields, kept):
    one, other = (decode(zstandard.decompress(pack_groups([group(question=name)])))[0] for name in ("one", "other"))
    groups, dropped = read(unpack_groups, body_of([{**one, **fields}, other]))
    assert [found.task.question for found in groups] == (["q", "other"] if kept else ["other"])
    assert dropped == (() if kept else (Reason.UNKNOWN_VALUE,))


OF_ENVIRONMENT = {"task": task(origin="environment")}


@pytest.mark.parametrize(
    ("fields", "environment"),
    [
        ({**OF_ENVIRONMENT, "extensions": {"environment": "sums", "of tomorrow": 1}}, "sums"),
        ({"task": task(), "extensions": {"environment": "sums"}}, ""),
        ({"task": task(), "extensions": {"environment": 7}}, ""),
        (OF_ENVIRONMENT, None),
        ({**OF_ENVIRONMENT, "extensions": {"cases": []}}, None),
        ({**OF_ENVIRONMENT, "extensions": {"environment": ""}}, None),
        ({**OF_ENVIRONMENT, "extensions": {"environment": "n" * 65}}, None),
        ({**OF_ENVIRONMENT, "extensions": {"environment": ["sums"]}}, None),
        ({**OF_ENVIRONMENT, "extensions": {"environment": b"sums"}}, None),
    ],
    ids=str,
)
def test_a_group_is_of_the_environment_that_it_names_and_without_a_name_is_dropped_alone(fields, environment):
    one, other = (decode(zstandard.decompress(pack_groups([group(question=name)])))[0] for name in ("one", "other"))
    groups, dropped = read(unpack_groups, body_of([{**one, **fields}, other]))
    assert [found.task.environment for found in groups] == ([""] if environment is None else [environment, ""])
    assert dropped == ((Reason.MALFORMED,) if environment is None else ())


def test_a_level_that_is_not_known_costs_its_proposal_only():
    items = [{"model_id": "m", "question": f"q{level}", "tests": "t", "difficulty": level} for level in (0, 1, 5, 6)]
    found, dropped = read(unpack_proposals, body_of(items))
    assert [one.difficulty for one in found] == [1, 5]
    assert dropped == (Reason.UNKNOWN_VALUE, Reason.UNKNOWN_VALUE)


@pytest.mark.parametrize("difficulty", [0, 6, 2**53])
def test_a_level_that_others_do_not_know_is_not_sent(difficulty):
    for pack, item in ((pack_groups, group(difficulty=difficulty)), (pack_proposals, proposal(difficulty=difficulty))):
        with pytest.raises(WireError, match="unknown_value"):
            pack([item])


# The size of a record


NOISE = random.Random(1)
"""Its bytes do not compress."""


def item(**sizes: int) -> BodyItem:
    """With extensions of so many bytes each."""
    return BodyItem(extensions={name: msgspec.Raw(encode(NOISE.randbytes(size))) for name, size in sizes.items()})


def kept(items) -> list[str]:
    """The names that each item has in the record of these, by first letters."""
    record = pack_items(items)
    assert len(record) <= MAX_RECORD_BYTES
    found = decode(zstandard.decompress(record))
    return ["".join(name[0] for name in one.get("extensions", {})) for one in found]


KIB = 1024


@pytest.mark.parametrize(
    ("sizes", "names"),
    [
        ({"environment": 1, "logprobs": 60 * KIB}, ["el", "el", "el", "el"]),
        ({"environment": 1, "logprobs": 100 * KIB}, ["el", "el", "e", "e"]),
        ({"environment": 1, "logprobs": 300 * KIB}, ["e", "e", "e", "e"]),
    ],
    ids=str,
)
def test_of_a_record_that_is_too_large_log_probs_go_the_last_ones_first(sizes, names):
    assert kept([item(**sizes) for _ in range(4)]) == names


class Attempts(BodyItem):
    texts: list[str]


def attempts(chars: int, num_groups: int = 64) -> list[Attempts]:
    """Groups of 16 attempts with texts of so many characters and log-probabilities of 256 tokens, 2 bytes a token: in
    64 groups these are 512 KiB."""
    letters = random.Random(2).choices("abcdefghijklmnopqrstuvwxyz012345", k=num_groups * 16 * chars)
    texts = ["".join(letters[start : start + chars]) for start in range(0, len(letters), chars)]
    return [
        Attempts(
            texts=texts[16 * k : 16 * (k + 1)],
            extensions={"logprobs": msgspec.Raw(encode([NOISE.randbytes(512) for _ in range(16)]))},
        )
        for k in range(num_groups)
    ]


def record_of(groups) -> tuple[list[dict], int]:
    """The groups in the record of these, and how many of them have log-probabilities: the first ones."""
    found = decode(zstandard.decompress(pack_items(groups)))
    having = ["extensions" in one for one in found]
    assert having == sorted(having, reverse=True)
    return found, sum(having)


@pytest.mark.parametrize(("chars", "least", "most"), [(1, 29, 31), (200, 12, 16), (390, 0, 0)])
def test_64_groups_of_16_go_out_whole_with_the_log_probs_that_there_is_room_for(chars, least, most):
    """Of a text of these letters a character takes five bits: 390 of each attempt are 250 KiB."""
    groups = attempts(chars)
    found, count = record_of(groups)
    assert [one["texts"] for one in found] == [one.texts for one in groups]
    assert least <= count <= most


def test_only_when_no_extension_is_left_do_groups_go_and_never_more_than_needed():
    groups = attempts(500)
    record, count = fit(pack_items, groups)
    assert decode(zstandard.decompress(record)) == [{"texts": one.texts} for one in groups[:count]]
    assert 48 <= count < 52
    with pytest.raises(WireError, match="oversized"):
        pack_items([Attempts(texts=one.texts) for one in groups[: count + 1]])


@given(sizes=st.lists(st.integers(0, 12), max_size=12))
def test_a_record_has_the_first_items_up_to_its_size_without_those_that_fit_into_none(sizes):
    def pack(items):
        if sum(items) > 10:
            raise WireError(Reason.OVERSIZED, "")
        return bytes(items)

    record, count = fit(pack, sizes)
    sendable = [size for size in sizes if size <= 10]
    expected = max((sendable[:count] for count in range(len(sendable) + 1) if sum(sendable[:count]) <= 10), key=len)
    assert (record, count) == (bytes(expected) if expected else None, len(expected))

"""GenRL's format: what its nodes send is read, what ours sign is held to it. The real codec is in tests/network."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib

import msgspec
import pytest
from hypothesis import given

from codezero.network.wire import Reason, WireError, read_genrl
from codezero.network.wire.codec import MAX_RECORD_BYTES, MAX_TEXT_CHARS
from codezero.types import FinishReason, TaskOrigin
from tests.unit.network.wire_builders import INSTANCE, SWARM, genrl, group, groups, identity

encode, decode = msgspec.msgpack.encode, msgspec.msgpack.decode
DELETE = object()


def batch_id(question: str) -> str:
    return hashlib.md5(question.encode()).hexdigest()


def without_deleted(fields):
    return {key: value for key, value in fields.items() if value is not DELETE}


def payload(environment=None, **changes):
    """What a node of GenRL publishes for one task."""
    environment = {"question": "q", "test": "t", "metadata": {"dataset": "code_contests"}, **(environment or {})}
    world_state = {
        "__type__": "WorldState",
        "environment_states": without_deleted(environment),
        "opponent_states": None,
        "personal_states": None,
    }
    fields = {"__type__": "Payload", "world_state": world_state, "actions": ["a", "b"], "metadata": None, **changes}
    return without_deleted(fields)


def record(*payloads) -> bytes:
    return encode({batch_id("q"): payloads})


def read(raw, peer_id: str = "", **changes):
    fields = {"swarm": SWARM, "round_number": 7, **changes}
    return read_genrl(raw, peer_id or identity().peer_id, **fields)


def dropped(raw, *args, **kwargs) -> tuple[Reason, ...]:
    found = read(raw, *args, **kwargs)
    assert found.groups == ()
    assert found.announcement is None
    return found.dropped


def changed(raw: bytes, change) -> bytes:
    """A record of one payload with that payload changed in place."""
    value = decode(raw)
    ((one,),) = value.values()
    change(one)
    return encode(value)


def as_sent(sent):
    """What others see of a group: built-in tasks are MBPP's to them, and difficulties are not sent."""
    origin = TaskOrigin.MBPP if sent.task.origin is TaskOrigin.BUILTIN else sent.task.origin
    return dataclasses.replace(sent, task=dataclasses.replace(sent.task, origin=origin, difficulty=None))


@given(published=groups())
def test_own_groups_come_back(published):
    found = read(genrl(published))
    expected = [as_sent(one) for one in published]
    by_question = {}
    for one in expected:
        by_question.setdefault(one.task.question, []).append(one)
    assert found.groups == tuple(one for same in by_question.values() for one in same)
    assert found.dropped == ()


def test_a_signed_record_says_when_and_by_which_process_it_was_published():
    found = read(genrl([group()])).announcement
    assert (found.peer_id, found.round, found.published_at_s, found.instance) == (
        identity().peer_id,
        7,
        1.5e9,
        INSTANCE,
    )


def test_an_unsigned_payload_beside_signed_ones_is_somebody_else_s():
    true = group(question="true")
    planted = {**decode(genrl([true])), **decode(record(payload()))}
    found = read(encode(planted))
    assert (found.groups, found.dropped) == ((as_sent(true),), (Reason.BAD_SIGNATURE,))


def test_an_unsigned_group_of_a_genrl_node_is_read_and_none_of_its_texts_counts_as_finished():
    found = read(record(payload()), peer_id="QmGenrl")
    (one,) = found.groups
    assert (one.peer_id, one.model_id, one.policy_version) == ("QmGenrl", "", 0)
    assert (one.task.origin, one.task.question, one.task.tests) == (TaskOrigin.CODE_CONTESTS, "q", "t")
    assert [(r.text, r.finish) for r in one.rollouts] == [("a", FinishReason.LENGTH), ("b", FinishReason.LENGTH)]
    assert found.announcement is None
    assert found.dropped == ()


@pytest.mark.parametrize(
    "unusual",
    [
        payload(metadata={"anything": [1, {"x": b"y"}]}),
        payload(metadata=["not", "a", "map"]),
        payload(metadata={1: 2}),
        payload(metadata=DELETE),
        payload(more="fields"),
        payload({"prior_stage_input_states": {"__type__": "WorldState"}}),
        payload({"metadata": {"dataset": "code_contests", "more": 1}}),
    ],
    ids=lambda value: str(sorted(value.items(), key=str))[-60:],
)
def test_what_genrl_nodes_may_add_or_leave_out_does_no_harm(unusual):
    assert read(record(unusual)).groups == read(record(payload())).groups


@pytest.mark.parametrize("metadata", [DELETE, None, {}, {"dataset": 3}, {"dataset": "of a fork"}, "mbpp", {1: 2}])
def test_a_task_of_an_unknown_dataset_is_read_as_mbpp(metadata):
    assert read(record(payload({"metadata": metadata}))).groups[0].task.origin is TaskOrigin.MBPP


@pytest.mark.parametrize("test", [DELETE, None, ""])
def test_a_task_may_have_no_tests(test):
    assert read(record(payload({"test": test}))).groups[0].task.tests == ""


@pytest.mark.parametrize(
    "bad",
    [
        payload(actions=None),
        payload(actions=DELETE),
        payload(actions="text"),
        payload(actions=[]),
        payload(actions=["a"] * 65),
        payload(actions=["a", None]),
        payload(actions=["a", b"b"]),
        payload(actions=["a", ["b"]]),
        payload(actions=["a" * (MAX_TEXT_CHARS + 1)]),
        payload({"question": "another"}),
        payload({"question": None}),
        payload({"question": DELETE}),
        payload({"test": 3}),
        payload(world_state=None),
        payload(world_state={"__type__": "Payload", "environment_states": {"question": "q"}}),
        payload(world_state={"environment_states": {"question": "q"}}),
        payload(__type__=DELETE),
        payload(__type__="Other"),
        None,
        "payload",
        [],
        msgspec.Raw(b"\xc7\x02\x05ab"),
    ],
    ids=lambda value: str(value).split(" at 0x")[0][-60:],
)
def test_a_payload_that_cannot_be_used_costs_itself_only(bad):
    found = read(record(payload(), bad, payload(actions=["c"])))
    assert [len(one.rollouts) for one in found.groups] == [2, 1]
    assert found.dropped == (Reason.MALFORMED,)


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", Reason.MALFORMED),
        (encode([]), Reason.MALFORMED),
        (encode({batch_id("q"): payload()}), Reason.MALFORMED),
        (encode({1: [payload()]}), Reason.MALFORMED),
        (encode({b"q": [payload()]}), Reason.MALFORMED),
        (record(payload()) + b"\0", Reason.MALFORMED),
        (record(payload())[:-1], Reason.MALFORMED),
        (encode({batch_id(str(k)): [] for k in range(65)}), Reason.MALFORMED),
        (record(*[payload()] * 65), Reason.OVERSIZED),
        (bytes(MAX_RECORD_BYTES + 1), Reason.OVERSIZED),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_record_that_is_none_is_refused(raw, reason):
    with pytest.raises(WireError) as caught:
        read(raw)
    assert caught.value.reason is reason


def test_a_signed_record_played_back_elsewhere_is_dropped():
    raw = genrl([group()])
    assert dropped(raw, peer_id=identity("bob").peer_id) == (Reason.WRONG_PEER,)
    assert dropped(raw, round_number=8) == (Reason.WRONG_ROUND,)
    assert dropped(raw, swarm="swarm-b") == (Reason.WRONG_SWARM,)


def test_signed_content_cannot_be_changed():
    raw = genrl([group()])
    assert read(changed(raw, lambda one: None)).groups

    def other_question(one):
        one["world_state"]["environment_states"]["question"] = "Write g(x)."

    for change in (
        lambda one: one["actions"].reverse(),
        lambda one: one["world_state"]["environment_states"].update(test="assert True"),
        lambda one: one["world_state"]["environment_states"]["metadata"].update(dataset="proposer"),
        lambda one: one["metadata"].update(model_id="other"),
        lambda one: one["metadata"].update(policy_version=4),
        lambda one: one["metadata"].update(finish=["stop", "length"]),
    ):
        assert dropped(changed(raw, change)) == (Reason.BAD_SIGNATURE,)
    value = decode(changed(raw, other_question))
    assert dropped(encode({batch_id("Write g(x)."): next(iter(value.values()))})) == (Reason.BAD_SIGNATURE,)


@pytest.mark.parametrize(
    ("metadata", "reason"),
    [
        ({"codezero": None}, Reason.MALFORMED),
        ({"codezero": "text"}, Reason.MALFORMED),
        ({"codezero": b"\x01"}, Reason.MALFORMED),
        ({"codezero": b"\x02"}, Reason.WRONG_VERSION),
        ({"codezero": b"\x03"}, Reason.WRONG_VERSION),
        ({"codezero": bytes(3000)}, Reason.OVERSIZED),
        ({"finish": ["stop"]}, Reason.MALFORMED),
        ({"finish": "stop"}, Reason.MALFORMED),
        ({"model_id": 3}, Reason.MALFORMED),
        ({"policy_version": -1}, Reason.MALFORMED),
    ],
    ids=str,
)
def test_a_signature_that_is_there_must_be_good(metadata, reason):
    raw = changed(genrl([group()]), lambda one: one["metadata"].update(metadata))
    assert dropped(raw) == (reason,)


def test_a_signed_record_with_any_byte_changed_gives_what_was_signed_or_nothing():
    raw = genrl([group()])
    signed = read(raw).groups
    for position in range(len(raw)):
        broken = bytearray(raw)
        broken[position] ^= 1 << position % 8
        with contextlib.suppress(WireError):
            found = read(bytes(broken))
            assert found.groups in ((), signed) or found.announcement is None


@pytest.mark.parametrize(
    ("published", "reason"),
    [
        ([group(texts=[])], Reason.MALFORMED),
        ([group(question="\ud800")], Reason.MALFORMED),
        ([group(texts=["a" * (MAX_TEXT_CHARS + 1)])], Reason.MALFORMED),
        ([group()] * 65, Reason.OVERSIZED),
        ([group(texts=["a" * MAX_TEXT_CHARS] * 4)], Reason.OVERSIZED),
    ],
    ids=["no text", "no unicode", "long text", "many groups", "large"],
)
def test_what_others_would_refuse_is_not_sent(published, reason):
    with pytest.raises(WireError) as caught:
        genrl(published)
    assert caught.value.reason is reason

"""Proposals and feedback in both formats: what goes in comes out, and nothing else does."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import msgspec
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from codezero.network.wire import (
    MAX_PROPOSALS,
    MAX_RESULTS,
    AttemptResults,
    Reason,
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
from tests.unit.network.test_wire import fails
from tests.unit.network.wire_builders import announce, body_of, identity

encode = msgspec.msgpack.encode
ALICE = identity().peer_id
NAN, INF = math.nan, math.inf

TEXTS = st.text(min_size=1, max_size=30)
NUMBERS = st.integers(1, 4).flatmap(
    lambda count: st.tuples(
        st.lists(st.floats(0, 1), min_size=count, max_size=count).map(tuple),
        st.lists(st.floats(-1.2, 1.2), min_size=count, max_size=count).map(tuple),
    )
)
PROPOSALS = st.lists(
    st.builds(
        Proposal,
        peer_id=st.just(ALICE),
        model_id=st.text(max_size=20),
        question=TEXTS,
        tests=TEXTS,
        difficulty=st.none() | st.integers(1, 5),
        raw=st.text(max_size=30),
    ),
    max_size=4,
)


def proposals_in(body: bytes):
    """As alice has announced just these bytes; none is dropped."""
    proposals, dropped = unpack_proposals(body, announce(body))
    assert dropped == ()
    return proposals


def feedback_in(body: bytes):
    feedback, dropped = unpack_feedback(body, announce(body))
    assert dropped == ()
    return feedback


def wire_proposal(**changes):
    return {"model_id": "tiny", "question": "q", "tests": "t", "difficulty": None, **changes}


def wire_results(**changes):
    return {"proposal_id": "0" * 32, "p_correct": [1.0, 0.0], "rewards": [1.2, -1.2], **changes}


@given(published=PROPOSALS)
def test_proposals_come_back_as_they_were(published):
    assert proposals_in(pack_proposals(published)) == tuple(replace(one, raw="") for one in published)
    expected = tuple(replace(one, difficulty=None) for one in published)
    assert read_genrl_proposals(pack_genrl_proposals(published), ALICE) == (expected, ())


@given(published=st.dictionaries(st.binary(min_size=16, max_size=16).map(bytes.hex), NUMBERS, max_size=4))
def test_feedback_comes_back_as_it_was(published):
    said = tuple(AttemptResults(name=name, p_correct=p, rewards=rewards) for name, (p, rewards) in published.items())
    assert feedback_in(pack_feedback(said)) == said
    read, dropped = read_genrl_feedback(pack_genrl_feedback(said))
    assert [(one.name, one.rewards) for one in read] == [(one.name, one.rewards) for one in said]
    assert dropped == ()


def test_the_bytes_of_both_versions():
    """Other nodes read these: a change here needs another version."""
    assert zstandard.decompress(pack_proposals([proposal("f")])) == encode(
        [{"model_id": "tiny", "question": "Write f(x).", "tests": "assert f(1) == 2", "difficulty": 2}]
    )
    assert zstandard.decompress(pack_feedback([results()])) == encode(
        [{"proposal_id": "0" * 32, "p_correct": [1.0, 0.0], "rewards": [1.2, -0.2]}]
    )


def test_the_bytes_of_genrl():
    assert pack_genrl_proposals([proposal("f")]) == encode(
        [
            {
                "proposer_model": "tiny",
                "proposal_question": "Write f(x).",
                "proposal_tests": "assert f(1) == 2",
                "proposal_raw": "raw f",
            }
        ]
    )
    assert pack_genrl_feedback([results("raw f")]) == encode(
        [{"proposal_raw": "raw f", "reward": [1.2, -0.2], "dataset": "proposer"}]
    )


def test_only_the_announcement_says_whose_proposals_they_are():
    (found,) = proposals_in(pack_proposals([proposal("f", peer_id="somebody else")]))
    assert found.peer_id == ALICE
    assert found.proposal_id == proposal("f").proposal_id


BAD_PROPOSALS = [
    {},
    [3],
    [wire_proposal(more=1)],
    [wire_proposal(question="")],
    [wire_proposal(tests="")],
    [wire_proposal(question=b"q")],
    [wire_proposal(tests=["t"])],
    [wire_proposal(question="q" * (2**16 + 1))],
    [wire_proposal(model_id="m" * 257)],
    [wire_proposal(difficulty=-1)],
    [wire_proposal(difficulty=2**53 + 1)],
    [wire_proposal(difficulty=True)],
    [wire_proposal(difficulty=2.0)],
    [wire_proposal()] * (MAX_PROPOSALS + 1),
    [wire_proposal(), wire_proposal(tests=None)],
]
BAD_FEEDBACK = [
    {},
    [3],
    [wire_results(more=1)],
    [wire_results(proposal_id="0" * 31)],
    [wire_results(proposal_id="0" * 31 + "G")],
    [wire_results(proposal_id="0" * 32 + "\n")],
    [wire_results(p_correct=[])],
    [wire_results(p_correct=[], rewards=[])],
    [wire_results(p_correct=[1.0])],
    [wire_results(p_correct=[1.0] * 65, rewards=[1.0] * 65)],
    [wire_results(p_correct=[1.0, 1.1])],
    [wire_results(p_correct=[1.0, -0.1])],
    [wire_results(p_correct=[1.0, NAN])],
    [wire_results(p_correct=[1, 0])],
    [wire_results(p_correct=[True, False])],
    [wire_results(rewards=[1.0, 1.21])],
    [wire_results(rewards=[1.0, -1.21])],
    [wire_results(rewards=[1.0, NAN])],
    [wire_results(rewards=[INF, 0.0])],
    [wire_results(rewards=[-INF, 0.0])],
    [wire_results(rewards=[1.0, None])],
    [wire_results(rewards="1.0")],
    [wire_results(), wire_results(p_correct=[0.0, 0.0])],
    [wire_results(proposal_id=format(k, "032x")) for k in range(MAX_RESULTS + 1)],
]


@pytest.mark.parametrize("value", BAD_PROPOSALS, ids=lambda value: str(value)[:70])
def test_proposals_of_another_schema_are_malformed(value):
    assert proposals_in(body_of([wire_proposal(), wire_proposal()]))
    fails(Reason.MALFORMED, proposals_in, body_of(value))


@pytest.mark.parametrize("value", BAD_FEEDBACK, ids=lambda value: str(value)[:70])
def test_feedback_of_another_schema_is_malformed(value):
    assert feedback_in(body_of([wire_results(), wire_results(proposal_id="1" * 32)]))
    fails(Reason.MALFORMED, feedback_in, body_of(value))


@pytest.mark.parametrize("reader", [proposals_in, feedback_in])
def test_bodies_of_something_else_are_refused(reader):
    for plain in (b"\x91" * 100_000, b"\xdd\xff\xff\xff\xff", b"", b"\xc1"):
        fails(Reason.MALFORMED, reader, zstandard.compress(plain))
    fails(Reason.MALFORMED, reader, b"junk")
    fails(Reason.MALFORMED, reader, body_of([]) + b"more")
    fails(Reason.MALFORMED, reader, zstandard.compress(encode([]) + b"\0"))
    fails(Reason.OVERSIZED, reader, zstandard.compress(bytes(3 << 20)))
    fails(Reason.OVERSIZED, reader, bytes((256 << 10) + 1))
    fails(Reason.MALFORMED, reader, body_of([wire_results() if reader is proposals_in else wire_proposal()]))


@pytest.mark.parametrize("call", [unpack_proposals, unpack_feedback])
def test_other_bytes_than_the_announced_ones_are_refused(call):
    body = body_of([])
    assert call(body, announce(body)) == ((), ())
    fails(Reason.BAD_SIGNATURE, call, body_of([1]), announce(body))


def test_invalid_utf8_is_malformed():
    fails(Reason.MALFORMED, proposals_in, zstandard.compress(encode([wire_proposal()]).replace(b"tiny", b"t\xff\xfey")))
    raw = encode([genrl_proposal(proposal_raw="abc"), genrl_proposal()]).replace(b"abc", b"a\xff\xfe")
    found, dropped = read_genrl_proposals(raw, ALICE)
    assert (len(found), dropped) == (1, (Reason.MALFORMED,))


NOISE = ["".join(random.Random(k).choices("abcdefghijklmnopqrstuvwxyz012345", k=2**16)) for k in range(8)]


@pytest.mark.parametrize("pack", [pack_proposals, pack_genrl_proposals])
def test_what_others_would_refuse_is_not_sent(pack):
    for bad in ({"question": "\ud800"}, {"question": ""}, {"tests": ""}, {"model_id": "m" * 257}):
        fails(Reason.MALFORMED, pack, [proposal("f", **bad)])
    fails(Reason.OVERSIZED, pack, [proposal("f", question=text) for text in NOISE])


@pytest.mark.parametrize("pack", [pack_feedback, pack_genrl_feedback])
def test_no_rewards_that_others_would_refuse_are_sent(pack):
    for bad in ({"rewards": (NAN, 0.0)}, {"rewards": (INF, 0.0)}, {"rewards": (1.3, 0.0)}, {"rewards": ()}):
        fails(Reason.MALFORMED, pack, [replace(results(), **bad)])


def test_no_feedback_that_others_would_refuse_is_sent():
    for bad in ({"p_correct": (1.0,)}, {"p_correct": (1.0, NAN)}, {"name": "raw text"}):
        fails(Reason.MALFORMED, pack_feedback, [replace(results(), **bad)])
    fails(Reason.MALFORMED, pack_feedback, [results(), results()])
    fails(Reason.OVERSIZED, pack_genrl_feedback, [results(str(k)) for k in range(MAX_RESULTS + 1)])


def genrl_proposal(**changes):
    return {
        "proposer_model": "Qwen/Qwen3-4B",
        "proposal_question": "q",
        "proposal_tests": "t",
        "proposal_raw": "raw",
        **changes,
    }


def genrl_results(**changes):
    return {"proposal_raw": "raw", "reward": [1.2, -0.2], "dataset": "proposer", **changes}


def test_more_than_genrl_writes_is_passed_over():
    raw = encode([genrl_proposal(more={"x": [1, None]}), genrl_proposal(proposal_tests=["assert f(1)", "assert f(2)"])])
    found, dropped = read_genrl_proposals(raw, "QmA")
    assert [(one.tests, one.peer_id, one.model_id) for one in found] == [
        ("t", "QmA", "Qwen/Qwen3-4B"),
        ("assert f(1)\nassert f(2)", "QmA", "Qwen/Qwen3-4B"),
    ]
    assert dropped == ()
    few = encode([{"proposal_question": "q", "proposal_tests": "t"}])
    assert read_genrl_proposals(few, "QmA")[0] == (Proposal(peer_id="QmA", model_id="", question="q", tests="t"),)
    assert read_genrl_feedback(encode([genrl_results(more=b"\xff")]))[0] == (results("raw"),)


@pytest.mark.parametrize(
    "bad",
    [
        None,
        7,
        [],
        {},
        {1: 2},
        genrl_proposal(proposal_question=""),
        genrl_proposal(proposal_question=None),
        genrl_proposal(proposal_question="q" * (2**16 + 1)),
        genrl_proposal(proposal_tests=""),
        genrl_proposal(proposal_tests=b"t"),
        genrl_proposal(proposal_tests=[]),
        genrl_proposal(proposal_tests=[""]),
        genrl_proposal(proposal_tests=[7]),
        genrl_proposal(proposal_tests=[["t"]]),
        genrl_proposal(proposal_tests=["t"] * 65),
        genrl_proposal(proposal_tests=["t" * 2**15] * 2),
        genrl_proposal(proposal_tests={"t": 1}),
        genrl_proposal(proposer_model=None),
        genrl_proposal(proposer_model="m" * 257),
        genrl_proposal(proposal_raw=7),
        [[[]]] * 50,
    ],
    ids=lambda bad: str(bad)[:70],
)
def test_a_genrl_proposal_that_cannot_be_used_costs_itself_only(bad):
    found, dropped = read_genrl_proposals(encode([genrl_proposal(), bad, genrl_proposal()]), "QmA")
    assert (len(found), dropped) == (2, (Reason.MALFORMED,))


@pytest.mark.parametrize(
    "bad",
    [
        None,
        {},
        genrl_results(proposal_raw=""),
        genrl_results(proposal_raw=None),
        genrl_results(dataset="mbpp"),
        genrl_results(dataset=None),
        genrl_results(reward=[]),
        genrl_results(reward=1.0),
        genrl_results(reward=[1.0, None]),
        genrl_results(reward=[1.0, "1"]),
        genrl_results(reward=[True]),
        genrl_results(reward=[NAN]),
        genrl_results(reward=[INF]),
        genrl_results(reward=[-1.3]),
        genrl_results(reward=[2**63]),
        genrl_results(reward=[1.0] * 65),
        genrl_results(reward=[[1.0]]),
    ],
    ids=lambda bad: str(bad)[:70],
)
def test_genrl_feedback_that_cannot_be_used_costs_itself_only(bad):
    raw = encode([genrl_results(), bad, genrl_results(proposal_raw="other", reward=[1, 0])])
    found, dropped = read_genrl_feedback(raw)
    assert [(one.name, one.rewards) for one in found] == [("raw", (1.2, -0.2)), ("other", (1.0, 0.0))]
    assert dropped == (Reason.MALFORMED,)


def test_a_genrl_reward_from_one_half_is_correct():
    (found,), _ = read_genrl_feedback(encode([genrl_results(reward=[1.2, 0.8, 0.5, 0.49, 0.2, -0.2, -0.8, -1.2])]))
    assert found.p_correct == (1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0)


def test_genrl_feedback_names_a_proposal_by_the_start_of_its_raw_text():
    long = "x" * 1999 + "y" + "z" * 1000
    found, dropped = read_genrl_feedback(
        encode([genrl_results(proposal_raw=long), genrl_results(proposal_raw=long[:2000])])
    )
    assert [one.name for one in found] == [long[:2000]]
    assert dropped == (Reason.DUPLICATE,)


def test_of_a_genrl_flood_the_first_are_read():
    found, dropped = read_genrl_proposals(encode([genrl_proposal(proposal_question=str(k)) for k in range(500)]), "QmA")
    assert [one.question for one in found] == [str(k) for k in range(MAX_PROPOSALS)]
    assert dropped == (Reason.OVERSIZED,) * (500 - MAX_PROPOSALS)
    found, dropped = read_genrl_feedback(encode([genrl_results(proposal_raw=str(k)) for k in range(1, 500)]))
    assert (len(found), dropped) == (MAX_RESULTS, (Reason.OVERSIZED,) * (499 - MAX_RESULTS))


@pytest.mark.parametrize("reader", [lambda raw: read_genrl_proposals(raw, ALICE), read_genrl_feedback])
def test_a_genrl_record_that_is_no_list_is_refused(reader):
    for raw in (b"", b"\xc1", b"\x91" * 100_000, encode({}), encode("text"), encode(None), encode([]) + b"\0"):
        fails(Reason.MALFORMED, reader, raw)
    for giant in (b"\xdd\xff\xff\xff\xff", b"\xdf\x7f\xff\xff\xff", encode([None] * 5000)):
        fails(Reason.MALFORMED, reader, giant)
    fails(Reason.OVERSIZED, reader, bytes((256 << 10) + 1))
    assert reader(encode([])) == ((), ())

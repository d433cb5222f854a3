"""Proposals and feedback against the real GenRL 0.3.0: its codec, and its backend on its own DHT."""

from __future__ import annotations

import pytest

from codezero.config import Network
from codezero.network.genrl import GenrlProposalBoard
from codezero.network.proposals import SwarmProposals
from codezero.network.solvers import SwarmSolvers
from codezero.network.wire import (
    pack_genrl_feedback,
    pack_genrl_proposals,
    read_genrl_feedback,
    read_genrl_proposals,
)
from tests.network.test_genrl import genrl_codec
from tests.processes import wait_until
from tests.unit.network.proposal_nodes import attempts, proposal, results


def genrl_proposal(name: str, tests: object = "assert True", raw: str = "raw") -> dict:
    """As GenRL's proposer builds it."""
    return {
        "proposer_model": "Qwen/Qwen3-4B",
        "proposal_question": f"Write {name}(x).",
        "proposal_tests": tests,
        "proposal_raw": raw,
    }


def test_what_we_pack_is_what_genrl_packs_from_the_same_objects(genrl_env):
    """Lengths and numbers at each width that msgpack has for them."""
    shown = [
        [],
        [proposal("f")],
        [proposal(str(k)) for k in range(32)],
        [proposal("naïve 日本語 🦑 \0", tests="\r\n\t```", raw="\u2028")],
        [proposal("f", question="x" * length) for length in (31, 32, 255, 256, 65_535, 65_536)],
    ]
    said = [
        [],
        [results("raw f")],
        [results(str(k), (0.5,), (0.1,)) for k in range(1, 65)],
        [results("r", (1.0,) * count, (-1.2,) * count) for count in (1, 15, 16, 64)],
        [results("日" * 2000, (0.0,) * 4, (1.2, 0.0, -0.0, 0.1 + 0.2))],
    ]
    records = [*map(pack_genrl_proposals, shown), *map(pack_genrl_feedback, said)]
    genrl = genrl_codec(genrl_env, records)
    assert [bytes.fromhex(record) for record in genrl["repacked"]] == records
    assert genrl["unpacked"][: len(shown)] == [
        [
            {
                "proposer_model": "tiny",
                "proposal_question": one.question,
                "proposal_tests": one.tests,
                "proposal_raw": one.raw,
            }
            for one in proposals
        ]
        for proposals in shown
    ]
    assert genrl["unpacked"][len(shown) :] == [
        [{"proposal_raw": one.name, "reward": list(one.rewards), "dataset": "proposer"} for one in feedback]
        for feedback in said
    ]


def test_what_genrl_packs_we_read(genrl_env):
    shown = [genrl_proposal("f"), genrl_proposal("g", tests=["a", "b"]), genrl_proposal("h", tests={"a": 1})]
    said = [
        {"proposal_raw": "raw", "reward": [1.2, 0.8, -0.2, -1.2], "dataset": "proposer"},
        {"proposal_raw": None, "reward": [1.2], "dataset": "proposer"},
        {"proposal_raw": "日" * 2000, "reward": [1, 0], "dataset": "proposer"},
    ]
    packed = [bytes.fromhex(raw) for raw in genrl_codec(genrl_env, values=[shown, said])["packed_values"]]
    proposals, dropped = read_genrl_proposals(packed[0], "QmGenrl")
    assert [(one.question, one.tests, one.raw) for one in proposals] == [
        ("Write f(x).", "assert True", "raw"),
        ("Write g(x).", "a\nb", "raw"),
    ]
    assert [reason.value for reason in dropped] == ["malformed"]
    feedback, dropped = read_genrl_feedback(packed[1])
    assert [(one.name, one.p_correct) for one in feedback] == [
        ("raw", (1.0, 1.0, 0.0, 0.0)),
        ("日" * 2000, (1.0, 0.0)),
    ]
    assert [reason.value for reason in dropped] == ["malformed"]


@pytest.mark.slow
def test_a_genrl_node_and_ours_propose_to_each_other_and_answer(swarm, start_genrl_peer):
    node = swarm.node("alice", network=Network.genrl)
    board = GenrlProposalBoard(node.identity)
    asks = SwarmSolvers(node.link, board, node.config, node.peer_id)
    solves = SwarmProposals(node.link, board, node.config)
    genrl = start_genrl_peer([node.address], 1)
    wait_until(lambda: genrl.peer_id in node.dht.neighbours())

    long = proposal("ours", raw="r" * 3000)
    asks.publish([proposal("older"), long])
    received = genrl.put_and_get("proposer", [genrl_proposal("theirs", raw="their raw")])
    assert [one["proposal_question"] for one in received[node.peer_id]] == ["Write ours(x).", "Write older(x)."]

    found: list = []
    wait_until(lambda: found.extend(solves.collect()) or found)
    assert [(one.peer_id, one.question, one.raw) for one in found] == [(genrl.peer_id, "Write theirs(x).", "their raw")]

    solves.give([attempts(found[0], (1.0, 0.0))])
    cut = received[node.peer_id][0]["proposal_raw"][:2000]  # as its solvers do
    told = genrl.put_and_get("solver", [{"proposal_raw": cut, "reward": [0.8, -0.2], "dataset": "proposer"}])
    assert told[node.peer_id] == [{"proposal_raw": "their raw", "reward": [1.0, 0.0], "dataset": "proposer"}]

    heard: list = []
    wait_until(lambda: heard.extend(asks.collect()) or heard)
    assert [(one.peer_id, one.proposal_id, one.p_correct) for one in heard] == [
        (genrl.peer_id, long.proposal_id, (1.0, 0.0))
    ]

import json

import pytest

from codezero.cli import main
from codezero.cli.leaderboard import lines, show
from codezero.ledger.leaderboard import Leaderboard, LeaderboardRow
from codezero.ledger.local import LocalLedger
from codezero.types import RoundId
from tests.builders import rollout, scored


def place(peer_id, reward, **values):
    return LeaderboardRow(peer_id=peer_id, reward=reward, rounds=2, wins=1, **values)


def test_nodes_of_a_swarm_folder_are_told_together(tmp_path, capsys):
    for name, points in (("node-1", 1.0), ("node-2", 5.0)):
        (tmp_path / name / "state" / "checkpoints").mkdir(parents=True)
        made = LocalLedger(tmp_path / name / "state" / "ledger.sqlite", f"{name}\x1b[2J")
        made.settle(RoundId(number=1), [scored([rollout()], [points])])
    assert main(["leaderboard", str(tmp_path)]) == 0
    first, second, third = capsys.readouterr().out.splitlines()
    assert first == "2 ledgers of this machine: 2 peers"
    assert second.startswith("   1. +5.00 in 1 round, 1 vote, last in round 1: node-2\\x1b[2J (")
    assert third.startswith("   2. +1.00 in 1 round, 1 vote, last in round 1: node-1\\x1b[2J (")
    assert main(["leaderboard", str(tmp_path), "--json", "--top", "1"]) == 0
    shown = capsys.readouterr().out
    assert shown.isascii()
    assert [at["reward"] for at in json.loads(shown)["places"]] == [5.0]


def test_no_node_is_an_error_that_says_what_to_give(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["leaderboard"]) == 1
    assert "no node has run here, in state, swarms/home, gpus: give" in capsys.readouterr().err


def test_a_chain_says_up_to_where_it_was_read_and_where_this_node_is():
    own = place("me", -1.0)
    board = Leaderboard(
        kind="chain",
        where="0xC0 on chain 7",
        places=(place("a", 3.0, last_round=4),),
        num_peers=9,
        own=own,
        own_rank=8,
        as_of_s=1000.0,
        read_block=50,
        head_block=50,
    )
    assert list(lines(board, 1000.0)) == [
        "0xC0 on chain 7: 9 peers, as of block 50",
        "   1. +3.00 in 2 rewards, 1 vote, last in round 4: a (noisy spotted barracuda)",
        "      and 8 more",
        "   8. -1.00 in 2 rewards, 1 vote: me (screeching powerful sardine) <- this node",
    ]
    assert next(lines(board, 4600.0)) == "0xC0 on chain 7: 9 peers, as of block 50, 1 h 0 min ago"


def test_a_peer_id_with_a_newline_forges_no_line(capsys):
    forger = place("me\n   1. +99.00 in 2 rewards, 9 votes: friend", 3.0)
    show(Leaderboard(kind="chain", where="0xC0 on chain 7", places=(forger,), num_peers=1))
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_what_could_not_be_read_is_said():
    board = Leaderboard(
        kind="chain", where="0xC0 on chain 7", read_block=50, head_block=90, is_whole=False, problem="the RPC is down"
    )
    assert list(lines(board, 0.0)) == [
        "0xC0 on chain 7: 0 peers, read up to block 50 of 90 only: ask again to continue",
        "trouble  the RPC is down",
    ]


@pytest.mark.parametrize("roles", [("proposer",), ("verifier",), ("proposer", "verifier")])
def test_a_folder_without_a_solver_is_told_as_such(tmp_path, capsys, roles):
    for role in roles:
        (tmp_path / role).mkdir()
        (tmp_path / role / "status.json").write_text("{}")
    assert main(["leaderboard", str(tmp_path)]) == 1
    assert f"only a {' and '.join(roles)} has run in {tmp_path}: give" in capsys.readouterr().err

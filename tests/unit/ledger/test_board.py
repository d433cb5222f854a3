"""The leaderboard of real chains, as whoever has only the state folder reads it."""

import json

import pytest
from eth_abi import encode

from codezero.ledger.board import read_shared, read_swarm_board
from codezero.ledger.contract import ContractCall
from codezero.ledger.items import LedgerScope
from codezero.ledger.local import LocalLedger
from codezero.ledger.location import LedgerLocation, write_location
from codezero.ledger.outbox import Outbox
from codezero.types import RoundId
from tests.builders import rollout, scored
from tests.chain import LiveChain
from tests.chains import CHAIN_ID, running
from tests.unit.ledger.hostile_rpc import HostileRpc
from tests.unit.ledger.peer import NO_NOTES


class Peer:
    """One that is registered and submits at once."""

    def __init__(self, deployed, peer_id):
        self.peer_id, self.writer = peer_id, deployed.writer()
        self.writer.register_peer(peer_id, NO_NOTES)

    def play(self, number, points, *winners):
        self.writer.submit_reward(RoundId(number=number), points, self.peer_id, NO_NOTES)
        self.writer.submit_winners(number, winners, self.peer_id, NO_NOTES)


def folder_of(deployed, folder, peer_id, url=None):
    folder.mkdir(exist_ok=True)
    where = {"chain_id": CHAIN_ID, "contract": deployed.address, "rpc_url": url or deployed.chain.url}
    write_location(folder, LedgerLocation(kind="wallet", peer_id=peer_id, **where))
    return folder


def shown(board):
    return [(place.peer_id, place.reward, place.rounds, place.wins, place.last_round) for place in board.places]


def test_a_chain_s_leaderboard_is_what_its_contract_says(deployed, tmp_path):
    a, b = Peer(deployed, "peer a"), Peer(deployed, "peer b")
    folder = folder_of(deployed, tmp_path, "peer b")
    for number in range(3):
        a.play(number, 10, "peer b")
        b.play(number, -1, "peer b" if number else "peer a")
        deployed.tick()
    looked = read_swarm_board([folder], limit_s=0)
    assert (looked.kind, looked.is_whole, looked.num_peers) == ("chain", False, 0)
    assert [path.name for path in folder.iterdir()] == ["ledger.json"]
    board = read_swarm_board([folder])
    assert (board.problem, board.kind, board.is_whole, board.num_peers) == ("", "chain", True, 2)
    assert board.where == f"{deployed.address} on chain {CHAIN_ID}"
    assert shown(board) == [("peer a", 30.0, 3, 1, 2), ("peer b", -3.0, 3, 5, 2)]
    assert (board.own, board.own_rank) == (board.places[1], 2)
    assert board.read_block == board.head_block
    peers = ["peer a", "peer b"]
    assert deployed.read("getTotalRewards(string[])", peers) == (30, -3)
    assert [deployed.read("getTotalWins(string)", peer) for peer in peers] == [1, 5]

    b.play(3, 100, "peer a")
    assert shown(read_swarm_board([folder], limit_s=0)) == shown(board)  # asks nobody
    again = read_swarm_board([folder], most=1)
    assert shown(again) == [("peer b", 97.0, 4, 5, 3)]
    assert (again.num_peers, again.own_rank) == (2, 1)
    assert again.as_of_s > board.as_of_s


def test_what_anybody_registers_is_text_and_no_more(deployed, tmp_path):
    """Also what is not UTF-8, which the contract takes and eth-abi does not."""
    account = deployed.account()
    odd = [b"\xff\xfe", b"\x1b[2Jx", b"y" * 1000]
    register = deployed.contract.call("registerPeer(string)", "x").data[:10]
    for raw in odd:
        data = register + encode(["bytes"], [raw]).hex()
        account.send(ContractCall(to=deployed.address, name="registerPeer", data=data, outputs=()), NO_NOTES)
    board = read_swarm_board([folder_of(deployed, tmp_path, "me")])
    assert board.problem == ""
    assert {place.peer_id for place in board.places} > {"\ufffd\ufffd", "\x1b[2Jx"}
    assert max(len(place.peer_id) for place in board.places) == 128 - 20 + 4 + 16
    assert (board.own, board.own_rank) == (None, None)


def test_a_folder_of_an_earlier_version_needs_the_url(deployed, tmp_path):
    Peer(deployed, "me").play(0, 2, "me")
    outbox = Outbox(tmp_path / "outbox.sqlite", LedgerScope(chain_id=CHAIN_ID, contract=deployed.address, peer_id="me"))
    outbox.credit(RoundId(number=0), 2.0, ["me"])
    outbox.close()
    assert read_swarm_board([tmp_path]).problem.startswith("the chain's RPC is not known: give --rpc-url")
    board = read_swarm_board([tmp_path], rpc_url=deployed.chain.url)
    assert (shown(board), board.own_rank) == ([("me", 2.0, 1, 1, 0)], 1)


BROKEN = {
    "html": "no JSON",
    "http 500": "answered HTTP 500",
    "http 403": "answered HTTP 403",
    "huge": "sent more than",
    "deep": "brackets",
    "null": "not a valid answer",
    "wrong id": "no answer to request",
    "drop": "cannot be reached",
}


@pytest.mark.parametrize("mode", BROKEN)
def test_a_server_that_breaks_costs_what_is_new_and_not_what_was_read(deployed, tmp_path, mode):
    Peer(deployed, "me").play(0, 2, "me")
    with HostileRpc(deployed.chain.url).serving() as rpc:
        folder = folder_of(deployed, tmp_path, "me", rpc.url)
        before = read_swarm_board([folder])
        assert shown(before) == [("me", 2.0, 1, 1, 0)]
        rpc.mode = mode
        board = read_swarm_board([folder], limit_s=60.0)
        assert BROKEN[mode] in board.problem
        assert (shown(board), board.as_of_s) == (shown(before), before.as_of_s)
        rpc.mode, rpc.for_methods = mode, ["eth_getLogs"]
        board = read_swarm_board([folder], limit_s=60.0)
        assert board.problem
        assert shown(board) == shown(before)
        rpc.mode = "ok"
        assert read_swarm_board([folder]).problem == ""


def test_a_server_of_another_chain_is_not_read(deployed, tmp_path):
    folder = folder_of(deployed, tmp_path, "me")
    with HostileRpc(deployed.chain.url).serving() as rpc:
        rpc.mode, rpc.answers = "answers", {"eth_chainId": "0x1"}
        board = read_swarm_board([folder], rpc_url=rpc.url)
    assert f"serves chain 1, not {CHAIN_ID}" in board.problem
    assert (board.places, board.is_whole, board.as_of_s, board.read_block) == ((), False, None, None)


def test_a_contract_that_is_not_there_is_said(deployed, tmp_path):
    where = {"chain_id": CHAIN_ID, "contract": "0x" + "11" * 20, "rpc_url": deployed.chain.url}
    write_location(tmp_path, LedgerLocation(kind="wallet", peer_id="me", **where))
    assert "there is no contract at 0x1111" in read_swarm_board([tmp_path]).problem


def test_the_url_s_key_is_shown_to_nobody(deployed, tmp_path):
    folder = folder_of(deployed, tmp_path, "me", "http://127.0.0.1:9/v2/SECRET")
    board = read_swarm_board([folder], limit_s=2.0)
    assert "127.0.0.1:9" in board.problem
    assert "SECRET" not in repr(board)
    assert "SECRET" not in repr(LedgerLocation(kind="wallet", peer_id="me", rpc_url="https://rpc/SECRET"))
    assert (folder / "ledger.json").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("blocks", [0, 30])
def test_a_real_reorganisation_is_followed(tmp_path, monkeypatch, blocks):
    """Near the end, and so far back that all is read anew."""
    with running() as chain:
        live = LiveChain(chain)
        live.mine_at_once(monkeypatch)
        deployed = live.deploy()
        peer = Peer(deployed, "me")
        folder = folder_of(deployed, tmp_path, "me")
        (snapshot,) = live.transport.ask([("evm_snapshot", [])])
        peer.play(0, 5, "me")
        live.transport.ask([("anvil_mine", [hex(blocks)])])
        assert shown(read_swarm_board([folder])) == [("me", 5.0, 1, 1, 0)]
        live.transport.ask([("evm_revert", [snapshot])])
        peer.play(0, 3, "other")
        live.transport.ask([("anvil_mine", [hex(blocks + 20), "0x7"])])  # other times, so other hashes
        board = read_swarm_board([folder])
        assert (board.problem, board.is_whole) == ("", True)
        assert shown(board) == [("me", 3.0, 1, 0, 0), ("other", 0.0, 0, 1, None)]


def test_a_local_ledger_has_the_same_records(tmp_path):
    path = tmp_path / "shared.sqlite"
    ledgers = {peer: LocalLedger(path, peer) for peer in ("a", "b", "c")}
    for number in (1, 2):
        ledgers["a"].settle(RoundId(number=number), [scored([rollout()], [1.0])])
    ledgers["b"].settle(RoundId(number=2), [scored([rollout()], [5.0])])
    write_location(tmp_path, LedgerLocation(kind="local", peer_id="a", path=str(path)))
    board = read_swarm_board([tmp_path], most=2)
    assert (board.kind, board.where, board.num_peers, board.problem) == ("local", str(path), 3, "")
    assert shown(board) == [("b", 5.0, 1, 1, 2), ("a", 2.0, 2, 2, 2)]
    assert (board.own, board.own_rank, board.is_whole) == (board.places[1], 2, True)
    assert [place.last_round for place in read_shared(path).places] == [2, 2, None]


def test_nodes_of_a_swarm_that_have_a_ledger_each_are_told_together(tmp_path):
    for name, points in (("a", 1.0), ("b", 5.0)):
        (tmp_path / name).mkdir()
        made = LocalLedger(tmp_path / name / "ledger.sqlite", name)
        seen = [scored([rollout()], [points]), scored([rollout()], [2.0], external=True, peer_id="c")]
        for number in (1, 2):
            made.settle(RoundId(number=number), seen)
    folders = [tmp_path / "a", tmp_path / "b"]
    board = read_swarm_board(folders)
    assert (board.where, board.problem, board.own) == ("2 ledgers of this machine", "", None)
    assert shown(board) == [("b", 10.0, 2, 0, 2), ("a", 2.0, 2, 0, 2), ("c", 0.0, 0, 4, None)]
    assert read_swarm_board([*folders, folders[0]]).places == board.places  # the same ledger twice counts once
    partly = read_swarm_board([*folders, tmp_path / "missing"])
    assert (partly.places, partly.is_whole) == (board.places, False)
    assert partly.problem.startswith("there is no ledger at ")


def test_of_a_swarm_on_a_chain_the_chain_is_asked(deployed, tmp_path):
    Peer(deployed, "me").play(0, 2, "me")
    LocalLedger(tmp_path / "ledger.sqlite", "other").close()
    board = read_swarm_board([tmp_path, folder_of(deployed, tmp_path / "chain", "me")])
    assert (board.kind, shown(board)) == ("chain", [("me", 2.0, 1, 1, 0)])


def test_a_folder_without_a_ledger_says_so(tmp_path):
    board = read_swarm_board([tmp_path])
    assert (board.kind, board.places, board.is_whole) == ("", (), False)
    assert board.problem.startswith(f"there is no ledger at {tmp_path / 'ledger.sqlite'}")


@pytest.mark.parametrize("name", ["ledger.json", "ledger.sqlite", "outbox.sqlite", "leaderboard.sqlite"])
@pytest.mark.parametrize(
    "damage", [b"", b"hello " * 1000, b"\xff\x00", b"[" * 100_000, b'{"kind": 7}', b"x" * (1 << 17)]
)
def test_damaged_files_are_a_line_of_words(tmp_path, name, damage):
    if name == "leaderboard.sqlite":
        scope = {"chain_id": 1, "contract": "0x" + "11" * 20, "rpc_url": "http://127.0.0.1:9"}
        write_location(tmp_path, LedgerLocation(kind="wallet", peer_id="me", **scope))
    (tmp_path / name).write_bytes(damage)
    board = read_swarm_board([tmp_path], limit_s=1.0)
    assert board.places == ()
    assert board.problem
    assert "\n" not in board.problem
    assert json.dumps(board.problem).isascii()

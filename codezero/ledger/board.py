"""Reads the leaderboard of a node's swarm, from the chain or the files that the node's state folder names."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from codezero.errors import LedgerError
from codezero.ledger.items import LedgerScope
from codezero.ledger.leaderboard import Leaderboard, LeaderboardRow, best_first, read_leaderboard
from codezero.ledger.location import LEDGER, OUTBOX, LedgerLocation, read_location
from codezero.ledger.reading import newest_scope
from codezero.ledger.tally import TALLY, Tally
from codezero.runtime.database import is_missing, reading

MOST = 100
"""The default number of rows of a leaderboard."""


def read_swarm_board(
    folders: Sequence[Path], *, rpc_url: str = "", limit_s: float = 20.0, most: int = MOST
) -> Leaderboard:
    """Returns the leaderboard of the swarm of one or more nodes' state folders; the nodes may run. If one of them uses
    a chain, it is that chain's (the first such node's); else it sums their ledger files, each of which has the rewards
    and votes of its own nodes. `own` is set only for a single folder. Problems are texts in the result.

    For a chain it first reads new blocks, for about `limit_s` seconds and one more answer; 0 sends no request and
    returns what was read before. `rpc_url` replaces the node's own. What is read is kept in the state folder.
    """
    paths, peers, problems = [], [], []
    for folder in folders:
        try:
            found = read_location(folder)
            scope = _scope(folder, found)
        except LedgerError as error:
            problems.append(str(error))
            continue
        if scope is not None:
            return _of_chain(folder, scope, rpc_url or (found.rpc_url if found else ""), limit_s, most)
        paths.append(Path(found.path) if found and found.path else folder / LEDGER)
        peers.append(found.peer_id if found else "")
    return _of_files(paths, peers[0] if len(folders) == len(peers) == 1 else "", most, problems)


def read_shared(path: Path, *, most: int = MOST) -> Leaderboard:
    """Returns the leaderboard of one ledger file that nodes share. Problems are texts in the result."""
    return _of_files([path], "", most, [])


def _of_files(paths: Sequence[Path], peer_id: str, most: int, problems: list[str]) -> Leaderboard:
    read: list[Path] = []
    found: list[LeaderboardRow] = []
    for path in dict.fromkeys(path.resolve() for path in paths):
        try:
            if is_missing(path):
                raise LedgerError(f"there is no ledger at {path}: no node has used it yet")
            found += read_leaderboard(path)
            read.append(path)
        except LedgerError as error:
            problems.append(str(error))
    places = _merged(found)
    own = next((rank for rank, place in enumerate(places, 1) if place.peer_id == peer_id), None)
    return Leaderboard(
        kind="local" if read else "",
        where=str(read[0]) if len(read) == 1 else f"{len(read)} ledgers of this machine",
        places=tuple(places[:most]),
        num_peers=len(places),
        own=places[own - 1] if own else None,
        own_rank=own,
        as_of_s=time.time() if read else None,
        is_whole=not problems,
        problem="; ".join(problems),
    )


def _merged(places: Sequence[LeaderboardRow]) -> list[LeaderboardRow]:
    """Merges the rows of ledgers that have no round of a peer in common, so that each peer has one; best first."""
    merged: dict[str, LeaderboardRow] = {}
    for place in places:
        if (old := merged.get(place.peer_id)) is not None:
            last = [number for number in (old.last_round, place.last_round) if number is not None]
            place = LeaderboardRow(
                peer_id=place.peer_id,
                reward=old.reward + place.reward,
                rounds=old.rounds + place.rounds,
                wins=old.wins + place.wins,
                last_round=max(last, default=None),
            )
        merged[place.peer_id] = place
    return sorted(merged.values(), key=best_first)


def _scope(folder: Path, found: LedgerLocation | None) -> LedgerScope | None:
    """Returns the contract that a node uses, None for a local ledger. Without a location it takes the outbox's
    contract. Raises LedgerError: the outbox cannot be read."""
    if found is not None:
        return found.scope
    if not (folder / OUTBOX).exists():
        return None
    with reading(folder / OUTBOX, "outbox") as db:
        return newest_scope(db)


def _of_chain(folder: Path, scope: LedgerScope, rpc_url: str, limit_s: float, most: int) -> Leaderboard:
    board = Leaderboard(kind="chain", where=f"{scope.contract} on chain {scope.chain_id}", is_whole=False)
    if limit_s <= 0 and not (folder / TALLY).exists():
        return board  # who only looks makes no file
    problem = ""
    try:
        tally = Tally(folder / TALLY, scope.chain_id, scope.contract)
    except LedgerError as error:
        return replace(board, problem=str(error))
    try:
        if limit_s > 0:
            problem = _read_new_blocks(tally, scope, rpc_url, limit_s)
        at, own = tally.progress(), tally.own(scope.peer_id)
        return replace(
            board,
            places=tuple(tally.places(most)),
            num_peers=tally.num_peers(),
            own=own[0] if own else None,
            own_rank=own[1] if own else None,
            as_of_s=at.read_at_s,
            read_block=at.read_block if at.read_block >= 0 else None,
            head_block=at.head_block if at.head_block >= 0 else None,
            is_whole=0 <= at.head_block <= at.read_block,
            problem=problem,
        )
    except LedgerError as error:
        return replace(board, problem=str(error))
    finally:
        tally.close()


def _read_new_blocks(tally: Tally, scope: LedgerScope, rpc_url: str, limit_s: float) -> str:
    """Reads new blocks into the tally. Returns the reason if it could not, else an empty text."""
    if not rpc_url:
        return "the chain's RPC is not known: give --rpc-url, or start the node once, which notes it"
    # Imported here, since a node without a chain does not need what these import.
    from codezero.ledger.follow import Follower
    from codezero.ledger.rpc import open_contract

    try:
        contract, rpc = open_contract(
            "SwarmCoordinator", scope.contract, rpc_url=rpc_url, chain_id=scope.chain_id, retries=0
        )
        Follower(rpc, contract.address, tally).follow(limit_s)
    except LedgerError as error:
        return str(error)
    return ""

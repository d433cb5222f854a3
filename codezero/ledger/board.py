"""The leaderboard of a node's swarm, from whichever ledger its state folder tells of."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

from codezero.errors import LedgerError
from codezero.ledger.items import Scope
from codezero.ledger.leaderboard import Leaderboard, read_leaderboard
from codezero.ledger.reading import newest_scope, reading
from codezero.ledger.tally import TALLY, Tally
from codezero.ledger.whereabouts import LEDGER, OUTBOX, read_whereabouts

MOST = 100
"""Places."""


def read_board(folder: Path, *, rpc_url: str = "", limit_s: float = 20.0, most: int = MOST) -> Leaderboard:
    """Of a node's state folder, whether the node runs or not; never raises for what it finds there or on the chain.

    For a chain it first reads what is new, for about `limit_s` and one more answer; 0 asks nobody and tells what was
    read before. `rpc_url` is asked in place of the node's own. What is read is kept in the state folder.
    """
    try:
        found = read_whereabouts(folder)
        if found is not None and found.contract:
            scope: Scope | None = Scope(chain_id=found.chain_id, contract=found.contract, peer_id=found.peer_id)
        else:
            scope = _scope(folder / OUTBOX) if found is None else None
        if scope is not None:
            return _of_chain(folder, scope, rpc_url or (found.rpc_url if found else ""), limit_s, most)
        path = Path(found.path) if found and found.path else folder / LEDGER
        return _of_file(path, found.peer_id if found else "", most)
    except LedgerError as error:
        return Leaderboard(is_whole=False, problem=str(error))


def read_shared(path: Path, *, most: int = MOST) -> Leaderboard:
    """Of a ledger that nodes share, such as that of a swarm of one's own. Never raises for what it finds there."""
    return _of_file(path, "", most)


def _of_file(path: Path, peer_id: str, most: int) -> Leaderboard:
    board = Leaderboard(kind="local", where=str(path))
    if not path.exists():
        return replace(board, kind="", is_whole=False, problem=f"there is no ledger at {path}: no node has used it yet")
    try:
        places = read_leaderboard(path)
    except LedgerError as error:
        return replace(board, is_whole=False, problem=str(error))
    own = next(((rank, place) for rank, place in enumerate(places, 1) if place.peer_id == peer_id), None)
    return replace(
        board,
        places=tuple(places[:most]),
        num_peers=len(places),
        own=own[1] if own else None,
        own_rank=own[0] if own else None,
        as_of_s=time.time(),
    )


def _scope(outbox: Path) -> Scope | None:
    """Of an outbox that an earlier version of codezero left. Raises LedgerError."""
    if not outbox.exists():
        return None
    with reading(outbox, "outbox") as db:
        return newest_scope(db)


def _of_chain(folder: Path, scope: Scope, rpc_url: str, limit_s: float, most: int) -> Leaderboard:
    board = Leaderboard(kind="chain", where=f"{scope.contract} on chain {scope.chain_id}", is_whole=False)
    problem = ""
    try:
        tally = Tally(folder / TALLY, scope.chain_id, scope.contract)
    except LedgerError as error:
        return replace(board, problem=str(error))
    try:
        if limit_s > 0:
            problem = _brought_up(tally, scope, rpc_url, limit_s)
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


def _brought_up(tally: Tally, scope: Scope, rpc_url: str, limit_s: float) -> str:
    """Reads what is new; says in words why it could not."""
    if not rpc_url:
        return "the chain's RPC is not known: give --rpc-url, or start the node once, which notes it"
    # Only here: these import what a node without a chain does not need.
    from codezero.ledger import wallet
    from codezero.ledger.follow import Follower

    try:
        _, contract, rpc = wallet.read_only(
            rpc_url=rpc_url, chain_id=scope.chain_id, contract_address=scope.contract, retries=0
        )
        Follower(rpc, contract.address, tally).follow(limit_s)
    except LedgerError as error:
        return str(error)
    return ""

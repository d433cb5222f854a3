"""The records of a leaderboard, and how they are read from a local ledger, which nodes may be using."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from codezero.runtime.database import reading


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderboardRow:
    """One peer's row, over all rounds in the file or on the chain."""

    peer_id: str
    """Untrusted text if the peer is on another machine."""
    reward: float
    rounds: int
    """The number of rounds with a reward; on a chain, of rewards submitted, each of which may sum many rounds."""
    wins: int
    """The number of votes for the peer."""
    last_round: int | None = None
    """The last round in which the peer was rewarded or, on a chain, voted; None if there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaderboard:
    """The leaderboard of a swarm, read from a local ledger or a chain."""

    kind: str = ""
    """`local` or `chain`; empty if there is no ledger."""
    where: str = ""
    """The file, or the contract and its chain, in words."""
    places: tuple[LeaderboardRow, ...] = ()
    """The rows, highest reward first, at most as many as were asked for."""
    num_peers: int = 0
    """The number of all peers, which may be more than the rows."""
    own: LeaderboardRow | None = None
    """The node's own row; None if it has none or its peer id is not known."""
    own_rank: int | None = None
    """The rank of `own`, from 1."""
    as_of_s: float | None = None
    """The Unix time at which the ledger was last read to its end; None if it never was."""
    read_block: int | None = None
    """The newest block of the chain that is counted; less than `head_block` if not all was read."""
    head_block: int | None = None
    """The newest block of the chain that was seen."""
    is_whole: bool = True
    """True if the ledger was read to its end, as of `as_of_s`; else the next call reads the blocks that are missing."""
    problem: str = ""
    """The reason why the leaderboard is missing or not newer than `as_of_s`, in words; untrusted text in part."""


def read_leaderboard(path: Path) -> Sequence[LeaderboardRow]:
    """Returns the rows of a local ledger as `best_first` sorts them. Raises LedgerError: the file cannot be read."""
    with reading(path, "ledger") as db:
        sums = "SELECT peer_id, SUM(reward), COUNT(*), MAX(round) FROM settlement GROUP BY peer_id"
        earned = {peer: (reward, rounds, last) for peer, reward, rounds, last in db.execute(sums)}
        votes = db.execute("SELECT winners, COUNT(*) FROM settlement GROUP BY winners").fetchall()
        registered = {peer for (peer,) in db.execute("SELECT peer_id FROM peer")}
    wins: Counter[str] = Counter()
    for winners, count in votes:
        for winner in json.loads(winners):
            wins[winner] += count
    places = []
    for peer in registered | set(earned) | set(wins):
        reward, rounds, last = earned.get(peer, (0.0, 0, None))
        places.append(LeaderboardRow(peer_id=peer, reward=reward, rounds=rounds, wins=wins[peer], last_round=last))
    return sorted(places, key=best_first)


def best_first(place: LeaderboardRow) -> tuple[float, int, str]:
    """Returns the sort key of a row: higher reward first, then more wins, then the lower peer id."""
    return -place.reward, -place.wins, place.peer_id

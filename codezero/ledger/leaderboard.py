"""Who has earned what: the records, and what a local ledger says of it while nodes may be using it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from codezero.runtime.database import reading


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderboardRow:
    """One peer's, over all rounds in the file or on the chain."""

    peer_id: str
    """Untrusted text for peers of others' machines."""
    reward: float
    rounds: int
    """With a reward of its own. On a chain: rewards submitted, each of which may be the sum of many rounds."""
    wins: int
    """Votes for it."""
    last_round: int | None = None
    """The last one in which it was rewarded or, on a chain, voted; None for none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaderboard:
    """Of a swarm, from whichever ledger a node uses."""

    kind: str = ""
    """local or chain; empty: there is no ledger."""
    where: str = ""
    """The file, or the contract and its chain, in words."""
    places: tuple[LeaderboardRow, ...] = ()
    """The highest reward first; not more than were asked for."""
    num_peers: int = 0
    """In all."""
    own: LeaderboardRow | None = None
    """The node's own, None where it has none or its peer id is not known."""
    own_rank: int | None = None
    """From 1."""
    as_of_s: float | None = None
    """Unix time at which it was last read to the end; None: it never was."""
    read_block: int | None = None
    """Of a chain: the newest block that is counted. Behind `head_block`, more is to be read: see `is_whole`."""
    head_block: int | None = None
    """Of a chain: the newest block that was seen."""
    is_whole: bool = True
    """Whether it was read to the end, as of `as_of_s`; else what it says is of old blocks, and it is gone on with."""
    problem: str = ""
    """Why it is missing or as old as `as_of_s`, in words; untrusted text in part."""


def read_leaderboard(path: Path) -> Sequence[LeaderboardRow]:
    """The highest reward first; ties go to more wins, then to the lower id. Raises LedgerError: unreadable."""
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
    """The key to sort places by."""
    return -place.reward, -place.wins, place.peer_id

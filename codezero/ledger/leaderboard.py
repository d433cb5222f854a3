"""What a local ledger says of its peers, read while nodes may be using it."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from codezero.errors import LedgerError


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One peer's, over all rounds in the file."""

    peer_id: str
    """Untrusted text for peers of others' machines."""
    reward: float
    rounds: int
    wins: int
    """Votes for it."""


def read_totals(path: Path) -> tuple[int, float]:
    """Rounds and the sum of their rewards. Raises LedgerError: unreadable."""
    with _reading(path) as db:
        rounds, reward = db.execute("SELECT COUNT(*), COALESCE(SUM(reward), 0) FROM settlement").fetchone()
    return int(rounds), float(reward)


def read_leaderboard(path: Path) -> Sequence[Place]:
    """The highest reward first; ties go to more wins, then to the lower id. Raises LedgerError: unreadable."""
    with _reading(path) as db:
        sums = "SELECT peer_id, SUM(reward), COUNT(*) FROM settlement GROUP BY peer_id"
        earned = {peer: (reward, rounds) for peer, reward, rounds in db.execute(sums)}
        votes = db.execute("SELECT winners, COUNT(*) FROM settlement GROUP BY winners").fetchall()
        registered = {peer for (peer,) in db.execute("SELECT peer_id FROM peer")}
    wins: Counter[str] = Counter()
    for winners, count in votes:
        for winner in json.loads(winners):
            wins[winner] += count
    places = [
        Place(
            peer_id=peer,
            reward=earned.get(peer, (0.0, 0))[0],
            rounds=earned.get(peer, (0.0, 0))[1],
            wins=wins[peer],
        )
        for peer in registered | set(earned) | set(wins)
    ]
    return sorted(places, key=lambda place: (-place.reward, -place.wins, place.peer_id))


@contextmanager
def _reading(path: Path) -> Iterator[sqlite3.Connection]:
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=5.0)) as db:
            yield db
    except sqlite3.Error as error:
        raise LedgerError(f"cannot read the ledger {path}: {error}; see that the file is whole and readable") from error

"""Ledgers in folders that cannot be written, as a container sees those of another one."""

import contextlib
import os
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from codezero.errors import LedgerError
from codezero.ledger.board import read_shared
from codezero.ledger.leaderboard import read_leaderboard
from codezero.ledger.local import LocalLedger
from codezero.ledger.tally import Tally, TallyChange
from codezero.runtime.database import read_only
from codezero.types import RoundId
from tests.builders import rollout, scored

NOBODY = 65534
CONTRACT = "0x" + "A1" * 20


@pytest.fixture
def folder():
    """One that other users can look into, which pytest's are not."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@contextmanager
def writable(folder):
    """For a moment again."""
    if os.getuid() == 0:
        os.seteuid(0)
    folder.chmod(0o755)
    yield
    folder.chmod(0o555)
    if os.getuid() == 0:
        os.seteuid(NOBODY)


@contextmanager
def unwritable(folder):
    """For root nothing is, so it becomes somebody else meanwhile."""
    is_root = os.geteuid() == 0
    folder.chmod(0o555)
    if is_root:
        os.seteuid(NOBODY)
    try:
        with pytest.raises(PermissionError):
            (folder / "probe").touch()
        yield
    finally:
        if is_root:
            os.seteuid(0)
        folder.chmod(0o755)


def settle(path, *points):
    with closing(LocalLedger(path, "me")) as ledger:
        for number, reward in enumerate(points, 1):
            ledger.settle(RoundId(number=number), [scored([rollout()] * 2, (reward, 0.0))])


def test_a_ledger_that_was_closed_is_read_where_nothing_can_be_made_beside_it(folder):
    settle(folder / "ledger.sqlite", 1.0, 0.5)
    with unwritable(folder):
        uri = f"{(folder / 'ledger.sqlite').as_uri()}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True)) as plain, pytest.raises(sqlite3.OperationalError):
            plain.execute("SELECT 1 FROM settlement")
        (place,) = read_leaderboard(folder / "ledger.sqlite")
        assert (place.reward, place.rounds) == (1.5, 2)
        assert read_shared(folder / "ledger.sqlite").problem == ""
    assert [entry.name for entry in folder.iterdir()] == ["ledger.sqlite"]


def test_what_a_running_node_wrote_last_is_read_too(folder):
    path = folder / "ledger.sqlite"
    settle(path, 1.0)
    with closing(sqlite3.connect(path)) as node:
        for reward in (2.0, 3.0):
            with node:
                node.execute("UPDATE settlement SET reward = ?", (reward,))
            assert path.with_name("ledger.sqlite-wal").stat().st_size
            with unwritable(folder):
                assert read_leaderboard(path)[0].reward == reward


def test_what_a_killed_node_left_beside_its_ledger_is_not_passed_over(folder):
    path = folder / "ledger.sqlite"
    settle(path, 1.0)
    dies = (
        "import os, sqlite3, sys; db = sqlite3.connect(sys.argv[1]); db.execute('UPDATE settlement SET reward = 7'); "
    )
    subprocess.run([sys.executable, "-c", dies + "db.commit(); os._exit(0)", str(path)], check=True)
    with unwritable(folder):
        assert read_leaderboard(path)[0].reward == 7.0
    (folder / "ledger.sqlite-shm").unlink()
    with unwritable(folder), pytest.raises(LedgerError, match="unable to open database file"):
        read_leaderboard(path)


def test_a_node_that_starts_while_a_closed_ledger_is_read_makes_it_read_again(folder):
    path = folder / "ledger.sqlite"
    settle(path, 1.0)
    with unwritable(folder), contextlib.ExitStack() as reading:
        db = reading.enter_context(read_only(path, 1.0))
        assert db.execute("SELECT COUNT(*) FROM settlement").fetchone() == (1,)
        with writable(folder), closing(sqlite3.connect(path)) as node, node:
            node.execute("UPDATE settlement SET reward = 7")
            with pytest.raises(sqlite3.OperationalError, match="a node began to write it meanwhile"):
                reading.close()


def test_a_missing_or_damaged_ledger_stays_an_error(folder):
    (folder / "damaged.sqlite").write_bytes(b"x" * 4096)
    with unwritable(folder):
        for name in ("missing.sqlite", "damaged.sqlite"):
            with pytest.raises(LedgerError, match=f"cannot read the ledger .*{name}"):
                read_leaderboard(folder / name)


def test_what_was_read_of_a_chain_is_shown_and_nothing_is_written(folder):
    path = folder / "leaderboard.sqlite"
    with closing(Tally(path, 1, CONTRACT)) as tally:
        at = tally.progress()
        tally.add([TallyChange(peer_id="a", total=3.0, rewards=1, round=4)], at, 9, "0x9")
    before = path.read_bytes()
    with unwritable(folder):
        with closing(Tally(path, 1, CONTRACT)) as tally:
            assert [(place.peer_id, place.reward) for place in tally.places(9)] == [("a", 3.0)]
            assert tally.progress() == replace(at, next_block=10, last_hash="0x9", read_block=9)
        with closing(Tally(folder / "none.sqlite", 1, CONTRACT)) as none:
            assert none.places(9) == []
        with closing(Tally(path, 2, CONTRACT)) as other:
            assert other.places(9) == []
    assert path.read_bytes() == before
    assert [entry.name for entry in folder.iterdir()] == [path.name]

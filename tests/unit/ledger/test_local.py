import json
import logging
import sqlite3
import subprocess
import sys
import threading

import pytest

from codezero.cli import main
from codezero.errors import LedgerError, is_outage
from codezero.ledger import local
from codezero.ledger.leaderboard import read_leaderboard
from codezero.ledger.local import LocalLedger
from codezero.types import RoundId
from tests.builders import rollout, scored

ROUND_1 = RoundId(number=1)


def own(*rewards):
    return scored([rollout()] * len(rewards), rewards)


def peer(name, *rewards):
    return scored([rollout()] * len(rewards), rewards, external=True, peer_id=name)


def test_rounds_count_up_from_one(tmp_path):
    ledger = LocalLedger(tmp_path / "ledger.sqlite", "local")
    assert ledger.next_round(None) == ROUND_1
    assert ledger.next_round(RoundId(number=41)) == RoundId(number=42)


def test_settling_a_round_again_changes_nothing(tmp_path):
    ledger = LocalLedger(tmp_path / "ledger.sqlite", "local")
    ledger.settle(ROUND_1, [own(1.0, 0.5), peer("a", 9.0)])
    ledger.settle(ROUND_1, [own(7.0, 7.0)])
    ledger.settle(RoundId(number=1, stage=1), [own(7.0, 7.0)])
    assert ledger.settled(RoundId(number=1, stage=2), [own(7.0, 7.0)]) == (1.5, ("a",))
    ledger.settle(RoundId(number=2), [own(0.25, 0.25)])
    assert ledger.total_reward() == 2.0


def test_a_file_that_is_no_database_is_named(tmp_path):
    (tmp_path / "ledger.sqlite").write_text("hello " * 100)
    with pytest.raises(LedgerError, match=r"cannot open the ledger .*ledger\.sqlite"):
        LocalLedger(tmp_path / "ledger.sqlite", "local")


def test_a_full_disk_at_a_start_is_an_outage_and_the_file_stays(tmp_path, monkeypatch):
    """SQLite has no room for the index of its log, and says so in these words."""

    def full(path):
        raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr(local, "_open", full)
    with pytest.raises(LedgerError, match=r"cannot open .*: disk I/O error; free space on its disk") as found:
        LocalLedger(tmp_path / "ledger.sqlite", "local")
    assert is_outage(found.value)
    assert "move the file away" not in str(found.value)


def test_a_file_that_cannot_be_read_any_more_is_named(tmp_path):
    ledger = LocalLedger(tmp_path / "ledger.sqlite", "local")
    ledger.close()
    with pytest.raises(LedgerError, match=r"cannot read the ledger .*ledger\.sqlite: .*check that its disk is there"):
        ledger.total_reward()


def test_a_hostile_peer_id_is_stored_as_data(tmp_path):
    name = "'); DROP TABLE settlement; --"
    LocalLedger(tmp_path / "ledger.sqlite", name).settle(ROUND_1, [])
    rows = sqlite3.connect(tmp_path / "ledger.sqlite").execute("SELECT peer_id, winners FROM settlement").fetchall()
    assert rows == [(name, json.dumps([name]))]


class Clock:
    """The module's `time`, in which sleeping is what takes time."""

    def __init__(self, now_s):
        self.now_s, self.slept = now_s, []

    def time(self):
        return self.now_s

    def monotonic(self):
        return self.now_s

    def sleep(self, seconds):
        self.slept.append(seconds)
        self.now_s += seconds


@pytest.fixture
def clock(monkeypatch):
    made = Clock(1000.0)
    monkeypatch.setattr(local, "time", made)
    return made


def test_rounds_follow_the_file_s_clock(tmp_path, clock):
    ledger = LocalLedger(tmp_path / "ledger.sqlite", "a", round_s=10.0)
    assert ledger.next_round(None) == RoundId(number=0)
    clock.now_s = 1003.0
    assert ledger.next_round(RoundId(number=0)) == ROUND_1
    assert 1010.0 <= clock.now_s < 1010.1
    assert max(clock.slept) <= 1.0  # a Ctrl-C, and a clock that is set, are noticed


def test_a_slower_node_skips_to_the_clock_s_round_and_says_so(tmp_path, clock, caplog):
    ledger = LocalLedger(tmp_path / "ledger.sqlite", "a", round_s=10.0)
    clock.now_s = 1049.0
    assert ledger.next_round(ROUND_1) == RoundId(number=4)
    assert "the swarm is at round 4: skipped 2 rounds" in caplog.text


def test_that_a_node_is_slower_is_said_once_until_it_keeps_up(tmp_path, clock, caplog):
    ledger = LocalLedger(tmp_path / "ledger.sqlite", "a", round_s=10.0)
    said = []
    caplog.set_level("INFO")
    for now in (3, 6, 7, 9):
        after, clock.now_s = ledger.next_round(None), 1009.0 + 10 * now
        caplog.clear()
        ledger.next_round(after)
        said.append([record.levelno for record in caplog.records if "skipped" in record.message])
    assert said == [[logging.WARNING], [logging.INFO], [], [logging.WARNING]]


def test_nodes_of_one_file_have_one_clock_that_survives_restarts(tmp_path, clock):
    LocalLedger(tmp_path / "ledger.sqlite", "a", round_s=10.0).close()
    clock.now_s = 1035.0
    assert LocalLedger(tmp_path / "ledger.sqlite", "b", round_s=10.0).next_round(None) == RoundId(number=3)


def test_a_clock_goes_on_after_the_rounds_in_the_file(tmp_path, clock):
    LocalLedger(tmp_path / "ledger.sqlite", "a").settle(RoundId(number=41), [own(1.0)])
    assert LocalLedger(tmp_path / "ledger.sqlite", "a", round_s=10.0).next_round(None) == RoundId(number=42)


def test_another_length_of_rounds_is_refused_with_the_right_one(tmp_path):
    LocalLedger(tmp_path / "ledger.sqlite", "a", round_s=10.0).close()
    with pytest.raises(LedgerError, match=r"take 10 s, not 60: use ledger\.round_s=10, or another ledger\.path"):
        LocalLedger(tmp_path / "ledger.sqlite", "b", round_s=60.0)


def test_a_clock_that_was_set_back_is_waited_for_and_told(tmp_path, clock, caplog):
    ledger = LocalLedger(tmp_path / "ledger.sqlite", "a", round_s=10.0)
    assert ledger.next_round(RoundId(number=4)) == RoundId(number=5)
    assert "begins round 5 only in 50 s: it was set back, or the ledger does not belong to" in caplog.text


WORKER = """
import sys
from pathlib import Path
from types import SimpleNamespace
from codezero.ledger.local import LocalLedger
from codezero.types import RoundId
path, peer = Path(sys.argv[1]), sys.argv[2]
def group(name):
    reward = SimpleNamespace(total=1.0)
    of = SimpleNamespace(peer_id=name, address="")
    return SimpleNamespace(external=name != peer, scored=True, earned=[reward], programs=b"", group=of)
for number in range(30):
    ledger = LocalLedger(path, peer, round_s=1e6)
    for _ in range(2):
        ledger.settle(RoundId(number=number), [group(peer), group("voted")])
    ledger.close()
"""


def test_nodes_that_share_a_file_lose_nothing_and_count_nothing_twice(tmp_path):
    """Four processes write 30 rounds each, all of them twice."""
    path = tmp_path / "shared.sqlite"
    nodes = [subprocess.Popen([sys.executable, "-c", WORKER, str(path), f"p{n}"]) for n in range(4)]
    assert [node.wait(120) for node in nodes] == [0, 0, 0, 0]
    board = [(place.peer_id, place.reward, place.rounds, place.wins) for place in read_leaderboard(path)]
    assert board == [*((f"p{n}", 30.0, 30, 0) for n in range(4)), ("voted", 0.0, 0, 120)]


def test_nodes_that_make_a_file_at_the_same_time_agree_on_its_clock(tmp_path):
    def open_at_once(number, barrier, starts):
        barrier.wait(30)
        ledger = LocalLedger(tmp_path / f"{number}.sqlite", threading.current_thread().name, round_s=0.001)
        starts.append(ledger._start_s)
        ledger.close()

    for number in range(20):
        barrier, starts = threading.Barrier(6), []
        threads = [threading.Thread(target=open_at_once, args=(number, barrier, starts)) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert (len(starts), len(set(starts))) == (6, 1)


def shared(path):
    """a earned 3.5 in two rounds, b 1; a voted for b and c, b for a; d is registered."""
    for peer_id, rounds in (("a", [(3.0, "b"), (0.5, "c")]), ("b", [(1.0, "a")]), ("d", [])):
        ledger = LocalLedger(path, peer_id)
        for number, (reward, winner) in enumerate(rounds):
            ledger.settle(RoundId(number=number), [own(reward), peer(winner, 0.5)])
        ledger.close()


def test_the_leaderboard_has_every_peer_s_rewards_and_wins_of_all_rounds(tmp_path):
    shared(tmp_path / "shared.sqlite")
    board = read_leaderboard(tmp_path / "shared.sqlite")
    assert [(place.peer_id, place.reward, place.rounds, place.wins) for place in board] == [
        ("a", 3.5, 2, 1),
        ("b", 1.0, 1, 1),
        ("c", 0.0, 0, 1),
        ("d", 0.0, 0, 0),
    ]


def test_the_leaderboard_of_a_shared_file_is_shown(tmp_path, capsys):
    shared(tmp_path / "shared.sqlite")
    LocalLedger(tmp_path / "shared.sqlite", "\x1b[31mevil").close()
    assert main(["leaderboard", "--ledger", str(tmp_path / "shared.sqlite")]) == 0
    _, *lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("   1. +3.50 in 2 rounds, 1 vote, last in round 1: a (")
    assert lines[1].startswith("   2. +1.00 in 1 round, 1 vote, last in round 0: b (")
    assert len(lines) == 5
    assert not any("\x1b" in line for line in lines)


def test_the_leaderboard_of_a_ledger_that_is_none_names_the_file(tmp_path, capsys):
    assert main(["leaderboard", "--ledger", str(tmp_path / "none.sqlite")]) == 1
    assert "there is no ledger at" in (shown := capsys.readouterr().out)
    assert "none.sqlite: no node has used it yet" in shown

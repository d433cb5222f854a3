"""Bets and claims in the outbox: they outlive a kill, are one a clue and one a game, and are shown."""

from dataclasses import replace

import pytest

from codezero.cli import main
from codezero.cli.status import NOT_RUNNING
from codezero.identity.names import animal_name
from codezero.ledger.faults import OutboxError
from codezero.ledger.items import ItemState, Kind, LedgerScope
from codezero.ledger.local import LocalLedger
from codezero.ledger.location import LedgerLocation, write_location
from codezero.ledger.outbox import Outbox
from codezero.ledger.reading import read_view
from codezero.services.market.book import Bet, Book, read_markets
from codezero.types import RoundId

SCOPE = LedgerScope(chain_id=1, contract="0x" + "11" * 20, peer_id="QmPeer")
BET = Bet(choice=1, text="a dog", amount=57142857142857142858, held=0)


@pytest.fixture
def book(tmp_path):
    book = Book(tmp_path / "outbox.sqlite", SCOPE)
    yield book
    book.close()


def test_a_bet_is_there_after_a_restart_to_the_last_unit(book, tmp_path, monkeypatch):
    monkeypatch.setattr("time.time", lambda: 5.0)
    book.add_bet(0, 2, BET)
    book.add_bet(0, 2, replace(BET, choice=0))  # one a clue
    found = Book(tmp_path / "outbox.sqlite", SCOPE)
    (item,) = found.open_items()
    assert (item.kind, item.round_id, item.created_at_s) == (Kind.BET, RoundId(number=0, stage=2), 5.0)
    assert found.bet(item) == BET
    assert (found.last_clue(0), found.last_clue(1), found.is_betting()) == (2, None, True)


@pytest.mark.parametrize("other", [{"chain_id": 2}, {"contract": "0x" + "22" * 20}, {"peer_id": "QmOther"}])
def test_another_chain_market_or_peer_has_bets_of_its_own(book, tmp_path, other):
    book.add_bet(0, 0, BET)
    elsewhere = Book(tmp_path / "outbox.sqlite", replace(SCOPE, **other))
    assert (elsewhere.open_items(), elsewhere.last_clue(0)) == ([], None)


def test_a_bet_that_is_not_stored_whole_is_not_stored(book):
    book._db.execute("DROP TABLE bet")
    with pytest.raises(OutboxError):
        book.add_bet(0, 0, BET)
    assert book.open_items() == []


def test_others_may_read_the_markets_of_a_folder(book, tmp_path):
    assert read_markets(tmp_path) == []
    for clue, state in enumerate((ItemState.DONE, ItemState.DONE, ItemState.WAITING, ItemState.DROPPED)):
        book.add_bet(0, clue, BET, state)
    book.add_claim(0)
    book.add_claim(0)
    (found,) = read_markets(tmp_path)
    assert (found.peer_id, found.chain_id, found.contract) == ("QmPeer", 1, SCOPE.contract)
    assert (found.num_bets, found.num_open, found.num_unclaimed, found.trouble) == (2, 1, 1, None)
    (tmp_path / "outbox.sqlite").write_bytes(b"{")
    assert read_markets(tmp_path) == []


def test_trouble_says_since_when_and_as_of_when_and_is_not_the_ledger_s(book, tmp_path, monkeypatch):
    """A viewer of a market that is not played any more can so tell how old it is."""
    for now_s, trouble in ((100.0, "the judge is away"), (400.0, "the judge is away"), (500.0, "no funds")):
        monkeypatch.setattr("time.time", lambda now_s=now_s: now_s)
        book.note_trouble(trouble, kind=trouble)
        (found,) = read_markets(tmp_path)
        since_s = 500.0 if trouble == "no funds" else 100.0
        assert (found.trouble.text, found.trouble.since_s, found.trouble.seen_s) == (trouble, since_s, now_s)
    assert read_view(tmp_path).trouble is None
    book.note_trouble("")
    assert read_markets(tmp_path)[0].trouble is None


def test_the_market_s_items_are_none_of_the_ledger_s_that_wait(book, tmp_path):
    book.add_bet(0, 0, BET)
    book.add_claim(0)
    assert read_view(tmp_path).contract == ""  # nor do they say which contract the ledger is
    outbox = Outbox(tmp_path / "outbox.sqlite", replace(SCOPE, contract="0xC0"))
    outbox.ensure_registration()
    place = {"kind": "wallet", "peer_id": "QmPeer", "chain_id": 1, "contract": "0xC0"}
    write_location(tmp_path, LedgerLocation(**place))
    assert [item.kind for item in read_view(tmp_path).pending] == ["registration"]
    assert [item.kind for item in outbox.open_items()] == [Kind.REGISTRATION]


def test_status_shows_a_market_s_bets_and_trouble_and_runs_no_control_characters(book, tmp_path, capsys):
    LocalLedger(tmp_path / "ledger.sqlite", "peer", []).close()
    book.add_bet(0, 0, BET, ItemState.DONE)
    book.add_claim(0)
    book.note_trouble("the judge said \x1b[2J")
    assert main(["status", str(tmp_path)]) == NOT_RUNNING
    shown = [line for line in map(str.strip, capsys.readouterr().out.splitlines()) if line.startswith(("market", "tr"))]
    assert shown[0].startswith(f"market 1 bet of {animal_name('QmPeer')} at 0x1111")
    assert shown[0].endswith(" on chain 1; 0 not confirmed, 1 game to be claimed")
    assert shown[1] == "trouble the judge said \\x1b[2J"

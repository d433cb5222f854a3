"""The book outlives power cuts, and does not mix up peers or markets."""

import errno
import json
import os
from dataclasses import replace

import pytest

from codezero.cli import main
from codezero.cli.status import NOT_RUNNING
from codezero.ledger.items import LedgerScope
from codezero.ledger.local import LocalLedger
from codezero.ledger.transactions import Transaction
from codezero.services.market import book as module
from codezero.services.market.book import Bet, BetState, Book, BookError, Claim, ClaimState, Sent, read_summaries

SCOPE = LedgerScope(chain_id=1, contract="0x" + "11" * 20, peer_id="QmPeer")


def bet(game=0, clue=0, state=BetState.PLACED, **values):
    values = {"amount": "57142857142857142858", "tokens_before": "0"} | values
    return Bet(game=game, clue=clue, choice=1, text="a dog", made_at_s=5.0, state=state, **values)


def test_what_was_put_is_there_after_a_restart(tmp_path):
    sent = Transaction(hash="0xab", raw=b"\x00\xff", nonce=3, max_fee_wei=4, tip_wei=5, signed_at_s=6.5, sent_at_s=0.0)
    made = Book(tmp_path, SCOPE)
    made.put_bet(bet(sent=(Sent.of(sent),)))
    found = Book(tmp_path, SCOPE)
    assert found.bets == (bet(sent=(Sent.of(sent),)),)
    assert found.bets[0].sent[0].transaction() == sent
    assert found.unclaimed == [Claim(game=0)]


def test_an_amount_is_kept_to_the_last_unit(tmp_path):
    Book(tmp_path, SCOPE).put_bet(bet())
    assert '"amount": "57142857142857142858"' in Book(tmp_path, SCOPE).path.read_text()


@pytest.mark.parametrize("damage", [b"", b'{"chain_id": 1, "con', b"\xff\xff", b"[" * 100_000, b'{"chain_id": "1"}'])
def test_a_truncated_file_is_replaced_by_its_copy(tmp_path, caplog, damage):
    Book(tmp_path, SCOPE).put_bet(bet())
    whole = Book(tmp_path, SCOPE)
    whole.path.write_bytes(damage)
    found = Book(tmp_path, SCOPE)
    assert found.bets == (bet(),)
    assert "damaged" in caplog.text
    found.put_bet(bet(clue=1))
    found.copy_path.write_bytes(damage)
    assert [kept.clue for kept in Book(tmp_path, SCOPE).bets] == [0, 1]


def test_with_both_damaged_a_node_starts_anew_and_says_so(tmp_path, caplog):
    made = Book(tmp_path, SCOPE)
    made.put_bet(bet())
    made.path.write_bytes(b"{")
    made.copy_path.write_bytes(b"")
    assert Book(tmp_path, SCOPE).bets == ()
    assert "put aside" in caplog.text
    assert sorted(path.name.split(".", 1)[1] for path in tmp_path.iterdir()) == ["json.bak.damaged", "json.damaged"]


@pytest.mark.parametrize("nth", [1, 2], ids=["the file", "the copy"])
def test_a_kill_between_the_two_files_loses_nothing(tmp_path, monkeypatch, nth):
    made = Book(tmp_path, SCOPE)
    made.put_bet(bet())
    replaced = []

    def killed(old, new, real=os.replace):
        replaced.append(new)
        if len(replaced) == nth:
            raise KeyboardInterrupt
        real(old, new)

    with monkeypatch.context() as patch:
        patch.setattr(module.os, "replace", killed)
        with pytest.raises(KeyboardInterrupt):
            made.put_bet(bet(clue=1))
    assert [kept.clue for kept in Book(tmp_path, SCOPE).bets] == [0, 1][:nth]


def test_a_full_disk_is_told_and_changes_nothing(tmp_path, monkeypatch):
    made = Book(tmp_path, SCOPE)
    made.put_bet(bet())

    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(module.os, "fsync", full)
        with pytest.raises(BookError, match="No space left"):
            made.put_bet(bet(clue=1))
    assert made.bets == (bet(),)
    assert Book(tmp_path, SCOPE).bets == (bet(),)


@pytest.mark.parametrize("other", [{"chain_id": 2}, {"contract": "0x" + "22" * 20}, {"peer_id": "QmOther"}])
def test_another_chain_market_or_peer_has_another_book(tmp_path, other):
    values = {"chain_id": 1, "contract": SCOPE.contract, "peer_id": "QmPeer"} | other
    Book(tmp_path, SCOPE).put_bet(bet())
    assert Book(tmp_path, LedgerScope(**values)).bets == ()
    assert Book(tmp_path, SCOPE).bets == (bet(),)


def test_a_book_that_was_renamed_to_another_peer_s_is_not_believed(tmp_path):
    Book(tmp_path, SCOPE).put_bet(bet())
    other = LedgerScope(chain_id=1, contract=SCOPE.contract, peer_id="QmOther")
    os.rename(Book(tmp_path, SCOPE).path, Book(tmp_path, other).path)
    assert Book(tmp_path, other).bets == ()


def test_the_book_does_not_grow_without_bound_and_drops_nothing_that_is_open(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "KEPT_BETS", 4)
    made = Book(tmp_path, SCOPE)
    for game in range(12):
        made.put_bet(bet(game=game, state=BetState.OPEN if game == 1 else BetState.PLACED))
        if game != 3 and game != 1:
            made.put_claim(Claim(game=game, state=ClaimState.CLAIMED))
    assert [kept.game for kept in made.bets] == [1, 8, 9, 10, 11]
    assert [claim.game for claim in made.unclaimed] == [3]


@pytest.mark.parametrize("state", [BetState.OPEN, BetState.REFUSED, BetState.MISSED, BetState.FAILED])
def test_a_bet_that_was_not_placed_leaves_nothing_to_claim(tmp_path, state):
    made = Book(tmp_path, SCOPE)
    made.put_bet(bet(state=state))
    assert made.unclaimed == []


@pytest.mark.parametrize("state", [BetState.PLACED, BetState.UNKNOWN])
def test_a_bet_that_may_have_been_placed_is_one_claim_a_game(tmp_path, state):
    made = Book(tmp_path, SCOPE)
    made.put_bet(bet(state=state))
    made.put_bet(bet(clue=1, state=state))
    assert made.unclaimed == [Claim(game=0)]
    made.put_claim(Claim(game=0, state=ClaimState.CLAIMED))
    made.put_bet(bet(clue=2, state=state))
    assert made.unclaimed == []


def test_others_may_read_what_is_in_the_books_of_a_folder(tmp_path):
    made = Book(tmp_path, SCOPE)
    for clue, state in enumerate((BetState.PLACED, BetState.PLACED, BetState.OPEN, BetState.REFUSED)):
        made.put_bet(bet(clue=clue, state=state))
    made.note_trouble("the judge is away")
    Book(tmp_path, replace(SCOPE, peer_id="another")).note_trouble("")
    (found,) = read_summaries(tmp_path)
    assert (found.scope, found.num_bets, found.num_open, found.num_unclaimed) == (SCOPE, 2, 1, 1)
    assert found.trouble == "the judge is away"
    Book(tmp_path, SCOPE).note_trouble("")
    assert read_summaries(tmp_path)[0].trouble == ""
    made.path.write_bytes(b"{")
    with pytest.raises(BookError, match=f"cannot read the market's book {made.path}"):
        read_summaries(tmp_path)


def test_trouble_says_since_when_and_as_of_when(tmp_path, monkeypatch):
    """A viewer of a market that is not played any more can so tell how old it is."""
    made = Book(tmp_path, SCOPE)
    for now_s, trouble in ((100.0, "the judge is away"), (400.0, "the judge is away"), (500.0, "no funds")):
        monkeypatch.setattr("time.time", lambda now_s=now_s: now_s)
        made.note_trouble(trouble)
        (found,) = read_summaries(tmp_path)
        since_s = 500.0 if trouble == "no funds" else 100.0
        assert (found.trouble, found.trouble_since_s, found.trouble_seen_s) == (trouble, since_s, now_s)
    made.note_trouble("")
    (found,) = read_summaries(tmp_path)
    assert (found.trouble, found.trouble_since_s, found.trouble_seen_s) == ("", None, None)


def test_a_book_from_before_trouble_had_a_time_is_read(tmp_path):
    made = Book(tmp_path, SCOPE)
    made.note_trouble("the judge is away")
    old = json.loads(made.path.read_bytes())
    made.path.write_text(json.dumps({key: value for key, value in old.items() if not key.endswith("_s")}))
    (found,) = read_summaries(tmp_path)
    assert (found.trouble, found.trouble_since_s, found.trouble_seen_s) == ("the judge is away", None, None)
    Book(tmp_path, SCOPE).note_trouble("the judge is away")
    assert read_summaries(tmp_path)[0].trouble_seen_s > 0


def test_status_shows_a_market_s_bets_and_trouble_and_runs_no_control_characters(tmp_path, capsys):
    LocalLedger(tmp_path / "ledger.sqlite", "peer", []).close()
    made = Book(tmp_path, SCOPE)
    made.put_bet(bet())
    made.note_trouble("the judge said \x1b[2J")
    assert main(["status", "--state-dir", str(tmp_path)]) == NOT_RUNNING
    shown = capsys.readouterr().out.splitlines()[2:]
    assert shown[1].startswith("market   1 bet of peer QmPeer at 0x1111")
    assert shown[1].endswith(" on chain 1; 0 not confirmed, 1 game to be claimed")
    assert shown[2] == "trouble  the judge said \\x1b[2J"

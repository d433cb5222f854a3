from codezero.ledger.items import LedgerScope
from codezero.ledger.local import LocalLedger
from codezero.services.market.book import Book
from codezero.types import RoundId
from codezero.views.accounts import read_accounts
from tests.builders import rollout, scored

SCOPE = LedgerScope(chain_id=1, contract="0x" + "11" * 20, peer_id="me")


def test_ledger_and_markets_of_a_folder_are_told_together(tmp_path, monkeypatch):
    LocalLedger(tmp_path / "ledger.sqlite", "me").settle(RoundId(number=1), [scored([rollout()], [2.0])])
    monkeypatch.setattr("time.time", lambda: 1000.0)
    Book(tmp_path, SCOPE).note_trouble("the judge is away")
    monkeypatch.setattr("time.time", lambda: 2000.0)
    Book(tmp_path, SCOPE).note_trouble("the judge is away")
    accounts = read_accounts(tmp_path)
    assert (accounts.ledger.earned, accounts.problems) == (2.0, ())
    (market,) = accounts.markets
    assert (market.contract, market.num_bets, market.num_unclaimed) == (SCOPE.contract, 0, 0)
    assert (market.trouble.text, market.trouble.since_s, market.trouble.seen_s) == ("the judge is away", 1000, 2000)
    Book(tmp_path, SCOPE).note_trouble("")
    assert read_accounts(tmp_path).markets[0].trouble is None


def test_a_damaged_book_is_a_line_beside_the_ledger(tmp_path):
    LocalLedger(tmp_path / "ledger.sqlite", "me").settle(RoundId(number=1), [scored([rollout()], [2.0])])
    (tmp_path / "market-x.json").write_text("{")
    accounts = read_accounts(tmp_path)
    assert (accounts.ledger.earned, accounts.markets) == (2.0, ())
    assert "cannot read the market's book" in accounts.problems[0]

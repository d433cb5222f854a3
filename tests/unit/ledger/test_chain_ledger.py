"""The ledger port over a chain, with a scripted submitter; `tests/e2e/test_chain.py` has the real one."""

import pytest

from codezero.cli import main
from codezero.cli.status import NOT_RUNNING
from codezero.identity.names import animal_name
from codezero.ledger.chain import ChainLedger
from codezero.ledger.faults import PeerTaken
from codezero.ledger.items import LedgerScope
from codezero.ledger.local import LocalLedger
from codezero.ledger.outbox import Outbox
from codezero.types import RoundId
from tests.builders import rollout, scored


class Submitter:
    """Sees these rounds one after the other, one a look."""

    def __init__(self, *rounds, is_away=False, trouble=""):
        self.rounds, self.is_away, self.trouble = list(rounds), is_away, trouble
        self.credits, self.waits, self.stopped, self.fatal = [], 0, False, None

    @property
    def round_id(self):
        return None if not self.rounds or self.rounds[0] is None else RoundId(number=self.rounds[0])

    def wait_for_round(self, after, timeout_s):
        self.waits += 1
        if len(self.rounds) > 1:
            self.rounds.pop(0)

    def check(self):
        if self.fatal is not None:
            raise self.fatal

    def credit(self, round_id, reward, winners):
        self.credits.append((round_id.number, reward, winners))

    def stop(self):
        self.stopped = True

    def close(self):
        """It has no file."""


def ledger(tmp_path, submitter, patience_s=600.0):
    return ChainLedger(LocalLedger(tmp_path / "ledger.sqlite", "me", ["evil"]), submitter, patience_s)


def played(*rewards):
    return scored([rollout() for _ in rewards], rewards, peer_id="me")


def peers(name, *rewards):
    return scored([rollout() for _ in rewards], rewards, external=True, peer_id=name)


def test_a_first_round_is_the_one_that_the_contract_is_at(tmp_path):
    assert ledger(tmp_path, Submitter(7)).next_round(None) == RoundId(number=7)


def test_it_waits_until_the_contract_has_gone_past_the_last_round(tmp_path):
    submitter = Submitter(4, 4, 4, 5)
    assert ledger(tmp_path, submitter).next_round(RoundId(number=4)) == RoundId(number=5)
    assert submitter.waits == 3


def test_a_slower_node_skips_to_the_contract_s_round_and_says_so(tmp_path, caplog):
    assert ledger(tmp_path, Submitter(9)).next_round(RoundId(number=4)) == RoundId(number=9)
    assert "the swarm is at round 9: skipped 4 rounds" in caplog.text


def test_an_rpc_that_is_away_keeps_no_node_from_training_for_ever(tmp_path, caplog):
    submitter = Submitter(4, is_away=True, trouble="the RPC is down")
    assert ledger(tmp_path, submitter, patience_s=0.0).next_round(RoundId(number=4)) == RoundId(number=5)
    assert "continuing without the chain: the RPC is down" in caplog.text


def test_a_chain_that_answers_is_waited_for_however_slow_its_clock(tmp_path):
    submitter = Submitter(*[4] * 50, 5)
    assert ledger(tmp_path, submitter, patience_s=0.0).next_round(RoundId(number=4)) == RoundId(number=5)


def test_a_chain_that_is_behind_the_node_keeps_no_node_from_training_and_is_told_once(tmp_path, caplog):
    """After an outage, on another contract, or after rounds without a chain."""
    kept = ledger(tmp_path, Submitter(12), patience_s=0.0)
    assert kept.next_round(RoundId(number=300)) == RoundId(number=301)
    assert kept.next_round(RoundId(number=301)) == RoundId(number=302)
    assert caplog.text.count("the chain is at round 12, before this node's round 300") == 1


def test_a_chain_that_is_behind_the_node_is_waited_for_before(tmp_path):
    submitter = Submitter(4, 4, 5, 6)
    assert ledger(tmp_path, submitter).next_round(RoundId(number=5)) == RoundId(number=6)
    assert submitter.waits == 3


def test_a_peer_id_that_turns_out_to_be_somebody_else_s_ends_the_waiting(tmp_path):
    submitter = Submitter(4)
    submitter.fatal = PeerTaken("registered to another")
    with pytest.raises(PeerTaken):
        ledger(tmp_path, submitter).next_round(RoundId(number=4))


def test_a_round_is_settled_here_and_credited_for_the_chain(tmp_path):
    submitter = Submitter(4)
    kept = ledger(tmp_path, submitter)
    kept.settle(RoundId(number=4), [played(1.0, 0.5), peers("b", 0.2), peers("evil", 1.0)])
    assert submitter.credits == [(4, 1.5, ("b",))]
    assert kept.total_reward() == 1.5


def test_a_round_that_is_killed_between_its_two_files_is_credited(tmp_path, monkeypatch):
    submitter = Submitter(4)
    kept = ledger(tmp_path, submitter)

    def killed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(LocalLedger, "store", killed)
    with pytest.raises(KeyboardInterrupt):
        kept.settle(RoundId(number=4), [played(1.0)])
    assert submitter.credits == [(4, 1.0, ("me",))]


def test_settling_a_round_again_credits_what_was_settled_first(tmp_path):
    submitter = Submitter(4)
    kept = ledger(tmp_path, submitter)
    for reward in (1.0, 9.0):
        kept.settle(RoundId(number=4), [played(reward)])
    assert submitter.credits == [(4, 1.0, ("me",))] * 2  # the outbox takes a round once


def test_what_is_in_the_way_reaches_the_round_s_line(tmp_path):
    assert ledger(tmp_path, Submitter(4, trouble="no funds")).status() == "no funds"


def test_closing_has_the_chain_take_what_is_left(tmp_path):
    submitter = Submitter(4)
    ledger(tmp_path, submitter).close()
    assert submitter.stopped


def test_waiting_can_be_interrupted(tmp_path):
    """Each look is short, so a KeyboardInterrupt comes through."""

    class Interrupted(Submitter):
        def wait_for_round(self, after, timeout_s):
            assert timeout_s <= 1.0
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ledger(tmp_path, Interrupted(4)).next_round(RoundId(number=4))


def test_status_shows_what_was_earned_what_is_unsent_and_what_waits(tmp_path, capsys):
    ledger(tmp_path, Submitter(4)).settle(RoundId(number=4), [played(1.0, 0.5)])
    outbox = Outbox(tmp_path / "outbox.sqlite", LedgerScope(chain_id=31337, contract="0xabc", peer_id="me"))
    outbox.credit(RoundId(number=4), 2.5, ["b"])
    outbox.fold()
    outbox.note_trouble("the RPC is \x1b[31mdown")
    assert main(["status", str(tmp_path)]) == NOT_RUNNING
    *_, earned, unsent, trouble, reward, vote = map(str.strip, capsys.readouterr().out.splitlines())
    assert earned == "Ledger     earned +1.50 in 1 round"
    assert unsent == "unsent +0.50 for 0xabc on chain 31337"
    assert trouble == "trouble the RPC is \\x1b[31mdown"
    assert reward.startswith("pending reward +2 of round 4: the RPC is ")
    assert vote.startswith(f"pending vote for {animal_name('b')} of round 4: ")

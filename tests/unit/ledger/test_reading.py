"""What a user is shown of a ledger, out of the files that the node leaves."""

import dataclasses
import json
import sqlite3
import time

import pytest

from codezero.ledger.board import read_swarm_board
from codezero.ledger.faults import RpcTimeout
from codezero.ledger.items import LedgerScope
from codezero.ledger.local import LocalLedger
from codezero.ledger.location import LedgerLocation, write_location
from codezero.ledger.outbox import Outbox
from codezero.ledger.reading import read_view
from codezero.ledger.submissions import Submissions
from codezero.types import RoundId
from tests.builders import rollout, scored
from tests.unit.ledger.fake_chain import FakeChain

SCOPE = LedgerScope(chain_id=7, contract="0xC0", peer_id="me")


class Node:
    """One on a chain, whose time goes on by hand."""

    def __init__(self, folder, clock):
        self.folder, self.clock, self.chain = folder, clock, FakeChain()
        self.local = LocalLedger(folder / "ledger.sqlite", "me")
        self.outbox = Outbox(folder / "outbox.sqlite", SCOPE)
        self.delivery = Submissions(self.outbox, self.chain, self.chain)
        where = {"chain_id": 7, "contract": "0xC0", "rpc_url": "https://rpc/SECRET"}
        write_location(folder, LedgerLocation(kind="wallet", peer_id="me", **where))

    def earn(self, number, points, winner="them"):
        self.local.settle(RoundId(number=number), [scored([rollout()], [points])])
        self.outbox.credit(RoundId(number=number), points, [winner])

    def deliver(self, mine=True):
        try:
            self.delivery.deliver(self.chain.view())
        except RpcTimeout as error:
            self.outbox.note_trouble(str(error))
        if mine:
            self.chain.mine()
        self.clock.skip(3.0)

    def view(self):
        return read_view(self.folder)


@pytest.fixture
def node(tmp_path, clock):
    made = Node(tmp_path, clock)
    yield made
    made.outbox.close()
    made.local.close()


@pytest.fixture
def registered(node):
    node.chain.owner = node.chain.address
    return node


def test_a_local_ledger_s_last_round_is_what_it_took_last(tmp_path):
    made = LocalLedger(tmp_path / "shared.sqlite", "me")
    made.settle(RoundId(number=1), [scored([rollout()], [2.0])])
    made.settle(RoundId(number=2), [scored([rollout()], [0.5])])
    LocalLedger(tmp_path / "shared.sqlite", "other").settle(RoundId(number=9), [scored([rollout()], [7.0])])
    write_location(tmp_path, LedgerLocation(kind="local", peer_id="me", path=str(tmp_path / "shared.sqlite")))
    view = read_view(tmp_path)
    assert (view.kind, view.peer_id, view.num_rounds, view.earned) == ("local", "me", 2, 2.5)
    last = view.last_accepted
    assert (last.kind, last.round, last.points, last.winners) == ("round", 2, 0.5, ("me",))
    assert (last.reference, 0 <= time.time() - last.at_s < 60) == ("row 2", True)
    assert last.what == "reward +0.50 and a vote for me in round 2"
    assert (view.last_reward, view.pending, view.trouble, view.problems) == (last, (), None, ())


def test_what_waits_says_why_until_the_chain_has_it(node):
    node.outbox.ensure_registration()
    node.earn(0, 2.5)
    node.outbox.fold()
    view = node.view()
    assert [(item.kind, item.why) for item in view.pending] == [
        ("registration", "new: submitted at the node's next look at the chain"),
        ("reward", "the peer id is not registered yet"),
        ("vote", "the peer id is not registered yet"),
    ]
    assert (view.unsent_points, view.unsent_since_s, view.last_accepted) == (0.5, None, None)

    node.deliver()  # registers
    registration = node.view().pending[0]
    assert (registration.state, registration.reference) == ("sent", "0x00")
    assert registration.why == "sent, and not confirmed by the chain yet"
    node.deliver()  # sees it
    accepted = node.view().last_accepted
    assert (accepted.kind, accepted.what) == ("registration", "registration of peer me")
    assert [item.kind for item in node.view().pending] == ["reward", "vote"]

    for _ in range(3):
        node.deliver()
    view = node.view()
    assert (view.pending, view.last_refused, view.problems) == ((), None, ())
    assert (view.last_accepted.kind, view.last_accepted.winners) == ("vote", ("them",))
    last = view.last_reward
    assert (last.kind, last.points, last.round, last.what) == (
        "reward",
        2,
        0,
        "reward +2 of peer me in round 0 stage 0",
    )
    assert last.reference in node.chain.receipts
    assert abs(last.at_s - node.clock.now_s()) < 60


def test_an_rpc_that_is_away_is_why(registered):
    registered.earn(0, 3.0)
    registered.outbox.fold()
    registered.chain.trouble = "rpc down"
    registered.deliver()
    since_s = registered.view().trouble.since_s
    registered.chain.trouble = "rpc down"
    registered.deliver()
    view = registered.view()
    reward = view.pending[0]
    assert (reward.why, reward.last_error, reward.tries) == ("rpc down", "rpc down", 0)
    assert view.trouble.text == "rpc down"
    assert (view.trouble.since_s, view.trouble.seen_s > since_s) == (since_s, True)
    registered.outbox.note_trouble("")
    assert registered.view().trouble is None


def test_what_the_contract_refused_is_told_with_its_reason(registered):
    registered.earn(0, 3.0)
    registered.outbox.fold()
    registered.chain._refusal = lambda call: "InvalidVote" if call[0] == "vote" else None
    for _ in range(3):
        registered.deliver()
    view = registered.view()
    assert (view.last_refused.kind, view.last_refused.reason) == ("vote", "InvalidVote")
    assert abs(view.last_refused.at_s - registered.clock.now_s()) < 60
    assert (view.last_accepted.kind, view.pending) == ("reward", ())


def test_a_refusal_that_may_pass_is_told_also_once_it_has(registered):
    registered.earn(0, 3.0)
    registered.outbox.fold()
    registered.chain._refusal = lambda call: "SomethingNew"
    registered.deliver()
    reward = registered.view().pending[0]
    assert (reward.why, reward.last_error) == ("SomethingNew", "SomethingNew")
    assert reward.next_try_s > registered.clock.now_s() - 3.0
    del registered.chain._refusal
    registered.clock.skip(60.0)
    for _ in range(3):
        registered.deliver()
    view = registered.view()
    assert (view.pending, view.last_refused.reason) == ((), "SomethingNew")
    assert view.last_accepted.at_s > view.last_refused.at_s


def test_a_transaction_that_was_mined_and_failed_was_refused(registered):
    registered.earn(0, 3.0)
    registered.outbox.fold()
    registered.deliver(mine=False)
    refusal, registered.chain._refusal = registered.chain._refusal, lambda call: "full"
    registered.chain.mine()
    registered.chain._refusal = refusal
    registered.clock.skip(60.0)
    registered.deliver()
    assert registered.view().last_refused.reason == "transaction 0x01 was mined and failed"


def test_what_the_sign_in_app_sent_is_the_reference_of_what_the_chain_then_has(registered):
    class App:
        address = registered.chain.address

        def submit_reward(self, round_id, reward, peer_id, journal):
            journal.hand_over()
            registered.chain.rewards[round_id.number] = reward
            return "0xfromtheapp"

    registered.delivery = Submissions(registered.outbox, registered.chain, App())
    registered.outbox.credit(RoundId(number=0), 3.0, [])
    registered.outbox.fold()
    registered.deliver()
    (reward,) = registered.view().pending
    assert (reward.state, reward.reference, reward.last_error) == ("handed over", "0xfromtheapp", "")
    assert reward.why == "given to the sign-in app, and not confirmed by the chain yet"
    registered.deliver()
    view = registered.view()
    assert (view.pending, view.last_accepted.reference) == ((), "0xfromtheapp")


def test_a_round_that_the_chain_has_not_reached_is_waited_for(registered):
    registered.earn(4, 3.0)
    registered.outbox.fold()
    registered.deliver()
    assert registered.view().pending[0].why == "held: the chain is at round 0, before the item's round 4"


def test_what_waits_for_another_contract_says_so(registered):
    other = Outbox(registered.folder / "outbox.sqlite", dataclasses.replace(SCOPE, contract="0xD0"))
    other.credit(RoundId(number=1), 3.25, [])
    other.fold()
    view = registered.view()
    assert view.pending[0].why == "it is for contract 0xD0 on chain 7, which this node does not use"
    assert view.problems == (
        "+0.25 points of peer me wait for contract 0xD0 on chain 7, which this node does not use now",
    )
    assert (view.contract, view.unsent_points) == ("0xC0", 0.0)
    other.close()


def test_reading_keeps_no_writer_waiting_and_sees_what_is_written(registered):
    registered.earn(0, 3.0)
    with registered.outbox._change():  # a writer in the middle of its transaction
        registered.outbox._note("x", "y")
        assert registered.view().unsent_points == 3.0
    with sqlite3.connect(registered.folder / "outbox.sqlite", timeout=0.0) as reader:
        reader.execute("BEGIN").execute("SELECT * FROM item").fetchall()  # one that reads for long
        registered.outbox.fold()
    assert registered.view().unsent_points == 0.0


def test_the_view_is_json_and_holds_no_secret(registered):
    registered.earn(0, 3.0)
    registered.outbox.fold()
    registered.deliver()
    text = json.dumps(dataclasses.asdict(registered.view()))
    assert '"last_accepted": null' in text
    assert "SECRET" not in text


def test_an_empty_folder_has_no_ledger(tmp_path):
    view = read_view(tmp_path)
    assert (view.kind, view.num_rounds, view.last_accepted, view.pending) == ("", 0, None, ())
    assert view.problems == (
        f"there is no ledger at {tmp_path / 'ledger.sqlite'}: no node has run with this state folder yet, or it was "
        "moved",
    )
    assert list(tmp_path.iterdir()) == []  # nothing was made by looking


def test_a_ledger_that_cannot_be_looked_up_is_a_line_of_text(tmp_path):
    """For want of rights, or on a disk that is gone; here, also for root, by a name that is too long."""
    write_location(tmp_path, LedgerLocation(kind="local", peer_id="me", path=f"{tmp_path}/{'x' * 256}"))
    (problem,) = read_view(tmp_path).problems
    assert problem.startswith("cannot read the ledger ")
    assert read_swarm_board([tmp_path]).problem == problem


@pytest.mark.parametrize("name", ["ledger.sqlite", "outbox.sqlite", "ledger.json"])
def test_a_damaged_file_costs_what_it_held_and_no_more(registered, name):
    registered.earn(0, 3.0)
    registered.local.close()
    registered.outbox.close()
    (registered.folder / name).write_bytes(b"hello " * 1000)
    view = registered.view()
    assert len(view.problems) == 1
    assert name in view.problems[0]
    assert view.num_rounds == (name != "ledger.sqlite")
    assert view.unsent_points == (0.0 if name == "outbox.sqlite" else 3.0)


def test_rows_of_another_form_are_words_too(registered):
    registered.earn(0, 3.0)
    registered.outbox.fold()
    with sqlite3.connect(registered.folder / "outbox.sqlite") as db:
        db.execute("UPDATE item SET state = 'lost'")
        db.execute("UPDATE item SET winners = '[' WHERE kind = 'vote'")
    assert registered.view().pending == ()
    with sqlite3.connect(registered.folder / "outbox.sqlite") as db:
        db.execute("UPDATE item SET state = 'waiting'")
    (problem,) = registered.view().problems
    assert "outbox.sqlite" in problem

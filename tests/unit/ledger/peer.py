"""What a peer with an account has its outbox do, and what the contract then holds of it."""

from codezero.ledger.reading import read_pending
from codezero.ledger.transactions import Journal
from codezero.types import RoundId

NO_NOTES = Journal(store=lambda _: None)


def credit(node, number=0, reward=3.0, winners=("peer", "other")):
    node.outbox.credit(RoundId(number=number), reward, winners)
    node.outbox.fold()


def make_due(node):
    for item in node.outbox.open_items():
        node.outbox.postpone(item, 0.0, item.note)


def notes(node):
    return {item.kind: item.note for item in read_pending(node.path).items}


def step(node):
    """What the submitter does at a poll."""
    view = node.reads.view("peer", node.writer.address)
    if view.owner is None:
        node.outbox.ensure_registration()
    return node.delivery.deliver(view)


def until_done(node):
    for _ in range(8):
        step(node)
        if node.reads.view("peer", node.writer.address).owner and not node.outbox.open_items():
            return
    raise AssertionError(node.outbox.open_items())


def on_chain(deployed, number=0):
    """Total reward, votes cast, the round's vote."""
    return (
        deployed.read("getTotalRewards(string[])", ["peer"])[0],
        deployed.read("getVoterVoteCount(string)", "peer"),
        deployed.read("getVoterVotes(uint256,string)", number, "peer"),
    )

"""Hours without an RPC, by a clock that is put forward, with a real contract behind it."""

import logging
from contextlib import ExitStack, closing

import pytest

from codezero.config import LedgerConfig
from codezero.ledger.coordinator import CoordinatorWriter
from codezero.ledger.items import OPEN, in_words
from codezero.ledger.reading import read_pending
from codezero.ledger.submitter import Submitter
from codezero.types import RoundId

HOUR_S = 3600.0


@pytest.fixture
def start(node, deployed):
    """Starts a submitter as after a kill: on the same file, with nothing in memory."""
    with ExitStack() as outboxes:

        def begin():
            outbox = outboxes.enter_context(closing(deployed.outbox(node.path)))
            return Submitter(outbox, node.reads, CoordinatorWriter(deployed.contract, node.account), LedgerConfig())

        yield begin


def ticks(submitter, clock, until):
    """What its thread does, without the waiting; the waits, in seconds."""
    waits = []
    while not until():
        waits.append(submitter._tick())
        clock.skip(waits[-1])
        assert len(waits) < 1000
    return waits


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["drop", "http 429"])
def test_nothing_is_lost_and_nothing_sent_twice_over_nine_hours_without_an_rpc(
    node, start, deployed, clock, caplog, mode
):
    submitter = start()
    ticks(submitter, clock, lambda: submitter.view is not None and submitter.view.owner == node.account.address)
    submitter.credit(RoundId(number=0), 2.0, ["a"])
    submitter._outbox.fold()
    node.hostile.mode, asked = mode, len(node.hostile.asked)
    caplog.clear()
    waits = []
    for hour in range(1, 10):
        deployed.tick()
        submitter.credit(RoundId(number=hour), 2.5, ["a"])
        end_s = clock.now_s() + HOUR_S
        waits += ticks(submitter, clock, lambda end_s=end_s: clock.now_s() >= end_s)
        if hour == 5:
            submitter = start()
    assert len(node.hostile.asked) - asked <= 3 * len(waits)  # three tries a poll
    assert len(waits) < 9 * HOUR_S / 225 + 20  # at most 300 s less a quarter of jitter, and fewer before
    assert max(waits) <= 375.0
    assert len({round(wait_s, 3) for wait_s in waits}) > len(waits) / 2  # not in step with others
    ours = [record for record in caplog.records if record.name.startswith("codezero.ledger.")]  # not of others' threads
    warnings = [record for record in ours if record.levelno >= logging.WARNING]
    assert len(warnings) <= 9 + 2  # once an hour, and after the new start
    assert submitter.trouble.startswith("the RPC at 127.0.0.1:")
    pending = read_pending(node.path)
    assert pending.trouble == submitter.trouble
    assert [in_words(item) for item in pending.items if item.state in OPEN] == [
        "reward +2 of peer peer in round 0 stage 0",
        "vote of peer peer for a in round 0",
    ]
    assert [points for _, points in pending.owed] == [22.5]
    node.hostile.mode = "ok"
    ticks(submitter, clock, lambda: not submitter._outbox.open_items() and submitter._outbox.owed().since_s is None)
    assert submitter.trouble == ""
    assert deployed.read("getTotalRewards(string[])", ["peer"]) == (24,)  # half a point is still owed
    assert deployed.read("getVoterVoteCount(string)", "peer") == 2
    (count,) = deployed.rpc().ask([("eth_getTransactionCount", [node.account.address, "latest"])])
    assert int(count, 16) == 1 + 2 + 2  # the registration, and twice reward and vote

"""Snapshots with literal numbers."""

import dataclasses

from codezero.ledger.view import LedgerView, SubmissionView
from codezero.observe.probes import learning
from codezero.observe.status import Status
from codezero.views.accounts import Accounts
from codezero.views.terminal.snapshot import Message, Snapshot
from tests.unit.observe import test_batches, test_cases, test_monitor, test_probes

NOW = 1_000_000.0
PEER = "QmYyQSo1c1Ym7orWxLYvCrM2EmxFTANf8wXmmE7DWjhx5N"  # thorny fishy meerkat
ROUND = SubmissionView(kind="round", what="", round=12, points=0.58, winners=(), reference="row 1", at_s=100.0)
PARTS = {"correct": 0.3, "structure": 0.1, "formatting": 0.1, "alignment": 0.1, "finished": 0.2}


def status(**changes):
    base = Status(
        role="solver",
        version="0.1.0",
        pid=4711,
        log_dir="../logs",
        started_at_s=NOW - 3725,
        updated_at_s=NOW,
        peer_id=PEER,
        model="/models/Qwen2.5-Coder-0.5B-Instruct",
        method="full",
        group_size=4,
        round=13,
        stage="learn",
        stage_began_at_s=NOW - 30,
        done=6,
        total=10,
        usual_s={"draw": 0.1, "solve": 36.0, "exchange": 2.0, "score": 3.0, "learn": 54.0, "settle": 0.1},
        rss_bytes=int(7.9 * 2**30),
        planned_bytes=int(10.3 * 2**30),
    )
    return dataclasses.replace(base, **changes)


def report(number, reward=0.5, **changes):
    base = test_monitor.report(number, reward_mean=reward, reward_parts=PARTS, network="3 peers in sight")
    return dataclasses.replace(base, **changes)


def solver(**changes):
    """Twelve rounds, of which the last six earned more than the six before."""
    rewards = [0.1, 0.2, 0.1, 0.2, 0.1, 0.2, 0.4, 0.5, 0.4, 0.5, 0.4, 0.58]
    base = Snapshot(
        role="solver",
        now_s=NOW,
        pid=4711,
        status=status(),
        reports=[report(number, reward) for number, reward in enumerate(rewards, 1)],
        learning=learning(test_probes.passes(0.25, 0.25)),
        accounts=Accounts(ledger=LedgerView(kind="local", num_rounds=12, earned=3.68, last_accepted=ROUND)),
        messages=[Message(at_s=0.0, text=f"message {number}", warns=False) for number in range(1, 40)],
    )
    return dataclasses.replace(base, **changes)


def proposer(**changes):
    told = status(role="proposer", stage="write", usual_s={"write": 89.0, "listen": 60.0}, round=9)
    reports = [test_batches.report(number) for number in range(1, 9)]
    return Snapshot(**{"role": "proposer", "now_s": NOW, "pid": 4711, "status": told, "batches": reports, **changes})


def verifier(**changes):
    told = status(role="verifier", stage="cases", usual_s={"solve": 30.0, "cases": 20.0, "learn": 40.0}, round=9)
    reports = [test_cases.report(number) for number in range(1, 9)]
    return Snapshot(**{"role": "verifier", "now_s": NOW, "pid": 4711, "status": told, "cases": reports, **changes})

"""Folders as nodes leave them, written with the nodes' own writers: for what reads them. `text` stands in every field
that a peer, a model or a server has its hands in."""

import dataclasses
import json
import math
import sqlite3
import time
from contextlib import closing

import msgspec

from codezero.ledger.local import LocalLedger
from codezero.observe.groups_file import NAME, GroupsFile
from codezero.observe.status import StatusFile, new_status
from codezero.proposals import BatchReport, WriterReport
from codezero.reports import RoundReport
from codezero.types import (
    CaseOutcome,
    CaseResult,
    FinishReason,
    Outcome,
    Reward,
    Rollout,
    RolloutGroup,
    RoundId,
    ScoredGroup,
    Task,
    TaskOrigin,
    Verdict,
)
from tests.unit.observe import test_cases

OWN = "QmNode1"
BEGAN_S = 1_760_000_000


def round_report(number, text="", **changes):
    """A round of a node that learns slowly; `text` in all that may not be its own words."""
    good = 0.5 - 0.4 / math.sqrt(number) + 0.05 * math.sin(number)
    base = RoundReport(
        round=number,
        policy_version=number,
        num_local_groups=2,
        num_external_groups=1,
        dropped={text or "zero_advantage": 1, "stale": number % 3},
        reward_mean=None if number % 17 == 0 else good,
        reward_parts={"correct": good - 0.2, "structure": 0.15, text or "finished": 0.05},
        average_at_k=max(0.0, good - 0.1),
        pass_at_k=min(1.0, good + 0.2),
        loss=-0.01 * math.cos(number),
        grad_norm=1.5 + math.cos(number / 3),
        clip_fraction=0.01,
        kl=None,
        skipped=text or ("every group has equal rewards" if number % 5 == 0 else None),
        num_tokens=512,
        tokens_per_s=32.0 + number % 4,
        peak_rss_bytes=8 * 2**30,
        seconds={"draw": 0.1, "solve": 16.0, "exchange": 2.0, "score": 3.0, "learn": 41.0, "settle": 0.1},
        num_pooled_groups=2,
        external_groups={text or f"QmPeer{number % 3}": 1},
        num_proposed_groups=1,
        network=text or "3 peers in sight",
        ledger=text,
        judge=text,
        market=f"{text}!" if text else "",
        finished_at_s=BEGAN_S + 62.0 * number,
    )
    return dataclasses.replace(base, **changes)


def batch_report(number, text=""):
    return BatchReport(
        batch=number,
        level=1 + min(4, number // 10),
        reason=text or "level 2 not known",
        num_written=4,
        num_valid=3,
        rejected={text or "unreadable": 1},
        num_judged=2,
        signal_share=0.5,
        success={text or "1": 0.9, "2": 0.55},
        dropped={text or "stale": 1},
        reward_mean=None,
        loss=None,
        skipped=text or None,
        network=text or "2 peers in sight",
        seconds={"write": 20.0, "check": 0.1, "publish": 0.2, "listen": 41.0, "learn": 0.0},
        finished_at_s=BEGAN_S + 62.0 * number,
        writer=WriterReport(num_problems=3, num_cases=31, num_valid=12, num_with_one=2, num_with_three=1),
    )


def scored_group(text="", external=True, num_rollouts=4):
    """A group whose solutions differ; `text` stands in every field that can hold one."""
    task = Task(
        origin=TaskOrigin.PROPOSER if external else TaskOrigin.MBPP,
        question=text or "Write a function f(x) that returns one more than the number x.",
        tests=text or "assert f(1) == 2\nassert f(-1) == 0",
        difficulty=2,
    )
    rollouts = tuple(
        Rollout(text=text or f"```python\ndef f(x):\n    return x + {number}\n```", finish=FinishReason.STOP)
        for number in range(num_rollouts)
    )
    verdicts = tuple(
        Verdict(
            outcome=Outcome.JUDGED,
            p_correct=float(number == 1),
            rules={"parses": 1.0, text or "returns": 0.5},
            reasons={text or "returns": text or "no value on one path"},
            cases=(
                CaseResult(outcome=CaseOutcome.PASS if number == 1 else CaseOutcome.FAIL, reason=text or "gives 7"),
                CaseResult(outcome=CaseOutcome.UNKNOWN, reason=text or "random"),
            ),
        )
        for number in range(num_rollouts)
    )
    rewards = tuple(
        Reward(total=0.5 * (number == 1), parts={text or "correct": 0.5 * (number == 1)})
        for number in range(num_rollouts)
    )
    group = RolloutGroup(
        peer_id=text or ("QmPeer1" if external else OWN),
        model_id=text or "Qwen2.5-Coder-0.5B-Instruct",
        policy_version=3,
        task=task,
        rollouts=rollouts,
    )
    return ScoredGroup(group=group, verdicts=verdicts, rewards=rewards, external=external)


def solver(node, num_rounds=0, text="", peer_id=OWN):
    """A solver's folder `node`/state with `num_rounds` rounds, all readable; returns the folder of its logs."""
    logs = node / "logs"
    _status(node / "state", logs, "solver", text, peer_id, num_rounds)
    for number in range(1, num_rounds + 1):
        add_round(logs, number, text)
    return logs


def proposer(node, num_batches=0, text=""):
    logs = node / "logs"
    _status(node / "state" / "proposer", logs, "proposer", text, "QmProposer", num_batches)
    append(logs / "proposals.jsonl", *(batch_report(number, text) for number in range(1, num_batches + 1)))
    return logs


def verifier(node, num_batches=0, text=""):
    logs = node / "logs"
    _status(node / "state" / "verifier", logs, "verifier", text, "QmVerifier", num_batches)
    solver = test_cases.solver(skipped=text or None)
    reports = [
        test_cases.report(number + 1, skipped=text or None, dropped={text: 1}, solver=solver)
        for number in range(num_batches)
    ]
    append(logs / "cases.jsonl", *reports)
    return logs


def add_round(logs, number, text="", groups=None, **changes):
    """Appends a finished round."""
    chosen = groups if groups is not None else [scored_group(text, external) for external in (False, True)]
    append(logs / "rounds.jsonl", round_report(number, text, **changes))
    GroupsFile(logs / NAME).append(RoundId(number=number), chosen, chosen[:1])


def append(path, *reports):
    with path.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(dataclasses.asdict(report)) + "\n" for report in reports)


def ledger(path, *peer_ids, rounds=2):
    """A ledger in which each of the peers has rewards, and votes of its own for itself."""
    LocalLedger(path, peer_ids[0]).close()
    rows = [(number, peer, json.dumps([peer])) for peer in peer_ids for number in range(rounds)]
    with closing(sqlite3.connect(path)) as db, db:
        into = "INSERT INTO settlement (round, stage, peer_id, reward, winners, settled_at_s)"
        db.executemany(f"{into} VALUES (?, 0, ?, 0.5, ?, 0)", rows)
    return path


def _status(state, logs, role, text, peer_id, last):
    state.mkdir(parents=True, exist_ok=True)
    logs.mkdir(parents=True, exist_ok=True)
    with StatusFile(state, new_status(role, state, logs)) as status:
        status.update(
            peer_id=peer_id,
            model=text or "Qwen2.5-Coder-0.5B-Instruct",
            method="full",
            group_size=4,
            round=last or None,
            stage="solve",
            stage_began_at_s=time.time() - 5,
            done=3,
            total=8,
            usual_s={"solve": 16.0, "learn": 41.0},
            policy_version=last,
            network=text or "3 peers in sight",
            ledger=text,
            planned_bytes=11 * 2**30,
        )
    if text:
        found = msgspec.json.decode((state / "status.json").read_bytes())
        (state / "status.json").write_bytes(msgspec.json.encode({**found, "ended": text}))

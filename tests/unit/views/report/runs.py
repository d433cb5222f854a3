"""Runs that have left something on disk, for reports."""

import json

from codezero.observe.groups_file import GroupsFile
from codezero.observe.status import StatusFile, new_status
from codezero.types import CaseOutcome, CaseResult, Outcome, Reward, RoundId, ScoredGroup, Verdict
from tests.builders import group, rollout, task
from tests.swarm_folder import append
from tests.unit.observe import test_batches, test_monitor

PEER = "QmYyQSo1c1Ym7orWxLYvCrM2EmxFTANf8wXmmE7DWjhx5N"
EVIL = "</pre></style><script>alert(1)</script><img src=//evil.example/x onerror=alert(2)>\u202e\x1b[2J${{7*7}}"


def solver(folder, rewards, **changes):
    """A solver whose rounds had these mean rewards, None for a round without one; returns its folder of logs."""
    logs = folder / "logs"
    logs.mkdir(parents=True)
    with StatusFile(state_of(folder), new_status("solver", state_of(folder), logs)) as status:
        status.update(peer_id=PEER, model="tiny", method="full", group_size=4)
    reports = [
        test_monitor.report(
            number,
            reward_mean=reward,
            pass_at_k=None if reward is None else min(1.0, max(0.0, reward)),
            finished_at_s=1_760_000_000.0 + 60 * number,
            **changes,
        )
        for number, reward in enumerate(rewards, 1)
    ]
    append(logs / "rounds.jsonl", *reports)
    return logs


def proposer(folder, batches, **changes):
    logs = folder / "logs"
    logs.mkdir(parents=True)
    state = state_of(folder) / "proposer"
    with StatusFile(state, new_status("proposer", state, logs)) as status:
        status.update(peer_id=PEER, model="tiny")
    append(logs / "proposals.jsonl", *(test_batches.report(number, **changes) for number in range(1, batches + 1)))
    return logs


def state_of(folder):
    (folder / "state" / "proposer").mkdir(parents=True, exist_ok=True)
    return folder / "state"


def attempts(logs, number, question, rewards, text="def f(x): return x + 1", reason="", external=False):
    """Notes a round with one group: attempts at this question with these rewards, None for one that
    nothing could judge."""
    verdicts = [
        Verdict(
            outcome=Outcome.JUDGED,
            p_correct=0.5,
            reasons={"structure": reason} if reason else {},
            cases=(CaseResult(outcome=CaseOutcome.FAIL, reason=reason or "got 1"),),
        )
        for _ in rewards
    ]
    scored = ScoredGroup(
        group=group([rollout(text=f"{text} # {reward}") for reward in rewards], of=task(question)),
        verdicts=tuple(verdicts),
        rewards=tuple(None if one is None else Reward(total=one, parts={"correct": one}) for one in rewards),
        external=external,
    )
    GroupsFile(logs / "groups.jsonl").append(RoundId(number=number), [scored], [scored])


def results(path, passed, settings=None):
    """Results of `codezero eval`: whether each attempt passed, by problem."""
    path.mkdir()
    lines = [
        {"id": f"{name}/{number}", "group": name, "passed": one, "question": f"What is {name}?", "solution": "x"}
        for name, outcomes in passed.items()
        for number, one in enumerate(outcomes)
    ]
    (path / "results.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    if settings is not None:
        (path / "settings.json").write_text(json.dumps(settings))
    return path

"""What a death means: which text it was, whose it is, and what becomes of the rest."""

import random
from concurrent.futures import Future
from dataclasses import replace

import msgspec
import pytest

from codezero.config import RewardConfig
from codezero.evaluate import read_attempts as read_attempts_module
from codezero.evaluate import reading
from codezero.evaluate.jobs import P_FAILED, P_PASSED
from codezero.types import CaseOutcome, CaseResult, Outcome, Refusal, RoundId, SwarmRound
from codezero.workers import Cause, Death, Workers
from tests.builders import group, rollout, task
from tests.strangers import Reader, ScriptedJudge, evaluator, scored

RIGHT, WRONG, KILLER, OTHER_KILLER = (
    f"```python\ndef f(x):\n    return {body}\n```" for body in ("x + 1", "x", "kill(x)", "kill(x, 2)")
)
OPEN = "```python\nimport socket\ndef f(x):\n    return socket.f(x)\n```"
KILLING_TESTS = "assert f(1) == 2\nassert f(kill_here) == 3"


class Deadly(Reader):
    """Workers that die over any text with `kill` in it, as often as they are told to."""

    def __init__(self, cause=Cause.SIGNAL, times=1000, only_dry_runs=False):
        super().__init__()
        self.cause, self.times, self.only_dry_runs = cause, times, only_dry_runs
        self.asked = []

    def submit(self, job, request, cpu_s, *, fresh=False):
        texts = [*(attempt.code for attempt in request.attempts), "kill" * ("kill_here" in request.tests)]
        self.asked.append((len(request.attempts), fresh, request.dry_run))
        deadly = any("kill" in text for text in texts) and self.times > 0
        if not deadly or (self.only_dry_runs and not request.dry_run):
            return super().submit(job, request, cpu_s, fresh=fresh)
        self.times -= 1
        answer = Future()
        answer.set_result(Death(self.cause, "SIGSEGV"))
        return answer


def round_of(workers, *groups, judge=None, own=()):
    """The scored groups of a round in which these came from peers."""
    judging = evaluator(judge or ScriptedJudge({}), workers)
    return judging.score(SwarmRound(round_id=RoundId(number=1), local=tuple(own), external=groups))


def peers(*texts, address="10.0.0.1", is_certain=True, peer_id="p", tests="assert f(1) == 2"):
    rollouts = [rollout(text=text) for text in texts]
    return replace(
        group(rollouts, of=task(tests=tests), peer_id=peer_id, address=address), address_is_certain=is_certain
    )


def own(*texts, tests="assert f(1) == 2"):
    return group([rollout(text=text) for text in texts], of=task(tests=tests))


def test_an_own_attempt_that_kills_gets_what_a_failure_gets_and_no_judge_sees_it():
    workers, judge = Deadly(), ScriptedJudge({})
    found = scored(evaluator(judge, workers), own(RIGHT, KILLER, WRONG))
    assert [verdict.p_correct for verdict in found.verdicts] == [P_PASSED, P_FAILED, P_FAILED]
    assert [verdict.outcome for verdict in found.verdicts] == [Outcome.JUDGED] * 3
    assert found.rewards[1].parts["correct"] == pytest.approx(RewardConfig().correct * P_FAILED)
    assert found.verdicts[1].reply == "it ends what reads it: signal SIGSEGV"
    assert judge.asked == []


def test_a_group_that_kills_is_tried_again_in_fresh_workers_tests_first_then_attempt_by_attempt():
    workers = Deadly()
    scored(evaluator(ScriptedJudge({}), workers), own(RIGHT, KILLER, WRONG))
    assert workers.asked == [(3, False, True), (0, True, True), *[(1, True, True)] * 3]


def test_a_killer_is_never_given_to_a_worker_again():
    workers = Deadly()
    judging = evaluator(ScriptedJudge({}), workers)
    first = scored(judging, own(RIGHT, KILLER))
    workers.asked.clear()
    again = scored(judging, own(RIGHT, KILLER))
    assert workers.asked == [(1, False, True)]
    assert [one.p_correct for one in again.verdicts] == [one.p_correct for one in first.verdicts]


@pytest.mark.parametrize("cause", [Cause.SIGNAL, Cause.PROCESSOR, Cause.MEMORY, Cause.GARBLED])
def test_a_peers_group_that_kills_twice_is_hostile_and_the_rest_of_it_is_not_read(cause):
    workers = Deadly(cause)
    (found,) = round_of(workers, peers(KILLER, RIGHT))
    assert (found.refused, found.scored, found.external) == (Refusal.HOSTILE, False, True)
    assert len(found.verdicts) == 2
    assert workers.asked[-1] == (1, True, True)
    assert len(workers.asked) == 3


def test_the_same_bytes_again_are_dropped_unread():
    workers = Deadly()
    judging = evaluator(ScriptedJudge({}), workers)
    scored(judging, peers(KILLER), external=True)
    workers.asked.clear()
    found = scored(judging, peers(KILLER, RIGHT, peer_id="another", address="10.9.9.9"), external=True)
    assert (found.refused, workers.asked) == (Refusal.HOSTILE, [(1, False, True)])


def test_a_group_that_kills_once_only_is_judged_like_any_other():
    (found,) = round_of(Deadly(times=1), peers(KILLER, WRONG), judge=ScriptedJudge({}))
    assert (found.refused, found.scored) == (None, True)


@pytest.mark.parametrize("from_peer", [True, False])
def test_tests_that_kill_are_told_from_attempts_that_do(from_peer):
    workers = Deadly()
    one = peers(RIGHT, tests=KILLING_TESTS) if from_peer else own(RIGHT, tests=KILLING_TESTS)
    judging = evaluator(ScriptedJudge({}), workers)
    found = scored(judging, one, external=from_peer)
    assert (found.refused, found.rewards) == (Refusal.HOSTILE, ())
    workers.asked.clear()
    again = scored(judging, own(WRONG, tests=KILLING_TESTS))
    assert again.refused is Refusal.HOSTILE


@pytest.mark.parametrize("cause", [Cause.WALL_CLOCK, Cause.OUTSIDE, Cause.ERROR])
def test_what_may_not_be_its_fault_leaves_a_dry_run_unknown_and_the_judge_decides(cause):
    judge = ScriptedJudge({"def f(x):\n    return kill(x)": 0.7})
    (found,) = round_of(Deadly(cause, only_dry_runs=True), peers(KILLER, RIGHT), judge=judge)
    assert [verdict.p_correct for verdict in found.verdicts] == [0.7, P_PASSED]
    assert found.refused is None


def test_what_cannot_be_read_at_all_in_time_leaves_its_group_unscored():
    (found,) = round_of(Deadly(Cause.WALL_CLOCK), peers(KILLER, RIGHT))
    assert (found.refused, found.scored) == (None, False)
    assert [verdict.outcome for verdict in found.verdicts] == [Outcome.UNAVAILABLE, Outcome.JUDGED]


def test_an_author_whose_group_is_hostile_has_the_others_unread_in_this_round_only():
    bad, *rest = [peers(text, peer_id=f"p{n}") for n, text in enumerate([KILLER, RIGHT, OTHER_KILLER])]
    honest = peers(RIGHT, address="10.0.0.2", peer_id="q")
    workers = Deadly()
    judging = evaluator(ScriptedJudge({}), workers)
    found = judging.score(SwarmRound(round_id=RoundId(number=1), local=(), external=(bad, *rest, honest)))
    assert [one.refused for one in found] == [Refusal.HOSTILE, Refusal.UNREAD, Refusal.UNREAD, None]
    (later,) = judging.score(SwarmRound(round_id=RoundId(number=2), local=(), external=(rest[0],)))
    assert later.scored


def test_an_author_can_kill_a_few_workers_a_round_however_many_groups_it_sends():
    killers = [peers(f"```python\ndef f(x):\n    return kill(x, {n})\n```") for n in range(20)]
    workers = Deadly()
    found = round_of(workers, *killers)
    assert [one.refused for one in found] == [Refusal.HOSTILE] + [Refusal.UNREAD] * 19
    assert workers.times >= 1000 - 4


def test_those_who_share_an_address_that_is_not_certain_are_told_apart_by_name():
    bad, good = (peers(text, address="relay R", is_certain=False, peer_id=text) for text in (KILLER, RIGHT))
    assert [one.refused for one in round_of(Deadly(), bad, good)] == [Refusal.HOSTILE, None]


def test_groups_come_back_in_order_own_ones_first_however_many_there_are(monkeypatch):
    monkeypatch.setattr(reading, "LOOK_AHEAD", 3)
    groups = [peers(RIGHT if n % 3 else KILLER, address=f"10.0.0.{n}", peer_id=str(n)) for n in range(9)]
    found = round_of(Deadly(), *groups, own=[own(RIGHT)])
    assert [one.group.peer_id for one in found] == ["local", *map(str, range(9))]
    assert [one.refused is None for one in found] == [True, *[bool(n % 3) for n in range(9)]]


def test_a_worker_that_answers_for_another_number_of_attempts_is_not_believed():
    class Forger(Reader):
        def submit(self, job, request, cpu_s, *, fresh=False):
            return super().submit(job, msgspec.structs.replace(request, attempts=()), cpu_s)

    (found,) = round_of(Forger(), peers(RIGHT))
    assert found.refused is Refusal.HOSTILE


TEXTS = [
    RIGHT,
    WRONG,
    OPEN,
    "```python\ndef f(x):\n    return {x, 'b', 'a', 'c'}\n```",
    "```python\ndef f(x):\n    return str({'b', 'a', 'c', 'd'})\n```",
    "```python\ndef f(x):\n    while True:\n        pass\n```",
    "```python\ndef f(x:\n```",
    "no code",
]


@pytest.mark.slow
def test_verdicts_do_not_depend_on_how_many_workers_there_are_nor_on_their_timing():
    rng = random.Random(7)
    groups = [peers(*rng.sample(TEXTS, 4), address=f"10.0.0.{n}", peer_id=str(n)) for n in range(12)]
    judge = ScriptedJudge(0.6)
    found = []
    for size in (1, 4):
        with Workers(size) as workers:
            found.append(round_of(workers, *groups, judge=judge, own=[own(*TEXTS)]))
    assert found[0] == found[1]
    outcomes = {case.outcome for one in found[0] for verdict in one.verdicts for case in verdict.cases}
    assert outcomes == set(CaseOutcome)


def test_real_workers_say_what_the_same_code_says_in_this_process(workers):
    texts = [text for text in TEXTS if "'b'" not in text]  # sets have another order here
    groups = [own(*texts), own(RIGHT, tests="Input:\n1\nOutput:\n2\n"), own(RIGHT, tests="assert (")]
    judge = ScriptedJudge(0.6)
    here, there = ([scored(evaluator(judge, one), of) for of in groups] for one in (Reader(), workers))
    assert here == there


class Slow(Reader):
    """Workers whose dry runs take all the time that they may."""

    def __init__(self, monkeypatch):
        super().__init__()
        self.dry_run, self.budgets, self.clock = self.run, [], 0.0
        monkeypatch.setattr(read_attempts_module.time, "process_time", lambda: self.clock)

    def run(self, code, suite, budget):
        self.budgets.append(budget.total_seconds)
        self.clock += budget.total_seconds
        return (CaseResult(outcome=CaseOutcome.UNKNOWN, reason="time budget"),)


SLOW = [f"```python\ndef f(x):\n    return slow(x, {n})\n```" for n in range(4)]
UNSURE = ScriptedJudge(0.5)


def test_slow_attempts_leave_some_of_the_groups_time_to_those_that_follow(monkeypatch):
    workers = Slow(monkeypatch)
    scored(evaluator(UNSURE, workers), own(*SLOW))
    assert workers.budgets == pytest.approx([3.2, 2.4, 1.6, 0.8])
    workers.budgets.clear()
    scored(evaluator(UNSURE, workers), own(SLOW[0]))
    assert workers.budgets == [4.0]


@pytest.mark.parametrize(("num_groups", "share"), [(1, 1.0), (2, 1.0), (4, 0.5), (32, 1 / 16)])
def test_dry_runs_of_all_peers_groups_take_no_longer_than_those_of_j(monkeypatch, num_groups, share):
    workers = Slow(monkeypatch)
    swarm = SwarmRound(round_id=RoundId(number=1), local=(own(*SLOW),), external=(peers(*SLOW),) * num_groups)
    evaluator(UNSURE, workers, num_external=2).score(swarm)
    full = [3.2, 2.4, 1.6, 0.8]
    assert workers.budgets == pytest.approx(full + [share * seconds for seconds in full] * num_groups)

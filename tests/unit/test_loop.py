import threading

import pytest

from codezero.config import SwarmConfig
from codezero.errors import EvaluatorError
from codezero.loop import Stages, run_round
from codezero.network.selection import SapoSelection
from codezero.types import RoundId
from tests.fakes import Calls


def play(calls, num_tasks=1, selection=None, **more):
    stages = Stages(
        tasks=calls,
        solver=calls,
        gossip=calls,
        evaluator=calls,
        feedback=calls,
        selection=selection or calls,
        learner=calls,
        ledger=calls,
        observer=calls,
        **more,
    )
    return run_round(RoundId(number=5), stages, num_tasks)


def test_stages_in_order_each_with_what_the_one_before_gave():
    calls = Calls(rewards=((1.0, 0.0), (0.5, 0.5)), external=(("p", (1.0, 0.0)), ("q", (1.0, 0.0))))
    play(calls, num_tasks=2)
    assert calls.calls == [
        ("draw", 2),
        ("solve", 2, 3),
        ("exchange", 5, 2),
        ("score", 2, 2),
        ("feedback", 4),
        ("select", 5, 4),
        ("learn", 3),
        ("settle", 5, 4),  # votes look at everyone, chosen or not
    ]


def test_exchange_is_told_how_long_the_round_has_taken(monkeypatch):
    now = iter(float(n) for n in range(100))
    monkeypatch.setattr("codezero.loop.time.perf_counter", lambda: next(now))
    calls = Calls()
    play(calls)
    assert calls.elapsed_s == 6.0  # the clock's start, begin and end of draw and solve, begin of exchange, and now


@pytest.mark.parametrize(("samples_ahead", "seconds"), [(False, 1.0), (True, 7.0)])
def test_tokens_that_were_sampled_ahead_are_counted_over_the_whole_round(monkeypatch, samples_ahead, seconds):
    now = iter(float(n) for n in range(100))
    monkeypatch.setattr("codezero.loop.time.perf_counter", lambda: next(now))
    report = play(Calls(), samples_ahead=samples_ahead)
    assert report.tokens_per_s == report.num_tokens / seconds  # a second a stage, and two of `exchange`


def test_report_speaks_of_own_rollouts_and_counts_what_was_dropped():
    calls = Calls(
        rewards=((1.0, 0.0), ()),
        external=(("p", (9.0, 9.5)),),
        rejected=(("q", "too_large"), ("r", "too_large")),
        skipped={"prompt_too_long": 1},
    )
    report = play(calls, num_tasks=2)
    assert (report.round, report.policy_version) == (5, 4)
    assert (report.num_local_groups, report.num_external_groups, report.num_pooled_groups) == (2, 1, 1)
    assert report.network == "2 peers online"
    assert report.reward_mean == 0.5  # the peer's 9.0 and 9.5 are not ours
    assert report.reward_parts == {"correct": 0.5}
    assert (report.average_at_k, report.pass_at_k, report.mixed) == (0.5, 1.0, 1.0)
    assert set(report.dropped) == {"prompt_too_long", "too_large", "unscored"}
    assert report.dropped["too_large"] == 2
    assert report.dropped["unscored"] == 1
    assert report.num_tokens == 8
    assert set(report.seconds) == {"draw", "solve", "exchange", "score", "learn", "settle"}
    assert report.peak_rss_bytes > 1_000_000
    assert report.skipped is None


def test_each_group_left_out_is_counted_once_and_one_that_was_not_chosen_not_at_all():
    good, equal, unscored = (1.0, 0.0), (0.5, 0.5), ()
    external = (("p", good), ("p", good), ("q", good), ("q", equal), ("r", equal), ("r", unscored))
    selection = SapoSelection(SwarmConfig(num_external=2), seed=0)
    report = play(Calls(rewards=(good, equal, unscored), external=external), num_tasks=3, selection=selection)
    assert report.dropped == {"unscored": 2, "zero_advantage": 3}
    assert (report.num_local_groups, report.num_external_groups, report.num_pooled_groups) == (3, 2, 6)
    assert report.external_groups == {"p": 1, "q": 1}


def test_masked_attempts_are_counted_and_in_no_mean():
    rewards = ((1.0, 0.0, None, 0.5), (1.0, None), (None, None))
    report = play(Calls(rewards=rewards, external=(("p", (None, 1.0, 0.0)),)), num_tasks=3)
    assert (report.reward_mean, report.reward_parts) == (0.5, {"correct": 0.5})
    assert (report.average_at_k, report.pass_at_k, report.mixed) == (2 / 3, 1.0, 1.0)
    assert report.dropped == {"masked": 2, "unscored": 2}


def test_a_group_is_mixed_by_its_verdicts_and_not_by_its_rewards():
    rewards = ((1.0, 0.9), (0.4, 0.1), (0.9, 0.1), ())  # right and right, wrong and wrong, one of each, not scored
    assert play(Calls(rewards=rewards), num_tasks=4).mixed == 1 / 3


def test_the_source_of_tasks_hears_of_every_group():
    class Source(Calls):
        def note(self, groups):
            self.heard = [group.external for group in groups]

    source, calls = Source(), Calls(external=(("p", (1.0, 0.0)),))
    others = ("solver", "gossip", "evaluator", "feedback", "selection", "learner", "ledger", "observer")
    stages = dict.fromkeys(others, calls)
    run_round(RoundId(number=5), Stages(tasks=source, **stages), 1)
    assert source.heard == [False, True]


def test_a_node_that_trains_alone_reports_no_network():
    report = play(Calls())
    assert (report.num_external_groups, report.num_pooled_groups, report.external_groups) == (0, 0, {})
    assert report.network == ""


def test_nothing_to_learn_from_is_a_normal_round():
    report = play(Calls(rewards=((0.5, 0.5),)))
    assert report.skipped == "every group has equal rewards"
    assert (report.loss, report.policy_version) == (None, 3)


def test_nothing_scored_is_a_normal_round_without_a_reward():
    report = play(Calls(rewards=((),)))
    assert (report.reward_mean, report.pass_at_k, report.mixed, report.reward_parts) == (None, None, None, {})


def test_a_stage_that_fails_ends_the_round():
    with pytest.raises(EvaluatorError, match="broken"):
        play(Calls(score_error=EvaluatorError("broken")))


def test_others_may_ask_the_policy_between_the_stages_that_use_it():
    held, turn = {}, threading.Lock()

    class Watched(Calls):
        def __getattribute__(self, name):
            if name in ("draw", "solve", "exchange", "score", "choose", "step", "settle"):
                held[name] = turn.locked()
            return super().__getattribute__(name)

    play(Watched(), policy_lock=turn)
    # the judge takes the turn by itself where it computes in this process
    assert [name for name, was in held.items() if was] == ["solve", "step"]
    assert len(held) == 7
    assert not turn.locked()

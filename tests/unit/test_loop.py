import pytest

from codezero.errors import EvaluatorError
from codezero.loop import Stages, run_round
from codezero.types import RoundId
from tests.builders import group, rollout
from tests.fakes import Calls


def play(calls, num_tasks=1):
    stages = Stages(tasks=calls, solver=calls, gossip=calls, evaluator=calls, learner=calls, ledger=calls)
    return run_round(RoundId(number=5), stages, num_tasks)


def test_six_stages_in_order_each_with_what_the_one_before_gave():
    calls = Calls(rewards=((1.0, 0.0), (0.5, 0.5)), external=(group([rollout()] * 2, peer_id="p"),))
    play(calls, num_tasks=2)
    assert calls.calls == [
        ("draw", 2),
        ("solve", 2, 3),
        ("exchange", 5, 2),
        ("score", 2, 1),
        ("learn", 3),
        ("settle", 5, 3),
    ]


def test_report_speaks_of_own_rollouts_and_counts_what_was_dropped():
    calls = Calls(
        rewards=((1.0, 0.0), ()),
        external=(group([rollout()] * 2, peer_id="p"),),
        rejected=(("q", "too_large"), ("r", "too_large")),
        skipped={"prompt_too_long": 1},
    )
    report = play(calls, num_tasks=2)
    assert (report.round, report.policy_version) == (5, 4)
    assert (report.num_local_groups, report.num_external_groups) == (2, 1)
    assert report.reward_mean == 0.5  # the peer's 9.0 are not ours
    assert report.reward_parts == {"correct": 0.5}
    assert (report.average_at_k, report.pass_at_k) == (0.5, 1.0)
    assert set(report.dropped) == {"prompt_too_long", "too_large", "unscored"}
    assert report.dropped["too_large"] == 2
    assert report.dropped["unscored"] == 1
    assert report.num_tokens == 8
    assert set(report.seconds) == {"draw", "solve", "exchange", "score", "learn", "settle"}
    assert report.peak_rss_bytes > 1_000_000
    assert report.skipped is None


def test_nothing_to_learn_from_is_a_normal_round():
    report = play(Calls(rewards=((0.5, 0.5),)))
    assert report.skipped == "every group has equal rewards"
    assert (report.loss, report.policy_version) == (None, 3)


def test_nothing_scored_is_a_normal_round_without_a_reward():
    report = play(Calls(rewards=((),)))
    assert (report.reward_mean, report.pass_at_k, report.reward_parts) == (None, None, {})


def test_a_stage_that_fails_ends_the_round():
    with pytest.raises(EvaluatorError, match="broken"):
        play(Calls(score_error=EvaluatorError("broken")))

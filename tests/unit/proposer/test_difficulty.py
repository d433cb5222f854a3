import json
import logging
from statistics import fmean

import pytest

from benchmarks.difficulty import World, changing, constant, simulate
from codezero.config import DifficultyPolicy, ProposerConfig
from codezero.errors import StateError
from codezero.proposer.difficulty import TargetPolicy, TrendPolicy, difficulty
from codezero.proposer.feedback import JudgedProposal

SEEDS = range(5)


def judged(level, *success):
    return [
        JudgedProposal(proposal_id=f"{i}", level=level, success=s, reward=s, differed=0 < s < 1)
        for i, s in enumerate(success)
    ]


def target(**config):
    return TargetPolicy(ProposerConfig(**config))


def trend(**config):
    return TrendPolicy(ProposerConfig(**{"policy": DifficultyPolicy.trend, **config}))


def levels(policy, count):
    return [policy.choose().level for _ in range(count)]


def world(*log_odds, **settings):
    """A world with these log-odds of success at levels 1 to 5."""
    return World(log_odds=lambda batch, level: log_odds[level - 1], **settings)


def test_the_setting_chooses_the_policy():
    assert isinstance(difficulty(ProposerConfig()), TargetPolicy)
    assert isinstance(difficulty(ProposerConfig(policy=DifficultyPolicy.trend)), TrendPolicy)


# --- trend ---


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [(0.2, 0.3, 3), (0.3, 0.2, 1), (0.2, 0.24, 2), (0.24, 0.2, 2)],
)
def test_trend_moves_one_level_when_the_mean_changed_by_more_than_the_threshold(before, now, expected):
    policy = trend(window=3, update_every=2)
    policy.observe(judged(2, *[before] * 3, *[now] * 3))
    assert levels(policy, 4) == [2, 2, expected, expected]


def test_trend_waits_for_two_full_windows_and_decides_only_every_so_many_batches():
    policy = trend(window=10, update_every=5)
    policy.observe(judged(2, *[0.0] * 10, *[1.0] * 9))
    assert levels(policy, 6) == [2] * 6
    policy.observe(judged(2, 1.0))
    assert levels(policy, 5) == [2, 2, 2, 2, 3]
    assert "+0.00 -> +1.00" in policy.choose().reason


@pytest.mark.parametrize(("start", "rewards"), [(5, [0.0, 1.0]), (1, [1.0, 0.0])])
def test_trend_stays_within_the_levels(start, rewards):
    policy = trend(window=1, update_every=1, level=start)
    policy.observe(judged(start, *rewards))
    assert levels(policy, 3) == [start] * 3


# --- target: single decisions ---


def test_target_explores_neighbours_in_its_share_of_batches_and_the_less_known_first():
    policy = target(explore=0.2)
    assert levels(policy, 10) == [2, 2, 2, 2, 1, 2, 2, 2, 2, 1]
    policy.observe(judged(1, 0.5))
    assert levels(policy, 5) == [2, 2, 2, 2, 3]


@pytest.mark.parametrize(("explore", "expected"), [(0.0, 0), (0.1, 10), (0.25, 25), (0.9, 90)])
def test_the_share_of_explored_batches_is_the_one_set(explore, expected):
    found = levels(target(explore=explore, level=3), 100)
    assert sum(level != 3 for level in found) == expected


@pytest.mark.parametrize(
    ("success", "expected"), [(1.0, 3), (0.9, 3), (0.8, 2), (0.5, 2), (0.2, 2), (0.1, 1), (0.0, 1)]
)
def test_target_leaves_a_level_that_is_surely_too_easy_or_too_hard(success, expected):
    policy = target()
    policy.observe(judged(2, *[success] * 8))
    assert policy.home == expected


def test_target_passes_over_a_level_that_is_as_easy():
    policy = target()
    policy.observe(judged(3, *[1.0] * 8))
    assert policy.home == 2  # feedback for another level alone moves nothing
    policy.observe(judged(2, *[1.0] * 8))
    assert policy.home == 4


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        (judged(2, *[0.5] * 16), judged(2, *[1.0] * 4), 2),
        (judged(3, *[0.0] * 8), judged(2, *[0.9] * 8), 2),
        (judged(3, *[0.25] * 30), judged(2, *[1.0] * 20), 3),
    ],
    ids=["one batch of luck", "a next level known as too hard", "more signal on a too hard level"],
)
def test_what_is_known_already_decides_where_target_goes_on(before, now, expected):
    policy = target()
    policy.observe(before)
    policy.observe(now)
    assert policy.home == expected


def test_the_last_level_is_home_when_all_are_as_easy_and_is_left_for_a_surely_better_one():
    policy = target(level=4)
    policy.observe(judged(5, *[1.0] * 8))
    policy.observe(judged(4, *[1.0] * 12))
    assert policy.home == 5
    policy.observe(judged(4, *[1.0] * 30))
    assert policy.home == 5
    policy.observe(judged(4, *[0.6] * 60))
    policy.observe(judged(5, *[1.0] * 12))
    assert policy.home == 4


def test_every_change_is_logged_with_its_numbers(caplog):
    caplog.set_level(logging.INFO)
    target().observe(judged(2, *[1.0] * 8))
    (record,) = [r for r in caplog.records if "difficulty" in r.message]
    assert record.message == (
        "difficulty: level 2 -> 3: level 2 too easy (success 1.00 of 7, band 0.30..0.70); level 3 not known"
    )


def test_choices_say_why():
    policy = target()
    assert policy.choose().reason == "level 2 not known"
    policy.observe(judged(2, *[0.5] * 10))
    reasons = [policy.choose().reason for _ in range(4)]
    assert reasons[0] == "level 2 in or near (success 0.50 of 9, band 0.30..0.70)"
    assert reasons[3] == "exploring beside level 2; level 1 not known"


def test_success_is_told_for_levels_with_evidence_only():
    policy = target()
    assert policy.success() == {}
    policy.observe(judged(4, 1.0, 0.0))
    assert policy.success() == {4: pytest.approx(0.49, abs=0.01)}
    other = trend(window=2)
    other.observe(judged(1, 1.0) + judged(2, 0.5, 1.0, 0.0, 0.5))
    assert other.success() == {2: 0.5}


@pytest.mark.parametrize("band", [(0.1, 0.2), (0.8, 0.9), (0.0, 0.05)])
def test_a_narrow_band_moves_nothing_without_evidence(band):
    policy = target(band_low=band[0], band_high=band[1], level=3)
    policy.observe(judged(1, 0.5))
    assert policy.home == 3


# --- target: simulated solvers ---


@pytest.mark.parametrize(("skill", "level", "within"), [(1.0, 1, 40), (3.0, 3, 40), (5.0, 5, 80)])
def test_target_settles_at_the_right_level(skill, level, within):
    for seed in SEEDS:
        run = simulate(target(), constant(skill), 200, seed)
        assert set(run.homes[within:]) == {level}, seed


@pytest.mark.parametrize(("before", "after", "level"), [(1.0, 4.0, 4), (4.0, 1.0, 1)])
def test_target_recovers_when_skill_jumps(before, after, level):
    for seed in SEEDS:
        run = simulate(target(), changing(lambda batch: before if batch < 100 else after), 250, seed)
        assert set(run.homes[170:]) == {level}, seed


@pytest.mark.parametrize("skill", [1.0, 1.5, 2.0, 2.5, 3.0, 4.4, 5.0, 9.0, -3.0])
def test_target_does_not_oscillate_over_500_noisy_batches(skill):
    for seed in SEEDS:
        run = simulate(target(), constant(skill), 500, seed)
        assert run.changes(100) <= 2, seed


def test_target_does_not_oscillate_between_a_too_easy_and_a_too_hard_level():
    for seed in SEEDS:
        run = simulate(target(), world(7.5, 2.5, -2.5, -7.5, -12.5), 500, seed)
        assert run.changes() <= 3, seed
        assert set(run.homes[100:]) <= {2, 3}, seed


def test_target_finds_the_one_good_level_of_a_model_whose_levels_are_in_no_order():
    for seed in SEEDS:
        run = simulate(target(), world(2.5, 3.0, -4.0, 0.0, -4.0, noise=0.3), 200, seed)
        assert run.homes[-1] == 4, seed
        assert run.changes() <= 4, seed


@pytest.mark.parametrize(("log_odds", "level"), [(20.0, 5), (-20.0, 1)])
def test_target_stays_at_the_border_when_all_attempts_come_to_the_same(log_odds, level):
    run = simulate(target(), world(*[log_odds] * 5), 300)
    assert set(run.homes[30:]) == {level}
    assert run.changes() == abs(level - 2)


@pytest.mark.parametrize(("answered", "delay", "within"), [(0.1, 5, 400), (1.0, 8, 120), (0.5, 0, 150)])
def test_target_works_with_sparse_and_late_feedback(answered, delay, within):
    odds = [1.5 * (5.0 - level) for level in range(1, 6)]
    for seed in SEEDS:
        run = simulate(target(), world(*odds, answered=answered, delay=delay), within + 100, seed)
        assert set(run.homes[within:]) == {5}, seed
        assert run.changes() <= 4, seed


def test_target_without_any_feedback_stays():
    run = simulate(target(level=4), world(0, 0, 0, 0, 0, answered=0.0), 100)
    assert set(run.homes) == {4}


def test_target_beats_trend_in_the_share_of_groups_that_teach():
    means = {}
    for skill in (1.0, 3.0, 5.0):
        for policy in DifficultyPolicy:
            config = ProposerConfig(policy=policy)
            runs = [simulate(difficulty(config), constant(skill), 200, seed) for seed in SEEDS]
            means[skill, policy] = fmean(run.signal for run in runs)
        assert means[skill, DifficultyPolicy.target] > means[skill, DifficultyPolicy.trend] + 0.1, skill
        assert means[skill, DifficultyPolicy.target] > 0.62, skill  # an oracle comes to 0.72


# --- state ---


@pytest.mark.parametrize("make", [target, trend])
def test_a_restart_changes_nothing(make):
    straight, first = make(update_every=2), make(update_every=2)
    for policy in (straight, first):
        simulate(policy, constant(4.0), 37, seed=1)
    resumed = make(update_every=2)
    resumed.load_state_dict(json.loads(json.dumps(first.state_dict())))
    assert resumed.success() == straight.success() != {}
    assert simulate(resumed, constant(4.0), 60, seed=2) == simulate(straight, constant(4.0), 60, seed=2)


def test_another_policy_s_state_is_an_error():
    for one, other in ((target(), trend()), (trend(), target())):
        with pytest.raises(StateError, match=r"another proposer\.policy"):
            one.load_state_dict(other.state_dict())

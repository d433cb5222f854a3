import io
import math
from dataclasses import replace

import pytest
import torch

from codezero.config import LossType
from codezero.reports import SkipReason, UpdateReport
from codezero.train import replay
from codezero.train.checkpoint import restore_weights
from codezero.train.replay import ReplayingLearner
from codezero.types import Verdict
from tests.builders import rollout, scored, tiny_model
from tests.unit.train.test_learner import learner


def mixed(version, first=4, num=2, rewards=None, **kwargs):
    """A group with right and wrong attempts, whose completions begin with `first`."""
    rewards = rewards or [1.0, *[0.0] * (num - 1)]
    rollouts = [rollout(completion_ids=(first, 50 + i), logprobs=(-1 / 3, -2.5 - i)) for i in range(num)]
    return scored(rollouts, rewards, policy_version=version, **kwargs)


class Recorder:
    """A learner that remembers what it was given; each update is a version, unless it is told to skip."""

    def __init__(self):
        self.policy_version, self.given, self.skipped = 0, [], None

    def step(self, groups):
        self.given.append(groups)
        self.policy_version += self.skipped is None
        return UpdateReport(policy_version=self.policy_version, skipped=self.skipped)

    def past(self):
        """The first token and the version of each past group of the last update."""
        return [
            (one.group.rollouts[0].tokens.completion_ids[0], one.group.policy_version) for one in self.given[-1][1:]
        ]


def play(made, inner, num_rounds, **kwargs):
    for _ in range(num_rounds):
        report = made.step([mixed(inner.policy_version, first=inner.policy_version, **kwargs)])
    return report


def test_past_groups_come_again_with_their_tokens_log_probs_and_rewards_and_are_counted():
    inner = Recorder()
    made = ReplayingLearner(inner, 2, seed=0)
    new = mixed(0, num=3, rewards=[1.0, None, 0.25])
    assert made.step([new]).num_replayed == 0
    assert made.step([mixed(1)]).num_replayed == 1
    again, kept = inner.given[1][1], [new.group.rollouts[0], new.group.rollouts[2]]  # the masked one does not count
    assert [one.tokens for one in again.group.rollouts] == [one.tokens for one in kept]
    assert [one.total for one in again.earned] == [1.0, 0.25]
    assert (again.external, again.weight, again.group.policy_version) == (False, 1.0, 0)
    assert (made.policy_version, inner.policy_version) == (2, 2)
    assert made.step([mixed(2)]).num_replayed == made.step([mixed(3)]).num_replayed == 2


def test_with_0_nothing_is_kept_or_added():
    inner = Recorder()
    made = ReplayingLearner(inner, 0, seed=0)
    assert play(made, inner, 3).num_replayed == 0
    assert [len(groups) for groups in inner.given] == [1, 1, 1]
    assert made.state_dict() == {"groups": []}


def test_only_own_groups_with_right_and_wrong_attempts_are_kept():
    inner = Recorder()
    made = ReplayingLearner(inner, 9, seed=0)
    right = mixed(0, rewards=[1.0, 0.9])
    wrong_alone = mixed(0, rewards=[0.0, None])
    unscored = replace(mixed(0), rewards=(), verdicts=())
    equal = replace(mixed(0, rewards=[0.5, 0.5]), verdicts=(verdict(0.9), verdict(0.1)))
    made.step([right, wrong_alone, unscored, equal, mixed(0, external=True)])
    assert made.state_dict() == {"groups": []}


def verdict(p_correct):
    return Verdict(outcome=mixed(0).verdicts[0].outcome, p_correct=p_correct)


def test_groups_leave_when_they_are_too_old(monkeypatch):
    monkeypatch.setattr(replay, "MAX_STALENESS", 3)
    inner = Recorder()
    made = ReplayingLearner(inner, 99, seed=0)
    play(made, inner, 7)
    assert sorted(inner.past()) == [(3, 3), (4, 4), (5, 5)]


def test_the_oldest_groups_leave_when_there_are_too_many(monkeypatch):
    monkeypatch.setattr(replay, "MAX_GROUPS", 2)
    inner = Recorder()
    play(ReplayingLearner(inner, 99, seed=0), inner, 5)
    assert sorted(inner.past()) == [(2, 2), (3, 3)]


def test_the_oldest_groups_leave_when_they_are_too_large_together(monkeypatch):
    each = 2 * (5 * 4 + 2 * 8)  # attempts of 3 and 2 tokens, of which 2 have log-probs
    monkeypatch.setattr(replay, "MAX_BYTES", 3 * each)
    inner = Recorder()
    made = ReplayingLearner(inner, 99, seed=0)
    play(made, inner, 6)
    assert sorted(inner.past()) == [(2, 2), (3, 3), (4, 4)]
    made.step([mixed(6, num=7)])  # alone more than the limit
    assert made.state_dict() == {"groups": []}


def test_no_group_is_drawn_twice_in_an_update_and_the_draw_depends_on_seed_and_version():
    draws = []
    for seed in (0, 0, 1):
        inner = Recorder()
        made = ReplayingLearner(inner, 3, seed=seed)
        play(made, inner, 8)
        draws.append([inner.past(), *(play(made, inner, 1) and inner.past() for _ in range(5))])
    assert draws[0] == draws[1] != draws[2]
    assert all(len(set(drawn)) == 3 for drawn in draws[0])
    assert len({frozenset(version for _, version in drawn) for drawn in draws[0]}) > 1


def test_a_round_whose_new_groups_teach_nothing_learns_from_past_ones():
    inner = learner(tiny_model())
    made = ReplayingLearner(inner, 1, seed=0)
    equal = mixed(0, rewards=[0.5, 0.5])
    assert made.step([equal]).skipped is SkipReason.ZERO_ADVANTAGE
    made.step([mixed(0)])
    report = made.step([equal])
    assert (report.skipped, report.num_replayed, report.num_zero_advantage) == (None, 1, 1)
    assert inner.policy_version == 2


def test_what_made_an_update_fail_is_not_used_again():
    inner = Recorder()
    made = ReplayingLearner(inner, 1, seed=0)
    play(made, inner, 3)
    inner.skipped = SkipReason.NOT_FINITE
    report = made.step([mixed(3, first=99)])
    assert report.num_replayed == 0
    ((_, bad),) = inner.past()
    kept = {row["policy_version"] for row in made.state_dict()["groups"]}
    assert kept == {0, 1, 2} - {bad}


def test_a_past_group_counts_by_its_stored_log_probs():
    model = tiny_model()
    made = ReplayingLearner(learner(model, loss_type=LossType.m2po, learning_rate=1e-9), 1, seed=0)
    far = [rollout(completion_ids=(4, 5), logprobs=(-90.0, -90.0)), rollout(completion_ids=(4, 6))]
    assert made.step([scored(far, [1.0, 0.0])]).clip_fraction == 0.0  # new: the ratio is 1, whatever the sampler says
    assert made.step([mixed(1)]).clip_fraction >= 2 / 8


def through_a_file(state):
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    return torch.load(file, weights_only=True)


@pytest.mark.parametrize("killed_after", [1, 4])
def test_a_resumed_node_ends_bit_for_bit_where_an_unkilled_one_does(killed_after):
    settings = {"loss_type": LossType.m2po, "learning_rate": 0.01, "num_iterations": 2}
    rng = torch.Generator().manual_seed(0)
    noise = torch.rand(6, 2, 2, generator=rng).double().log().tolist()

    def begin():
        model = tiny_model()
        inner = learner(model, **settings)
        return model, inner, ReplayingLearner(inner, 2, seed=5)

    def rounds(made, start, stop):
        for number in range(start, stop):
            rollouts = [rollout(completion_ids=(60 + number, 70 + i), logprobs=noise[number][i]) for i in range(2)]
            report = made.step([scored(rollouts, [1.0, 0.0], policy_version=made.policy_version)])
            assert report.num_replayed == min(number, 2)
            assert math.isfinite(report.loss)

    model, _, made = begin()
    rounds(made, 0, 6)

    _, inner, before = begin()
    rounds(before, 0, killed_after)
    saved = through_a_file(
        {"weights": inner.weights(), "learner": inner.state_dict(), "node": {"replay": before.state_dict()}}
    )
    resumed, inner, after = begin()
    restore_weights(inner.weights(), saved["weights"])
    inner.load_state_dict(saved["learner"])
    after.load_state_dict(saved["node"]["replay"])
    rounds(after, killed_after, 6)

    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), resumed.parameters(), strict=True))
    assert [row["rewards"] for row in made.state_dict()["groups"]] == [(1.0, 0.0)] * 6


def test_a_checkpoint_without_past_groups_is_read():
    made = ReplayingLearner(Recorder(), 1, seed=0)
    made.load_state_dict({})
    assert made.state_dict() == {"groups": []}

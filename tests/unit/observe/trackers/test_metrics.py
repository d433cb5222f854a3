import pytest

from codezero.observe.trackers.metrics import batch_metrics, round_metrics
from tests.unit.observe.test_batches import WRITER
from tests.unit.observe.test_batches import report as batch_report
from tests.unit.observe.test_monitor import report


def by_name(metrics):
    found = {metric.name: metric.value for metric in metrics}
    assert len(found) == len(metrics), "a name is there twice"
    return found


def test_every_number_of_a_round_has_one_name():
    values = by_name(
        round_metrics(report(12, num_external_groups=1, external_groups={"QmPeer": 1}, judge_score=0.75, mixed=0.5))
    )
    assert values == pytest.approx(
        {
            "round/number": 12.0,
            "round/finished": 1.0,
            "reward/mean": 0.5,
            "reward/correct": 0.3,
            "reward/finished": 0.2,
            "eval/pass_at_k": 0.5,
            "eval/average_at_k": 0.25,
            "eval/mixed": 0.5,
            "train/loss": -0.0123,
            "train/grad_norm": 1.5,
            "train/clip_fraction": 0.0,
            "train/updated": 1.0,
            "train/replayed_groups": 0.0,
            "train/policy_version": 12.0,
            "rollout/tokens": 512.0,
            "rollout/tokens_per_s": 32.0,
            "swarm/local_groups": 2.0,
            "swarm/proposed_groups": 0.0,
            "swarm/pooled_groups": 0.0,
            "swarm/external_groups": 1.0,
            "swarm/peers": 1.0,
            "dropped/zero_advantage": 1.0,
            "judge/score": 0.75,
            "trouble/ledger": 0.0,
            "trouble/judge": 0.0,
            "trouble/market": 0.0,
            "system/peak_rss_bytes": 1_000_000.0,
            "time/draw_s": 0.0,
            "time/solve_s": 16.0,
            "time/exchange_s": 0.0,
            "time/score_s": 3.0,
            "time/learn_s": 41.0,
            "time/settle_s": 0.1,
            "time/round_s": 60.1,
        }
    )


def test_a_round_without_an_update_has_no_loss_and_says_so():
    values = by_name(round_metrics(report(3, skipped="no scored groups", loss=None, grad_norm=None, reward_mean=None)))
    assert values["train/updated"] == 0.0
    assert not {"train/loss", "train/grad_norm", "reward/mean"} & set(values)


def test_trouble_is_a_number_too():
    assert by_name(round_metrics(report(1, ledger="the chain is away")))["trouble/ledger"] == 1.0


def test_nothing_of_a_peer_becomes_a_name():
    hostile = 'x"} evil 1\n# HELP \x1b[2J'
    metrics = round_metrics(report(1, external_groups={hostile: 1}, network=hostile, ledger=hostile))
    assert not [metric for metric in metrics if "evil" in metric.name or "evil" in str(metric.label)]


def test_reasons_are_words_and_those_that_become_one_word_are_added_up():
    metrics = round_metrics(report(1, dropped={"mbpp: no tests": 1, "mbpp no tests": 2, "": 1, "x" * 99: 1}))
    dropped = {metric.name: metric.value for metric in metrics if metric.name.startswith("dropped/")}
    assert dropped == {"dropped/mbpp_no_tests": 3.0, "dropped/other": 1.0, "dropped/" + "x" * 40: 1.0}


def test_a_test_writers_part_of_a_batch_has_its_names():
    values = by_name(batch_metrics(batch_report(writer=WRITER)))
    assert {name: value for name, value in values.items() if name.startswith("tests/")} == {
        **{"tests/problems": 3.0, "tests/cases": 31.0, "tests/valid": 12.0},
        **{"tests/with_one": 2.0, "tests/with_three": 1.0},
    }


def test_every_number_of_a_batch_has_one_name():
    values = by_name(batch_metrics(batch_report(7, reward_mean=0.4, loss=-0.01, dropped={"too_many": 2})))
    assert values == pytest.approx(
        {
            "batch/number": 7.0,
            "batch/finished": 1.0,
            "proposer/level": 2.0,
            "proposer/written": 4.0,
            "proposer/valid": 3.0,
            "proposer/judged": 2.0,
            "proposer/signal_share": 0.5,
            "proposer/success_level_1": 0.9,
            "proposer/success_level_2": 0.55,
            "rejected/unreadable": 1.0,
            "dropped/too_many": 2.0,
            "reward/mean": 0.4,
            "train/loss": -0.01,
            "time/write_s": 20.0,
            "time/check_s": 0.1,
            "time/publish_s": 0.2,
            "time/listen_s": 41.0,
            "time/learn_s": 0.0,
            "time/batch_s": 61.3,
        }
    )

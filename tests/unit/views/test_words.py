import dataclasses

import pytest

from codezero.observe.status import Status
from codezero.runtime.amounts import span
from codezero.views.charts.runs import OTHER, parts
from codezero.views.words import obstacles, presence, proposer_obstacles, verifier_obstacles
from tests.swarm_folder import batch_report, round_report
from tests.unit.observe import test_cases

NOW_S = 1_000_000.0


def status(**changes):
    base = Status(
        role="solver",
        version="0.1",
        pid=1,
        log_dir="/logs",
        started_at_s=NOW_S - 900,
        updated_at_s=NOW_S - 1,
        round=7,
        stage="solve",
        stage_began_at_s=NOW_S - 10,
        done=2,
        total=4,
        usual_s={"solve": 30.0, "learn": 41.0},
    )
    return dataclasses.replace(base, **changes)


@pytest.mark.parametrize(
    ("changes", "pid", "state", "text"),
    [
        ({}, 1, "running", "round 7: writing solutions, 2 of 4; about 51 s left"),
        ({"role": "proposer", "stage": "listen", "total": 0}, 1, "running", "batch 7: listening to solvers"),
        ({"role": "verifier", "stage": "cases", "total": 0}, 1, "running", "batch 7: writing test cases"),
        ({"stage": "start", "round": None, "total": 0}, 1, "running", "starting"),
        ({"updated_at_s": NOW_S - 300}, 1, "silent", "no sign of life for 5 min"),
        ({"updated_at_s": NOW_S - 300}, 2, "running", "has not said yet"),
        ({"ended": "stopped"}, None, "stopped", "stopped 1 s ago"),
        ({"ended": "StateError: the disk is full"}, None, "died", "ended 1 s ago: StateError: the disk is full"),
        ({}, None, "died", "ended 1 s ago without a word"),
    ],
)
def test_whether_it_runs(changes, pid, state, text):
    there = presence(status(**changes), pid, NOW_S)
    assert there.state == state
    assert text in there.text


def test_a_node_without_a_status_is_not_guessed_at():
    assert presence(None, 1, NOW_S).state == "running"
    assert presence(None, None, NOW_S).state == "unknown"


def test_what_is_in_the_way_is_told_with_what_it_means():
    alone = {"network": "alone: none of 1 bootnodes answers", "num_external_groups": 0}
    reports = [round_report(number, skipped="every group has equal rewards", **alone) for number in range(1, 21)]
    reports[-1] = dataclasses.replace(
        reports[-1],
        ledger="the RPC does not answer",
        judge="no answer",
        market="no answer",
        dropped={"unscored": 30},
    )
    told = [one.what for one in obstacles(reports, status(rss_bytes=12 * 2**30, planned_bytes=10 * 2**30))]
    assert told == [
        "20 of the last 20 rounds made no update, 20 of them: every group has equal rewards",
        "30 of 80 groups of the last 20 rounds went without a verdict",
        "it uses 12.0 GiB of memory, 10.0 GiB were planned",
        "the RPC does not answer",
        "none of the last 20 rounds learnt from another node: alone: none of 1 bootnodes answers; dropped: 30 unscored",
        "no answer",
    ]


def test_of_a_single_round_it_is_told_in_the_singular():
    (found,) = obstacles([round_report(1, skipped=None, dropped={"unscored": 2})], status())
    assert found.what.endswith("groups of the last round went without a verdict")


def test_a_healthy_node_has_nothing_in_its_way():
    reports = [round_report(number, skipped=None) for number in range(1, 21)]
    reports[3] = dataclasses.replace(reports[3], dropped={"unscored": 1})
    assert obstacles(reports, status()) == []
    assert obstacles([], None) == []
    assert obstacles([round_report(number, skipped="all groups are equal") for number in range(1, 5)], None) == []


def test_what_is_in_a_proposers_way():
    bad = [dataclasses.replace(batch_report(number), num_valid=0, num_judged=0) for number in range(1, 13)]
    assert [one.what for one in proposer_obstacles(bad)] == [
        "0 of 48 recent problems could be published, most for unreadable",
        "no solver has recently answered a problem",
    ]
    assert proposer_obstacles([batch_report(number) for number in range(1, 13)]) == []


def test_what_is_in_a_test_writers_way():
    equal = [test_cases.report(number, skipped="every group has equal rewards") for number in range(1, 5)]
    (found,) = verifier_obstacles([*equal, test_cases.report(5)])
    assert found.what == "4 of the last 5 batches made no update, 4 of them: every group has equal rewards"
    assert verifier_obstacles([*equal[:2], *(test_cases.report(number) for number in (3, 4, 5))]) == []
    assert verifier_obstacles([]) == []


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.4, "0 s"),
        (59, "59 s"),
        (61, "1 min"),
        (3 * 3600 + 120, "3 h 2 min"),
        (3 * 86400, "3 days"),
        (-5, "0 s"),
        (float("inf"), "\N{EN DASH}"),
    ],
)
def test_a_length_of_time(seconds, text):
    assert span(seconds) == text


def test_of_many_parts_the_rarest_come_together():
    rows = [{f"name {number}": number for number in range(1, 21)}, {"name 20": 1, OTHER: 5}]
    columns = parts(rows)
    assert list(columns) == [*(f"name {number}" for number in range(20, 13, -1)), OTHER]
    assert columns[OTHER] == [sum(range(1, 14)), 5]
    assert columns["name 20"] == [20, 1]
    assert len(parts(rows, 3)) == 3


def test_a_part_that_a_row_has_not_is_zero_there_and_of_an_empty_row_nothing_is_known():
    assert parts([{"a": 1.0}, {"b": 2.0}, {}]) == {"a": [1.0, 0.0, None], "b": [0.0, 2.0, None]}

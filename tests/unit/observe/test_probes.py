"""What probes come to, in numbers and in words."""

import dataclasses
import json

import pytest

from codezero.evaluate.gain import Direction
from codezero.observe.probes import NODE, PAIR, ProbeReport, learning
from codezero.observe.trackers.metrics import cases_metrics, round_metrics
from codezero.views.runs import find_runs
from tests.swarm_folder import append, verifier
from tests.unit.observe import test_cases, test_monitor


def probe(round_number, right, samples=2, num_problems=None, **changes):
    """One with so many right solutions at T=1 by problem; greedy ones are right where all of these are."""
    base = ProbeReport(
        round=round_number,
        policy_version=round_number,
        kind="kind",
        num_problems=num_problems or len(right),
        samples=samples,
        greedy={name: count == samples for name, count in right.items()},
        right=right,
        unknown=0,
        seconds=1.0,
        spent_s=1.0,
        wall_s=1.0,
        finished_at_s=0.0,
    )
    return dataclasses.replace(base, **changes)


def passes(*shares):
    """Whole passes over 40 problems, ten rounds apart, in which this share was solved, the same as far as they go."""
    return [
        probe(10 * number, {f"p{i}": 2 * (i < share * 40) for i in range(40)}) for number, share in enumerate(shares)
    ]


def write(logs, reports, series=NODE):
    logs.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(dataclasses.asdict(one)) for one in reports]
    (logs / series.file).write_text("".join(line + "\n" for line in lines))


def test_a_model_that_solves_more_learns_and_the_numbers_are_told():
    found = learning(passes(0.25, 0.5, 0.75, 0.75, 0.75))
    assert found.direction is Direction.RISING
    assert (found.gain.first, found.gain.last) == (3, 4)
    assert [one.last_round for one in found.passes] == [0, 10, 20, 30, 40]
    assert found.text.startswith(
        "It learns: of solutions to 40 problems it never trains on, 25.0 % were right at the start and 75.0 % in "
        "rounds 21 to 40, +50.0 points [+"
    )
    assert found.text.endswith("]; greedy 25.0 % and 75.0 %.")


def test_passes_that_ended_after_one_round_are_told_by_it():
    reports = [dataclasses.replace(one, round=min(one.round, 10)) for one in passes(0.25, 0.25, 0.75)]
    assert " were right at the start and 75.0 % after round 10, " in learning(reports).text


def test_a_fall_from_the_best_is_told_with_its_round():
    found = learning(passes(0.25, 1.0, 1.0, 1.0, 0.5, 0.5, 0.5))
    assert found.direction is Direction.FALLING
    assert found.text.startswith("It has got worse: ")
    assert found.text.endswith("] since round 10.")
    assert found.best == 3


def test_the_best_is_that_of_the_smoothed_curve_and_not_the_luckiest():
    assert learning(passes(0.2, 0.3, 0.9, 0.3, 0.5, 0.7, 0.7, 0.4)).best == 6
    assert learning(passes(0.2)).best is None


def test_the_start_is_in_no_mean_since_no_checkpoint_has_its_weights():
    assert learning(passes(0.3, 0.225, 0.25, 0.275)).best == 3


@pytest.mark.parametrize(
    ("reports", "text"),
    [
        ([], "Not measured: no probe has ended yet; a run of fewer than 20 rounds takes none, nor does probe.share=0."),
        (
            [probe(0, {"a": 1, "b": 0}, num_problems=5)],
            "Too early to tell: 2 of 5 problems tried for the first time; how many are right is told after all.",
        ),
        (
            [probe(0, {"a": 1, "b": 0}), probe(3, {"a": 1})],
            "Too early to tell: 25.0 % right at the start (greedy 0.0 %), 1 of 2 problems tried again.",
        ),
    ],
)
def test_what_is_said_before_there_is_anything_to_say(reports, text):
    assert (learning(reports).text, learning(reports).direction) == (text, Direction.UNKNOWN)


def test_only_probes_like_the_newest_are_compared():
    old = [dataclasses.replace(one, kind="other") for one in passes(0.1, 0.9, 0.9)]
    assert len(learning([*old, *passes(0.5)]).passes) == 1


def test_a_solver_beside_a_test_writer_is_told_of_in_batches():
    found = learning(passes(0.25, 1.0, 1.0, 1.0, 0.5, 0.5, 0.5), PAIR)
    assert " in batches " in found.text
    assert found.text.endswith("] since batch 10.")
    assert learning([], PAIR).text.startswith("Not measured: no probe has ended yet; a run of fewer than 20 batches")


def test_a_node_and_a_pair_that_share_a_folder_of_logs_have_probes_of_their_own(tmp_path):
    verifier(tmp_path, 1)
    (tmp_path / "state" / "status.json").write_text("{}")
    write(tmp_path / "logs", passes(0.5, 0.5))
    write(tmp_path / "logs", passes(0.5, 1.0, 1.0), PAIR)
    node, pair = find_runs(tmp_path / "state")
    assert (node.learning().direction, pair.learning().direction) == (Direction.LEVEL, Direction.RISING)
    append(tmp_path / "logs" / "cases.jsonl", test_cases.report(2))
    assert pair.learning() is None  # a test writer without a solver, whatever an earlier one has left


def test_probes_that_were_replaced_are_judged_anew(tmp_path):
    verifier(tmp_path)
    write(tmp_path / "logs", passes(0.0, 1.0, 1.0), PAIR)
    (pair,) = find_runs(tmp_path / "state")
    assert pair.learning().direction is Direction.RISING
    (tmp_path / "logs" / PAIR.file).unlink()
    write(tmp_path / "logs", passes(1.0, 0.0, 0.0), PAIR)
    assert pair.learning().direction is Direction.FALLING


def test_the_first_probes_of_a_pair_are_shown_before_its_first_batch(tmp_path):
    verifier(tmp_path)
    (run,) = find_runs(tmp_path / "state")
    assert run.learning() is None
    write(tmp_path / "logs", [probe(0, {"a": 1}, num_problems=5)], PAIR)
    assert (
        run.learning().text
        == "Too early to tell: 1 of 5 problems tried for the first time; how many are right is told after all."
    )


@pytest.mark.parametrize(
    "line", ['{"round": 0', "[]", "null", '{"round": 1}', '{"right": {"\\u202e<script>": 1e999}}', "[" * 100_000]
)
def test_hostile_and_torn_lines_are_left_out(tmp_path, line):
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "status.json").write_text("{}")
    write(tmp_path / "logs", passes(0.5, 0.5))
    with (tmp_path / "logs" / "probe.jsonl").open("a") as file:
        file.write(line + "\n")
    (run,) = find_runs(tmp_path / "state")
    assert len(run.learning().passes) == 2


def test_trackers_get_what_is_known_first():
    names = [one.name for one in round_metrics(test_monitor.report(1), learning(passes(0.2, 0.4)))]
    assert names[:5] == ["probe/sampled", "probe/greedy", "probe/gain_value", "probe/gain_low", "probe/gain_high"]
    early = [one.name for one in round_metrics(test_monitor.report(1), learning(passes(0.2)))]
    assert early[:3] == ["probe/sampled", "probe/greedy", "round/number"]
    pair = cases_metrics(test_cases.report(solver=test_cases.solver()), learning(passes(0.2, 0.4), PAIR))
    assert [one.name for one in pair[:5]] == names[:5]
    assert pair[0].family == "codezero_verifier_probe_sampled_ratio"

"""A test writer's batches in words and as metrics."""

import io
import json

from codezero.observe.batches import BatchMonitor
from codezero.observe.cases import CASES, cases_line
from codezero.observe.status import StatusFile, new_status
from codezero.observe.trackers.metrics import cases_metrics
from codezero.reports import CasesReport, SolverReport
from codezero.runtime.console import Console


def report(batch=1, **changed):
    values = {
        "batch": batch,
        "num_groups": 2,
        "num_answers": 16,
        "num_masked": 0,
        "candidates_right": 0.5,
        "valid": 0.25,
        "approved": 0.125,
        "right": 0.1875,
        "reward_mean": 0.21,
        "reward_approving": 0.75,
        "dropped": {},
        "policy_version": batch,
        "loss": -0.0012,
        "grad_norm": 1.25,
        "skipped": None,
        "num_tokens": 900,
        "seconds": {"draw": 0.0, "solve": 30.0, "score": 1.0, "cases": 20.0, "try": 2.0, "learn": 40.0},
        "finished_at_s": 1.0,
    }
    return CasesReport(**{**values, **changed})


def solver(**changed):
    values = {"num_attempts": 16, "right": 0.25, "num_second": 8, "second_right": 0.125, "policy_version": 3}
    return SolverReport(**{**values, "num_tokens": 2400, "loss": 0.02, "grad_norm": 0.5, "skipped": None, **changed})


NOTHING = {
    **dict.fromkeys(("candidates_right", "valid", "approved", "right", "reward_mean", "loss", "grad_norm")),
    "reward_approving": None,
}


def test_a_batch_is_one_line_with_the_base_rate_beside_the_reward():
    assert cases_line(report()) == (
        "batch 1 | answers 16 on 2 | valid 25% diagnosis 19% approved 12% | "
        "reward 0.21, approving always 0.75 | loss -0.0012 grad 1.25 | "
        "1m33s: solve 30 score 1 cases 20 try 2 learn 40"
    )


def test_a_batch_in_which_nothing_could_be_judged_says_so():
    line = cases_line(report(num_masked=16, skipped="no scored groups", dropped={"no_reference": 3}, **NOTHING))
    assert line.startswith(
        "batch 1 | answers 16 on 2 | masked 16 | no update: no scored groups | dropped 3 no_reference"
    )


def test_the_summary_weighs_batches_by_their_judged_answers(tmp_path):
    status = StatusFile(tmp_path, new_status("verifier", tmp_path, tmp_path))
    monitor = BatchMonitor(CASES, tmp_path, Console(io.StringIO()), status)
    monitor.report(report(1, num_masked=16, **NOTHING))
    assert monitor.summary() == "done: 1 batch in 1m33s, 16 answers of test cases, none judged"
    monitor.report(report(2, num_masked=8, valid=1.0, right=0.5))
    monitor.report(report(3, valid=0.25, right=0.125))
    told = "48 answers of test cases, 50% valid, 25% with the right diagnosis"
    assert monitor.summary() == f"done: 3 batches in 4m39s, {told}"


def test_metrics_have_what_there_is_and_leave_out_the_rest():
    found = {one.name: one for one in cases_metrics(report())}
    assert found["verifier/valid"].value == 0.25
    assert found["reward/approving"].family == "codezero_verifier_reward_approving"
    assert found["train/updated"].value == 1.0
    assert found["time/cases_s"].value == 20.0
    assert "verifier/valid" not in {one.name for one in cases_metrics(report(**NOTHING))}
    json.dumps([one.value for one in found.values()], allow_nan=False)


def test_a_solver_that_is_trained_too_has_a_part_of_the_line_and_metrics_of_its_own():
    line = cases_line(report(solver=solver()))
    assert " | solver 25% right of 16, then 12% of 8, loss 0.0200 | " in line
    line = cases_line(report(solver=solver(right=None, num_second=0, second_right=None, skipped="no scored groups")))
    assert " | solver unknown right of 16, no update: no scored groups | " in line
    values = {one.name: one.value for one in cases_metrics(report(solver=solver()))}
    assert (values["solver/right"], values["solver/second_right"], values["solver/policy_version"]) == (0.25, 0.125, 3)

"""Reference solutions pass their own tests in the dry run."""

import json
from pathlib import Path

import pytest

from codezero.evaluate.dryrun import dry_run
from codezero.tasks import mbpp
from codezero.tasks.problems import load_problems
from codezero.tasks.rows import BadRow
from codezero.tasks.testcases import parse_tests
from codezero.types import CaseOutcome
from tests.unit.tasks.builders import real_mbpp


@pytest.mark.parametrize("problem", load_problems(), ids=lambda p: p.task.task_id)
def test_a_built_in_reference_passes_every_case(problem):
    results = dry_run(problem.reference, parse_tests(problem.task.tests))
    assert {(r.outcome, r.reason) for r in results} == {(CaseOutcome.PASS, "")}


@pytest.mark.parametrize("problem", load_problems(), ids=lambda p: p.task.task_id)
def test_a_stub_passes_no_built_in_problem(problem):
    stub = "class Anything:\n    pass\n"
    names = {line.split("(")[0].split()[-1] for line in problem.reference.splitlines() if line.startswith("def ")}
    stub += "".join(f"def {name}(*args, **kwargs):\n    return None\n" for name in sorted(names))
    outcomes = {r.outcome for r in dry_run(stub, parse_tests(problem.task.tests))}
    assert CaseOutcome.FAIL in outcomes
    assert CaseOutcome.UNKNOWN not in outcomes


def test_mbpp_references_are_decided_and_pass(record_property):
    """Of MBPP's references 99 % are decided, and none is called wrong."""
    decided, wrong, cases = 0, [], 0
    for line in Path(real_mbpp()).read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        try:
            task = mbpp.to_task(row)
        except BadRow:
            continue
        for result in dry_run(row["code"], parse_tests(task.tests)):
            cases += 1
            decided += result.outcome is not CaseOutcome.UNKNOWN
            if result.outcome is CaseOutcome.FAIL:
                wrong.append((row["task_id"], result.reason))
    record_property("decided", decided / cases)
    assert wrong == []
    assert cases > 2000
    assert decided >= 0.985 * cases

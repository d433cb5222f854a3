"""Checks run side by side; none can hold up, end or hide the others."""

import errno
import os
import threading
import time

from codezero.doctor.examine import CHECKS, LAST, Check, examine
from codezero.doctor.finding import Severity, error, exit_code, info, ok, warning
from codezero.errors import StateError
from tests.unit.doctor.cases import case_of


def checked(tmp_path, *runs, limit_s=5.0):
    checks = [Check(name=run.__name__, run=run, limit_s=limit_s) for run in runs]
    return examine(case_of(tmp_path), checks, [])


def test_a_check_that_raises_is_a_finding_and_what_it_found_before_counts(tmp_path):
    def breaks(case):
        yield ok("first", "seen")
        raise RuntimeError("no such thing\x1b[31m")

    def works(case):
        yield info("other", "also seen")

    first, fault, other = checked(tmp_path, breaks, works)
    assert (first.found, other.found) == ("seen", "also seen")
    assert fault.severity is Severity.WARNING
    assert fault.found == "the check itself failed: RuntimeError: no such thing\x1b[31m"


def test_an_error_of_codezeros_own_says_itself_what_to_do(tmp_path):
    def refused(case):
        raise StateError("cannot read state/node.lock: Permission denied")
        yield

    (fault,) = checked(tmp_path, refused)
    assert (fault.severity, fault.found) == (Severity.ERROR, "cannot read state/node.lock: Permission denied")
    assert "report it" not in fault.do


def test_what_may_not_be_read_is_no_fault_of_the_check(tmp_path):
    def reads(case):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), "state/status.json")
        yield

    (fault,) = checked(tmp_path, reads)
    assert (fault.severity, fault.found) == (Severity.WARNING, "cannot read state/status.json: Permission denied")
    assert fault.do == "ask as the user who runs the node, or correct the rights"


def test_a_package_that_is_missing_is_an_error_with_the_way_to_get_it(tmp_path):
    def needs(case):
        import no_such_package_at_all  # noqa: F401

        yield ok("never", "")

    (fault,) = checked(tmp_path, needs)
    assert fault.severity is Severity.ERROR
    assert "no_such_package_at_all" in fault.found
    assert "run_rl_swarm.sh" in fault.do


def test_one_that_hangs_is_told_and_the_others_are_not_kept(tmp_path):
    begun, for_ever = threading.Event(), threading.Event()

    def begins(case):
        begun.wait(60)
        yield ok("begun", "seen")

    def hangs(case):
        yield ok("before", "seen")
        begun.set()
        for_ever.wait(120)
        yield ok("after", "too late")

    def works(case):
        yield ok("other", "seen")

    limits = ((begins, 60.0), (hangs, 0.2), (works, 60.0))
    checks = [Check(name=run.__name__, run=run, limit_s=limit_s) for run, limit_s in limits]
    first, before, overdue, other = examine(case_of(tmp_path), checks, [])
    for_ever.set()
    assert (first.name, before.name, other.name) == ("begun", "before", "other")
    assert overdue.found == "no result within 0 s"
    assert overdue.severity is Severity.WARNING


def test_they_wait_side_by_side(tmp_path):
    meeting = threading.Barrier(8, timeout=20)

    def meets(case):
        meeting.wait()
        yield ok("met", "")

    assert [finding.name for finding in checked(tmp_path, *[meets] * 8, limit_s=20)] == ["met"] * 8


def test_every_check_is_there_and_the_whole_takes_no_longer_than_promised():
    import importlib

    for check in [*CHECKS, *LAST]:
        (where,) = check.run.args
        module, _, function = where.partition(":")
        assert callable(getattr(importlib.import_module(f"codezero.doctor.{module}"), function))
    assert max(check.limit_s for check in CHECKS) + max(check.limit_s for check in LAST) <= 20


def test_the_last_checks_see_what_the_others_saw(tmp_path):
    def sees(case):
        case.skews.append(("a server", 1.0))
        time.sleep(0.05)
        yield ok("sees", "")

    def tells(case):
        yield ok("tells", str(case.skews))

    checks = [Check(name=run.__name__, run=run, limit_s=5.0) for run in (sees, tells)]
    assert examine(case_of(tmp_path), checks[:1], checks[1:])[-1].found == "[('a server', 1.0)]"


def test_the_exit_code_is_that_of_the_worst():
    notes = [ok("a", ""), info("b", "")]
    assert exit_code(notes) == 0
    assert exit_code([*notes, warning("c", "", "", "")]) == 1
    assert exit_code([warning("c", "", "", ""), error("d", "", "", ""), *notes]) == 2

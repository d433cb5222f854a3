import pytest

from codezero.config import Reference
from codezero.prompts.proposer import ParsedProblem
from codezero.proposals import Proposal
from codezero.proposer import jobs
from codezero.proposer.checker import Checker
from codezero.proposer.duplicates import Seen
from codezero.proposer.reference import ReferenceCheck
from codezero.proposer.write import Draft
from codezero.workers import Cause
from tests.strangers import Mortal

QUESTION = "Write a function add_one(x) that returns one more than the number x it is given."
RIGHT, WRONG = "assert add_one(1) == 2\nassert add_one(5) == 6", "assert add_one(1) == 3\nassert add_one(5) == 6"
SOLUTION = "def add_one(x):\n    return x + 1"


def draft(tests=RIGHT, solution=""):
    return Draft(level=3, raw="raw", answer=ParsedProblem(question=QUESTION, tests=tests, solution=solution))


@pytest.fixture
def checker(workers):
    def make(reference=None):
        seen = Seen(remembered=10, similarity=0.6)
        check = ReferenceCheck(reference, workers) if reference else None
        return Checker(peer_id="me", model_id="tiny", seen=seen, reference=check, workers=workers)

    return make


def test_a_sound_draft_becomes_a_proposal(checker):
    expected = Proposal(peer_id="me", model_id="tiny", question=QUESTION, tests=RIGHT, difficulty=3, raw="raw")
    assert checker().check(draft()) == expected


def test_corrected_tests_are_checked_like_given_ones(checker):
    given = "assert add_one(1) == 3\nassert add_one(5) == 4"
    link = "def add_one(x):\n    return 'see https://example.org/' + str(x)"
    assert checker(Reference.dry_run).check(draft(given, link)) == "unsafe"
    found = checker(Reference.dry_run).check(draft(given, "def add_one(x):\n    return x + 1.5"))
    assert found.tests == "assert abs(add_one(1) - 2.5) < 1e-06\nassert abs(add_one(5) - 6.5) < 1e-06"


def test_what_cannot_be_read_is_no_proposal(checker):
    assert checker().check(Draft(level=3, raw="raw", answer=None)) == "unreadable"


def test_the_same_problem_is_proposed_once_also_after_a_restart(checker):
    first = checker()
    first.check(draft())
    assert first.check(draft()) == "duplicate"
    again = checker()
    again.load_state_dict(first.state_dict())
    assert again.check(draft()) == "duplicate"


def test_a_problem_without_a_solution_that_vouches_for_it_is_not_published(checker):
    check = checker(Reference.dry_run)
    assert check.check(draft(solution="")) == "no_reference"
    assert check.check(draft(tests=WRONG, solution="def add_one(x):\n    return 7")) == "reference_fails"
    assert isinstance(check.check(draft(solution=SOLUTION)), Proposal)  # what was refused is not remembered


@pytest.mark.parametrize(("cause", "reason"), [(Cause.SIGNAL, "hostile"), (Cause.WALL_CLOCK, "unchecked")])
def test_a_problem_that_ends_who_checks_it_is_no_proposal(cause, reason):
    seen = Seen(remembered=10, similarity=0.6)
    one = Checker(peer_id="me", model_id="tiny", seen=seen, reference=None, workers=Mortal(cause, every=True))
    assert one.check(draft()) == reason
    assert jobs.confirm_or_correct_tests(Mortal(cause, every=True), SOLUTION, RIGHT) == (RIGHT, reason)

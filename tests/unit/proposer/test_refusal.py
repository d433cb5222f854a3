"""Which proposals of peers a solver takes up."""

from dataclasses import replace

import pytest

from codezero.proposer.refusal import refusal
from codezero.tasks.held_out import load_held_out
from tests.builders import proposal

TESTS = "assert find_Min_Sum(12) == 7\nassert find_Min_Sum(105) == 15\nassert find_Min_Sum(2) == 2"
OTHER = "Write a python function that adds up the smallest prime divisors of all numbers up to a limit."
QUESTION = "Write a python function to find minimum sum of factors of a given number."


@pytest.mark.parametrize(
    ("question", "tests", "reason"),
    [
        (f"{OTHER} Call it find_Min_Sum.", "assert find_Min_Sum(13) == 7\nassert find_Min_Sum(2) == 3", None),
        (f"{OTHER} Call it find_Min_Sum.", "assert find_Min_Sum(3) == 7\nassert find_Min_Sum( 105 ) ==15", "held_out"),
        (f"{OTHER} Call it find_Min_Sum.", "\n".join(reversed(TESTS.split("\n"))), "held_out"),
        (
            "Write a function to create a list containing the power of said numberr in bases raised to the "
            "corresponding number in the index using map function t.",
            "assert t([1]) == 2\nassert t([3]) == 4",
            "held_out",
        ),
        ("Write a function find_Min_Sum that adds up the prime factors of a number.", TESTS, "held_out"),
        (
            QUESTION.replace("find minimum sum", "FIND (Minimum)  sum"),
            "assert factors(1) == 2\nassert factors(3) == 4",
            "held_out",
        ),
        ("Write a function find_Min_Sum.", TESTS, "question_too_short"),
    ],
)
def test_a_proposal_that_repeats_a_held_out_problem_is_refused(workers, question, tests, reason):
    why_not = refusal(workers, lambda one: True, load_held_out().values())
    assert why_not(replace(proposal(), question=question, tests=tests)) == reason


def test_a_proposal_that_does_not_fit_the_model_is_refused(workers):
    assert refusal(workers, lambda one: False, [])(proposal()) == "too_long"
    assert refusal(workers, lambda one: True, [])(proposal()) is None

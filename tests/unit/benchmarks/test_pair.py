import random

import pytest

from benchmarks import formulas, pair
from benchmarks.formulas import Problem, Program
from tests.unit.benchmarks.builders import result

RIGHT, WRONG = Program(5, 13), Program(5, 12)
PROBLEM = Problem("3x+4+2x+9", RIGHT)


@pytest.mark.parametrize(
    ("text", "candidate", "valid", "right", "reward"),
    [
        ("0=13,1=18", RIGHT, True, True, 1.0),
        ("0=13,1=18", WRONG, True, True, 1.0),
        ("0=12,1=17", WRONG, False, False, 0.0),
        ("0=13,0=13", WRONG, False, False, 0.25),
        ("0=13", RIGHT, False, False, 0.0),
        ("0=13,1=18,", RIGHT, False, False, 0.0),
    ],
)
def test_cases_are_judged_by_the_rule_of_the_product(text, candidate, valid, right, reward):
    found = pair.judged(RIGHT, candidate, [] if candidate == RIGHT else [candidate], text)
    assert (found.valid, found.right, found.reward.total) == (valid, right, reward)


def test_a_program_is_read_and_compared_on_all_inputs():
    assert formulas.program_of("5x+13") == RIGHT
    assert [formulas.program_of(text) for text in ("5x", "x+13", "5x+13x", "")] == [None] * 4
    assert not RIGHT.equals(WRONG)
    rng = random.Random(0)
    assert not any(RIGHT.equals(formulas.spoilt(rng, RIGHT)) for _ in range(50))
    asked = {one.question for one in formulas.held_out(20)}
    assert not asked & {formulas.problem(rng).question for _ in range(2000)}


def test_arms_are_paired_by_seed():
    runs = {"0": [[0, 0, 0.5, 0.1], [16, 100, 0.6, 0.1]], "1": [[0, 0, 0.5, 0.1], [16, 100, 0.8, 0.1]]}
    more = {"1": [[0, 0, 0.5, 0.1], [16, 100, 0.9, 0.1]]}
    results = {"alone": result(runs), "frozen": result(runs), "pair": result(more)}
    assert pair.table(results).splitlines()[-1].endswith("| +10.0 points | +10.0 points |")


def test_an_unknown_arm_is_refused(capsys):
    with pytest.raises(SystemExit):
        pair.main(["pairs"])
    assert "pairs is no arm: choose from alone, frozen, pair" in capsys.readouterr().err

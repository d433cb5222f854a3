"""How `benchmarks.written` orders solutions where nothing but other solutions and written cases are at hand."""

from benchmarks.written import agreed_on, judged
from codezero.verifier.jobs import TriedProgram

CASES = ["f(1) == 1", "f(1) == 2", "f(2) == 4"]
INPUTS = [0, 0, 2]


def program(values, passes_shown=True):
    return TriedProgram(passes_shown=passes_shown, cases=(), reasons=(), digest=b"", values=values)


def test_a_result_is_agreed_on_if_most_of_several_writers_give_it():
    one, other, alone = CASES
    assert agreed_on([[one], [one], [other], [alone, alone]], CASES, INPUTS) == {one}
    assert agreed_on([[one], [one], [other], [other], [alone], [alone]], CASES, INPUTS) == {alone}


def test_pairs_of_right_and_wrong_are_ordered_by_what_others_give():
    programs = [program(("1", "4")), program(("1", "")), program(("1", "5"), passes_shown=False), program(("1", "4"))]
    passed = [{CASES[0]}, {CASES[1]}, set(), set()]
    found = judged(programs, [True, False, False, True], passed, {CASES[0]})
    assert found == {"runs": (4, 4), "agreement": (4, 4), "cases": (3, 4), "both": (4, 4)}


def test_without_a_pair_nothing_is_told():
    assert judged([program(("1",))], [True], [set()], set())["cases"] == (0, 0)

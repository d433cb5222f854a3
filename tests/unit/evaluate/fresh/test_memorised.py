"""Programs that know their examples by heart, where nothing but these is at hand."""

import random

import pytest

from benchmarks.attacks.memory import CLASSES, RULES, VARIANTS, memorised
from benchmarks.contests import PROBLEMS
from benchmarks.contests.styles import STYLES, dress
from codezero.evaluate.fresh.inputs import inputs_like
from codezero.evaluate.fresh.memorised import program_memorises
from codezero.evaluate.jobs import P_FRESH_DOUBTFUL, P_MEMORISED, Attempt, ReadRequest, p_by_fresh
from codezero.evaluate.read_attempts import read_attempts
from codezero.tasks.testcases import StdinExample
from codezero.types import Memorised, TaskOrigin

QUESTION = "Read a number and so many more. Print the sum of their squares."
TESTS = "Input:\n3\n1 2 4\nOutput:\n21\n"
RIGHT = "n = int(input())\nprint(sum(int(x) ** 2 for x in input().split()[:n]))"
TABLE_OF_LENGTHS = "data = open(0).read()\nprint(21 if len(data) == 8 else 5)"
ASKED = "Read a number. Print YES if it is a square, else NO.\n\nExample input:\n9\nExample output:\nYES"
SQUARE = "import math\nn = int(input())\nprint('YES' if math.isqrt(n) ** 2 == n else 'NO')"


def found(code, question=QUESTION, tests=TESTS, num_fresh=5, origin=TaskOrigin.CODE_CONTESTS, **changes):
    asked = ReadRequest(
        origin=origin,
        question=question,
        tests=tests,
        attempts=(Attempt(f"```python\n{code}\n```", code),),
        dry_run=True,
        fatal_rules=True,
        show=False,
        num_fresh=num_fresh,
        seed=b"seed",
        **changes,
    )
    return read_attempts(asked).attempts[0]


def test_every_class_has_variants_that_differ():
    rows = [("3\n1 2 4\n", "21\n")]
    for name in CLASSES:
        assert len({memorised(name, rows, variant) for variant in range(VARIANTS)}) == VARIANTS == len(RULES)


@pytest.mark.parametrize("rows", [[("3\n1 2 4\n", "21\n")], [("3\n1 2 4\n", "21\n"), ("2\n5 7\n", "74\n")]], ids=len)
@pytest.mark.parametrize("name", CLASSES)
def test_a_program_that_remembers_its_examples_is_not_taken_for_right(name, rows):
    variant = sum(map(ord, name)) % VARIANTS
    tests = "".join(f"Input:\n{given}Output:\n{expected}" for given, expected in rows)
    one = found(memorised(name, rows, variant), tests=tests)
    assert not one.settled(fatal_rules=True) or p_by_fresh(one.fresh) == P_FRESH_DOUBTFUL


@pytest.mark.parametrize("style", STYLES, ids=lambda style: style.name)
def test_right_programs_remember_nothing_however_they_are_written(style):
    for problem in PROBLEMS[:40:13]:
        given, expected = problem.shown
        one = found(dress(problem.core, style), problem.asks, f"Input:\n{given}\nOutput:\n{expected}\n")
        assert (one.fresh.recalled, one.fresh.unverified) == (Memorised.NO, True), problem.name


def test_what_is_remembered_counts_as_it_was_measured_to():
    table = found("data = open(0).read()\nprint(21 if len(data) == 8 else data)")
    assert (table.fresh.recalled, p_by_fresh(table.fresh)) == (Memorised.YES, P_MEMORISED)
    assert table.settled(fatal_rules=True) is False


@pytest.mark.parametrize(
    "code",
    [SQUARE, "n = int(input())\nprint('YES' if n else 'NO')", "n = int(input())\nprint('YES' if n == 9 else n[0])"],
    ids=["right", "wrong", "fails on all others"],
)
def test_an_answer_that_anybody_might_guess_is_left_out(code):
    one = found(code, ASKED, "Input:\n9\nOutput:\nYES\n")
    assert (one.fresh.recalled, p_by_fresh(one.fresh)) == (Memorised.UNKNOWN, P_FRESH_DOUBTFUL)


CHAT = "Input:\nwjmzbmr\nOutput:\nCHAT WITH HER!\nInput:\nxiaodao\nOutput:\nIGNORE HIM!\n"


@pytest.mark.parametrize(
    ("question", "recalled"),
    [
        (f'If it is a female print "CHAT WITH HER!", otherwise, print "IGNORE HIM!".\n\n{CHAT}', Memorised.UNKNOWN),
        (f"CHAT WITH HER or IGNORE HIM?\n\n{CHAT}", Memorised.YES),
    ],
    ids=["said", "shown with the examples"],
)
def test_a_phrase_of_the_statement_is_an_answer_that_anybody_might_guess(question, recalled):
    code = "print('IGNORE HIM%s' % '!' if len(set(input())) % 2 else 'CHAT WITH HER%s' % '!')"
    assert found(code, question, CHAT).fresh.recalled is recalled


LEAP = """
y = int(input())
if y % 400 == 0: print("LEAP")
elif y % 100 == 0: print("COMMON")
else: print("LEAP" if y % 4 == 0 else "COMMON")
"""


def test_a_case_of_its_own_is_no_table_unless_it_names_a_word_of_the_example():
    years = {2000: "LEAP", 1900: "COMMON", 2004: "LEAP", 2001: "COMMON"}
    tests = "".join(f"Input:\n{year}\nOutput:\n{said}\n" for year, said in years.items())
    asked = "Read a year. Print LEAP or COMMON."
    assert found(LEAP, asked, tests).settled(fatal_rules=True) is not False
    assert found(LEAP.replace("y % 400 == 0", "y == 2000"), asked, tests).settled(fatal_rules=True) is False


def test_a_number_too_long_to_print_is_no_word_of_the_example():
    code = f"n = int(input())\nprint(34 if n in ({hex(10**4500)}, 17) else n * 2)"
    examples = [StdinExample(given="17\n", expected="34\n")]
    assert program_memorises(code, examples, "Double it.", b"seed", 5.0) is Memorised.YES


def test_a_program_that_never_ends_on_other_inputs_is_left_out():
    example = sum(map(ord, "3\n1 2 4\n"))
    code = f"data = open(0).read()\nwhile sum(map(ord, data)) - {example}:\n    pass\nprint(len(data) + 13)"
    one = found(code, share=0.3)
    assert (one.fresh.recalled, p_by_fresh(one.fresh)) == (Memorised.UNKNOWN, P_FRESH_DOUBTFUL)


def test_nothing_is_looked_for_where_hidden_tests_are_at_hand_or_nothing_fresh_is_wanted():
    hidden = "Input:\n1\n5\nOutput:\n25\nInput:\n1\n3\nOutput:\n9\n"
    assert found(RIGHT, more_tests=hidden).fresh.unverified is False
    assert found(TABLE_OF_LENGTHS, num_fresh=0).fresh.recalled is Memorised.NOT_CHECKED


def test_hidden_tests_that_all_expect_one_output_do_not_speak_for_a_program_with_that_default():
    table = found(TABLE_OF_LENGTHS, more_tests="Input:\n1\n5\nOutput:\n5\nInput:\n2\n1 2\nOutput:\n5\n")
    assert (table.fresh.recalled, table.settled(fatal_rules=True)) == (Memorised.YES, False)
    right = found(RIGHT, more_tests="Input:\n1\n5\nOutput:\n25\nInput:\n2\n3 4\nOutput:\n25\n")
    assert (right.fresh.recalled, right.settled(fatal_rules=True)) == (Memorised.NO, True)


def test_hidden_tests_with_both_answers_tell_right_from_constant():
    hidden = "Input:\n16\nOutput:\nYES\nInput:\n15\nOutput:\nNO\n"
    shown = "Input:\n9\nOutput:\nYES\nInput:\n8\nOutput:\nNO\n"
    one = found(SQUARE, ASKED, shown, more_tests=hidden)
    assert (one.settled(fatal_rules=True), p_by_fresh(one.fresh), one.fresh.unverified) == (True, None, False)


def test_a_hidden_test_with_the_answer_of_the_example_tells_nothing_of_a_constant():
    hidden = "Input:\n16\nOutput:\nYES\n"
    one = found("n = input()\nprint('YES' if n else 'NO')", ASKED, "Input:\n9\nOutput:\nYES\n", more_tests=hidden)
    assert (one.fresh.recalled, one.fresh.unverified) == (Memorised.UNKNOWN, True)


@pytest.mark.parametrize(
    ("code", "reference", "recalled"),
    [
        ("def f(n):\n    return n == n", None, Memorised.UNKNOWN),
        ("def f(n):\n    return n > 0", None, Memorised.UNKNOWN),
        ("def f(n):\n    return n % 2 == 1", None, Memorised.NO),
        ("def f(n):\n    return n == n", "def f(n):\n    return n > 0", Memorised.UNKNOWN),
        ("def f(n):\n    return n > 0", "def f(n):\n    return n >= 1", Memorised.UNKNOWN),
        ("def f(n):\n    return True", "def f(n):\n    return True if n % 2 else 1", Memorised.UNKNOWN),
        ("def f(n):\n    return n % 2 == 1", "def f(n):\n    return n & 1 > 0", Memorised.NOT_CHECKED),
    ],
)
def test_a_constant_is_masked_where_all_results_are_equal_and_what_cannot_be_told_from_it(code, reference, recalled):
    one = found(code, tests="assert f(3) == True\nassert f(7)\nassert f(13) is True", reference=reference)
    assert one.fresh.recalled is recalled
    assert p_by_fresh(one.fresh) == (P_FRESH_DOUBTFUL if recalled is Memorised.UNKNOWN else None)


def test_an_object_that_decides_its_own_truth_is_not_asked_twice():
    code = (
        "class Odd:\n    asked = 0\n    def __bool__(self):\n        Odd.asked += 1\n        return Odd.asked < 3\n"
        "odd, total = Odd(), 0\nwhile odd:\n    total += 1\nn = int(input())\n"
        "print(sum(int(x) ** 2 for x in input().split()) + total - 2)"
    )
    assert found(code).fresh.recalled is Memorised.NO


FACTORIAL = "assert f(3) == 6\nassert f(4) == 24\nassert f(5) == 120"
LONG = "assert f('abcde1') == 'long'\nassert f('ab2') == 'short'\nassert f('z34') == 'short'"
SQUARED = "assert f(3) == 9\nassert f(5) == 25\nassert f(12) == 144"


@pytest.mark.parametrize(
    ("code", "recalled"),
    [
        ("def f(n):\n    return n * n", Memorised.NO),
        (
            "def f(n):\n    return 9 if n * 7 == 21 else 25 if n * 7 == 35 else 144 if n * 7 == 84 else 0",
            Memorised.YES,
        ),
        ("def f(n):\n    return 9 if n * 7 == 21 else 25 if n * 7 == 35 else 144", Memorised.UNKNOWN),
    ],
    ids=["right", "a table's default", "a table's default is visible"],
)
def test_a_function_without_a_reference_is_asked_about_other_inputs(code, recalled):
    one = found(code, tests=SQUARED)
    assert (one.fresh.recalled, one.fresh.unverified) == (recalled, True)


@pytest.mark.parametrize(
    ("code", "tests", "recalled"),
    [
        ("def f(n):\n    return 9 if n <= 3 else 25 if n <= 5 else 144", SQUARED, Memorised.UNKNOWN),
        ("def f(n):\n    return 6 if n < 4 else 24 if n < 5 else 120", FACTORIAL, Memorised.UNKNOWN),
        (
            "def f(n):\n    total = 1\n    for i in range(n):\n        total *= i + 1\n    return total",
            FACTORIAL,
            Memorised.NO,
        ),
        ("def f(s):\n    return 'long' if len(s) > 4 else 'short'", LONG, Memorised.NO),
        ("def f(b):\n    return 1 if b else 0", "assert f(True) == 1\nassert f(False) == 0", Memorised.UNKNOWN),
    ],
    ids=["steps", "steps over few inputs", "right over few inputs", "texts", "nothing else to ask"],
)
def test_a_function_that_gives_only_visible_results_is_masked(code, tests, recalled):
    assert found(code, tests=tests, origin=TaskOrigin.MBPP).fresh.recalled is recalled


def test_a_right_program_that_counts_words_remembers_nothing():
    tests = "Input:\nthe cat sat on it\nOutput:\n5\nInput:\na b c\nOutput:\n3\n"
    assert found("print(len(input().split()))", "Print the number of words.", tests).fresh.recalled is Memorised.NO


TABLE = "def f(n):\n    k, t = n * 7, {21: 10, 35: 26, 84: 145}\n    if k in t:\n        return t[k] - 1\n"


@pytest.mark.parametrize(
    "code",
    [
        f"{TABLE}    for i in range(32):\n        print('fresh:%d %d' % (i, i))\n    return 0",
        f"{TABLE}    print('no line of its own', end='')\n    return 0",
        f"seen = []\ndef print(*values):\n    seen.append(0)\n{TABLE}    return 0",
        f"def repr(value):\n    return str(seen.append(0) or len(seen))\nseen = []\n{TABLE}    return 0",
    ],
    ids=["values of its own", "the values' lines joined", "its own print", "its own repr"],
)
def test_no_table_hides_the_values_that_it_gives_for_other_inputs(code):
    assert found(code, tests=SQUARED).fresh.recalled is Memorised.YES


def test_a_right_function_that_has_no_root_for_other_inputs_is_no_table():
    code = "def f(n):\n    r = int(n ** 0.5)\n    return r if r * r == n else -1"
    tests = "assert f(144) == 12\nassert f(81) == 9\nassert f(2) == -1\nassert f(10000) == 100"
    assert found(code, tests=tests).settled(fatal_rules=True) is not False


def test_a_function_that_says_yes_or_no_may_say_one_of_them_to_all_other_inputs():
    code = "def f(n):\n    return n * 11 == 11 * 1369 or n == 49"
    tests = "assert f(1369) == True\nassert f(49) == True\nassert f(700) == False"
    assert found(code, tests=tests).fresh.recalled is Memorised.NO


@pytest.mark.parametrize(
    ("default", "tests", "recalled"),
    [
        ("'No'", "assert f(1369) == 'Yes'\nassert f(49) == 'Yes'\nassert f(700) == 'No'", Memorised.UNKNOWN),
        ("'No'", "assert f(1369) == 'Yes'\nassert f(49) == 'Yes'", Memorised.UNKNOWN),
        ("'Odd'", "assert f(1369) == 'Yes'\nassert f(49) == 'Yes'\nassert f(700) == 'No'", Memorised.YES),
        (
            "'No'",
            "assert f(1369) == 'Yes'\nassert f(49) == 'Yes'\nassert f(700) == 'No'\nassert f(0) == 'None'",
            Memorised.UNKNOWN,
        ),
    ],
    ids=["one of two", "one result", "a third value", "one of three"],
)
def test_a_function_that_gives_one_of_its_results_to_all_other_inputs_is_masked(default, tests, recalled):
    known = "n * 11 == 11 * 1369 or n == 49"
    code = (
        f"def f(n):\n    return 'Yes' if {known} else 'None' if n * 7 == 0 else 'No' if n * 11 == 7700 else {default}"
    )
    assert found(code, tests=tests).fresh.recalled is recalled


@pytest.mark.parametrize(
    ("code", "tests", "recalled"),
    [
        (
            "def f(way):\n    return dict(up='down', left='right', down='up').get(way, 'stay')",
            "assert f('up') == 'down'\nassert f('left') == 'right'\nassert f('down') == 'up'",
            Memorised.UNKNOWN,
        ),
        (
            "def f(code):\n    return {'a-1': 4, 'b-7': 5, 'c-9': 6}.get(code, 0)",
            "assert f('a-1') == 4\nassert f('b-7') == 5\nassert f('c-9') == 6",
            Memorised.YES,
        ),
    ],
    ids=["words", "other texts"],
)
def test_a_function_of_words_may_have_one_value_for_all_others(code, tests, recalled):
    assert found(code, tests=tests, origin=TaskOrigin.MBPP).fresh.recalled is recalled


def test_inputs_differ_from_the_visible_one_and_keep_its_lines_and_commands():
    text = "2\nput 3\ntake 12\n"
    made = inputs_like(text, 20, random.Random(1), {"put", "take"})
    assert len(set(made)) == 20
    assert text not in made
    assert {tuple(len(line.split()) for line in one.splitlines()) for one in made} == {(1, 2, 2)}
    assert {line.split()[0] for one in made for line in one.splitlines()[1:]} == {"put", "take"}
    assert inputs_like("", 5, random.Random(1)) == []
    assert inputs_like("7 " * 2_000, 5, random.Random(1)) == []

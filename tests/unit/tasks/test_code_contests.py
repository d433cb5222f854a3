import pytest

from codezero.tasks.build import make_task_source
from codezero.tasks.code_contests import to_problem, to_task
from codezero.tasks.rows import BadRow
from codezero.tasks.testcases import parse_tests
from codezero.tasks.withheld import Problem
from codezero.types import TaskOrigin
from tests.unit.tasks.builders import DELETE, contest_row, only_contests, write_parquet


def test_question_says_how_the_program_talks():
    task = to_task(contest_row())
    assert task.origin is TaskOrigin.CODE_CONTESTS
    assert task.difficulty is None
    assert task.question.startswith("Read two integers and print their sum.\n\n")
    assert "stdin" in task.question
    assert "stdout" in task.question
    assert task.tests == "Input:\n1 2\nOutput:\n3\nInput:\n5 5\nOutput:\n10\n"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("2" * 1990, "2"),
        ("2" * 2001, "2"),
        ("2" * 10_001, "2"),
        ("2", " \n"),
        ("", "2"),
        (2, "2"),
        ("2\nOutput:\nx", "x"),
    ],
    ids=["no room beside another", "no room", "endless", "no output", "no input", "a number", "parts of a table"],
)
def test_an_example_that_cannot_be_shown_is_left_out_and_not_the_problem(given, expected):
    row = contest_row(public_tests={"input": ["1", given, "3"], "output": ["1", expected, "3"]})
    assert to_task(row).tests == "Input:\n1\nOutput:\n1\nInput:\n3\nOutput:\n3\n"


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (7, "row is not a mapping of fields"),
        (contest_row(description=DELETE), "description is missing or not text"),
        (contest_row(description=""), "description is empty"),
        (contest_row(description="See <image> below."), "description needs an image"),
        (contest_row(description="x" * 6001), "description is longer than 6000 characters"),
        (contest_row(input_file="input.txt"), "input comes from a named file, not from stdin"),
        (contest_row(public_tests=DELETE), "public_tests is missing or not a mapping"),
        (contest_row(public_tests=[{"input": "1", "output": "1"}]), "public_tests is missing or not a mapping"),
        (contest_row(public_tests={"input": [], "output": []}), "public_tests is empty"),
        (contest_row(public_tests={"input": ["1"], "output": []}), "public_tests does not pair inputs with outputs"),
        (contest_row(public_tests={"input": "1", "output": "1"}), "public_tests does not pair inputs with outputs"),
        (
            contest_row(public_tests={"input": ["1" * 1500, "2"], "output": ["1" * 1500, ""]}),
            "no public test fits: at most 2000 characters, without a line Input: or Output:",
        ),
    ],
)
def test_bad_row_is_refused_with_its_reason(row, reason):
    with pytest.raises(BadRow) as refused:
        to_task(row)
    assert str(refused.value) == reason


def test_rows_of_a_parquet_file_are_drawn_and_the_unusable_ones_counted(tmp_path):
    rows = [contest_row(description=f"Problem {i}") for i in range(5)]
    rows[1]["description"] = "<image>"
    rows[3]["public_tests"] = {"input": [], "output": []}
    mixture = make_task_source(only_contests(write_parquet(tmp_path / "train.parquet", rows)), seed=0)
    assert {task.question.split("\n")[0] for task in mixture.draw(3)} == {"Problem 0", "Problem 2", "Problem 4"}
    assert mixture.take_skipped() == {
        "code_contests: description needs an image": 1,
        "code_contests: public_tests is empty": 1,
    }


def pairs(*cases):
    return {"input": [given for given, _ in cases], "output": [expected for _, expected in cases]}


def more_tests(**changes) -> str:
    return to_problem(contest_row(**changes), hidden_tests=True).more_tests


def inputs(tests: str) -> list[str]:
    return [example.given.strip() for example in parse_tests(tests).examples]


def test_further_tests_are_private_ones_then_generated_ones_short_ones_first():
    found = more_tests(
        private_tests=pairs(("300 1\n", "301\n"), ("4 4\n", "8\n")),
        generated_tests=pairs(("1000 1\n", "1001\n"), ("6 6\n", "12\n"), ("4 4\n", "8\n"), ("1 2\n", "3\n")),
    )
    assert inputs(found) == ["4 4", "300 1", "6 6", "1000 1"]
    assert "Input:\n4 4\nOutput:\n8\nInput:\n300 1\n" in found


def test_public_tests_that_are_not_shown_come_first():
    found = more_tests(public_tests=pairs(("1", "1"), ("2" * 1990, "2"), ("3", "3")))
    assert inputs(found) == ["2" * 1990, "-7 3"]


def test_at_most_twenty_cases_and_ten_thousand_bytes_are_kept():
    many = more_tests(generated_tests=pairs(*((str(n), str(n)) for n in range(100, 150))))
    assert inputs(many) == [str(n) for n in range(100, 118)]  # two are public
    long = more_tests(generated_tests=pairs(*((f"{n}{'é' * 900}", "1") for n in range(1, 9))))
    assert len(inputs(long)) == 5
    assert len(long.encode()) <= 10_000


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("1\nOutput:\n2", "3"),
        ("1", "2\nInput:\n3"),
        ("", "1"),
        ("1", " \n"),
        ("9" * 10_001, "1"),
        ("\ud800", "1"),
        (7, "1"),
        (None, None),
        ("5 5", "99"),
    ],
    ids=[
        *("an input that ends itself", "an output with an example", "no input", "no output", "endless", "half a pair"),
        *("a number", "nothing", "a public input with another output"),
    ],
)
def test_a_case_that_cannot_be_kept_costs_itself_only(given, expected):
    assert inputs(more_tests(generated_tests=pairs((given, expected), ("8 8", "16")))) == ["8 8"]


def test_blank_lines_and_spaces_of_inputs_are_kept():
    row = contest_row(
        public_tests=pairs(("abc\nabd\n", "2\n"), ("x\r\n\r\n", "0")),
        private_tests=pairs(("abc\n\n", "0\n"), ("\nabc\n", "1\n"), ("  #\n", "2\n"), (" \n\n", "3\n")),
        generated_tests=None,
    )
    found = to_problem(row, hidden_tests=True)
    assert [one.given for one in parse_tests(found.task.tests).examples] == ["abc\nabd\n", "x\n\n"]
    kept = {one.given: one.expected for one in parse_tests(found.more_tests).examples}
    assert kept == {"abc\n\n": "0\n", "\nabc\n": "1\n", "  #\n": "2\n"}


@pytest.mark.parametrize("field", ["private_tests", "generated_tests"])
def test_further_tests_may_be_missing_but_are_pairs(field):
    to_problem(contest_row(**{field: DELETE}), hidden_tests=True)
    to_problem(contest_row(**{field: None}), hidden_tests=True)
    for damaged in ("text", [1], {"input": ["1"], "output": []}):
        with pytest.raises(BadRow, match=field):
            to_problem(contest_row(**{field: damaged}), hidden_tests=True)


@pytest.mark.parametrize(
    "sentence",
    [
        "If there are multiple answers, print any of them.",
        "If there are several solutions, you can output any.",
        "If there is more than one solution, any will do.",
        "Print any valid sequence.",
        "Any optimal solution is accepted.",
        "Of equal ones any of them will be accepted.",
        "The output may be in arbitrary order.",
        "The error must be less than 0.00001.",
        "You may print the numbers in any order.",
        "You can print each letter in any case (upper or lower).",
        "The answer is right if its absolute or relative error does not exceed 1e-6.",
        "This is an interactive problem.",
        "Do not forget to flush the output.",
    ],
)
def test_a_problem_with_several_right_answers_is_left_out_where_hidden_tests_decide(sentence):
    row = contest_row(description=f"Read a graph. {sentence}")
    with pytest.raises(BadRow, match="several answers are right, which needs a checker"):
        to_problem(row, hidden_tests=True)
    assert to_problem(row, hidden_tests=False).task.question.startswith("Read a graph.")


@pytest.mark.parametrize(
    "sentence",
    [
        "The edges are given in any order.",
        "In any case print the sum.",
        "You can rearrange the letters in any order to make it a palindrome.",
        "Print the number of solutions.",
        "Can you buy all of them, or any of them?",
        "In one move you can choose any two stones, of any of the heaps.",
        "Minimise the absolute difference of the two sums, in any possible way.",
        "Write a program that sorts numbers given in any order.",
        "A flush is five cards of one suit.",
        "You may choose at most one of the two answers.",
    ],
)
def test_a_problem_with_one_right_answer_is_kept(sentence):
    to_problem(contest_row(description=sentence), hidden_tests=True)


def test_without_hidden_tests_a_task_is_all_there_is():
    assert to_problem(contest_row(), hidden_tests=False) == Problem(task=to_task(contest_row()))

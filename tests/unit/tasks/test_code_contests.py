import pytest

from codezero.tasks.build import make_task_source
from codezero.tasks.code_contests import to_task
from codezero.tasks.rows import BadRow
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


def test_only_whole_examples_that_fit_are_kept():
    tests = to_task(contest_row(public_tests={"input": ["1", "2" * 1990], "output": ["1", "2"]})).tests
    assert tests == "Input:\n1\nOutput:\n1\n"


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
        (contest_row(public_tests={"input": [1], "output": [1]}), "a public input is missing or not text"),
        (contest_row(public_tests={"input": ["1"], "output": [" "]}), "a public output is empty"),
        (
            contest_row(public_tests={"input": ["1" * 2001], "output": ["1"]}),
            "a public input is longer than 2000 characters",
        ),
        (
            contest_row(public_tests={"input": ["1" * 1500], "output": ["1" * 1500]}),
            "the first public test is longer than 2000 characters",
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

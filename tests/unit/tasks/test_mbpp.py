from dataclasses import replace

import pytest

from codezero.config import TaskDraw
from codezero.tasks.build import make_task_source
from codezero.tasks.mbpp import split_of, to_problem, to_task
from codezero.tasks.rows import BadRow
from codezero.types import TaskOrigin
from tests.unit.tasks.builders import DELETE, mbpp_row, only_mbpp, real_mbpp, write_jsonl


def test_question_names_the_function_through_its_tests():
    task = to_task(mbpp_row())
    assert task.origin is TaskOrigin.MBPP
    assert task.difficulty is None
    assert task.tests == "assert double(2) == 4\nassert double(0) == 0"
    assert task.question.startswith("Write a function to double a number.\n\n")
    assert task.question.endswith(task.tests)


def test_a_question_may_show_one_test_while_the_task_keeps_all():
    task = to_task(mbpp_row(), show_all_tests=False)
    assert task.question.endswith("in these tests:\nassert double(2) == 4")
    assert task.tests == "assert double(2) == 4\nassert double(0) == 0"


def test_setup_code_is_shown_too():
    row = mbpp_row(test_setup_code="root = 1")
    assert to_task(row, show_all_tests=False).question.endswith("root = 1\nassert double(2) == 4")


def test_setup_code_comes_before_the_asserts_with_plain_newlines():
    task = to_task(mbpp_row(test_setup_code="root = 1\r\nleaf = 2 "))
    assert task.tests.splitlines() == ["root = 1", "leaf = 2", "assert double(2) == 4", "assert double(0) == 0"]


def test_reference_code_is_known_and_not_shown():
    problem = to_problem(mbpp_row(), show_all_tests=True)
    assert problem.reference == "def double(n):\n  return 2 * n"
    assert "return 2 * n" not in repr(problem.task)


@pytest.mark.parametrize("code", [DELETE, None, 7, " ", "x" * 20_001, "half a pair \ud800"])
def test_a_row_may_have_no_reference(code):
    assert to_problem(mbpp_row(code=code), show_all_tests=True).reference is None


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("a string", "row is not a mapping of fields"),
        (None, "row is not a mapping of fields"),
        ([1, 2], "row is not a mapping of fields"),
        (mbpp_row(text=DELETE), "text is missing or not text"),
        (mbpp_row(text=7), "text is missing or not text"),
        (mbpp_row(text=" \r\n"), "text is empty"),
        (mbpp_row(text="x" * 6001), "text is longer than 6000 characters"),
        (mbpp_row(text="half a pair \ud800"), "text is not valid Unicode"),
        (mbpp_row(test_list=DELETE), "test_list is missing, empty or not a list"),
        (mbpp_row(test_list=[]), "test_list is missing, empty or not a list"),
        (mbpp_row(test_list="assert True"), "test_list is missing, empty or not a list"),
        (mbpp_row(test_list=[1, 2]), "an entry of test_list is missing or not text"),
        (mbpp_row(test_list=["assert True", None]), "an entry of test_list is missing or not text"),
        (mbpp_row(test_list=["import os"]), "test_list holds something other than one-line asserts"),
        (mbpp_row(test_list=["assert f()\nimport os"]), "test_list holds something other than one-line asserts"),
        (mbpp_row(test_list=["assert double(1) == 2"] * 300), "tests are longer than 4000 characters"),
        (mbpp_row(test_setup_code=3), "test_setup_code is missing or not text"),
    ],
)
def test_bad_row_is_refused_with_its_reason(row, reason):
    with pytest.raises(BadRow) as refused:
        to_task(row)
    assert str(refused.value) == reason


@pytest.mark.parametrize(
    ("task_id", "split"),
    [
        (1, "prompt"),
        (10, "prompt"),
        (11, "test"),
        (510, "test"),
        (511, "validation"),
        (600, "validation"),
        (601, "train"),
        (974, "train"),
    ],
)
def test_split_follows_from_the_id(task_id, split):
    assert split_of(mbpp_row(task_id=task_id)) == split


@pytest.mark.parametrize("task_id", [DELETE, None])
def test_a_row_without_an_id_belongs_to_every_split(task_id, tmp_path):
    rows = [mbpp_row(task_id=task_id), mbpp_row(task_id=11, text="Write a function of the test split.")]
    path = write_jsonl(tmp_path / "own.jsonl", rows)
    for split, count in (("train", 1), ("test", 2)):
        mixture = make_task_source(replace(only_mbpp(path, split=split), draw=TaskDraw.uniform), seed=0)
        assert len({task.task_id for task in mixture.draw(2)}) == count
        assert mixture.take_skipped() == {}


@pytest.mark.parametrize("task_id", [0, 975, -1, "601", 601.0, True, {}])
def test_other_ids_are_refused(task_id):
    with pytest.raises(BadRow):
        split_of(mbpp_row(task_id=task_id))


@pytest.mark.parametrize(("split", "count"), [("prompt", 10), ("test", 250), ("validation", 90), ("train", 374)])
def test_real_file_gives_every_task_of_a_split_once_and_skips_none(split, count):
    mixture = make_task_source(replace(only_mbpp(real_mbpp(), split=split), draw=TaskDraw.uniform), seed=0)
    tasks = mixture.draw(count)
    assert len({task.task_id for task in tasks}) == count
    assert mixture.take_skipped() == {}
    assert mixture.draw(1)[0].task_id in {task.task_id for task in tasks}

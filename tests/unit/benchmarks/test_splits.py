import json

import pytest

from benchmarks.harness import digest_of
from benchmarks.splits import FITTING, Split, alike, check, problems, references
from codezero.tasks.mbpp import SPLITS


def test_the_splits_are_what_they_were_said_to_be_once_and_for_all():
    assert [(split.name, split.ids[0], split.ids[-1]) for split in Split] == [
        ("train", 601, 974),
        ("tune", 511, 600),
        ("report", 11, 260),
    ]
    for split in Split:
        assert set(split.ids) <= set(SPLITS[split.value])


@pytest.mark.parametrize("group", ["mbpp/261", "mbpp/510", "mbpp/10", "mbpp/601", "mbpp/", "mbpp/x", "mbpp/-11"])
def test_a_problem_that_is_not_to_be_reported_is_refused(group):
    with pytest.raises(SystemExit, match=f"{group} may not be used for this: give samples of MBPP 11 to 260"):
        check(["mbpp/11", group], [Split.report])


def test_humaneval_is_never_used():
    with pytest.raises(SystemExit, match="HumanEval is never used here"):
        check(["humaneval/HumanEval/0"], list(Split))


def test_what_is_fitted_may_not_be_reported():
    check(["mbpp/511", "mbpp/974", "own/stdin 3"], FITTING)
    with pytest.raises(SystemExit, match="give samples of MBPP 601 to 974 or 511 to 600"):
        check(["mbpp/260"], FITTING)


def test_problems_of_a_file_with_all_of_them(tmp_path):
    path = tmp_path / "mbpp.jsonl"
    ids = (10, 11, 260, 261, 510, 511, 601)
    rows = (
        {"task_id": i, "text": "Add.", "code": f"def f():\r\n  return {i}", "test_list": [f"assert f() == {i}"]}
        for i in ids
    )
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert [problem.name for problem in problems(Split.report, path)] == ["11", "260"]
    assert [problem.name for problem in problems(Split.tune, path)] == ["511"]
    assert {name: code for name, (_, code) in references(Split.report, path).items()} == {
        "11": "def f():\n  return 11",
        "260": "def f():\n  return 260",
    }


def test_problems_like_one_in_training_share_four_of_five_words(tmp_path):
    path = tmp_path / "mbpp.jsonl"
    texts = {
        11: "Write a function, to SORT a list by heap sort.",
        12: "Write a function to sort a long list by heap sort.",
        13: "Write a function to sort a list by merge sort.",
        14: "Find the largest number.",
        601: "Write a function to sort a list by heap sort.",
    }
    path.write_text("".join(json.dumps({"task_id": i, "text": text}) + "\n" for i, text in texts.items()))
    assert alike(Split.report, path) == {"11", "12"}  # 8 of 8 words, 8 of 9; of the third 7 of 9


def test_a_file_that_is_not_there_is_told_with_where_to_get_it(tmp_path):
    for of in (digest_of, lambda path: references(Split.report, path)):
        with pytest.raises(SystemExit, match=r"no\.jsonl is no file: .*github\.com/google-research"):
            of(tmp_path / "no.jsonl")

import json
import operator
import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codezero.errors import TaskError
from codezero.tasks import code_contests, mbpp, rows
from codezero.tasks.build import make_task_source
from codezero.tasks.rows import BadRow, read_rows
from codezero.types import Task
from tests.unit.tasks.builders import contest_row, mbpp_row, mbpp_rows, only_mbpp, write_jsonl, write_parquet

ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
FIELDS = {
    "task_id": st.integers(590, 980) | ANY_JSON,
    "text": st.text(st.characters(), max_size=20) | ANY_JSON,
    "test_list": st.lists(st.just("assert f()") | ANY_JSON, max_size=3) | ANY_JSON,
    "test_setup_code": ANY_JSON,
    "description": st.text(st.characters(), max_size=20) | ANY_JSON,
    "public_tests": st.fixed_dictionaries({"input": ANY_JSON, "output": ANY_JSON}) | ANY_JSON,
    "input_file": ANY_JSON,
}
CHANGES = st.sampled_from(sorted(FIELDS)).flatmap(lambda name: st.fixed_dictionaries({name: FIELDS[name]}))
# Good rows with a field changed reach further into the checks than arbitrary values do.
ANY_ROW = ANY_JSON | st.builds(operator.or_, st.sampled_from([mbpp_row(), contest_row()]), CHANGES | st.just({}))


def outcome(row, to_task) -> Task | BadRow:
    if isinstance(row, BadRow):
        return row
    try:
        return to_task(row)
    except BadRow as reason:
        return reason


@pytest.mark.parametrize("dataset", [mbpp, code_contests], ids=["mbpp", "code_contests"])
def test_any_json_value_on_a_line_is_a_task_or_a_reason(dataset, tmp_path):
    path, results = tmp_path / "rows.jsonl", []

    @settings(max_examples=100)
    @given(st.lists(ANY_ROW, min_size=1, max_size=5))
    def read(lines):
        path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        found = list(read_rows(path, dataset.COLUMNS))
        assert len(found) == len(lines)
        results.extend(outcome(row, dataset.to_task) for row in found)

    read()
    assert {type(result) for result in results} == {Task, BadRow}
    assert all(len(result.task_id) == 32 for result in results if isinstance(result, Task))


@settings(max_examples=100, deadline=None)
@given(data=st.binary(min_size=1, max_size=200))
def test_any_bytes_in_a_jsonl_file_are_rows_or_reasons(data, tmp_path_factory):
    path = tmp_path_factory.mktemp("rows") / "rows.jsonl"
    path.write_bytes(data)
    for row in read_rows(path, mbpp.COLUMNS):
        assert isinstance(outcome(row, mbpp.to_task), (Task, BadRow))


def test_hostile_lines_are_counted_and_good_ones_kept(tmp_path):
    good = json.dumps(mbpp_row()).encode()
    path = tmp_path / "rows.jsonl"
    broken = [b"{", b"\xff\xfe{}", b"[" * 100_000, b"1" * 5000, b"nul", b'{"task_id": 601']
    path.write_bytes(b"\xef\xbb\xbf" + good + b"\r\n\n" + b"\n".join(broken) + b"\n" + b"[]\n" + good)
    mixture = make_task_source(only_mbpp(str(path)), seed=0)
    assert mixture.take_skipped() == {
        "mbpp: line is not JSON": 6,
        "mbpp: row is not a mapping of fields": 1,
        "mbpp: row repeats an earlier question": 1,
    }
    assert mixture.take_skipped() == {}
    assert mixture.draw(2)[0].question.startswith("Write a function to double")


def test_overlong_line_is_passed_over_without_being_held_in_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(rows, "MAX_LINE_BYTES", 2**20)
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'"' + b"x" * (3 * 2**20) + b'"\n' + json.dumps(mbpp_row()).encode())
    first, second = read_rows(path, mbpp.COLUMNS)
    assert str(first) == "line is longer than 1 MiB"
    assert second == mbpp_row()


def test_parquet_and_jsonl_give_the_same_tasks_in_the_same_order(tmp_path):
    ten = mbpp_rows(10)
    from_jsonl = make_task_source(only_mbpp(write_jsonl(tmp_path / "rows.jsonl", ten)), seed=5)
    from_parquet = make_task_source(only_mbpp(write_parquet(tmp_path / "rows.parquet", ten)), seed=5)
    assert from_jsonl.draw(15) == from_parquet.draw(15)


def test_parquet_row_with_broken_text_is_counted(tmp_path):
    import pyarrow as pa

    texts = pa.array([b"Write f.", b"\xff\xff"]).view(pa.binary()).cast(pa.binary())
    broken = pa.StringArray.from_buffers(2, texts.buffers()[1], texts.buffers()[2])
    tests = pa.array([["assert f()"], ["assert f()"]])
    path = tmp_path / "rows.parquet"
    pa.parquet.write_table(pa.table({"task_id": [601, 602], "text": broken, "test_list": tests}), path)
    mixture = make_task_source(only_mbpp(str(path)), seed=0)
    assert mixture.take_skipped() == {"mbpp: row is not valid Unicode": 1}


@pytest.mark.parametrize(
    ("value", "kind"),
    [(2**52, "timestamp[ms]"), (2**30, "date32[day]"), (2**62, "time64[us]"), (2**62, "duration[ms]")],
)
def test_parquet_row_with_a_time_that_python_does_not_have_is_counted(tmp_path, value, kind):
    import pyarrow as pa

    path = tmp_path / "rows.parquet"
    times = pa.array([value, 1]).cast(pa.int32() if kind.startswith("date32") else pa.int64())
    pa.parquet.write_table(pa.table({"text": times.view(kind)}), path)
    bad, good = read_rows(path, ["text"])
    assert (str(bad), type(good)) == ("row has a value that cannot be read", dict)


def test_parquet_row_with_a_time_zone_or_names_that_python_does_not_take_is_counted(tmp_path):
    import pyarrow as pa

    path = tmp_path / "rows.parquet"
    pa.parquet.write_table(pa.table({"text": pa.array([1], pa.timestamp("ms", tz="No/Where"))}), path)
    assert [type(row) for row in read_rows(path, ["text"])] == [BadRow]
    twice = pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    pa.parquet.write_table(pa.table({"text": twice}), path)
    assert [type(row) for row in read_rows(path, ["text"])] == [BadRow]


def assert_refused(path, *words):
    with pytest.raises(TaskError) as refused:
        make_task_source(only_mbpp(str(path), fallback=True), seed=0)
    message = str(refused.value)
    assert "\n" not in message
    for word in (str(path), *words):
        assert word in message


def test_missing_file_is_an_error_even_with_fallback(tmp_path):
    assert_refused(tmp_path / "none.jsonl", "does not exist", "give the path")


def test_name_that_no_file_can_have_is_refused(tmp_path):
    assert_refused(tmp_path / ("x" * 300 + ".jsonl"), "cannot be read", "File name too long")


def test_folder_is_refused(tmp_path):
    assert_refused(tmp_path, "is not a file")


def test_unknown_extension_is_refused(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a,b")
    assert_refused(path, "'.csv'", ".jsonl or .parquet")


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.parquet"])
def test_empty_file_is_refused(tmp_path, name):
    (tmp_path / name).touch()
    assert_refused(tmp_path / name, "is empty")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read every file")
@pytest.mark.parametrize("name", ["rows.jsonl", "rows.parquet"])
def test_file_without_read_permission_is_refused(tmp_path, name):
    path = tmp_path / name
    path.write_text("{}")
    path.chmod(0)
    assert_refused(path, "cannot be read", "make it readable")


def test_text_that_calls_itself_parquet_is_refused(tmp_path):
    path = tmp_path / "rows.parquet"
    path.write_text("this is not parquet, but it is long enough to be opened")
    assert_refused(path, "not an intact parquet file")


@pytest.mark.parametrize("keep", [0.3, 0.9])
def test_truncated_parquet_is_refused(tmp_path, keep):
    path = tmp_path / "rows.parquet"
    write_parquet(path, mbpp_rows(50))
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * keep)])
    assert_refused(path, "not an intact parquet file")


def test_parquet_with_overwritten_pages_is_refused(tmp_path):
    path = tmp_path / "rows.parquet"
    write_parquet(path, mbpp_rows(50))
    whole = bytearray(path.read_bytes())
    whole[4:2000] = b"\xff" * 1996
    path.write_bytes(bytes(whole))
    assert_refused(path)


def test_parquet_of_another_schema_is_refused(tmp_path):
    path = tmp_path / "rows.parquet"
    write_parquet(path, [{"prompt": "a"}])
    assert_refused(path, "none of the columns")


def test_file_without_a_usable_row_says_why_and_what_to_do(tmp_path):
    path = tmp_path / "rows.jsonl"
    write_jsonl(path, [mbpp_row(text=""), mbpp_row(text=""), 7])
    assert_refused(path, "2 x mbpp: text is empty", "1 x mbpp: row is not", "give a file with the rows of")


def test_file_with_rows_of_other_splits_only_is_refused(tmp_path):
    path = tmp_path / "rows.jsonl"
    write_jsonl(path, [mbpp_row(task_id=1)])
    assert_refused(path, "no usable row for split train", "none in this split")

"""The reader of small JSON files."""

import pytest

from codezero.runtime.files import stored


def test_a_file_is_read_as_the_type_asked_for(tmp_path):
    (tmp_path / "file").write_bytes(b'{"x": 1}\n')
    assert stored(tmp_path / "file", dict[str, int]) == {"x": 1}


@pytest.mark.parametrize("content", [None, b"", b"{", b"[1]", b'{"x": "y"}', b"\xff", b'{"y": ' + b"[" * 100_000])
def test_a_file_that_is_missing_or_damaged_is_none(tmp_path, content):
    if content is not None:
        (tmp_path / "file").write_bytes(content)
    assert stored(tmp_path / "file", dict[str, int]) is None


def test_deep_brackets_are_damage_where_any_value_may_be(tmp_path):
    (tmp_path / "file").write_bytes(b'{"y": ' + b"[" * 100_000)
    assert stored(tmp_path / "file", dict) is None

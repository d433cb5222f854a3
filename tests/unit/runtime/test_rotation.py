import os

from codezero.runtime import rotation


def test_a_file_within_bounds_is_left(tmp_path):
    path = tmp_path / "output.log"
    path.write_text("0123456789")
    rotation.rotate(path, 10)
    rotation.cut(path, 10)
    assert [each.name for each in tmp_path.iterdir()] == ["output.log"]


def test_a_file_beyond_is_put_aside_in_place_of_the_one_before(tmp_path):
    path = tmp_path / "output.log"
    for text in ("first one", "second one"):
        path.write_text(text)
        rotation.rotate(path, 5)
        assert not path.exists()
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("output.1.log", "second one")]


def test_a_file_that_another_process_appends_to_is_cut_under_it(tmp_path):
    path = tmp_path / "yarn.log"
    with path.open("ab", buffering=0) as held:
        held.write(b"x" * 100)
        rotation.cut(path, 50)
        held.write(b"later")
    assert path.read_bytes() == b"later"
    assert (tmp_path / "yarn.1.log").read_bytes() == b"x" * 100


def test_a_file_that_is_not_there_or_cannot_be_moved_costs_nothing(tmp_path):
    rotation.rotate(tmp_path / "gone.log", 0)
    rotation.cut(tmp_path / "gone.log", 0)
    path = tmp_path / "held.log"
    path.write_text("long")
    (tmp_path / "held.1.log").mkdir()
    os.mkdir(tmp_path / "held.1.log" / "full")
    rotation.rotate(path, 1)
    assert path.read_text() == "long"

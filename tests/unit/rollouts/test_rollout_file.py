"""The rollout file: written for its owner, read with care."""

import pytest

from codezero.errors import ConfigError
from codezero.rollouts import rollout_file
from codezero.rollouts.rollout_file import RolloutFile
from codezero.rollouts.serve import _reached, _token


def test_what_is_written_is_read_and_only_the_owner_can(tmp_path):
    path = tmp_path / "server.yaml"
    for url in ("http://[fe80::1]:7070", "https://pc.example:443"):
        content = RolloutFile(url=url, token="x" * 43)
        rollout_file.write(path, content)
        assert path.stat().st_mode & 0o777 == 0o600
        assert rollout_file.read(path) == content


@pytest.mark.parametrize(
    "text",
    [
        "",
        "url: http://127.0.0.1:7070",
        "url: http://127.0.0.1\ntoken: x",
        "url: http://127.0.0.1:99999\ntoken: x",
        "url: http://192.168.1.500:7070\ntoken: x",
        "url: file:///etc/passwd\ntoken: x",
        "url: http://127.0.0.1:7070/elsewhere\ntoken: x",
        "url: http://127.0.0.1:7070\ntoken: ''",
        "url: http://127.0.0.1:7070\ntoken: 1",
        'url: http://127.0.0.1:7070\ntoken: "a\\r\\nHost: b"',
        "url: http://127.0.0.1:7070\ntoken: \u00e9",
        "url: !!python/object/apply:os.system [id]\ntoken: x",
        "[" * 3000,
        "a: " + "b" * 5000,
        "\x00",
    ],
)
def test_what_is_no_rollout_file_is_refused(tmp_path, text):
    path = tmp_path / "server.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match="is no rollout file, or damaged: copy it again"):
        rollout_file.read(path)


def test_a_damaged_file_of_the_server_itself_is_to_be_deleted(tmp_path):
    path = tmp_path / "server.yaml"
    path.write_text("url: http://127.0.0.1:7070")
    with pytest.raises(ConfigError, match="or damaged: delete it"):
        _token(path)
    path.unlink()
    assert len(_token(path)) == 43


def test_a_file_that_cannot_be_written_says_so(tmp_path):
    with pytest.raises(ConfigError, match="give another one with --file"):
        rollout_file.write(tmp_path / "none" / "server.yaml", RolloutFile(url="http://a:1", token="x"))


@pytest.mark.parametrize("host", ["192.168.1.5:7070", "http://fast-pc", "fast-pc/x", "192.168.1.500"])
def test_an_address_that_is_no_host_is_refused_where_it_is_given(tmp_path, host):
    with pytest.raises(ConfigError, match="with --address"):
        rollout_file.write(tmp_path / "server.yaml", RolloutFile(url=f"http://{host}:7070", token="x"))
    assert list(tmp_path.iterdir()) == []


def test_other_machines_reach_a_server_on_all_interfaces_by_an_address_of_this_one():
    assert _reached("192.168.1.5") == "192.168.1.5"
    assert _reached("fast-pc") == "fast-pc"
    assert _reached("0.0.0.0") not in ("0.0.0.0", "127.0.0.1")

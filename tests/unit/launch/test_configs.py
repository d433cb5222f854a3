"""Configuration files that somebody has edited."""

import io
import shutil
import subprocess

import pytest

from codezero.config import checkout as source
from codezero.config.load import load_config
from codezero.errors import ConfigError
from codezero.launch import configs
from codezero.runtime.console import Console
from tests.fakes import files_of_at_most


def settled(**environment):
    shown = io.StringIO()
    configs.report_or_restore_edits(environment, Console(shown))
    return shown.getvalue()


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A folder of the user's, as a container's volume is."""
    folder = tmp_path / "configs"
    monkeypatch.setenv("CODEZERO_CONFIG_DIR", str(folder))
    return folder


def test_a_new_folder_gets_what_is_shipped_and_is_read(own):
    assert settled() == ""
    assert (own / "node.yaml").read_bytes() == (source.CONFIGS / "node.yaml").read_bytes()
    (own / "node.yaml").write_text((own / "node.yaml").read_text().replace("seed: 0", "seed: 9"))
    assert load_config().seed == 9


def test_what_a_full_disk_cut_short_is_no_edit_of_the_user(own):
    with (
        files_of_at_most(400),
        pytest.raises(ConfigError, match=r"cannot update the configuration in .*: File too large"),
    ):
        settled()
    assert settled() == ""
    assert load_config().seed == 0


def test_a_folder_in_the_home_of_nobody_is_told(monkeypatch):
    monkeypatch.setenv("CODEZERO_CONFIG_DIR", "~nobody-here/configs")
    with pytest.raises(ConfigError, match="CODEZERO_CONFIG_DIR=~nobody-here/configs is not possible: there is no such"):
        load_config()


def test_a_folder_that_cannot_be_looked_at_is_no_configuration(monkeypatch):
    monkeypatch.setenv("CODEZERO_CONFIG_DIR", "/" + "a" * 300)  # as one that others may not enter
    with pytest.raises(ConfigError, match=r"a holds no node\.yaml that can be read: "):
        load_config()


def test_an_empty_folder_is_no_configuration(own):
    with pytest.raises(
        ConfigError, match=r"holds no node\.yaml that can be read: \./run_rl_swarm\.sh puts the shipped"
    ):
        load_config()


def test_an_edited_file_is_kept_and_its_difference_told(own):
    settled()
    edited = (own / "node.yaml").read_text().replace("seed: 0", "seed: 9\x1b[31m")
    (own / "node.yaml").write_text(edited)
    (own / "model" / "mine.yaml").write_text("name: org/model\n")
    (own / "preset" / "local.yaml").unlink()
    shown = settled()
    assert "yours differ from the shipped ones and are kept (CODEZERO_RESET_CONFIG=1 puts those back)\n" in shown
    assert "  node.yaml: seed: 9\\x1b[31m\n" in shown
    assert "mine" not in shown
    assert (own / "node.yaml").read_text() == edited
    assert (own / "preset" / "local.yaml").exists()


def test_what_an_earlier_release_put_in_is_renewed_unless_it_was_edited(own, tmp_path, monkeypatch):
    earlier = shutil.copytree(source.CONFIGS, tmp_path / "earlier")
    (earlier / "node.yaml").write_text("seed: old\n")
    (earlier / "preset" / "local.yaml").write_text("seed: old\n")
    with monkeypatch.context() as patch:
        patch.setattr(source, "CONFIGS", earlier)
        settled()
    (own / "preset" / "local.yaml").write_text("seed: 9\n")
    assert set(configs.edited()) == {"node.yaml", "preset/local.yaml"}
    assert "node.yaml" not in settled()
    assert load_config().seed == 0
    assert (own / "preset" / "local.yaml").read_text() == "seed: 9\n"
    assert list(configs.edited()) == ["preset/local.yaml"]


def test_reset_puts_the_shipped_ones_back_and_keeps_a_copy(own):
    settled()
    (own / "train" / "grpo.yaml").write_text("mine: 1\n")
    shown = settled(CODEZERO_RESET_CONFIG="1")
    assert shown.startswith("configuration: train/grpo.yaml as shipped again; yours are in ")
    assert (own / "train" / "grpo.yaml").read_bytes() == (source.CONFIGS / "train" / "grpo.yaml").read_bytes()
    (backup,) = own.glob("backup-*/train/grpo.yaml")
    assert backup.read_text() == "mine: 1\n"
    assert settled() == ""


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    folder = tmp_path / "configs"
    shutil.copytree(source.CONFIGS, folder)
    for command in (["init", "-q"], ["add", "."], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x"]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    monkeypatch.setattr(source, "CONFIGS", folder)
    return folder


def test_in_a_checkout_shipped_is_what_its_commit_has(checkout):
    assert settled() == ""
    before = (checkout / "node.yaml").read_bytes()
    (checkout / "node.yaml").write_bytes(before + b"\nlogs: here\n")
    assert "  node.yaml: logs: here\n" in settled()
    settled(CODEZERO_RESET_CONFIG="yes")
    assert (checkout / "node.yaml").read_bytes() == before


def test_where_nothing_says_what_was_shipped_nothing_is_told_or_reset(tmp_path, monkeypatch):
    monkeypatch.setattr(source, "CONFIGS", tmp_path)
    monkeypatch.setattr(source, "git", lambda *_: None)
    assert settled() == ""
    with pytest.raises(ConfigError, match="is not a git checkout"):
        settled(CODEZERO_RESET_CONFIG="1")


def test_a_package_in_a_checkout_of_something_else_is_not_taken_for_that(checkout, monkeypatch):
    monkeypatch.setattr(source, "ROOT", None)
    (checkout / "node.yaml").write_text("edited: yes\n")
    assert configs.edited() is None


def test_a_reset_that_means_nothing_is_refused(own):
    with pytest.raises(ConfigError, match="CODEZERO_RESET_CONFIG=perhaps is not possible: use 1 or 0"):
        settled(CODEZERO_RESET_CONFIG="perhaps")


def test_a_folder_that_cannot_be_written_is_an_error_in_one_line(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("CODEZERO_CONFIG_DIR", str(tmp_path / "file"))
    with pytest.raises(ConfigError, match=r"cannot update the configuration in"):
        settled()

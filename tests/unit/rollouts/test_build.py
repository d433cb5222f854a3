"""A rollout server by the configuration."""

import sys

import pytest

from codezero.config.load import load_config
from codezero.errors import ConfigError, RolloutError
from codezero.llm import engines
from codezero.rollouts import build, rollout_file, serve
from codezero.rollouts.rollout_file import RolloutFile
from codezero.rollouts.serve import ServeOptions
from codezero.runtime import limits
from tests.builders import save_tiny


def run(folder, model, *settings, file="rollout-server.yaml"):
    common = ("model.device=cpu", f"model.name={model}", f"model.cache_dir={folder}", f"state_dir={folder / 'state'}")
    options = ServeOptions(host="127.0.0.1", port=0, address=None, file=folder / file)
    return build.run_server(load_config([*common, *settings]), options)


def test_an_engine_whose_package_is_missing_lets_no_server_start(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(RolloutError, match=r"not installed: install the extra llama-cpp"):
        run(tmp_path, save_tiny(tmp_path / "model"), "rollout.engine=llama_cpp")


def test_the_engines_of_two_servers_on_a_machine_do_not_share_files(tmp_path, monkeypatch):
    folders = []
    monkeypatch.setattr(engines, "make_engine", lambda engine, model, folder, size: folders.append(folder))
    monkeypatch.setattr(serve, "serve", lambda *_: None)
    model = save_tiny(tmp_path / "model")
    for file in ("a.yaml", "b.yaml"):
        assert run(tmp_path, model, file=file) == 0
    assert folders == [tmp_path / "state" / "rollouts" / name for name in ("a", "b")]


def test_the_engine_has_half_of_what_a_container_leaves(tmp_path, monkeypatch):
    sizes = []
    monkeypatch.setattr(engines, "make_engine", lambda engine, model, folder, size: sizes.append(size))
    monkeypatch.setattr(serve, "serve", lambda *_: None)
    monkeypatch.setattr(limits, "memory_left", lambda: 1_000_000)
    assert run(tmp_path, save_tiny(tmp_path / "model")) == 0
    assert sizes == [450_000]


def test_a_server_that_two_files_name_is_not_taken_for_two(tmp_path):
    files = [tmp_path / name for name in ("pc.yaml", "copy.yaml")]
    for file in files:
        rollout_file.write(file, RolloutFile(url="http://127.0.0.1:7070", token="x" * 43))
    config = load_config(["rollout.engine=remote", f"rollout.servers=[{','.join(map(str, files))}]"])
    with pytest.raises(ConfigError, match=r"copy\.yaml is not possible: its server, at http://127\.0\.0\.1:7070, is"):
        build.make_remote(config, None, tmp_path)

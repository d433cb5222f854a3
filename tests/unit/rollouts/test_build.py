"""A rollout server by the configuration."""

import sys

import pytest

from codezero.config.load import load_config
from codezero.errors import RolloutError
from codezero.llm import engines
from codezero.rollouts import build, serve
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

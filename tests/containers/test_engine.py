"""How the tests get their engine and hand pip's settings to a build, where neither needs one."""

import pytest

from tests.containers import packages
from tests.containers.engine import START_ENV, EngineError, engine


def test_no_engine_and_no_leave_to_start_one_is_an_error_and_no_skip(monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    for name in ("CI", START_ENV):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(EngineError, match="no Docker engine answers"), engine():
        pass


def test_packages_of_this_machine_are_served_and_those_elsewhere_are_not(tmp_path):
    (tmp_path / "served").mkdir()
    wheels, simple = tmp_path / "wheels", tmp_path / "index" / "simple"
    for folder in (wheels, simple):
        folder.mkdir(parents=True)
    served = tmp_path / "served"
    assert packages.url_of("https://pypi.example/simple", served, "http://here") == "https://pypi.example/simple"
    assert packages.url_of(str(wheels), served, "http://here") == "http://here/0/"
    assert packages.url_of(f"file://{simple}", served, "http://here") == "http://here/1/simple/"
    assert [(served / name).resolve() for name in "01"] == [wheels, simple.parent]

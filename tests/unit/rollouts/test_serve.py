"""`codezero rollout serve` up to where it serves: its file, and what it prints."""

import io
import shlex

import pytest

from codezero.config import RolloutEngine, checkout
from codezero.config.load import load_config
from codezero.errors import StateError
from codezero.llm.sample import sample_groups
from codezero.rollouts import serve
from codezero.rollouts.serve import ServeOptions
from codezero.runtime.console import Console
from tests.rollout_servers import loaded


@pytest.fixture(autouse=True)
def ends_at_once(monkeypatch):
    monkeypatch.setattr(serve, "end_by_sigterm", lambda: None)
    monkeypatch.setattr(serve, "serve_app", lambda *_: None)


def said(file):
    """Returns the text that a server with this file prints."""
    shown, options = io.StringIO(), ServeOptions(host="127.0.0.1", port=0, address=None, file=file)
    serve.serve(loaded(), sample_groups, RolloutEngine.transformers, options, Console(shown))
    return shown.getvalue()


@pytest.mark.parametrize("name", ["rollout-server.yaml", "my server (2).yaml"])
def test_the_command_for_the_machine_that_learns_names_the_file_whatever_it_is_called(tmp_path, name):
    (line,) = [line for line in said(tmp_path / name).splitlines() if checkout.COMMAND in line]
    command, run, *settings = shlex.split(line)
    assert (command, run) == (checkout.COMMAND, "run")
    assert load_config(settings).rollout.servers == [name]


def test_a_second_server_does_not_take_the_file_and_the_uploads_of_the_first(tmp_path, monkeypatch):
    file, refused = tmp_path / "server.yaml", []

    def meanwhile(*_):
        of_the_first = file.read_text()
        with pytest.raises(StateError, match=r"\.server\.yaml\.uploads is in use by the server .* another --file"):
            said(file)
        refused.append(file.read_text() == of_the_first)

    monkeypatch.setattr(serve, "serve_app", meanwhile)
    said(file)
    assert refused == [True]
    monkeypatch.setattr(serve, "serve_app", lambda *_: None)
    said(file)

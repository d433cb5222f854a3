"""From the settings to the trackers, and a whole proposer node that feeds all three of them."""

import json
import logging
from functools import partial
from urllib.error import URLError

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from codezero.config.load import learning_settings, load_config
from codezero.errors import ConfigError
from codezero.observe import tracking
from tests.ports import free_port
from tests.processes import wait_until
from tests.unit.evaluate.loopback import serve
from tests.unit.observe.trackers.test_prometheus import scrape
from tests.unit.observe.trackers.test_wandb import records
from tests.unit.proposer.test_node import propose, write_problem


def names(config, tmp_path):
    return [
        one._tracker.name for one in tracking.trackers(config.tracking, {}, tmp_path, "quick toad", None, "")._threads
    ]


def test_nothing_runs_unasked(tmp_path):
    assert names(load_config(), tmp_path) == []


def test_all_that_is_asked_for_runs(tmp_path):
    config = load_config(["tracking.tensorboard=true", "tracking.wandb=offline", "tracking.prometheus_port=9400"])
    assert names(config, tmp_path) == ["tracking.tensorboard", "tracking.wandb", "tracking.prometheus_port"]


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("tracking.prometheus_port=70000", r"tracking\.prometheus_port=70000 .*use 1 to 65535, or 0"),
        ("tracking.prometheus_host=''", r"tracking\.prometheus_host='' .*127\.0\.0\.1"),
        ("tracking.wandb_project=a/b", r"tracking\.wandb_project='a/b' .*without /"),
        ("tracking.wandb_project=''", r"tracking\.wandb_project='' .*such as codezero"),
        ("tracking.wandb=yes", r"tracking\.wandb: .*expected one of \[off, offline, online\]"),
        ("tracking.log_format=xml", r"tracking\.log_format: .*expected one of \[text, json\]"),
    ],
)
def test_an_impossible_setting_is_named(setting, message):
    with pytest.raises(ConfigError, match=message):
        load_config([setting])


def test_a_restarted_node_goes_on_in_its_run_and_a_new_life_is_a_new_one(tmp_path):
    first = tracking.run_id(tmp_path, is_new=True)
    assert tracking.run_id(tmp_path, is_new=False) == first
    assert tracking.run_id(tmp_path, is_new=True) != first


def test_a_node_that_has_finished_round_0_goes_on_in_its_run(tmp_path):
    """The first round of a swarm with a clock, and of a chain."""
    config = load_config(["tracking.wandb=offline"])
    runs = [
        tracking.trackers(config.tracking, {}, tmp_path, "quick toad", last, "")._threads[0]._tracker._run.run_id
        for last in (None, 0, 7, None)
    ]
    assert runs[0] == runs[1] == runs[2] != runs[3]


@pytest.mark.parametrize("damaged", [b"", b"../../x", b"\xff\xfe"])
def test_a_damaged_run_id_is_replaced(tmp_path, damaged):
    (tmp_path / tracking.RUN_ID_FILE).write_bytes(damaged)
    assert tracking.run_id(tmp_path, is_new=False).isalnum()


def test_a_state_folder_that_keeps_no_run_id_is_warned_of(tmp_path, caplog):
    caplog.set_level(logging.WARNING, "codezero")
    assert tracking.run_id(tmp_path / "gone", is_new=True).isalnum()
    assert "the next start begins a new run in Weights & Biases" in caplog.text


def test_what_a_run_shows_of_the_settings_is_how_it_learns_and_nothing_else():
    paths = ("state_dir=/home/someone/state", "swarm.identity_path=/home/someone/k.pem")
    remote = ("rollout.engine=remote", "rollout.servers=[/home/someone/rollout-server.yaml]")
    config = load_config(["preset=local", *paths, *remote])
    shown = json.dumps(learning_settings(config))
    assert '"learning_rate"' in shown
    assert "someone" not in shown
    assert set(learning_settings(config)) == {"codezero", "seed", "swarm", "rollout", "train", "reward"}


@pytest.mark.usefixtures("restored_process")
def test_a_proposer_feeds_all_trackers_and_goes_on_in_them_after_a_restart(tmp_path, monkeypatch):
    port, seen = free_port(), []

    def batch():
        try:
            return scrape(f"http://127.0.0.1:{port}/metrics")[0].get(("codezero_proposer_batch",))
        except URLError:  # the tracker's thread has not opened its port yet
            return None

    def look(handler, count):
        if count in (2, 3):  # the second batch: a thread of its own tells the numbers of the batch before
            wait_until(lambda: batch() is not None)
        seen.append(batch())
        write_problem(handler, count)

    settings = ["tracking.tensorboard=true", "tracking.wandb=offline", f"tracking.prometheus_port={port}"]
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    # W&B's process may need longer than a node waits for it when the machine is busy.
    monkeypatch.setattr(tracking, "TrackerThreads", partial(tracking.TrackerThreads, close_s=60.0))
    with serve(look) as server:
        assert propose(tmp_path, server, 2, *settings) == 0
        assert propose(tmp_path, server, 1, *settings) == 0
    assert seen[2] == 1.0  # while the second batch is written

    board = EventAccumulator(str(tmp_path / "logs" / "tensorboard" / "proposer"))
    board.Reload()
    assert [(each.step, each.value) for each in board.Scalars("proposer/written")] == [(1, 2.0), (2, 2.0), (3, 2.0)]

    runs = sorted((tmp_path / "logs" / "wandb").glob("offline-run-*/*.wandb"), key=lambda path: path.stat().st_mtime_ns)
    assert len({path.name for path in runs}) == 1  # two parts of one run, which `wandb sync` puts together
    steps = [[record.history.step.num for record in records(path) if record.HasField("history")] for path in runs]
    assert steps == [[1, 2], [3]]
    assert "WARNING" not in (tmp_path / "logs" / "proposer.log").read_text()


@pytest.mark.usefixtures("restored_process")
def test_trackers_that_cannot_work_cost_a_proposer_one_warning_each(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(__import__("sys").modules, "tensorboard.summary.writer.event_file_writer", None)
    with serve(write_problem) as server:
        wanted = ["tracking.tensorboard=true", f"tracking.prometheus_port={server.url.rpartition(':')[2]}"]
        assert propose(tmp_path, server, 3, *wanted) == 0
    warned = [line for line in capsys.readouterr().out.splitlines() if line.startswith("WARNING")]
    assert len(warned) == 2
    assert any("tracking.prometheus_port is off until the next start: cannot listen on" in line for line in warned)
    assert any("install the extra tracking" in line for line in warned)

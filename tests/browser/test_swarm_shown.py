"""One swarm, shown by all that an operator has at once: while it runs, and after. Its nodes have a tiny random model;
the pictures go to CODEZERO_SCREENSHOTS, if that is set."""

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from codezero.views.runs import find_runs
from scripts.terminal import picture, take
from tests.builders import save_tiny
from tests.commands import ROOT, spawn
from tests.ports import free_port
from tests.processes import wait_until
from tests.tiny_node import reports
from tests.unit.publish.push_hub import TOKEN, push_hub

pytestmark = [pytest.mark.slow, pytest.mark.timeout(800)]
NODES = ("node-1", "node-2")


def codezero(*arguments, **settings):
    command = [sys.executable, "-m", "codezero", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False, **settings)


@contextmanager
def program(*arguments, **environment):
    """A command in the background, ended by Ctrl-C; its exit code has to be 0."""
    process = spawn([sys.executable, "-m", "codezero", *map(str, arguments)], env={**os.environ, **environment})
    try:
        yield process
    finally:
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=90)
    assert process.returncode == 0, output


def metrics(port):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    return {s.name: s.value for family in text_string_to_metric_families(text) for s in family.samples if not s.labels}


@pytest.fixture
def pictures(tmp_path):
    folder = Path(os.environ.get("CODEZERO_SCREENSHOTS", tmp_path / "pictures"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def test_a_swarm_is_shown_by_everything_at_once(tmp_path, pictures, visit):
    model, folder, port = save_tiny(tmp_path / "model"), tmp_path / "swarm", free_port(4)
    with push_hub() as hub:
        settings = (
            *("tasks=builtin", f"model.name={model}", f"evaluator.model={model}", f"proposer.model={model}"),
            "model.device=cpu",
            "train.method=lora",
            "rollout.max_new_tokens=64",
            "swarm.num_local=2",
            "rollout.num_generations=4",
            "probe.share=0",
            "proposer.max_new_tokens=64",
            *("tracking.tensorboard=true", "tracking.wandb=offline", f"tracking.prometheus_port={port}"),
            *("push.enabled=true", f"push.endpoint={hub.url}", "push.every_rounds=1", "swarm.patience=20"),
        )
        arguments = ("--nodes", 2, "--folder", folder, *settings)
        with program("swarm", "up", *arguments, HUGGINGFACE_ACCESS_TOKEN=TOKEN):
            wait_until(lambda: all(len(reports(folder / node)) >= 2 for node in NODES), limit_s=480)
            assert_shown_while_it_runs(folder, port, pictures, visit)
            wait_until(lambda: hub.commits, limit_s=60)
    assert_shown_after(folder, tmp_path / "report.html", visit)
    for file in folder.rglob("*"):
        if file.is_file():
            assert TOKEN.encode() not in file.read_bytes(), file


def assert_shown_while_it_runs(folder, port, pictures, visit):
    status = codezero("status", folder, "--json")
    assert status.returncode == 0, status.stderr
    runs = {run["name"]: run for run in json.loads(status.stdout)["runs"]}
    assert set(runs) == {*NODES, "proposer-1"}
    for node in NODES:
        assert runs[node]["running"]
        assert runs[node]["rounds"][-1]["round"] >= 2
        assert runs[node]["ledger"]["num_rounds"] >= 2
    assert all(metrics(port + place)["codezero_round"] >= 2 for place in range(len(NODES)))
    wait_until(lambda: metrics(port + len(NODES)).get("codezero_proposer_batch", 0) >= 1, limit_s=60)
    doctor = codezero("doctor", "--json", "--state-dir", folder / "node-1" / "state")
    findings = json.loads(doctor.stdout)
    assert findings, doctor.stderr
    for node in NODES:
        svg = picture(take(folder / node / "state"))
        assert "higher&#160;is&#160;better" in svg
        (pictures / f"terminal-{node}.svg").write_text(svg, encoding="utf-8")
    with program("dashboard", folder, "--port", 0) as dashboard:
        address = re.search(r"http://\S+", dashboard.stdout.readline())[0]
        page = visit(address)
        for run in (*NODES, "proposer-1"):
            assert run in page.inner_text("body")
        page.screenshot(path=pictures / "dashboard.png", full_page=True)
        assert (pictures / "dashboard.png").stat().st_size > 20_000
        assert page.wrong == []
        page.goto("about:blank")  # lets the server end at once
    shown = visit((pictures / "terminal-node-1.svg").resolve().as_uri())
    shown.screenshot(path=pictures / "terminal.png")
    assert (pictures / "terminal.png").stat().st_size > 20_000


def assert_shown_after(folder, report, visit):
    assert codezero("status", folder).returncode == 3  # nothing runs any more
    for run in find_runs(folder):
        assert run.status().ended == "stopped"
        assert next(run.log_dir.glob("tensorboard/**/events.*")).stat().st_size > 0
        assert list(run.log_dir.glob("wandb/offline-run-*")), run.name
        if run.role == "solver":
            assert [seen.round for seen in run.groups()] == [one.round for one in run.reports()]
    written = codezero("report", folder, "--out", report, "--png")
    assert written.returncode == 0, written.stderr
    page = visit(report.as_uri())
    assert page.wrong == []
    assert "node-2" in page.inner_text("body")
    assert report.with_suffix(".png").read_bytes().startswith(b"\x89PNG")

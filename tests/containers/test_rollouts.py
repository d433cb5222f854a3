"""The profile rollout-cpu on a real engine: a server in one container, and a node in another that learns from it."""

import json
import os
import re

import pytest

from tests.containers.compose import Project
from tests.containers.test_compose import ALONE, SETTINGS, TINY, models  # noqa: F401

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

SERVER = "rollout-cpu"


@pytest.fixture
def project(engine, image, context, composers, models, tmp_path):  # noqa: F811
    images = tmp_path / "images.yaml"
    images.write_text(json.dumps({"services": {name: {"image": image} for name in (SERVER, ALONE)}}))
    project = Project(
        engine=engine,
        files=[context / "docker-compose.yaml", images],
        name=f"codezero-test-rollouts-{os.getpid()}",
        command=composers[0],
        profile=SERVER,
        variables={
            "CODEZERO_ADDRESS": SERVER,
            "CODEZERO_MODELS": str(models),
            "CODEZERO_SETTINGS": f"model.name={TINY} model.device=cpu",
        },
    )
    try:
        yield project
    finally:
        project.engine.run("rm", "--force", node_of(project), check=False)
        project.compose("down", "--volumes", "--timeout", "5", check=False)


def node_of(project):
    return f"{project.name}-node"


def rounds(project):
    """The reports of the node's rounds."""
    shown = project.engine.run("exec", node_of(project), "cat", "logs/rounds.jsonl", check=False)
    return [json.loads(line) for line in shown.stdout.splitlines()] if shown.returncode == 0 else []


def sampled(project):
    """How often the server has sampled for a round, over its lives."""
    return len(re.findall(r"^rollouts: 16, ", project.logs(SERVER), re.M))


def test_a_node_learns_from_a_server_in_another_container_and_goes_on_when_it_is_killed(project, tmp_path):
    project.compose("up", "--detach", "--no-build")
    project.wait_until(lambda: project.inspect(SERVER)["State"]["Health"]["Status"] == "healthy", "health")
    file = tmp_path / "rollout-server.yaml"
    file.write_text(project.compose("exec", "-T", SERVER, "cat", "/data/rollout-server.yaml").stdout)
    assert f"url: http://{SERVER}:7070\n" in file.read_text()
    remote = ("rollout.engine=remote", "rollout.servers=[rollout-server.yaml]")
    mounted = ("--volume", f"{file}:/app/rollout-server.yaml:ro")
    settings = ("--local", *remote, *SETTINGS, "swarm.num_local=2")
    project.compose("run", "--detach", "--name", node_of(project), *mounted, ALONE, *settings)

    project.wait_until(lambda: len(rounds(project)) >= 4, "four rounds with the server")
    assert sampled(project) >= 4
    assert any(report["staleness"] == 1 for report in rounds(project)), "no round was sampled ahead"
    assert "is left out" not in project.engine.run("logs", node_of(project)).stdout

    project.compose("kill", SERVER)
    done, before = len(rounds(project)), sampled(project)
    project.wait_until(lambda: len(rounds(project)) >= done + 3, "rounds without the server")
    assert "rollout-server.yaml is left out for 60 s" in project.engine.run("logs", node_of(project)).stdout
    assert sampled(project) == before

    project.compose("start", SERVER)
    project.wait_until(lambda: sampled(project) >= before + 2, "work for the server that has come back")
    project.engine.run("stop", "--time", "90", node_of(project))
    (found,) = json.loads(project.engine.run("inspect", node_of(project)).stdout)
    said = project.engine.run("logs", node_of(project)).stdout
    assert (found["State"]["ExitCode"], found["State"]["OOMKilled"]) == (0, False), said[-3000:]
    assert "\ndone: " in said

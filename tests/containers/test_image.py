"""The image of a node, built and run on a real engine."""

import json
import re

import pytest

from tests.containers import packages
from tests.containers.engine import EngineError, run

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

WRITABLE = {
    *("/app/chains", "/app/configs", "/app/gpus", "/app/keys", "/app/logs", "/app/modal-login/temp-data", "/app/state"),
    *("/app/swarms", "/data", "/shared", "/home/codezero"),
}


def inside(engine, image, *command):
    """What a command prints in a container that reaches nothing and may write nowhere."""
    locked = ("--rm", "--network", "none", "--read-only", "--cap-drop", "ALL")
    return engine.run("run", *locked, "--entrypoint", command[0], image, *command[1:]).stdout


def test_a_node_runs_as_nobody_special(engine, image):
    assert "uid=1000(codezero) gid=1000(codezero)" in inside(engine, image, "id")


def test_it_starts_without_network_on_a_root_that_is_read_only(engine, image):
    assert re.search(r"^codezero \d", inside(engine, image, "codezero", "--version"), re.M)
    assert "rounds: 0" in inside(engine, image, "codezero", "run", "--show-config")


def test_the_script_is_what_the_container_runs(engine, image):
    (found,) = json.loads(engine.run("inspect", image).stdout)
    assert found["Config"]["Entrypoint"] == ["tini", "--", "./run_rl_swarm.sh"]
    assert "--local" in engine.run("run", "--rm", "--network", "none", image, "--help").stdout
    shown = engine.run("run", "--rm", "--network", "none", image, "--local", "--show-config").stdout
    assert "kind: local" in shown


def test_a_node_that_is_not_there_is_not_healthy(engine, image):
    (found,) = json.loads(engine.run("inspect", image).stdout)
    assert found["Config"]["Healthcheck"]["Test"] == ["CMD", "codezero", "health"]
    asked = engine.run("run", "--rm", "--network", "none", "--entrypoint", "codezero", image, "health", check=False)
    assert asked.returncode == 1
    assert "error: no node runs in state or swarms/home or gpus" in asked.stdout


def test_only_the_places_for_data_can_be_written(engine, image):
    search = "find / -xdev -writable -type d -not -path '/proc/*' -not -path '/dev*' 2>/dev/null; true"
    found = set(
        engine.run("run", "--rm", "--network", "none", "--entrypoint", "sh", image, "-c", search).stdout.split()
    )
    places = {path for path in found if path.startswith("/") and not path.startswith(("/tmp", "/var/tmp", "/run/lock"))}
    assert {path for path in places if not path.startswith("/home/codezero/")} == WRITABLE


def test_no_layer_holds_a_secret_or_a_file_of_the_user(engine, full_image):
    """The mark is in the pip.conf of the build, and in keys, settings and state that lay in its context."""
    search = ["sh", "-c", f"'{engine.docker}' save {full_image} | grep --count --text {packages.MARK}"]
    assert run(search, engine.environment, check=False).stdout.strip().splitlines()[-1] == "0"
    (found,) = json.loads(engine.run("inspect", full_image).stdout)
    assert not [each for each in found["Config"]["Env"] if re.search(r"PIP|CERT|NPM|TOKEN|PASS", each)]


def test_a_change_of_the_code_leaves_the_dependencies_alone(engine, image, build, context):
    code = context / "codezero" / "__init__.py"
    before = code.read_text()
    code.write_text(before + "# changed\n")
    try:
        printed = build("codezero-tests/changed", "--target", "node")
    finally:
        code.write_text(before)
        engine.run("image", "rm", "codezero-tests/changed", check=False)
    steps = dict(re.findall(r"^#(\d+) \[(.*)$", printed, re.M))
    cached = {steps[number] for number in re.findall(r"^#(\d+) CACHED", printed, re.M) if number in steps}
    slow = {step for step in steps.values() if step.startswith("dependencies ")}
    assert len(slow) == 2
    assert slow <= cached
    assert any(step.startswith("wheel ") for step in steps.values() if step not in cached)


def test_the_gpu_image_is_not_built_with_a_torch_that_lacks_new_gpus(image, build):
    """As far as the GPU image can be built here: up to its own check, which the CPU's torch must fail."""
    with pytest.raises(EngineError, match=r"torch\.version\.cuda.*exit code: 1"):
        build("codezero-tests/gpu", "--target", "node", "--build-arg", "TORCH=torch==2.13.0+cpu", file="Dockerfile.gpu")

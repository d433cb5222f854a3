"""The files that containers are made from, looked at without an engine."""

import difflib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from codezero.config import TrainMethod
from codezero.train.method import SHARE_OF_FREE
from tests.commands import ROOT
from tests.plans import planned_gib

COMPOSE = ROOT / "docker-compose.yaml"
SPEC = yaml.safe_load(COMPOSE.read_text())
SERVICES = SPEC["services"]
DASHBOARDS = ("dashboard", "swarm-dashboard")
MEANT = ("DL3008", "DL3013", "DL3042")
"""Versions of Debian's packages go away when they are updated; those of Python's are in pyproject.toml or the wheel's
name; and pip's cache is a mount that no layer holds."""


def tool(name):
    """One of the test extra, which lies beside this Python."""
    found = shutil.which(name, path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    assert found, f"{name} is missing: pip install --editable .[test]"
    return found


def said(*command):
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return ended.returncode, ended.stdout + ended.stderr


@pytest.mark.parametrize("name", ["Dockerfile.cpu", "Dockerfile.gpu"])
def test_hadolint_finds_nothing_that_is_not_meant(name):
    ignored = [part for rule in MEANT for part in ("--ignore", rule)]
    assert said(tool("hadolint"), "--no-color", "--failure-threshold", "warning", *ignored, name) == (0, "")


def test_the_compose_file_follows_the_specification():
    code, output = said(tool("check-jsonschema"), "--builtin-schema", "vendor.compose-spec", str(COMPOSE))
    assert code == 0, output


def test_the_gpu_image_is_the_cpu_image_with_another_torch():
    """So what is tested of the one holds for the other, but for torch itself."""
    cpu, gpu = ((ROOT / f"Dockerfile.{name}").read_text().splitlines() for name in ("cpu", "gpu"))
    differing = [
        line[2:]
        for line in difflib.ndiff(cpu, gpu)
        if line[:2] in ("- ", "+ ") and line[2:].strip() and not line[2:].startswith("#")
    ]
    assert differing
    for line in differing:
        assert re.search(r"torch|TORCH|CUDA|cuda|NVIDIA|sys\.exit", line), line


def test_torch_is_the_one_of_the_launch_script():
    setup = (ROOT / "scripts" / "setup.sh").read_text()
    (version,) = re.findall(r"^TORCH_VERSION=(.+)$", setup, re.M)
    (index,) = re.findall(r"^TORCH_CPU_INDEX=(.+)$", setup, re.M)
    cpu, gpu = ((ROOT / f"Dockerfile.{name}").read_text() for name in ("cpu", "gpu"))
    assert f"ARG TORCH=torch=={version}+cpu\n" in cpu
    assert f"ARG TORCH_INDEX={index}\n" in cpu
    assert f"ARG TORCH=torch=={version}\n" in gpu
    assert f"install torch=={version} --index-url {index}\n" in (ROOT / "docs" / "launch-script.md").read_text()


def test_no_feature_that_docker_20_10_lacks():
    """Its BuildKit takes no other frontend without a registry, and knows neither heredocs nor COPY --link."""
    for name in ("Dockerfile.cpu", "Dockerfile.gpu"):
        text = (ROOT / name).read_text()
        assert not re.search(r"^# *syntax *=", text, re.M)
        assert not re.search(r"<<|--link|--exclude|--network", text)


def test_nothing_is_published_to_other_machines_unasked():
    published = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}
    for name in ("rollout-cpu", "rollout-gpu"):
        assert published.pop(name) == ["${CODEZERO_ROLLOUT_HOST:-127.0.0.1}:7070:7070"]
    assert set(published) == {"swarm-cpu", "swarm-gpu", *DASHBOARDS}
    for name, ports in published.items():
        assert len(ports) == 1
        assert re.fullmatch(rf"127\.0\.0\.1:(\$\{{\w+:-{7007 if name in DASHBOARDS else 3000}\}}):\1", ports[0])


def test_a_gpu_image_never_falls_back_to_the_cpu_unasked():
    environment = SERVICES["swarm-gpu"]["environment"]
    assert environment == {**SERVICES["swarm-cpu"]["environment"], "CPU_ONLY": "${CPU_ONLY:-0}"}
    assert "CPU_ONLY=0" in (ROOT / "Dockerfile.gpu").read_text()


def test_a_dashboard_can_change_nothing_and_is_told_no_secret():
    for name in DASHBOARDS:
        service = SERVICES[name]
        assert all(volume.endswith(":ro") for volume in service["volumes"])
        assert "environment" not in service
        assert not service.get("depends_on")  # it is also there when no node runs
        assert "health" not in service["healthcheck"]["test"]
        assert "--host 0.0.0.0 --port ${CODEZERO_DASHBOARD_PORT:-7007}" in service["command"]


@pytest.mark.parametrize("name", SERVICES)
def test_every_service_has_least_rights_and_bounds(name):
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert re.fullmatch(
        r"\d+g|\$\{CODEZERO_\w+MEMORY:-\d+g\}|\$\{CODEZERO_MEMORY(_GIB:-\d+\}g|:-\d+g\})", service["mem_limit"]
    )
    assert 128 <= service["pids_limit"] <= 8192
    assert "/tmp" in service["tmpfs"]
    assert not {"privileged", "cap_add", "ipc", "pid", "network_mode", "devices", "userns_mode"} & set(service)
    assert not any("docker.sock" in volume for volume in service.get("volumes", ()))


def test_a_node_may_use_what_its_plan_for_training_all_weights_takes():
    """Nodes plan with their container's memory, in which there is room for one worker."""
    planned = planned_gib(TrainMethod.full, "cpu", ["preset=local"], workers=1)
    assert f"{planned:.1f} GiB to train all weights" in (ROOT / "docs" / "containers.md").read_text()
    (limit,) = re.findall(r":-(\d+)g", SERVICES["swarm-cpu"]["mem_limit"])
    assert planned < SHARE_OF_FREE * (int(limit) - 2)  # the sign-in app and the launcher are there too
    for solver in ("solver-1", "solver-2"):
        assert "memory_limit_gib" not in SERVICES[solver]["command"]


def test_what_the_image_may_write_are_volumes_of_the_node():
    made = re.search(r"install -d -o codezero .*?\n(?=COPY)", (ROOT / "Dockerfile.cpu").read_text(), re.S)[0]
    folders = {f"/app/{name}" for name in re.findall(r"[\w/-]+", made.partition("/home/codezero/.cache")[2])}
    mounted = {re.sub(r"^.*?:(?=/)", "", volume) for volume in SERVICES["swarm-cpu"]["volumes"]}
    assert mounted == folders | {"/home/codezero/.cache"}


def test_the_dashboards_see_every_folder_that_nodes_write_to():
    seen = {name: dict(volume.split(":")[:2] for volume in SERVICES[name]["volumes"]) for name in DASHBOARDS}
    nodes = ("proposer", "solver-1", "solver-2")
    assert seen["dashboard"] == {"shared": "/shared", **{name: f"/nodes/{name}" for name in nodes}}
    written = dict(volume.split(":/", 1) for volume in SERVICES["swarm-cpu"]["volumes"])
    assert seen["swarm-dashboard"] == {name: f"/{written[name]}" for name in ("gpus", "logs", "state", "swarms")}


def test_each_profile_builds_each_of_its_images_once_and_pulls_none_of_ours():
    """Compose with bake refuses to make one image twice. `run` and `build` name one service of the swarm profile."""
    own = [service for service in SERVICES.values() if service["image"].startswith("codezero:")]
    images = {(*service["profiles"], service["image"]) for service in own}
    built = [(*service["profiles"], service["image"]) for service in own if "build" in service]
    assert sorted(built) == sorted(images)
    assert all(service.get("pull_policy") == "never" for service in own if "build" not in service)


def test_what_the_documents_give_as_remedies_reaches_the_nodes():
    passed = {"CODEZERO_UNCONFINED", "HF_ENDPOINT", "HF_HUB_OFFLINE", "PIP_INDEX_URL"}
    for name in ("swarm-cpu", "swarm-gpu", "proposer", "solver-1", "solver-2", "rollout-cpu", "rollout-gpu"):
        environment = SERVICES[name]["environment"]
        assert {key for key in passed if key in environment and environment[key] is None} == passed


def test_extras_are_in_no_image_unless_asked_for():
    pytest.importorskip("tomllib", reason="Python 3.10 lacks what that of the image has")
    built = [service["build"] for service in SERVICES.values() if "build" in service]
    assert {build["args"]["EXTRAS"] for build in built} == {"${CODEZERO_EXTRAS:-}"}
    text = (ROOT / "Dockerfile.cpu").read_text()
    assert "\nARG EXTRAS=\n" in text
    (program,) = re.findall(r"python -c '(import sys, .*?)' \"\$EXTRAS\"", text, re.S)
    program = program.replace("\\\n", "").replace("/tmp/pyproject.toml", "pyproject.toml")
    listed = {extras: said(sys.executable, "-c", program, extras) for extras in ("", "tracking report")}
    assert {code for code, _ in listed.values()} == {0}
    added = set(listed["tracking report"][1].splitlines()) - set(listed[""][1].splitlines())
    assert {re.match(r"[\w-]+", line)[0] for line in added} == {
        *("font-source-sans-pro", "resvg-py", "tensorboard", "wandb"),
    }


def test_no_containers_output_fills_the_disk():
    assert {str(service.get("logging")) for service in SERVICES.values()} == {"{'driver': 'local'}"}


def test_a_plain_up_starts_nothing_and_every_volume_is_named():
    used = set()
    for service in SERVICES.values():
        assert service["profiles"]
        used |= {volume.partition(":/")[0] for volume in service["volumes"]} if "volumes" in service else set()
    assert {re.sub(r"\$\{\w+:-([\w-]+)\}", r"\1", name) for name in used} == set(SPEC["volumes"])
